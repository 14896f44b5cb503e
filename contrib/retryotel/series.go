package retryotel

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/retrygo/retry"
)

// The keys of our attributes. That of the conventions is keyErrorType.
const (
	keyPolicy   = attribute.Key("retry.policy")
	keyOfRun    = attribute.Key("retry.run.policy")
	keyStatus   = attribute.Key("retry.status")
	keyReason   = attribute.Key("retry.reason")
	keyKind     = attribute.Key("retry.kind")
	keyAttempt  = attribute.Key("retry.attempt")
	keyClass    = attribute.Key("retry.class")
	keyDelay    = attribute.Key("retry.delay")
	keyMade     = attribute.Key("retry.attempts")
	keyBudget   = attribute.Key("retry.budget")
	keyJob      = attribute.Key("retry.job")
	keyEngine   = attribute.Key("retry.engine")
	keySchedule = attribute.Key("retry.schedule")
	keyHedge    = attribute.Key("retry.hedge")
	keyCalls    = attribute.Key("retry.calls")
)

// other is the value for anything that is not distinguished, as in error.type of the conventions.
const other = "_OTHER"

// labels are the attributes of a measurement, a policy's name and texts of enumerations. An empty one is omitted.
type labels struct{ policy, status, reason, kind, class, hedge string }

func (l labels) attributes() (list []attribute.KeyValue) {
	for _, one := range [...]struct {
		key  attribute.Key
		text string
	}{
		{keyPolicy, l.policy}, {keyStatus, l.status}, {keyReason, l.reason}, {keyKind, l.kind}, {keyClass, l.class}, {keyHedge, l.hedge},
	} {
		if one.text != "" {
			list = append(list, one.key.String(one.text))
		}
	}
	return list
}

// endingOf returns the status and the reason of a run. A value that no run has, of an Event made by hand, is "_OTHER" or
// no reason. A terminal error at the first attempt is an ordinary error, and not a dead letter.
func endingOf(o *retry.Outcome) labels {
	l := labels{status: other}
	if 0 < o.Status && o.Status <= retry.Canceled {
		l.status = o.Status.String()
	}
	if 0 < o.Reason && o.Reason <= retry.CallerCanceled {
		l.reason = o.Reason.Error()
	}
	if o.Reason == retry.TerminalError {
		if o.Attempts == 1 {
			l.status = "not_retried"
		}
		if o.InnerGaveUp {
			l.reason = "given_up_below"
		}
	}
	return l
}

// kindOf returns the kind of a run's end, in the four words of resilience4j's retry calls.
func kindOf(o *retry.Outcome) string {
	switch succeeded, retried := o.Status == retry.Succeeded, o.Attempts > 1; {
	case succeeded && retried:
		return "succeeded_with_retry"
	case succeeded:
		return "succeeded_without_retry"
	case retried:
		return "failed_with_retry"
	default:
		return "failed_without_retry"
	}
}

// success is the class of an attempt that succeeded, which retry.Class does not have.
var success = retry.Succeeded.String()

func classOf(c retry.Class) string {
	if c != retry.Retryable && c != retry.Terminal {
		return other
	}
	return c.String()
}

// options are slices, because a call with any other arguments would allocate one.
type options struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

// series have a set of attributes that is made once for each of the labels, with at most maxPolicies names of policies.
type series struct {
	mu    sync.RWMutex
	names map[string]bool
	made  map[labels]*options
}

func newSeries() *series { return &series{names: map[string]bool{}, made: map[labels]*options{}} }

func (s *series) of(l labels) *options {
	l.policy = nameOf(l.policy)
	s.mu.RLock()
	o := s.made[l]
	s.mu.RUnlock()
	if o != nil {
		return o
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case l.policy == "" || s.names[l.policy]:
	case len(s.names) < maxPolicies:
		s.names[l.policy] = true
	default:
		l.policy = other
	}
	if s.made[l] == nil {
		set := metric.WithAttributeSet(attribute.NewSet(l.attributes()...))
		s.made[l] = &options{[]metric.AddOption{set}, []metric.RecordOption{set}}
	}
	return s.made[l]
}

func policyAttribute(name string) attribute.KeyValue { return keyPolicy.String(nameOf(name)) }
