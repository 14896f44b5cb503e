package retry

import (
	"context"
	"errors"
	"time"

	"github.com/retrygo/retry/internal/saturate"
	"github.com/retrygo/retry/internal/show"
)

// Status is the state of a run, WaitingRetry or its end. The zero Status is not valid.
type Status uint8

// The statuses. Another attempt follows WaitingRetry only. The texts are stable. That of DeadLettered is "dead_letter",
// and each other one is its name in snake case.
const (
	Succeeded       Status = iota + 1 // fn returned nil
	WaitingRetry                      // another attempt is due after Decision.Delay
	DeadLettered                      // given up (TerminalError, AttemptsExhausted or BudgetExhausted)
	Expired                           // out of time (TTLElapsed, DeadlinePassed, DeadlineTooNear or HintTooLong)
	FailedNoRetries                   // failed without retries (RetriesDisabled)
	Canceled                          // the caller gave up (CallerCanceled)
)

// String returns "succeeded", "waiting_retry", "dead_letter", "expired", "failed_no_retries" or "canceled", and "" for
// 0.
func (s Status) String() string {
	return name(int(s), "Status",
		"", "succeeded", "waiting_retry", "dead_letter", "expired", "failed_no_retries", "canceled")
}

// Reason is the reason why a run ended without success. It is an error, so that errors.Is(err, retry.AttemptsExhausted)
// reports whether the run behind err ended that way, and Error returns its word. The zero Reason goes with Succeeded
// and WaitingRetry.
type Reason uint8

// The reasons, grouped by the Status that they go with. If several apply, the first is the reason in the order
// CallerCanceled, DeadlinePassed, RetriesDisabled, TerminalError, AttemptsExhausted, HintTooLong, TTLElapsed,
// DeadlineTooNear, BudgetExhausted.
const (
	TerminalError     Reason = iota + 1 // DeadLettered: repeating the call cannot help or could do harm
	AttemptsExhausted                   // DeadLettered: MaxAttempts were made
	BudgetExhausted                     // DeadLettered: the Budget, or Pay, refused a retry

	TTLElapsed      // Expired: the next attempt would start later than TTL
	DeadlinePassed  // Expired: the caller's deadline is over
	DeadlineTooNear // Expired: the wait would end at or after the caller's deadline
	HintTooLong     // Expired: the server asked for more than MaxHint

	RetriesDisabled // FailedNoRetries: the policy is Disabled, or the context is from OneAttempt
	CallerCanceled  // Canceled: the caller's context was canceled
)

// Error returns "terminal_error", "attempts_exhausted", "budget_exhausted", "ttl_elapsed", "deadline_passed",
// "deadline_too_near", "hint_too_long", "retries_disabled" or "caller_canceled", and "" for the zero Reason.
func (r Reason) Error() string {
	return name(int(r), "Reason", "", "terminal_error", "attempts_exhausted", "budget_exhausted", "ttl_elapsed",
		"deadline_passed", "deadline_too_near", "hint_too_long", "retries_disabled", "caller_canceled")
}

// Progress describes a run to Decide and Admit. Its times count from the start of the run. The zero Progress describes
// a run that has just begun, without a deadline.
type Progress struct {
	Attempt  int           // the attempt that just ended, from 1, or 0 before the first, which Decide takes as 1
	Forgiven int           // Decision.Forgiven of the last decision, the attempts that do not count any more
	Elapsed  time.Duration // now, and negative counts as 0
	Lasted   time.Duration // the duration of the attempt, which only ResetAfter reads
	Prev     time.Duration // Decision.Backoff of the last decision, which only DecorrelatedJitter reads
	Deadline time.Duration // the caller's. 0 means no deadline. Negative means passed, so pass -1 for a computed 0
	Hint     time.Duration // from Judge, with Class
	Caller   Reason        // CallerCanceled or DeadlinePassed if the caller's context has ended, and 0 while it lives
	Class    Class         // the result of Judge for the error. Unknown means that Decide judges it
	// Waited means that the wait after the attempt is over already, as it is for an attempt whose worker was lost. TTL
	// and Deadline are compared with Elapsed alone.
	Waited bool
}

func (pr *Progress) ask(ctx context.Context) {
	switch err := ctx.Err(); {
	case err == nil:
		pr.Caller = 0
	case errors.Is(err, context.DeadlineExceeded):
		pr.Caller = DeadlinePassed
	default:
		pr.Caller = CallerCanceled
	}
}

// Decision is the decision of Decide about what follows an attempt. Decisions are comparable with ==. The zero Decision
// is not valid.
type Decision struct {
	Status   Status
	Reason   Reason        // zero for Succeeded and WaitingRetry
	Class    Class         // of the attempt's error, as acted on. Unknown without an error, or if a wait was over
	Forgiven int           // attempts that do not count any more, after ResetAfter or Progressed. The next Progress.Forgiven
	Delay    time.Duration // from now to the next attempt, 0 unless WaitingRetry
	Backoff  time.Duration // the backoff's own delay and the next Progress.Prev, 0 unless WaitingRetry
	Hint     time.Duration // the wait that the error asked for with After, or 0
}

// String returns the status with its reason or delay, such as "dead_letter (attempts_exhausted)" or "waiting_retry 5s".
func (d Decision) String() string {
	s := d.Status.String()
	if d.Reason != 0 {
		s += " (" + d.Reason.Error() + ")"
	} else if d.Status == WaitingRetry {
		s += " " + show.Duration(d.Delay)
	}
	return s
}

func (d *Decision) end(r Reason) {
	switch r {
	case TerminalError, AttemptsExhausted, BudgetExhausted:
		d.Status = DeadLettered
	case RetriesDisabled:
		d.Status = FailedNoRetries
	case CallerCanceled:
		d.Status = Canceled
	default:
		d.Status = Expired
	}
	d.Reason = r
	d.Delay = 0
	d.Backoff = 0
}

// Decide returns the decision that follows an attempt which ended with err. Do and every other shell act on it. It is
// pure and total. The same arguments give the same Decision, and all give one. u is as for Jittered, and Draw draws it.
//
// If several endings apply, Decide returns the first of Succeeded (err is nil), CallerCanceled, DeadlinePassed,
// RetriesDisabled, TerminalError, AttemptsExhausted, HintTooLong, TTLElapsed and DeadlineTooNear. The budget comes last
// (Spend). Wait is called after these, so its Stop is AttemptsExhausted only if no hint is too long and the TTL is not
// over. A retry that would start exactly at TTL is allowed. A wait that would end exactly at the deadline is not.
func (p Policy) Decide(pr Progress, err error, u float64) Decision {
	if err == nil {
		return Decision{Status: Succeeded}
	}
	pr.Attempt = max(pr.Attempt, 1)
	pr.Forgiven = max(pr.Forgiven, 0)
	var found finding
	found.search(err)
	d := Decision{Class: pr.Class, Hint: pr.Hint}
	if !d.Class.firm() {
		d.Class = p.class(&found, err)
		d.Hint = found.hint
	}
	p.reset(&pr, found.progressed)
	p.decide(&d, &pr, err, u)
	return d
}

// Admit returns WaitingRetry if an attempt may start wait from now, and otherwise how the run ended. Call it before an
// attempt, with a wait of 0, and before a wait that does not come from the backoff, such as a gate's. It considers the
// endings of Decide that need no error. Before the first attempt it never returns RetriesDisabled or AttemptsExhausted.
// Forgiven and Backoff of a WaitingRetry decision are copied from pr.
func (p Policy) Admit(pr Progress, wait time.Duration) Decision {
	return p.admit(&pr, wait)
}

func (p *Policy) admit(pr *Progress, wait time.Duration) Decision {
	d := Decision{Delay: max(wait, 0), Backoff: pr.Prev}
	p.conclude(&d, pr, d.Delay)
	return d
}

// Spend pays for the retry that d decided on. It takes a token of Budget and then asks Pay. If either refuses, it
// returns the ending BudgetExhausted and takes no token. A Succeeded d funds the budget, and any other d is returned as
// it is. ctx is for Pay. now is the caller's clock. Only a Budget with Trickle reads it, and a now that is ahead of the
// clock delays Trickle until then. A shell calls Budget.Refund for a paid retry that it does not make.
func (p Policy) Spend(ctx context.Context, d Decision, now time.Time) Decision {
	p.spend(ctx, &d, now)
	return d
}

func (p *Policy) spend(ctx context.Context, d *Decision, now time.Time) {
	switch {
	case d.Status == Succeeded:
		p.Budget.fund()
	case d.Status != WaitingRetry:
	case !p.Budget.take(now):
		d.end(BudgetExhausted)
	case p.Pay != nil && !p.payAgrees(ctx, *d):
		d.end(BudgetExhausted)
	}
}

// payAgrees asks Pay about a retry for which a token was taken. If Pay refuses or panics, the token is returned.
func (p *Policy) payAgrees(ctx context.Context, d Decision) bool {
	owed := p.Budget // nil owes nothing
	defer func() { owed.Refund() }()
	if !p.Pay(ctx, d) {
		return false
	}
	owed = nil
	return true
}

// reset makes a failed attempt count as the first if it progressed or lasted ResetAfter.
func (p *Policy) reset(pr *Progress, progressed bool) {
	if progressed || p.ResetAfter > 0 && pr.Lasted >= p.ResetAfter {
		pr.Forgiven = pr.Attempt - 1
		pr.Prev = 0
	}
}

// decide is Decide for a d that has the class and the hint of err.
func (p *Policy) decide(d *Decision, pr *Progress, err error, u float64) {
	attempt := max(pr.Attempt-pr.Forgiven, 1)
	lo, hi := p.window(attempt, pr.Prev)
	spread := saturate.Within(hi-lo, u)
	d.Backoff = lo + spread
	d.Delay = d.Backoff
	if p.Wait != nil {
		p.conclude(d, pr, 0)
		if d.Status != WaitingRetry {
			return // Wait need not know about attempts that are not made
		}
		own := p.Wait(attempt, err, d.Backoff)
		if own < 0 { // Stop
			d.end(AttemptsExhausted)
			return
		}
		d.Delay = min(own, p.limit())
	}
	if d.Hint > 0 {
		// A floor with the window's width above it. Jitter only adds, and MaxHint bounds the sum of the hint and the
		// width.
		d.Delay = max(d.Delay, d.Hint+min(spread, p.maxHint()-d.Hint))
	}
	p.conclude(d, pr, d.Delay)
}

// mayFollow reports whether an attempt may follow at all, whatever the wait before it.
func (p *Policy) mayFollow(d Decision, pr *Progress) bool {
	p.conclude(&d, pr, 0)
	return d.Status == WaitingRetry
}

// conclude makes d the first ending that applies if the next attempt starts wait from now, and otherwise WaitingRetry.
func (p *Policy) conclude(d *Decision, pr *Progress, wait time.Duration) {
	d.Forgiven = max(pr.Forgiven, 0)
	elapsed := max(pr.Elapsed, 0)
	if pr.Waited {
		wait = 0
	}
	canceled := pr.Caller != 0 && pr.Caller != DeadlinePassed
	switch {
	case canceled:
		d.end(CallerCanceled)
	case pr.Caller == DeadlinePassed || pr.Deadline != 0 && pr.Deadline <= elapsed:
		d.end(DeadlinePassed)
	case pr.Attempt > 0 && p.Disabled:
		d.end(RetriesDisabled)
	case d.Class == Terminal:
		d.end(TerminalError)
	case pr.Attempt > 0 && p.exhausted(pr.Attempt, d.Forgiven):
		d.end(AttemptsExhausted)
	case d.Hint > p.maxHint():
		d.end(HintTooLong)
	case p.TTL > 0 && wait > p.TTL-elapsed:
		d.end(TTLElapsed)
	case pr.Deadline != 0 && wait >= pr.Deadline-elapsed:
		d.end(DeadlineTooNear)
	default:
		d.Status = WaitingRetry
	}
}

// exhausted reports whether MaxAttempts allow no attempt after the given one.
func (p *Policy) exhausted(attempt, forgiven int) bool { return max(attempt-forgiven, 1) > p.retries() }

// lastByCount reports whether no attempt follows the given one by count. It is the answer of LastAttempt.
func (p *Policy) lastByCount(attempt, forgiven int) bool {
	return p.Disabled || p.exhausted(attempt, forgiven)
}
