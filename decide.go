package retry

import "time"

// Status says where a run stands, and for a run that is over, which of the five endings it had.
type Status uint8

// The statuses. Waiting is the only one after which something follows.
const (
	Succeeded    Status = iota + 1 // fn returned nil
	Waiting                        // another attempt is due after Decision.Delay
	DeadLettered                   // given up with work undone: TerminalError, AttemptsExhausted or BudgetExhausted
	Expired                        // out of time: TTLElapsed, DeadlinePassed, DeadlineTooNear or HintTooLong
	Failed                         // failed under a policy that is Disabled: RetriesDisabled
	Canceled                       // the caller gave up: CallerCanceled
)

// String returns "succeeded", "waiting_retry", "dead_letter", "expired", "failed_no_retries" or "canceled", and "" for
// the zero Status.
func (s Status) String() string {
	return name(int(s), "Status", "", "succeeded", "waiting_retry", "dead_letter", "expired", "failed_no_retries", "canceled")
}

// Reason says why a run ended without success. It is an error, so that errors.Is(err, retry.AttemptsExhausted) asks
// how the run behind err ended. The zero Reason goes with Succeeded and Waiting.
type Reason uint8

// The reasons, in groups by the Status that they go with.
const (
	TerminalError     Reason = iota + 1 // DeadLettered: no attempt can succeed
	AttemptsExhausted                   // DeadLettered: MaxAttempts were made
	BudgetExhausted                     // DeadLettered: the Budget refused a retry

	TTLElapsed      // Expired: the next attempt would start later than TTL
	DeadlinePassed  // Expired: the caller's deadline is over
	DeadlineTooNear // Expired: the wait would end at or after the caller's deadline
	HintTooLong     // Expired: the server asked for more than MaxHint

	RetriesDisabled // Failed: the policy is Disabled
	CallerCanceled  // Canceled: the caller's context was cancelled
)

// Error returns the reason's text: "terminal_error", "attempts_exhausted", "budget_exhausted", "ttl_elapsed",
// "deadline_passed", "deadline_too_near", "hint_too_long", "retries_disabled" or "caller_canceled", and "" for the
// zero Reason.
func (r Reason) Error() string {
	return name(int(r), "Reason", "", "terminal_error", "attempts_exhausted", "budget_exhausted", "ttl_elapsed",
		"deadline_passed", "deadline_too_near", "hint_too_long", "retries_disabled", "caller_canceled")
}

// Progress is how far a run has come: what Decide needs to know of the past.
type Progress struct {
	// Attempt is the attempt that just ended, from 1. Anything below counts as 1.
	Attempt int
	// Elapsed is the time since the first attempt started. A negative one counts as 0.
	Elapsed time.Duration
	// Prev is the delay that Backoff gave before that attempt, even where a hint made the wait longer. Only
	// DecorrelatedJitter reads it. Zero means none, as before the first attempt.
	Prev time.Duration
}

// Decision is what to do after an attempt. Decisions are comparable with ==.
type Decision struct {
	Status Status
	Reason Reason        // zero for Succeeded and Waiting
	Delay  time.Duration // from now to the next attempt; 0 unless Waiting
}

// String returns the status with its reason or delay: "dead_letter (attempts_exhausted)", "waiting_retry 5s".
func (d Decision) String() string {
	switch {
	case d.Reason != 0:
		return d.Status.String() + " (" + d.Reason.Error() + ")"
	case d.Status == Waiting:
		return d.Status.String() + " " + compact(d.Delay)
	default:
		return d.Status.String()
	}
}

// Decide returns what follows an attempt that ended with err: the one decision that Do and every other shell act on.
// It is pure and total: the same arguments give the same Decision, and every Policy, Progress, error and u give one.
// u in [0,1) chooses the jitter and is clamped as Jittered does.
//
// Several endings can apply at once; the first of these is given: Succeeded for a nil err, RetriesDisabled,
// TerminalError, AttemptsExhausted, HintTooLong, TTLElapsed. What Decide cannot know is left to the shell: whether the
// caller is cancelled or past its deadline (before RetriesDisabled), whether the deadline is too near and the budget
// refuses (after TTLElapsed).
//
// A retry that would start exactly at TTL is allowed.
func (p Policy) Decide(pr Progress, err error, u float64) Decision {
	if err == nil {
		return Decision{Status: Succeeded}
	}
	class, hint := p.judge(err)
	if d := p.verdict(pr, class, hint); d.Status != Waiting {
		return d
	}
	d, _ := p.schedule(pr, hint, u)
	return d
}

// verdict returns the ending that needs no delay to be known, or Waiting.
func (p *Policy) verdict(pr Progress, class Class, hint time.Duration) Decision {
	switch {
	case p.Disabled:
		return Decision{Status: Failed, Reason: RetriesDisabled}
	case class == Terminal:
		return Decision{Status: DeadLettered, Reason: TerminalError}
	case !p.attemptsLeft(pr.Attempt):
		return Decision{Status: DeadLettered, Reason: AttemptsExhausted}
	case hint > p.maxHint():
		return Decision{Status: Expired, Reason: HintTooLong}
	default:
		return Decision{Status: Waiting}
	}
}

// schedule returns Waiting with its delay, or TTLElapsed where that would be too late; and the backoff's own delay,
// which is the next Progress.Prev.
func (p *Policy) schedule(pr Progress, hint time.Duration, u float64) (Decision, time.Duration) {
	lo, hi := p.window(pr.Attempt, pr.Prev)
	spread := within(hi-lo, u)
	backoff := lo + spread
	delay := backoff
	if hint > 0 {
		// A floor with the window's width above it: jitter only upwards, and MaxHint bounds what the hint adds.
		delay = max(backoff, min(saturatingAdd(hint, spread), p.maxHint()))
	}
	if p.late(max(pr.Elapsed, 0), delay) {
		return Decision{Status: Expired, Reason: TTLElapsed}, backoff
	}
	return Decision{Status: Waiting, Delay: delay}, backoff
}

// late reports whether an attempt that starts delay after elapsed starts beyond the TTL. Both are at least 0.
func (p *Policy) late(elapsed, delay time.Duration) bool {
	return p.TTL > 0 && delay > p.TTL-elapsed
}
