package web

import (
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryconf"
)

// start is what the page begins with.
type start struct {
	State   state    `json:"state"`
	Presets []preset `json:"presets"`
}

// preset is a state to begin with. It sets the fields that it has and leaves the others.
type preset struct {
	Label string `json:"label"`
	Title string `json:"title"` // what it is for
	State state  `json:"state"`
}

// defaults are all of a state's keys with what the page opens with: an inline call in a fleet of a hundred clients.
var defaults = state{
	"name": "", "max_hint": "", "reset_after": "",
	"max_attempts": "4", "mode": "exponential", "base": "100ms", "factor": "2", "cap": "300ms", "delays": "1m, 30m, 3h",
	"jitter": "full", "jitter_ratio": "0.2", "attempt_timeout": "1s", "ttl": "", "inline": "yes", "deadline": "5s",
	"failure": "0.1", "duration": "50ms",
	"clients": "100", "rate": "40", "capacity": "100", "trigger": "stall", "trigger_length": "10s", "trigger_factor": "",
	"budget": "client", "budget_ratio": "0.1", "budget_burst": "10",
}

// presets are the page's buttons. The published policies leave the fleet as it is; the storm is the timeout queue that
// no backoff and no jitter cures: 70 runs a second on a backend that does 100 attempts, and a stall of 10s.
func presets() []preset {
	all := []preset{{
		Label: "Inline HTTP", Title: "a request handler's call: four attempts within a few seconds, and a budget",
		State: maps.Clone(defaults),
	}}
	for _, p := range []struct {
		policy retry.Policy
		title  string
	}{
		{retry.Aggressive(), "work that is stale soon"},
		{retry.Standard(), "long enough for a deploy or an incident to pass"},
		{retry.Patient(), "a peer that is mended in office hours"},
		{retry.Cautious(), "work that must not be lost overnight"},
	} {
		s := ofPolicy(p.policy)
		s["inline"], s["deadline"] = "no", ""
		all = append(all, preset{Label: strings.ToUpper(p.policy.Name[:1]) + p.policy.Name[1:], Title: p.title, State: s})
	}
	storm := ofPolicy(retry.Policy{
		MaxAttempts:    4,
		Backoff:        retry.Backoff{Base: 100 * time.Millisecond, Cap: 10 * time.Second, Jitter: retry.FullJitter},
		AttemptTimeout: time.Second,
	})
	maps.Copy(storm, state{
		"inline": "no", "deadline": "", "failure": "0", "duration": "10ms", "clients": "1", "rate": "70", "capacity": "100",
		"trigger": "stall", "trigger_length": "10s", "trigger_factor": "", "budget": "none",
	})
	return append(all, preset{
		Label: "See a storm", Title: "a stall of 10s from which full jitter does not bring the fleet back", State: storm,
	})
}

// startWith returns a start whose state has p, or the first preset's state if p is zero.
func startWith(p retry.Policy) (start, error) {
	s := start{State: maps.Clone(defaults), Presets: presets()}
	if p.Disabled {
		return start{}, errors.New("web: the policy is disabled: there is nothing to see")
	}
	spec, err := retryconf.FromPolicy(p)
	var code *retryconf.CodeError
	if err != nil && !errors.As(err, &code) {
		return start{}, err
	}
	if text := ofSpec(spec); text != nil {
		maps.Copy(s.State, text)
		s.State["inline"], s.State["deadline"] = "no", "" // it is not known whether a caller waits
	}
	return s, nil
}

// ofPolicy returns the fields of a valid policy.
func ofPolicy(p retry.Policy) state {
	spec, err := retryconf.FromPolicy(p)
	if err != nil {
		return state{}
	}
	return ofSpec(spec)
}

// ofSpec returns the fields of a policy, and nil for the zero policy. What it does not give is empty, so that a
// preset's policy is whole and nothing of the last one stays.
func ofSpec(spec retryconf.Spec) state {
	s := state{
		"max_attempts": spec.MaxAttempts.String(), "base": short(spec.Base), "cap": short(spec.Cap), "factor": spec.Factor.String(),
		"jitter": spec.Jitter.String(), "jitter_ratio": spec.JitterRatio.String(),
		"attempt_timeout": short(spec.AttemptTimeout), "ttl": short(spec.TTL), "max_hint": short(spec.MaxHint),
		"reset_after": short(spec.ResetAfter),
	}
	given := spec.Name != "" || retry.Mode(spec.Mode) != 0 || len(spec.Delays) > 0
	for _, text := range s {
		given = given || text != ""
	}
	if !given {
		return nil
	}
	s["name"], s["mode"] = spec.Name, "exponential"
	if mode := retry.Mode(spec.Mode); mode != 0 {
		s["mode"] = mode.String()
	}
	if s["jitter"] == "" {
		s["jitter"] = "none"
	}
	if len(spec.Delays) > 0 {
		s["mode"] = "list"
		s["max_attempts"] = strconv.Itoa(len(spec.Delays) + 1)
		if spec.MaxAttempts != 0 {
			s["max_attempts"] = spec.MaxAttempts.String()
		}
		var waits []string
		for _, d := range spec.Delays {
			waits = append(waits, wire.Duration(time.Duration(d)).String())
		}
		s["delays"] = strings.Join(waits, ", ")
	}
	return s
}

func short(d retryconf.Duration) string {
	if d == 0 {
		return ""
	}
	return wire.Duration(time.Duration(d)).String()
}
