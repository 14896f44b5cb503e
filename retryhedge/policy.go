package retryhedge

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

const (
	// defaultMaxCalls is enough for nearly all that hedges can do. gRPC's proposal A6 allows 5 calls, and "The Tail at
	// Scale" measures 2.
	defaultMaxCalls = 2
	mostCalls       = 8
)

// Policy decides when a call that is slow, and has not failed, gets another call beside it. It is a value like
// retry.Policy. It may be copied and shared among any number of goroutines, and the library never writes to it. The
// zero Policy makes no hedges.
type Policy struct {
	// Name is a label for events. It may be empty.
	Name string
	// Delay is how long the newest call must have been under way before the next one is started. It should be near the
	// 95th percentile of the call's duration. Zero means that Tracker chooses, and without one that there are no hedges.
	Delay time.Duration
	// Tracker chooses the delay so that a given share of calls is hedged. Nil means Delay. Both together are refused.
	Tracker *Tracker `json:"-"`
	// MaxCalls is how many calls there can be in all, the first included, from 1 (no hedges) to 8. Zero means 2.
	MaxCalls int
	// Budget pays for hedges as it does for retries. A hedge takes a token, and a call that succeeds funds it. A hedge
	// leaves a token for a retry, so with fewer than two there is no hedge, and the call goes on. Use the budget that
	// pays for the retries of the call. Nil means that hedges are free. Then a slowdown that all calls share doubles
	// the load.
	Budget *retry.Budget `json:"-"`
	// InRun declares that a retry.Do with the same Budget is around the call. Then only the success of the run funds
	// the Budget, which the success of the call would do a second time. False means that the call stands alone.
	InRun bool
	// Classify judges the errors of calls, like the Classify of a retry.Policy. A terminal error ends all calls. Nil
	// means the marks and default rules of package retry alone.
	Classify retry.Classifier `json:"-"`
	// Observe is called once for each call of Do that could make hedges, in its goroutine and with its context, before
	// Do returns. It is not called if a panic ends Do. Nil means no observer.
	Observe func(context.Context, Event) `json:"-"`
}

// Event describes one call of Do. There was a hedge if len(Calls) > 1.
type Event struct {
	Policy  string        // Policy.Name
	Delay   time.Duration // after which a call was slow enough for a hedge
	Slow    bool          // the first call was still under way after Delay
	Refused bool          // a hedge was due, and the Budget had no token to spare
	Won     int           // the number of the call whose result Do returned, from 1, so 2 or more is a hedge
	Elapsed time.Duration
	Err     error  // the error that Do returns
	Calls   []Call // in the order in which they began, as the receiver's own copy
}

// LogValue returns a group for a log line with policy, delay, calls, won, refused, elapsed, and error if there is one.
func (e Event) LogValue() slog.Value {
	attrs := []slog.Attr{slog.String("policy", e.Policy), slog.Duration("delay", e.Delay), slog.Int("calls", len(e.Calls)),
		slog.Int("won", e.Won), slog.Bool("refused", e.Refused), slog.Duration("elapsed", e.Elapsed)}
	if e.Err != nil {
		attrs = append(attrs, slog.Any("error", e.Err))
	}
	return slog.GroupValue(attrs...)
}

// Call is one call of fn. A call that lost and ignores its context can still be under way.
type Call struct {
	Began    time.Duration // since the call of Do
	Duration time.Duration // 0 if it is under way
	Running  bool          // it is under way
	Err      error
}

// Validate returns nil or retry.FieldErrors with every bad field, its value and the rule that it breaks. It refuses a
// negative Delay, a Delay beside a Tracker, a Tracker that is not from NewTracker, and MaxCalls outside 0 to 8.
func (p Policy) Validate() error { return p.check().Err() }

func (p *Policy) check() (bad retry.FieldErrors) {
	if p.Delay < 0 {
		bad.Refuse("retryhedge.Policy.Delay", p.Delay, "is negative")
	}
	if p.Delay > 0 && p.Tracker != nil {
		bad.Refuse("retryhedge.Policy.Delay", p.Delay, "is set beside Tracker, which chooses it")
	}
	if p.Tracker != nil && p.Tracker.up == 0 {
		bad.Refuse("retryhedge.Policy.Tracker", p.Tracker, "is not from NewTracker")
	}
	if p.MaxCalls < 0 || p.MaxCalls > mostCalls {
		bad.Refuse("retryhedge.Policy.MaxCalls", p.MaxCalls, "is outside 0 to", mostCalls)
	}
	return bad
}

// Off reports whether p makes no hedges.
func (p Policy) Off() bool { return p.Delay <= 0 && p.Tracker == nil || p.MaxCalls == 1 }

func (p *Policy) delay() time.Duration {
	if p.Tracker != nil {
		return p.Tracker.Delay()
	}
	return p.Delay
}

// note records in the Tracker, if there is one, whether the call was slow.
func (p *Policy) note(slow bool) {
	if p.Tracker != nil {
		p.Tracker.Note(slow)
	}
}

func (p *Policy) maxCalls() int { return cmp.Or(p.MaxCalls, defaultMaxCalls) }

// String returns one line, such as "hedge after 50ms, at most 2 calls", "prices: hedge 5% of calls, after 1ms to 10s,
// at most 2 calls" or "no hedges".
func (p Policy) String() string {
	var s strings.Builder
	if p.Name != "" {
		s.WriteString(p.Name + ": ")
	}
	switch {
	case p.Off():
		return s.String() + "no hedges"
	case p.Tracker != nil:
		s.WriteString(p.Tracker.String())
	default:
		fmt.Fprintf(&s, "hedge after %v", p.Delay)
	}
	fmt.Fprintf(&s, ", at most %d calls", p.maxCalls())
	if p.Budget != nil {
		s.WriteString(", with a budget")
	}
	return s.String()
}
