package retryotel

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/retrygo/retry"
)

// The keys of our attributes. Those of the conventions come from semconv.
const (
	keyPolicy  = attribute.Key("retry.policy")
	keyOfRun   = attribute.Key("retry.run.policy")
	keyStatus  = attribute.Key("retry.status")
	keyReason  = attribute.Key("retry.reason")
	keyKind    = attribute.Key("retry.kind")
	keyAttempt = attribute.Key("retry.attempt")
	keyClass   = attribute.Key("retry.class")
	keyDelay   = attribute.Key("retry.delay")
	keyMade    = attribute.Key("retry.attempts")
	keyBudget  = attribute.Key("retry.budget")
	keyJob     = attribute.Key("retry.job")
	keyEngine  = attribute.Key("retry.engine")
	keyHedge   = attribute.Key("retry.hedge")
	keyCalls   = attribute.Key("retry.calls")
)

// other is the value for anything that is not distinguished, as in error.type of the conventions.
const other = "_OTHER"

// kind is how a run ended, in the four words of resilience4j's retry calls.
type kind uint8

const (
	succeededWithoutRetry kind = iota
	succeededWithRetry
	failedWithoutRetry
	failedWithRetry
	kinds
)

func kindOf(o *retry.Outcome) kind {
	k := succeededWithoutRetry
	if o.Status != retry.Succeeded {
		k = failedWithoutRetry
	}
	if o.Attempts > 1 {
		k++
	}
	return k
}

func (k kind) String() string {
	return [...]string{"succeeded_without_retry", "succeeded_with_retry", "failed_without_retry", "failed_with_retry"}[k]
}

// notRetried is the status of a run that ended with a terminal error at its first attempt: an ordinary error, and not a
// dead letter.
const notRetried = retry.Canceled + 1

// The numbers of statuses and reasons, zero included.
const (
	statuses = int(notRetried) + 1
	reasons  = int(givenUpBelow) + 1
)

// givenUpBelow is the reason of a run that ended with a terminal error because a layer below had given up.
const givenUpBelow = retry.CallerCanceled + 1

// ending is the end of a run, as retry.runs counts it.
type ending struct {
	status retry.Status
	reason retry.Reason
	kind   kind
}

// endingOf returns the ending of a run. A value that is not a status or reason of a run counts as zero, since
// attributes are enumerations.
func endingOf(o *retry.Outcome) ending {
	e := ending{o.Status, o.Reason, kindOf(o)}
	if e.status >= notRetried {
		e.status = 0
	}
	if e.reason >= givenUpBelow {
		e.reason = 0
	}
	if e.reason == retry.TerminalError {
		if o.Attempts == 1 {
			e.status = notRetried
		}
		if o.GivenUpBelow {
			e.reason = givenUpBelow
		}
	}
	return e
}

func (e ending) index() int {
	return (int(e.status)*reasons+int(e.reason))*int(kinds) + int(e.kind)
}

func (e ending) attributes() []attribute.KeyValue {
	list := []attribute.KeyValue{keyStatus.String(e.statusText())}
	if e.reason != 0 {
		list = append(list, keyReason.String(e.reasonText()))
	}
	return list
}

func (e ending) reasonText() string {
	if e.reason == givenUpBelow {
		return "given_up_below"
	}
	return e.reason.Error()
}

func (e ending) statusText() string {
	switch e.status {
	case 0:
		return other
	case notRetried:
		return "not_retried"
	default:
		return e.status.String()
	}
}

// class is how an attempt ended: a retry.Class or success. Only an Event made by hand has Unknown.
type class uint8

const (
	success = class(retry.Terminal) + 1
	classes = success + 1
)

func classOf(c retry.Class) class {
	if c > retry.Terminal {
		c = retry.Unknown
	}
	return class(c)
}

func (c class) String() string {
	switch c {
	case class(retry.Unknown):
		return other
	case success:
		return retry.Succeeded.String()
	default:
		return retry.Class(c).String()
	}
}

// series are the attribute sets of one policy, each made once.
type series struct {
	policy  []attribute.KeyValue // retry.policy; none without a name
	delay   []metric.RecordOption
	kinds   [kinds][]metric.RecordOption
	classes [classes]struct {
		add    []metric.AddOption
		record []metric.RecordOption
	}
	runs [statuses * reasons * int(kinds)]atomic.Pointer[[]metric.AddOption] // by ending.index; nil before the first
}

func newSeries(policy ...attribute.KeyValue) *series {
	s := &series{policy: policy}
	s.delay = []metric.RecordOption{s.option()}
	for k := range kinds {
		s.kinds[k] = []metric.RecordOption{s.option(keyKind.String(k.String()))}
	}
	for c := range classes {
		option := s.option(keyClass.String(c.String()))
		s.classes[c].add, s.classes[c].record = []metric.AddOption{option}, []metric.RecordOption{option}
	}
	return s
}

// option returns the policy's attributes and more.
func (s *series) option(more ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(append(more, s.policy...)...))
}

func (s *series) ended(e ending) []metric.AddOption {
	at := &s.runs[e.index()]
	found := at.Load()
	if found == nil { // two goroutines at once build the same value
		found = &[]metric.AddOption{s.option(append(e.attributes(), keyKind.String(e.kind.String()))...)}
		at.Store(found)
	}
	return *found
}

// policies are the series of a bounded number of policies. A known policy costs a map lookup and no lock.
type policies struct {
	most    int
	unnamed *series
	other   *series

	mu    sync.Mutex // guards the change of named
	named atomic.Pointer[map[string]*series]
}

func newPolicies(most int) *policies {
	p := &policies{most: most, unnamed: newSeries(), other: newSeries(keyPolicy.String(other))}
	p.named.Store(&map[string]*series{})
	return p
}

func (p *policies) of(name string) *series {
	if name == "" {
		return p.unnamed
	}
	name = nameOf(name)
	named := *p.named.Load()
	if s := named[name]; s != nil {
		return s
	}
	if len(named) >= p.most {
		return p.other
	}
	return p.add(name)
}

func (p *policies) add(name string) *series {
	p.mu.Lock()
	defer p.mu.Unlock()
	named := *p.named.Load()
	if s := named[name]; s != nil { // another goroutine was faster
		return s
	}
	if len(named) >= p.most {
		return p.other
	}
	s := newSeries(keyPolicy.String(name))
	more := maps.Clone(named)
	more[strings.Clone(name)] = s // not a string that shares memory with a longer one
	p.named.Store(&more)
	return s
}

func policyAttribute(name string) attribute.KeyValue { return keyPolicy.String(nameOf(name)) }
