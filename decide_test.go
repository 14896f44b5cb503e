package retry_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// Decisions, short enough for a row: of an attempt whose error was retryable, and of one whose error was terminal.
var (
	succeeded = retry.Decision{Status: retry.Succeeded}
	terminal  = retry.Decision{Status: retry.DeadLettered, Reason: retry.TerminalError, Class: retry.Terminal}
	exhausted = retry.Decision{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted, Class: retry.Retryable}
	broke     = retry.Decision{Status: retry.DeadLettered, Reason: retry.BudgetExhausted, Class: retry.Retryable}
	tooOld    = retry.Decision{Status: retry.Expired, Reason: retry.TTLElapsed, Class: retry.Retryable}
	passed    = retry.Decision{Status: retry.Expired, Reason: retry.DeadlinePassed, Class: retry.Retryable}
	tooNear   = retry.Decision{Status: retry.Expired, Reason: retry.DeadlineTooNear, Class: retry.Retryable}
	tooLong   = retry.Decision{Status: retry.Expired, Reason: retry.HintTooLong, Class: retry.Retryable}
	disabled  = retry.Decision{Status: retry.FailedNoRetries, Reason: retry.RetriesDisabled, Class: retry.Retryable}
	canceled  = retry.Decision{Status: retry.Canceled, Reason: retry.CallerCanceled, Class: retry.Retryable}
)

// waiting is a wait that the backoff alone has chosen.
func waiting(d time.Duration) retry.Decision {
	return retry.Decision{Status: retry.WaitingRetry, Class: retry.Retryable, Delay: d, Backoff: d}
}

// waitingFor is a wait that is not the backoff's.
func waitingFor(delay, backoff time.Duration) retry.Decision {
	d := waiting(backoff)
	d.Delay = delay
	return d
}

// ending is what a decision without an error has of d, and what an Outcome keeps.
func ending(d retry.Decision) retry.Decision {
	return retry.Decision{Status: d.Status, Reason: d.Reason}
}

func hinted(hint time.Duration, d retry.Decision) retry.Decision { d.Hint = hint; return d }
func since(n int, d retry.Decision) retry.Decision               { d.Forgiven = n; return d }
func judged(c retry.Class, d retry.Decision) retry.Decision      { d.Class = c; return d }

func TestDecide(t *testing.T) {
	after := func(d time.Duration) error { return retry.After(d, errFlaky) }
	second := retry.Backoff{Base: sec, Cap: 60 * sec} // 1s 2s 4s ...
	for _, row := range []struct {
		name     string
		policy   retry.Policy
		progress retry.Progress
		err      error
		u        float64
		want     retry.Decision
	}{
		{name: "nil is a success", err: nil, want: succeeded},
		{name: "nil is a success of a disabled policy", policy: retry.Policy{Disabled: true}, err: nil, want: succeeded},
		{name: "an error waits", progress: retry.Progress{Attempt: 1}, err: errFlaky, want: waiting(5 * sec)},
		{name: "the zero progress is after the first attempt", err: errFlaky, want: waiting(5 * sec)},
		{name: "the wait grows with the attempt", progress: retry.Progress{Attempt: 3}, err: errFlaky, want: waiting(20 * sec)},

		{name: "attempt 7 of 8 waits", progress: retry.Progress{Attempt: 7}, err: errFlaky, want: waiting(320 * sec)},
		{name: "attempt 8 of 8 was the last", progress: retry.Progress{Attempt: 8}, err: errFlaky, want: exhausted},
		{name: "an attempt beyond the last was too", progress: retry.Progress{Attempt: maxTries}, err: errFlaky, want: exhausted},
		{name: "one attempt is one", policy: retry.Policy{MaxAttempts: 1}, err: errFlaky, want: exhausted},
		{name: "a list repeats its last delay for more attempts", policy: retry.Policy{MaxAttempts: 9, Backoff: retry.Standard().Backoff},
			progress: retry.Progress{Attempt: 8}, err: errFlaky, want: waiting(3 * hour)},
		{name: "unlimited has no last", policy: retry.Policy{MaxAttempts: retry.Unlimited},
			progress: retry.Progress{Attempt: maxTries}, err: errFlaky, want: waiting(hour)},
		{name: "a bad MaxAttempts counts as unset", policy: retry.Policy{MaxAttempts: -2},
			progress: retry.Progress{Attempt: 8}, err: errFlaky, want: exhausted},

		{name: "a terminal error ends at once", err: retry.Permanent(errFlaky), want: terminal},

		{name: "disabled fails", policy: retry.Policy{Disabled: true}, err: errFlaky, want: disabled},
		{name: "disabled goes before terminal", policy: retry.Policy{Disabled: true}, err: retry.Permanent(errFlaky),
			want: judged(retry.Terminal, disabled)},
		{name: "disabled goes before exhausted", policy: retry.Policy{Disabled: true, MaxAttempts: 1}, err: errFlaky, want: disabled},
		{name: "terminal goes before exhausted", policy: retry.Policy{MaxAttempts: 1}, err: retry.Permanent(errFlaky), want: terminal},
		{name: "exhausted goes before a hint too long", policy: retry.Policy{MaxAttempts: 1}, err: after(9 * hour),
			want: hinted(9*hour, exhausted)},
		{name: "a hint too long goes before the TTL", policy: retry.Policy{TTL: sec}, err: after(9 * hour), want: hinted(9*hour, tooLong)},

		{name: "a retry just before the TTL waits", policy: retry.Policy{Backoff: second, TTL: 10 * sec},
			progress: retry.Progress{Attempt: 1, Elapsed: 9*sec - 1}, err: errFlaky, want: waiting(sec)},
		{name: "a retry exactly at the TTL waits", policy: retry.Policy{Backoff: second, TTL: 10 * sec},
			progress: retry.Progress{Attempt: 1, Elapsed: 9 * sec}, err: errFlaky, want: waiting(sec)},
		{name: "a retry just after the TTL ends the run", policy: retry.Policy{Backoff: second, TTL: 10 * sec},
			progress: retry.Progress{Attempt: 1, Elapsed: 9*sec + 1}, err: errFlaky, want: tooOld},
		{name: "a retry long after the TTL ends the run", policy: retry.Policy{TTL: 10 * sec},
			progress: retry.Progress{Attempt: 1, Elapsed: longest}, err: errFlaky, want: tooOld},
		{name: "a negative elapsed time counts as 0 for the TTL", policy: retry.Policy{Backoff: second, TTL: sec - 1},
			progress: retry.Progress{Attempt: 1, Elapsed: -hour}, err: errFlaky, want: tooOld},
		{name: "the least elapsed time counts as 0 for the TTL", policy: retry.Policy{Backoff: second, TTL: longest},
			progress: retry.Progress{Attempt: 1, Elapsed: math.MinInt64}, err: errFlaky, want: waiting(sec)},
		{name: "a negative elapsed time counts as 0 for the deadline", policy: retry.Policy{Backoff: second},
			progress: retry.Progress{Attempt: 1, Elapsed: -hour, Deadline: sec}, err: errFlaky, want: tooNear},
		{name: "a bad TTL counts as unset", policy: retry.Policy{TTL: -1},
			progress: retry.Progress{Attempt: 1, Elapsed: hour}, err: errFlaky, want: waiting(5 * sec)},
		{name: "a hint counts for the TTL", policy: retry.Policy{Backoff: second, TTL: 10 * sec}, err: after(11 * sec),
			want: hinted(11*sec, tooOld)},

		{name: "a hint is a floor", policy: retry.Policy{Backoff: second}, err: after(30 * sec),
			want: hinted(30*sec, waitingFor(30*sec, sec))},
		{name: "a hint below the backoff changes nothing", policy: retry.Policy{Backoff: second},
			progress: retry.Progress{Attempt: 4}, err: after(3 * sec), want: hinted(3*sec, waiting(8*sec))},
		{name: "a hint does not reset the exponent", policy: retry.Policy{Backoff: second},
			progress: retry.Progress{Attempt: 3}, err: errFlaky, want: waiting(4 * sec)},
		{name: "a hint may be longer than the cap", policy: retry.Policy{Backoff: second}, err: after(2 * minute),
			want: hinted(2*minute, waitingFor(2*minute, sec))},
		{name: "a hint of MaxHint is obeyed", policy: retry.Policy{MaxHint: minute}, err: after(minute),
			want: hinted(minute, waitingFor(minute, 5*sec))},
		{name: "a hint beyond MaxHint ends the run", policy: retry.Policy{MaxHint: minute}, err: after(minute + 1),
			want: hinted(minute+1, tooLong)},
		{name: "a hint of a nanosecond is one", policy: retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Delays: []time.Duration{0}}}, err: after(1),
			want: hinted(1, waitingFor(1, 0))},
		{name: "a ResetAfter of a nanosecond is set", policy: retry.Policy{MaxAttempts: 2, ResetAfter: 1, Backoff: second},
			progress: retry.Progress{Attempt: 2, Lasted: 1}, err: errFlaky, want: since(1, waiting(sec))},
		{name: "a TTL of a nanosecond is set", policy: retry.Policy{TTL: 1}, progress: retry.Progress{Attempt: 1}, err: errFlaky, want: tooOld},
		{name: "a MaxHint of a nanosecond is set", policy: retry.Policy{MaxHint: 1}, err: after(2), want: hinted(2, tooLong)},
		{name: "MaxHint is 1h by default", err: after(hour), want: hinted(hour, waitingFor(hour, 5*sec))},
		{name: "a hint beyond the default ends the run", err: after(hour + 1), want: hinted(hour+1, tooLong)},
		{name: "the longest hint ends the run", err: after(longest), want: hinted(longest, tooLong)},
		{name: "the longest hint can be allowed", policy: retry.Policy{MaxHint: longest, Backoff: retry.Backoff{Jitter: retry.FullJitter}},
			err: after(longest), u: 0.9, want: hinted(longest, waitingFor(longest, 4500*ms))},
		{name: "a bad MaxHint counts as unset", policy: retry.Policy{MaxHint: -1}, err: after(hour),
			want: hinted(hour, waitingFor(hour, 5*sec))},
		{name: "jitter goes upwards from a hint, by its own width",
			policy: retry.Policy{Backoff: retry.Backoff{Base: 10 * sec, Jitter: retry.EqualJitter}},
			err:    after(minute), u: 0.5, want: hinted(minute, waitingFor(minute+2500*ms, 7500*ms))},
		{name: "jitter above a hint stops at MaxHint",
			policy: retry.Policy{Backoff: retry.Backoff{Base: 10 * sec, Jitter: retry.FullJitter}, MaxHint: minute},
			err:    after(58 * sec), u: 0.5, want: hinted(58*sec, waitingFor(minute, 5*sec))},
		{name: "MaxHint does not shorten the backoff",
			policy:   retry.Policy{Backoff: second, MaxHint: 2 * sec},
			progress: retry.Progress{Attempt: 4}, err: after(sec), want: hinted(sec, waiting(8*sec))},

		{name: "u chooses the jitter", policy: retry.Policy{Backoff: retry.Backoff{Jitter: retry.FullJitter}},
			err: errFlaky, u: 0.25, want: waiting(1250 * ms)},
		{name: "the last delay feeds decorrelated jitter",
			policy:   retry.Policy{Backoff: retry.Backoff{Base: sec, Jitter: retry.DecorrelatedJitter}},
			progress: retry.Progress{Attempt: 2, Prev: 3 * sec}, err: errFlaky, u: 0.5, want: waiting(5 * sec)},

		{name: "a wait that ends 1ns before the deadline is begun", policy: retry.Policy{Backoff: second},
			progress: retry.Progress{Attempt: 1, Elapsed: sec, Deadline: 2*sec + 1}, err: errFlaky, want: waiting(sec)},
		{name: "a wait that ends exactly at the deadline is not begun", policy: retry.Policy{Backoff: second},
			progress: retry.Progress{Attempt: 1, Elapsed: sec, Deadline: 2 * sec}, err: errFlaky, want: tooNear},
		{name: "a deadline 1ns away leaves no room", policy: retry.Policy{Backoff: second},
			progress: retry.Progress{Attempt: 1, Elapsed: sec, Deadline: sec + 1}, err: errFlaky, want: tooNear},
		{name: "a deadline 1ns away leaves room for no wait at all", policy: atOnce,
			progress: retry.Progress{Attempt: 1, Elapsed: sec, Deadline: sec + 1}, err: errFlaky, want: waiting(0)},
		{name: "a deadline that is now has passed", policy: atOnce,
			progress: retry.Progress{Attempt: 1, Elapsed: sec, Deadline: sec}, err: errFlaky, want: passed},
		{name: "a negative deadline has passed", progress: retry.Progress{Deadline: -1}, err: errFlaky, want: passed},
		{name: "the least deadline has passed", progress: retry.Progress{Elapsed: longest, Deadline: math.MinInt64}, err: errFlaky, want: passed},
		{name: "a deadline of 0 is none", progress: retry.Progress{Elapsed: longest}, err: errFlaky, want: waiting(5 * sec)},
		{name: "a deadline that has passed has passed for a negative elapsed time", progress: retry.Progress{Elapsed: -hour, Deadline: -1},
			err: errFlaky, want: passed},
		{name: "the farthest deadline allows the longest wait", policy: backoff(retry.Backoff{Base: longest - 1}),
			progress: retry.Progress{Deadline: longest}, err: errFlaky, want: waiting(longest - 1)},
		{name: "the TTL goes before a deadline too near", policy: retry.Policy{TTL: sec},
			progress: retry.Progress{Deadline: sec}, err: errFlaky, want: tooOld},
		{name: "a hint counts for the deadline", policy: retry.Policy{Backoff: second}, progress: retry.Progress{Deadline: 30 * sec},
			err: after(30 * sec), want: hinted(30*sec, tooNear)},

		{name: "a canceled caller ends the run", progress: retry.Progress{Caller: retry.CallerCanceled}, err: errFlaky, want: canceled},
		{name: "a passed deadline ends the run", progress: retry.Progress{Caller: retry.DeadlinePassed}, err: errFlaky, want: passed},
		{name: "canceled goes before a deadline that has passed too", progress: retry.Progress{Caller: retry.CallerCanceled, Deadline: -1},
			err: errFlaky, want: canceled},
		{name: "canceled goes before disabled and terminal", policy: retry.Policy{Disabled: true},
			progress: retry.Progress{Caller: retry.CallerCanceled}, err: retry.Permanent(errFlaky), want: judged(retry.Terminal, canceled)},
		{name: "a passed deadline goes before disabled and terminal", policy: retry.Policy{Disabled: true},
			progress: retry.Progress{Caller: retry.DeadlinePassed}, err: retry.Permanent(errFlaky), want: judged(retry.Terminal, passed)},
		{name: "a deadline that the clock has passed goes before disabled and terminal", policy: retry.Policy{Disabled: true},
			progress: retry.Progress{Elapsed: sec, Deadline: sec}, err: retry.Permanent(errFlaky), want: judged(retry.Terminal, passed)},
		{name: "any other reason of the caller's is a cancellation", progress: retry.Progress{Caller: retry.TTLElapsed}, err: errFlaky, want: canceled},
		{name: "a success is one whatever became of the caller", progress: retry.Progress{Caller: retry.CallerCanceled, Deadline: -1}, want: succeeded},

		{name: "a wait that is over counts neither for the TTL nor for the deadline", policy: retry.Policy{Backoff: second, TTL: 10 * sec},
			progress: retry.Progress{Attempt: 5, Elapsed: 10 * sec, Deadline: 10*sec + 1, Waited: true}, err: errFlaky, want: waiting(16 * sec)},
		{name: "a wait that is over is too late 1ns after the TTL", policy: retry.Policy{Backoff: second, TTL: 10 * sec},
			progress: retry.Progress{Attempt: 5, Elapsed: 10*sec + 1, Waited: true}, err: errFlaky, want: tooOld},
		{name: "a wait that is over is too late at the deadline", policy: retry.Policy{Backoff: second},
			progress: retry.Progress{Attempt: 5, Elapsed: 10 * sec, Deadline: 10 * sec, Waited: true}, err: errFlaky, want: passed},
		{name: "a wait that is over ends with the attempts all the same", policy: everySecond(2),
			progress: retry.Progress{Attempt: 2, Waited: true}, err: errFlaky, want: exhausted},

		{name: "Since attempts are written off: the delay", policy: retry.Policy{Backoff: second},
			progress: retry.Progress{Attempt: 9, Forgiven: 6}, err: errFlaky, want: since(6, waiting(4*sec))},
		{name: "Since attempts are written off: the last but one", policy: everySecond(3),
			progress: retry.Progress{Attempt: 9, Forgiven: 7}, err: errFlaky, want: since(7, waiting(sec))},
		{name: "Since attempts are written off: the last", policy: everySecond(3),
			progress: retry.Progress{Attempt: 9, Forgiven: 6}, err: errFlaky, want: since(6, exhausted)},
		{name: "a negative Since counts as 0", policy: everySecond(3),
			progress: retry.Progress{Attempt: 2, Forgiven: math.MinInt}, err: errFlaky, want: waiting(sec)},
		{name: "the least attempt counts as 1 for Since too", policy: retry.Policy{Backoff: second},
			progress: retry.Progress{Attempt: math.MinInt, Forgiven: 5}, err: errFlaky, want: since(5, waiting(sec))},
		{name: "a Since of the future leaves a first attempt", policy: retry.Policy{Backoff: second},
			progress: retry.Progress{Attempt: 2, Forgiven: maxTries}, err: errFlaky, want: since(maxTries, waiting(sec))},
		{name: "a Since of the future leaves a first attempt, which is the last of one", policy: everySecond(1),
			progress: retry.Progress{Attempt: 1, Forgiven: 37}, err: errFlaky, want: since(37, exhausted)},

		{name: "an attempt that lasted ResetAfter counts as the first", policy: retry.Policy{Backoff: second, ResetAfter: minute},
			progress: retry.Progress{Attempt: 5, Forgiven: 1, Lasted: minute}, err: errFlaky, want: since(4, waiting(sec))},
		{name: "an attempt 1ns shorter does not", policy: retry.Policy{Backoff: second, ResetAfter: minute},
			progress: retry.Progress{Attempt: 5, Forgiven: 1, Lasted: minute - 1}, err: errFlaky, want: since(1, waiting(8*sec))},
		{name: "a last attempt that lasted ResetAfter is none", policy: retry.Policy{MaxAttempts: 5, Backoff: second, ResetAfter: minute},
			progress: retry.Progress{Attempt: 5, Lasted: minute}, err: errFlaky, want: since(4, waiting(sec))},
		{name: "ResetAfter allows no second attempt to a policy of one", policy: retry.Policy{MaxAttempts: 1, ResetAfter: minute},
			progress: retry.Progress{Attempt: 1, Lasted: minute}, err: errFlaky, want: exhausted},
		{name: "ResetAfter forgets the last delay", policy: retry.Policy{ResetAfter: minute,
			Backoff: retry.Backoff{Base: sec, Jitter: retry.DecorrelatedJitter}},
			progress: retry.Progress{Attempt: 5, Lasted: minute, Prev: 30 * sec}, err: errFlaky, u: 0.5, want: since(4, waiting(2*sec))},
		{name: "ResetAfter keeps the last delay after a short attempt", policy: retry.Policy{ResetAfter: minute,
			Backoff: retry.Backoff{Base: sec, Jitter: retry.DecorrelatedJitter}},
			progress: retry.Progress{Attempt: 5, Lasted: sec, Prev: 3 * sec}, err: errFlaky, u: 0.5, want: waiting(5 * sec)},
		{name: "ResetAfter does not stop the TTL", policy: retry.Policy{TTL: hour, ResetAfter: minute, Backoff: second},
			progress: retry.Progress{Attempt: 5, Elapsed: hour, Lasted: hour}, err: errFlaky, want: since(4, tooOld)},
		{name: "ResetAfter 0 means never", policy: retry.Policy{Backoff: second},
			progress: retry.Progress{Attempt: 5, Lasted: longest}, err: errFlaky, want: waiting(16 * sec)},
		{name: "a bad ResetAfter counts as unset", policy: retry.Policy{Backoff: second, ResetAfter: -1},
			progress: retry.Progress{Attempt: 5, Lasted: longest}, err: errFlaky, want: waiting(16 * sec)},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, row.policy.Decide(row.progress, row.err, row.u))
		})
	}
}

// TestAdmitAgreesWithDecide has what both answer.
func TestAdmit(t *testing.T) {
	// may is an attempt that may start after the given wait.
	may := func(wait time.Duration) retry.Decision {
		return retry.Decision{Status: retry.WaitingRetry, Delay: wait}
	}
	for _, row := range []struct {
		name     string
		policy   retry.Policy
		progress retry.Progress
		wait     time.Duration
		want     retry.Decision
	}{
		{name: "a first attempt may start", want: may(0)},
		{name: "the first attempt of a disabled policy may start", policy: retry.Policy{Disabled: true}, want: may(0)},
		{name: "the only attempt may start", policy: retry.Policy{MaxAttempts: 1}, want: may(0)},
		{name: "a second attempt of a disabled policy may not", policy: retry.Policy{Disabled: true},
			progress: retry.Progress{Attempt: 1}, want: ending(disabled)},
		{name: "a second attempt of one may not", policy: retry.Policy{MaxAttempts: 1},
			progress: retry.Progress{Attempt: 1}, want: ending(exhausted)},
		{name: "the last attempt may start", policy: everySecond(3), progress: retry.Progress{Attempt: 2}, want: may(0)},
		{name: "an attempt after the last may not", policy: everySecond(3), progress: retry.Progress{Attempt: 3}, want: ending(exhausted)},
		{name: "an attempt after the largest number may, if there is no limit", policy: everySecond(retry.Unlimited),
			progress: retry.Progress{Attempt: maxTries}, want: may(0)},
		{name: "a negative Since counts as 0", policy: everySecond(4), progress: retry.Progress{Attempt: 2, Forgiven: -5}, want: may(0)},
		{name: "the least Since counts as 0", policy: everySecond(2), progress: retry.Progress{Attempt: 2, Forgiven: math.MinInt}, want: ending(exhausted)},
		{name: "what the next decision needs is passed on", progress: retry.Progress{Attempt: 4, Forgiven: 2, Prev: 7 * sec}, wait: sec,
			want: retry.Decision{Status: retry.WaitingRetry, Forgiven: 2, Delay: sec, Backoff: 7 * sec}},
		{name: "an ending has no delay", policy: retry.Policy{TTL: sec}, progress: retry.Progress{Attempt: 4, Prev: 7 * sec}, wait: 2 * sec,
			want: ending(tooOld)},
		{name: "a negative wait is none", wait: -hour, want: may(0)},
		{name: "the longest wait may be made", wait: longest, want: may(longest)},
		{name: "a wait is not the backoff's, so Cap and MaxHint do not bound it", policy: retry.Policy{MaxHint: sec, Backoff: retry.Backoff{Cap: sec}},
			wait: hour, want: may(hour)},
		{name: "a wait that is over counts for nothing", policy: retry.Policy{TTL: 10 * sec},
			progress: retry.Progress{Elapsed: 10 * sec, Deadline: 11 * sec, Waited: true}, wait: hour, want: may(hour)},

		{name: "canceled goes before all", policy: retry.Policy{Disabled: true, MaxAttempts: 1, TTL: 1},
			progress: retry.Progress{Attempt: 1, Elapsed: 2, Deadline: 1, Caller: retry.CallerCanceled}, wait: 3, want: ending(canceled)},
		{name: "a deadline that has passed goes before all but that", policy: retry.Policy{Disabled: true, MaxAttempts: 1, TTL: 1},
			progress: retry.Progress{Attempt: 1, Elapsed: 2, Deadline: 1}, wait: 3, want: ending(passed)},
		{name: "a passed deadline that only the caller's context knows of goes before them too", policy: retry.Policy{Disabled: true, MaxAttempts: 1, TTL: 1},
			progress: retry.Progress{Attempt: 1, Elapsed: 2, Caller: retry.DeadlinePassed}, wait: 3, want: ending(passed)},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, row.policy.Admit(row.progress, row.wait))
		})
	}
}

func TestSpend(t *testing.T) {
	ctx := t.Context()
	newBudget := func(tokens int) *retry.Budget {
		if tokens == 0 {
			tokens = -1
		}
		return retry.NewBudget(retry.BudgetConfig{Ratio: 0.5, Initial: tokens})
	}
	wait := hinted(3*sec, since(2, waitingFor(7*sec, 5*sec)))
	refused := hinted(3*sec, since(2, broke))
	for _, row := range []struct {
		name     string
		decision retry.Decision
		tokens   int
		pays     []bool // what Pay answers; nil means none
		want     retry.Decision
		left     float64
		asked    int // how often Pay was
	}{
		{name: "a wait takes a token", decision: wait, tokens: 2, want: wait, left: 1},
		{name: "a wait takes the last token", decision: wait, tokens: 1, want: wait, left: 0},
		{name: "without a token a wait ends the run, and class, hint and Since stay", decision: wait, tokens: 0, want: refused, left: 0},
		{name: "a success funds half a token", decision: succeeded, tokens: 2, want: succeeded, left: 2.5},
		{name: "any other ending costs nothing", decision: exhausted, tokens: 2, want: exhausted, left: 2},
		{name: "a cancellation costs nothing", decision: canceled, tokens: 2, want: canceled, left: 2},
		{name: "a wait that Pay pays for takes a token too", decision: wait, tokens: 2, pays: []bool{true}, want: wait, left: 1, asked: 1},
		{name: "a wait that Pay refuses takes none", decision: wait, tokens: 2, pays: []bool{false}, want: refused, left: 2, asked: 1},
		{name: "Pay comes after the budget: not asked without a token", decision: wait, tokens: 0, pays: []bool{true}, want: refused},
		{name: "Pay is not asked about a success", decision: succeeded, tokens: 2, pays: []bool{false}, want: succeeded, left: 2.5},
		{name: "Pay is not asked about an ending", decision: terminal, tokens: 2, pays: []bool{false}, want: terminal, left: 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := retry.Policy{Budget: newBudget(row.tokens)}
			asked := 0
			if row.pays != nil {
				p.Pay = func(got context.Context, d retry.Decision) bool {
					asked++
					require.Equal(t, row.decision, d)
					require.Same(t, ctx, got)
					return row.pays[0]
				}
			}
			require.Equal(t, row.want, p.Spend(ctx, row.decision, anyTime))
			require.Equal(t, row.left, p.Budget.Tokens())
			require.Equal(t, row.asked, asked)
		})
	}
	t.Run("without a budget only Pay can refuse", func(t *testing.T) {
		require.Equal(t, wait, retry.Policy{}.Spend(ctx, wait, anyTime))
		for _, yes := range []bool{true, false} {
			p := retry.Policy{Pay: func(context.Context, retry.Decision) bool { return yes }}
			require.Equal(t, yes, p.Spend(ctx, wait, anyTime) == wait)
		}
	})
	t.Run("a token that a panic in Pay has cost comes back", func(t *testing.T) {
		p := retry.Policy{Budget: newBudget(2), Pay: func(context.Context, retry.Decision) bool { panic("boom") }}
		require.PanicsWithValue(t, "boom", func() { p.Spend(ctx, wait, anyTime) })
		require.Equal(t, 2.0, p.Budget.Tokens())
	})
	t.Run("now is for Trickle", func(t *testing.T) {
		b := retry.BudgetConfig{Initial: -1, Trickle: minute}.NewAt(anyTime)
		require.Equal(t, refused, spendOn(b, wait, anyTime.Add(minute-1)))
		require.Equal(t, wait, retry.Policy{Budget: b}.Spend(ctx, wait, anyTime.Add(minute)))
	})
}

func TestDecisionTexts(t *testing.T) {
	require.Equal(t, []string{"succeeded", "waiting_retry 1h", "dead_letter (terminal_error)", "expired (ttl_elapsed)", ""},
		[]string{succeeded.String(), waiting(hour).String(), terminal.String(), tooOld.String(), retry.Decision{}.String()})
}

func TestDecideJudgesOnceForAShellThatHasAsked(t *testing.T) {
	asked := 0
	p := retry.Policy{Backoff: retry.Backoff{Jitter: retry.FullJitter}, Classify: func(err error) retry.Class {
		asked++
		if errors.Is(err, errOutage) {
			return retry.Terminal
		}
		return retry.Unknown
	}}
	for _, err := range []error{errFlaky, errOutage, retry.After(minute, errFlaky), retry.Permanent(retry.After(sec, errFlaky))} {
		pr := retry.Progress{Attempt: 2, Elapsed: sec}
		want := []retry.Decision{p.Decide(pr, err, 0), p.Decide(pr, err, 0.5)}
		asked = 0
		pr.Class, pr.Hint = p.Judge(err)
		before := asked
		require.Equal(t, want, []retry.Decision{p.Decide(pr, err, 0), p.Decide(pr, err, 0.5)}, "with a u of 0 it says whether one is needed")
		require.Equal(t, before, asked)
		require.Equal(t, succeeded, p.Decide(pr, nil, 0))
	}
}

// TestAdmitAgreesWithDecide holds that the two sisters agree: what Decide waits for, Admit admits, after the wait and,
// for the same wait, before it; and each ending of Admit is one of Decide.
func TestAdmitAgreesWithDecide(t *testing.T) {
	rnd := rand.New(rand.NewPCG(14, 31))
	small := func(n int) time.Duration { return time.Duration(rnd.IntN(n)) }
	waits := 0
	for i := range 100_000 {
		p := retry.Policy{MaxAttempts: rnd.IntN(5), TTL: small(6), Disabled: rnd.IntN(8) == 0, ResetAfter: small(3),
			Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1 + small(3)}}
		pr := retry.Progress{Attempt: 1 + rnd.IntN(4), Forgiven: rnd.IntN(3), Elapsed: small(6), Lasted: small(4), Deadline: small(9) - 1}
		d := p.Decide(pr, errFlaky, 0)
		if i < 3 {
			t.Logf("%v, TTL %v, disabled %v, after %+v: %v", p, p.TTL, p.Disabled, pr, d)
		}
		pr.Forgiven = d.Forgiven
		switch again := p.Admit(pr, d.Delay); {
		case d.Status == retry.WaitingRetry:
			waits++
			pr.Prev = d.Backoff
			require.Equal(t, judged(retry.Unknown, d), p.Admit(pr, d.Delay), "before the wait: %+v %+v", p, pr)
			pr.Elapsed += d.Delay
			require.Equal(t, retry.WaitingRetry, p.Admit(pr, 0).Status, "after the wait: %+v %+v", p, pr)
		case again.Status != retry.WaitingRetry:
			require.Equal(t, judged(retry.Unknown, d), again)
		}
	}
	require.Greater(t, waits, 10_000)
}
