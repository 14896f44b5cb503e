package retryconf

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/internal/show"
	"github.com/retrygo/retry/retryhedge"
)

// Hedge is the wire form of a retryhedge.Policy, under the key hedge. It starts a second call beside one that is slow,
// after a fixed delay or for a share of calls. The zero value means "not given", and makes no hedges.
type Hedge struct {
	// Delay is how long a call is under way before the next one starts. Without it the share chooses the delay.
	Delay Duration `json:"delay,omitzero" yaml:"delay,omitempty" toml:"delay,omitempty,omitzero"`
	// Share is the share of calls that are hedged, in (0,0.5]. The default beside a bound of the delay is 0.05.
	Share Number `json:"share,omitzero" yaml:"share,omitempty" toml:"share,omitempty,omitzero"`
	// MinDelay and MaxDelay bound the delay that the share chooses. The defaults are 1ms and 10s.
	MinDelay Duration `json:"min_delay,omitzero" yaml:"min_delay,omitempty" toml:"min_delay,omitempty,omitzero"`
	MaxDelay Duration `json:"max_delay,omitzero" yaml:"max_delay,omitempty" toml:"max_delay,omitempty,omitzero"`
	// MaxCalls is how many calls there can be in all, the first included, from 1 (no hedges) to 8. The default is 2.
	MaxCalls Attempts `json:"max_calls,omitzero" yaml:"max_calls,omitempty" toml:"max_calls,omitempty,omitzero"`
}

func (h *Hedge) fields() []field {
	return []field{
		{"delay", &h.Delay}, {"share", &h.Share}, {"min_delay", &h.MinDelay}, {"max_delay", &h.MaxDelay},
		{"max_calls", &h.MaxCalls},
	}
}

// tracked reports whether the delay is chosen by a share.
func (h Hedge) tracked() bool { return h.Share != 0 || h.MinDelay != 0 || h.MaxDelay != 0 }

func (h Hedge) off() bool { return h.MaxCalls == 1 || h.Delay == 0 && !h.tracked() }

// Policy returns the retryhedge.Policy that h describes, or an error that names every bad field. A share has a Tracker of
// its own at each call, so call it once for each kind of call. Set the Budget, which is code.
func (h Hedge) Policy() (retryhedge.Policy, error) {
	p, bad := h.policy("")
	return p, bad.Err()
}

// policy is Policy for a Hedge at path.
func (h Hedge) policy(path string) (retryhedge.Policy, retry.FieldErrors) {
	var bad retry.FieldErrors
	p := retryhedge.Policy{Delay: time.Duration(h.Delay), MaxCalls: int(h.MaxCalls)}
	if h.MaxCalls == retry.Unlimited {
		add(&bad, under(path, "max_calls"), unlimited, "is not a number of 1 to 8")
		p.MaxCalls = 0
	}
	var err error
	if h.tracked() {
		p.Tracker, err = retryhedge.NewTracker(retryhedge.TrackerConfig{
			Share: float64(h.Share), Min: time.Duration(h.MinDelay), Max: time.Duration(h.MaxDelay),
		})
		if h.Delay != 0 {
			add(&bad, under(path, "delay"), h.Delay.String(), "is given together with a share or its bounds, which choose it")
			p.Delay = 0
		}
	}
	words := strings.NewReplacer("Policy.Delay", "delay", "Policy.MaxCalls", "max_calls", "TrackerConfig.Share", "share",
		"TrackerConfig.Min", "min_delay", "TrackerConfig.Max", "max_delay", "Max", "max_delay", "0 to 8", "1 to 8")
	for _, err := range []error{err, p.Validate()} {
		var fields retry.FieldErrors
		errors.As(err, &fields)
		for _, err := range fields {
			var e *retry.FieldError
			if errors.As(err, &e) {
				add(&bad, under(path, words.Replace(e.Field)), e.Value, words.Replace(e.Rule))
			}
		}
	}
	if bad == nil && h.MaxCalls > 1 && h.off() {
		add(&bad, under(path, "max_calls"), fmt.Sprint(h.MaxCalls), "is given without a delay or a share")
	}
	if bad != nil {
		return retryhedge.Policy{}, bad
	}
	return p, nil
}

func (l Limits) checkHedge(h Hedge) (bad retry.FieldErrors) {
	if h.off() {
		return nil
	}
	if calls := cmp.Or(h.MaxCalls, 2); l.MaxHedgeCalls > 0 && int(calls) > l.MaxHedgeCalls {
		add(&bad, "hedge.max_calls", fmt.Sprint(calls), byDefault(fmt.Sprint("is above ", l.MaxHedgeCalls), h.MaxCalls != 0))
	}
	if h.tracked() {
		least := retryhedge.TrackerConfig{Min: time.Duration(h.MinDelay)}.Effective().Min
		l.checkHedgeDelay(&bad, "hedge.min_delay", least, h.MinDelay != 0)
	} else {
		l.checkHedgeDelay(&bad, "hedge.delay", time.Duration(h.Delay), true)
	}
	return bad
}

func (l Limits) checkHedgeDelay(bad *retry.FieldErrors, key string, delay time.Duration, isGiven bool) {
	if delay < l.MinHedgeDelay {
		add(bad, key, show.Duration(delay), byDefault("is below "+show.Duration(l.MinHedgeDelay), isGiven))
	}
}
