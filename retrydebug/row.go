package retrydebug

import (
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
)

// kind is an event that is counted of a policy.
type kind int

const (
	firstTry  kind = iota // runs that succeeded at their first attempt
	recovered             // runs that succeeded after a retry
	answered              // runs that ended with an answer, such as a 404
	gaveUp                // runs that failed for a reason that is not known, followed by a kind for each retry.Reason

	canceled = gaveUp + kind(retry.CallerCanceled) // the last of them
)

const (
	retries kind = canceled + 1 + iota
	calls        // that could be hedged
	hedges       // calls that were hedged
	won          // calls whose hedge was first
	refused      // calls whose hedge the budget refused
	doubts       // runs, of those that gave up or were canceled, whose work may have been done
	kinds
)

// The last minute is counted in slots of 10 s, the last hour in slots of a minute. Each has one more slot than that, for
// the period that has just begun.
const (
	shortSlot  = 10 * time.Second
	shortSlots = 7
	longSlot   = time.Minute
	minutes    = 60
)

// slot is the counts of a period.
type slot struct {
	counts  [kinds]uint32
	period  int32  // since the page was made
	slowest uint32 // run that ended, in milliseconds
}

// slotAt returns the slot of the period that now is in, empty if the period has just begun.
func slotAt(slots []slot, now, length time.Duration) *slot {
	period := int32(now / length)
	s := &slots[int(period)%len(slots)]
	if s.period < period { // a goroutine that was held up may come with an earlier one
		*s = slot{period: period}
	}
	return s
}

// newest returns the slots of the period that now is in and of those before it, the oldest first. A slot of a period
// without an event is empty.
func newest(slots []slot, now, length time.Duration) []slot {
	list := make([]slot, len(slots))
	for i := range list {
		period := int(now/length) - (len(list) - 1 - i)
		if period < 0 {
			continue
		}
		if s := slots[period%len(slots)]; int(s.period) == period {
			list[i] = s
		}
	}
	return list
}

// row is the state of the runs of a policy.
type row struct {
	name string

	mu       sync.Mutex
	total    [kinds]uint64
	short    [shortSlots]slot
	long     [minutes + 1]slot
	trouble  trouble
	waiting  int                         // runs that have failed an attempt, will make another, and have not ended
	jobs     bool                        // some of its runs are of jobs, which are not in waiting
	last     *Failure                    // the newest failed attempt, or one less than a second before it
	lastRead int64                       // the second in which last was made
	kept     [retries - gaveUp]allowance // by reason
	schedule string                      // the fields below are of Page.Watch and Options.Catalog
	ttl      time.Duration
	budget   *retry.Budget
}

// allowance bounds the cost of keeping runs that fail alike, however many do. It allows 16 at once, and then one a
// second.
type allowance struct {
	left   int32
	second int32 // in which left was counted
}

const mostAtOnce = 16

// take reports whether a run may be kept now.
func (a *allowance) take(now time.Duration) bool {
	second := int32(now/time.Second) + mostAtOnce // the zero allowance is full
	a.left = min(a.left+min(second-a.second, mostAtOnce), mostAtOnce)
	a.second = second
	if a.left <= 0 {
		return false
	}
	a.left--
	return true
}

func (r *row) add(now time.Duration, k kind) {
	r.total[k]++
	slotAt(r.short[:], now, shortSlot).counts[k]++
	slotAt(r.long[:], now, longSlot).counts[k]++
}

// failed counts a failed attempt. It reports whether a Failure is wanted of it, which is so for one attempt in a
// second.
func (r *row) failed(ctx context.Context, now time.Duration, e *retry.Event) bool {
	job := isJob(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs = r.jobs || job
	if e.Decision.Status == retry.WaitingRetry {
		r.add(now, retries)
		if e.Attempt.Number == 1 && !job {
			r.waiting++
		}
	}
	second := int64(now/time.Second) + 1
	wanted := r.lastRead != second
	r.lastRead = second
	return wanted
}

// next is the step that follows after a run was counted.
type next int

const (
	nothing next = iota
	addFailed
	addSlow // if it is among the slowest
)

// ended counts a run that has ended.
func (r *row) ended(ctx context.Context, now time.Duration, e *retry.Event) next {
	k, o, job := kindOf(e), e.Outcome, isJob(ctx)
	waited := o.Attempts > 1 || len(o.History) > 0 && o.History[0].Delay > 0
	inDoubt := k >= gaveUp && retry.IsAmbiguous(e.Err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jobs = r.jobs || job
	r.add(now, k)
	if inDoubt {
		r.add(now, doubts)
	}
	r.trouble.ended(now, k)
	s := slotAt(r.long[:], now, longSlot)
	s.slowest = max(s.slowest, uint32(min(max(o.Elapsed.Milliseconds(), 0), math.MaxUint32)))
	if waited && !job && r.waiting > 0 { // it may have begun before the page
		r.waiting--
	}
	switch {
	case k == recovered:
		return addSlow
	case k < gaveUp:
		return nothing
	}
	if r.kept[k-gaveUp].take(now) {
		return addFailed
	}
	return nothing
}

func kindOf(e *retry.Event) kind {
	o := e.Outcome
	switch {
	case o.Status == retry.Succeeded && o.Attempts <= 1:
		return firstTry
	case o.Status == retry.Succeeded:
		return recovered
	case o.Reason == retry.TerminalError && isAnswer(e.Err):
		return answered
	case 0 < o.Reason && o.Reason <= retry.CallerCanceled:
		return gaveUp + kind(o.Reason)
	default: // of an Event that another package made
		return gaveUp
	}
}

// isAnswer reports whether err is an answer and not a failure, such as package retryhttp's error for a 404.
func isAnswer(err error) bool {
	var answer interface{ Answer() bool }
	return errors.As(err, &answer) && answer.Answer()
}

// hedged counts a call of retryhedge.Do.
func (r *row) hedged(now time.Duration, e *retryhedge.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(now, calls)
	if len(e.Calls) > 1 {
		r.add(now, hedges)
	}
	if e.Won > 1 {
		r.add(now, won)
	}
	if e.Refused {
		r.add(now, refused)
	}
}

func (r *row) setLast(f *Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = f
}

// describe notes the fields of a policy that the page shows.
func (r *row) describe(p *retry.Policy) {
	if r.name == other {
		return
	}
	unnamed := *p
	unnamed.Name = ""
	schedule := unnamed.String()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.schedule = bounded(schedule, maxText)
	r.ttl = p.TTL
	r.budget = p.Budget
}
