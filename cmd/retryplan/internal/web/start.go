package web

import (
	"cmp"
	"errors"
	"maps"
	"reflect"
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
	queued := func(label, title string, p retry.Policy, fleet state) preset {
		spec, err := retryconf.FromPolicy(p)
		if err != nil {
			panic(err) // ours
		}
		s := stateOf(spec)
		maps.Copy(s, fleet)
		return preset{label, title, s}
	}
	return []preset{
		{"Inline HTTP", "a request handler's call: four attempts within a few seconds, and a budget", maps.Clone(defaults)},
		queued("Aggressive", "work that is stale soon", retry.Aggressive(), nil),
		queued("Standard", "long enough for a deploy or an incident to pass", retry.Standard(), nil),
		queued("Patient", "a peer that is mended in office hours", retry.Patient(), nil),
		queued("Cautious", "work that must not be lost overnight", retry.Cautious(), nil),
		queued("See a storm", "a stall of 10s from which full jitter does not bring the fleet back", retry.Policy{
			MaxAttempts:    4,
			Backoff:        retry.Backoff{Base: 100 * time.Millisecond, Cap: 10 * time.Second, Jitter: retry.FullJitter},
			AttemptTimeout: time.Second,
		}, state{
			"failure": "0", "duration": "10ms", "clients": "1", "rate": "70", "capacity": "100",
			"trigger": "stall", "trigger_length": "10s", "trigger_factor": "", "budget": "none",
		}),
	}
}

// startWith returns a start whose state has p, or the first preset's state if p is zero.
func startWith(p retry.Policy) (start, error) {
	s := start{State: maps.Clone(defaults), Presets: presets()}
	if p.Disabled {
		return start{}, errors.New("web: the policy is disabled: there is nothing to see")
	}
	spec, err := retryconf.FromPolicy(p)
	if _, code := errors.AsType[*retryconf.CodeError](err); err != nil && !code {
		return start{}, err
	}
	if !reflect.ValueOf(spec).IsZero() {
		maps.Copy(s.State, stateOf(spec))
	}
	return s, nil
}

// stateOf returns the fields of a policy for which no caller waits, as far as is known. What spec does not give is
// empty, so that a preset's policy is whole and nothing of the last one stays.
func stateOf(spec retryconf.Spec) state {
	short := func(d retryconf.Duration) string {
		if d == 0 {
			return ""
		}
		return wire.Duration(d).String()
	}
	s := state{
		"name": spec.Name, "max_attempts": spec.MaxAttempts.String(), "mode": cmp.Or(spec.Mode.String(), "exponential"),
		"base": short(spec.Base), "cap": short(spec.Cap), "factor": spec.Factor.String(),
		"jitter": cmp.Or(spec.Jitter.String(), "none"), "jitter_ratio": spec.JitterRatio.String(),
		"attempt_timeout": short(spec.AttemptTimeout), "ttl": short(spec.TTL), "max_hint": short(spec.MaxHint),
		"reset_after": short(spec.ResetAfter), "inline": "no", "deadline": "",
	}
	if len(spec.Delays) > 0 {
		s["mode"], s["max_attempts"] = "list", cmp.Or(s["max_attempts"], strconv.Itoa(len(spec.Delays)+1))
		waits := make([]string, len(spec.Delays))
		for i, d := range spec.Delays {
			waits[i] = wire.Duration(d).String()
		}
		s["delays"] = strings.Join(waits, ", ")
	}
	return s
}
