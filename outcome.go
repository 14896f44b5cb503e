package retry

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// Attempt is the record of one failed attempt.
type Attempt struct {
	Number   int // from 1
	Start    time.Time
	Duration time.Duration
	Class    Class         // the class that was acted on: Retryable or Terminal
	Err      error         // what fn returned
	Delay    time.Duration // the wait decided on after it, even if that was cut short; 0 where none was, or by jitter
}

// Outcome is the record of a run: how it ended, after how many attempts, and which of them failed.
type Outcome struct {
	Policy   string // Policy.Name
	Status   Status // any but Waiting
	Reason   Reason // zero where Status is Succeeded
	Attempts int    // attempts made, a successful last one included; 0 where none was
	Elapsed  time.Duration
	// History holds the failed attempts in order: the first one and the newest 63, so that a run of any length
	// holds bounded memory. It is the receiver's own copy.
	History []Attempt
}

// String returns one line: "succeeded after 3 attempts in 1.2s", "dead_letter (attempts_exhausted) after 8 attempts in 10m35s".
func (o Outcome) String() string {
	d := Decision{Status: o.Status, Reason: o.Reason}
	return d.String() + " after " + counted(o.Attempts) + " in " + rounded(o.Elapsed).String()
}

// Event is what Policy.Observe is told: N failed attempts and the end of their run make N+1 events. An attempt that
// succeeds is told by the final event alone. The last failure of a run is told twice, as an attempt and as the end; an
// Outcome that is not nil marks the end.
type Event struct {
	// Policy is Policy.Name.
	Policy string
	// Elapsed is the time from the start of the run to the end of Attempt; in the final event it is that of Outcome.
	Elapsed time.Duration
	// Attempt is the attempt that failed. It is zero in the final event.
	Attempt Attempt
	// Decision is what was decided about that attempt; in the final event it is how the run ended. Where it is
	// Waiting, nothing then known forbade the retry: only a cancelled caller, the clock or a gate can still end
	// the run during the wait.
	Decision Decision
	// Outcome is the record of the run in the final event, and nil before it.
	Outcome *Outcome
	// Err is in the final event what Do returns, in a copy: an *Error, or nil after a success.
	Err error
}

// Error is what Do returns on every failure of a run. errors.Is and errors.As reach its Reason, the last error and
// the cause; the table in the package documentation says which answers hold for which ending.
type Error struct {
	Outcome
	// Last is what fn returned last, marks and wrapping included. Nil where no attempt was made.
	Last error
	// Cause is context.Cause of the caller's context for CallerCanceled and DeadlinePassed, else nil.
	Cause error
}

// Error returns one line: "retry: gave up after 3 attempts in 1.2s (attempts_exhausted): dial tcp ...". The policy's
// name, where it has one, follows "retry: "; the cause stands in for the last error where there is none.
func (e *Error) Error() string {
	if e == nil {
		return "<nil>"
	}
	var b strings.Builder
	b.WriteString("retry: ")
	if e.Policy != "" {
		b.WriteString(e.Policy + ": ")
	}
	b.WriteString("gave up after " + counted(e.Attempts) + " in " + rounded(e.Elapsed).String() + " (" + e.Reason.Error() + ")")
	switch {
	case e.Last != nil:
		b.WriteString(": " + e.Last.Error())
	case e.Cause != nil:
		b.WriteString(": " + e.Cause.Error())
	}
	return oneLine(b.String())
}

// Unwrap returns the Reason, Last and Cause, as far as they are set. For a Last or Cause that carries a Reason of its own,
// as a nested run's *Error does, it returns a stand-in that answers errors.Is and errors.As for all of it but that: a
// Reason is asked about this run only.
func (e *Error) Unwrap() []error {
	if e == nil {
		return nil
	}
	parts := make([]error, 0, 3)
	if e.Reason != 0 {
		parts = append(parts, e.Reason)
	}
	for _, err := range []error{e.Last, e.Cause} {
		if err != nil {
			parts = append(parts, shielded(err))
		}
	}
	return parts
}

// Is reports that CallerCanceled is a context.Canceled and DeadlinePassed a context.DeadlineExceeded, also where the
// caller's context has a cause of its own.
func (e *Error) Is(target error) bool {
	switch {
	case e == nil:
		return false
	case e.Reason == CallerCanceled:
		return target == context.Canceled
	default:
		return e.Reason == DeadlinePassed && target == context.DeadlineExceeded
	}
}

// Timeout reports whether the run ended because time ran out: the caller's deadline has passed, or the last error says of
// itself that it is a timeout, as a net.Error does. So the Timeout of a *url.Error around e gives what it gives without
// retries.
func (e *Error) Timeout() bool {
	if e == nil {
		return false
	}
	var last interface{ Timeout() bool }
	return e.Reason == DeadlinePassed || errors.As(e.Last, &last) && last.Timeout()
}

// shielded returns err, behind a shield where it carries a Reason.
func shielded(err error) error {
	var reason Reason
	if errors.As(err, &reason) {
		return shield{err}
	}
	return err
}

// shield answers for an error inside without showing its Reasons. It has no Unwrap on purpose.
type shield struct{ inside error }

func (s shield) Error() string { return s.inside.Error() }

func (s shield) Is(target error) bool {
	if _, ok := target.(Reason); ok {
		return false
	}
	return errors.Is(s.inside, target)
}

func (s shield) As(target any) bool {
	if _, ok := target.(*Reason); ok {
		return false
	}
	return errors.As(s.inside, target)
}

// rounded drops the digits that nobody reads: below a millisecond from 1s on, below a microsecond from 1ms on.
func rounded(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(time.Microsecond)
	default:
		return d
	}
}

// kept is how many failed attempts a history holds: the first and the newest 63.
const (
	kept      = 64
	maxNewest = kept - 1
)

// failure is an Attempt without what its place in the history tells.
type failure struct {
	start    time.Duration // since the run began
	duration time.Duration
	delay    time.Duration
	err      error
	class    Class
}

// fill makes a the attempt with the given number, of a run that began at the given time.
func (f *failure) fill(a *Attempt, number int, began time.Time) {
	a.Number, a.Start, a.Duration = number, began.Add(f.start), f.duration
	a.Class, a.Err, a.Delay = f.class, f.err, f.delay
}

// history is what is kept of the failures of one run.
type history struct {
	noted   int // how many there were
	first   failure
	retries *retries // nil before the first retry
}

// retries is what a run needs from its first retry on, with room for three: most runs that succeed at all need no
// more.
type retries struct {
	contexts [3]numbered
	more     *[8]numbered // for those who do: the contexts of eight retries, anew for the next eight
	failures [3]failure
	newest   []failure // a ring of the failures from the second on, 63 at most; begins as failures
}

// context returns ctx with the number of an attempt, which is 2 at first and then one more each time.
func (r *retries) context(ctx context.Context, number int) context.Context {
	i := number - 2
	if i < len(r.contexts) {
		r.contexts[i] = numbered{ctx, number}
		return &r.contexts[i]
	}
	if i = (i - len(r.contexts)) % len(r.more); i == 0 {
		r.more = new([8]numbered)
	}
	r.more[i] = numbered{ctx, number}
	return &r.more[i]
}

// note returns the place of one more failure.
func (h *history) note() *failure {
	h.noted = next(h.noted)
	if h.noted == 1 {
		return &h.first
	}
	r := h.retries
	switch have := len(r.newest); {
	case h.noted == 2:
		r.newest = r.failures[:1]
	case have == maxNewest:
		// The oldest makes room.
	case have == cap(r.newest):
		r.newest = slices.Grow(r.newest, min(2*have, maxNewest-have))[:have+1]
	default:
		r.newest = r.newest[:have+1]
	}
	return r.at(h.noted)
}

// at returns the failure with the given number, from 2, which must be kept still.
func (r *retries) at(number int) *failure { return &r.newest[(number-2)%maxNewest] }

// at returns the failure with the given number, from 1, which must be kept still.
func (h *history) at(number int) *failure {
	if number == 1 {
		return &h.first
	}
	return h.retries.at(number)
}

// last returns the last failure as an Attempt of a run that began at the given time.
func (h *history) last(began time.Time) (a Attempt) {
	h.at(h.noted).fill(&a, h.noted, began)
	return a
}

// attempts returns all kept failures in order, of which there is one at least.
func (h *history) attempts(began time.Time) []Attempt {
	list := make([]Attempt, min(h.noted, kept))
	h.first.fill(&list[0], 1, began)
	for i := 1; i < len(list); i++ {
		number := h.noted - len(list) + 1 + i
		h.retries.at(number).fill(&list[i], number, began)
	}
	return list
}
