package retry_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// Decisions, short enough for a row.
var (
	succeeded = retry.Decision{Status: retry.Succeeded}
	terminal  = retry.Decision{Status: retry.DeadLettered, Reason: retry.TerminalError}
	exhausted = retry.Decision{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted}
	broke     = retry.Decision{Status: retry.DeadLettered, Reason: retry.BudgetExhausted}
	tooOld    = retry.Decision{Status: retry.Expired, Reason: retry.TTLElapsed}
	passed    = retry.Decision{Status: retry.Expired, Reason: retry.DeadlinePassed}
	tooNear   = retry.Decision{Status: retry.Expired, Reason: retry.DeadlineTooNear}
	tooLong   = retry.Decision{Status: retry.Expired, Reason: retry.HintTooLong}
	disabled  = retry.Decision{Status: retry.Failed, Reason: retry.RetriesDisabled}
	canceled  = retry.Decision{Status: retry.Canceled, Reason: retry.CallerCanceled}
)

func waiting(d time.Duration) retry.Decision { return retry.Decision{Status: retry.Waiting, Delay: d} }

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
		{name: "nil is a success on any attempt", progress: retry.Progress{Attempt: 99, Elapsed: hour},
			policy: retry.Policy{MaxAttempts: 1, TTL: 1}, err: nil, want: succeeded},
		{name: "nil is a success of a disabled policy", policy: retry.Policy{Disabled: true}, err: nil, want: succeeded},
		{name: "an error waits", progress: retry.Progress{Attempt: 1}, err: errFlaky, want: waiting(5 * sec)},
		{name: "the zero progress is after the first attempt", err: errFlaky, want: waiting(5 * sec)},
		{name: "a negative attempt is the first", progress: retry.Progress{Attempt: -5}, err: errFlaky, want: waiting(5 * sec)},
		{name: "the wait grows with the attempt", progress: retry.Progress{Attempt: 3}, err: errFlaky, want: waiting(20 * sec)},

		{name: "attempt 7 of 8 waits", progress: retry.Progress{Attempt: 7}, err: errFlaky, want: waiting(320 * sec)},
		{name: "attempt 8 of 8 was the last", progress: retry.Progress{Attempt: 8}, err: errFlaky, want: exhausted},
		{name: "an attempt beyond the last was too", progress: retry.Progress{Attempt: maxTries}, err: errFlaky, want: exhausted},
		{name: "one attempt is one", policy: retry.Policy{MaxAttempts: 1}, err: errFlaky, want: exhausted},
		{name: "a list of three has four attempts: the third waits", policy: retry.Standard(),
			progress: retry.Progress{Attempt: 3}, err: errFlaky, want: waiting(3 * hour)},
		{name: "a list of three has four attempts: the fourth is the last", policy: retry.Standard(),
			progress: retry.Progress{Attempt: 4}, err: errFlaky, want: exhausted},
		{name: "a list repeats its last delay for more attempts", policy: retry.Policy{MaxAttempts: 9, Backoff: retry.Standard().Backoff},
			progress: retry.Progress{Attempt: 8}, err: errFlaky, want: waiting(3 * hour)},
		{name: "unlimited has no last", policy: retry.Policy{MaxAttempts: retry.Unlimited},
			progress: retry.Progress{Attempt: maxTries}, err: errFlaky, want: waiting(hour)},
		{name: "a bad MaxAttempts counts as unset", policy: retry.Policy{MaxAttempts: -2},
			progress: retry.Progress{Attempt: 8}, err: errFlaky, want: exhausted},

		{name: "a terminal error ends at once", err: retry.Permanent(errFlaky), want: terminal},
		{name: "canceled, while the caller lives, is terminal", err: context.Canceled, want: terminal},
		{name: "an attempt's deadline is retryable", err: context.DeadlineExceeded, want: waiting(5 * sec)},
		{name: "an attempt's timeout is retryable", err: retry.ErrAttemptTimeout, want: waiting(5 * sec)},

		{name: "disabled fails", policy: retry.Policy{Disabled: true}, err: errFlaky, want: disabled},
		{name: "disabled goes before terminal", policy: retry.Policy{Disabled: true}, err: retry.Permanent(errFlaky), want: disabled},
		{name: "disabled goes before exhausted", policy: retry.Policy{Disabled: true, MaxAttempts: 1}, err: errFlaky, want: disabled},
		{name: "terminal goes before exhausted", policy: retry.Policy{MaxAttempts: 1}, err: retry.Permanent(errFlaky), want: terminal},
		{name: "exhausted goes before a hint too long", policy: retry.Policy{MaxAttempts: 1}, err: after(9 * hour), want: exhausted},
		{name: "a hint too long goes before the TTL", policy: retry.Policy{TTL: sec}, err: after(9 * hour), want: tooLong},

		{name: "a retry just before the TTL waits", policy: retry.Policy{Backoff: second, TTL: 10 * sec},
			progress: retry.Progress{Attempt: 1, Elapsed: 9*sec - 1}, err: errFlaky, want: waiting(sec)},
		{name: "a retry exactly at the TTL waits", policy: retry.Policy{Backoff: second, TTL: 10 * sec},
			progress: retry.Progress{Attempt: 1, Elapsed: 9 * sec}, err: errFlaky, want: waiting(sec)},
		{name: "a retry just after the TTL ends the run", policy: retry.Policy{Backoff: second, TTL: 10 * sec},
			progress: retry.Progress{Attempt: 1, Elapsed: 9*sec + 1}, err: errFlaky, want: tooOld},
		{name: "a retry long after the TTL ends the run", policy: retry.Policy{TTL: 10 * sec},
			progress: retry.Progress{Attempt: 1, Elapsed: longest}, err: errFlaky, want: tooOld},
		{name: "a negative elapsed time counts as 0", policy: retry.Policy{Backoff: second, TTL: sec},
			progress: retry.Progress{Attempt: 1, Elapsed: -hour}, err: errFlaky, want: waiting(sec)},
		{name: "a bad TTL counts as unset", policy: retry.Policy{TTL: -1},
			progress: retry.Progress{Attempt: 1, Elapsed: hour}, err: errFlaky, want: waiting(5 * sec)},
		{name: "a hint counts for the TTL", policy: retry.Policy{Backoff: second, TTL: 10 * sec}, err: after(11 * sec), want: tooOld},

		{name: "a hint is a floor", policy: retry.Policy{Backoff: second}, err: after(30 * sec), want: waiting(30 * sec)},
		{name: "a hint below the backoff changes nothing", policy: retry.Policy{Backoff: second},
			progress: retry.Progress{Attempt: 4}, err: after(3 * sec), want: waiting(8 * sec)},
		{name: "a hint does not reset the exponent", policy: retry.Policy{Backoff: second},
			progress: retry.Progress{Attempt: 3}, err: errFlaky, want: waiting(4 * sec)},
		{name: "a hint may be longer than the cap", policy: retry.Policy{Backoff: second}, err: after(2 * minute), want: waiting(2 * minute)},
		{name: "a hint of MaxHint is obeyed", policy: retry.Policy{MaxHint: minute}, err: after(minute), want: waiting(minute)},
		{name: "a hint beyond MaxHint ends the run", policy: retry.Policy{MaxHint: minute}, err: after(minute + 1), want: tooLong},
		{name: "MaxHint is 1h by default", err: after(hour), want: waiting(hour)},
		{name: "a hint beyond the default ends the run", err: after(hour + 1), want: tooLong},
		{name: "the longest hint ends the run", err: after(longest), want: tooLong},
		{name: "the longest hint can be allowed", policy: retry.Policy{MaxHint: longest, Backoff: retry.Backoff{Jitter: retry.FullJitter}},
			err: after(longest), u: 0.9, want: waiting(longest)},
		{name: "a bad MaxHint counts as unset", policy: retry.Policy{MaxHint: -1}, err: after(hour), want: waiting(hour)},
		{name: "a hint of 0 is none", err: after(0), want: waiting(5 * sec)},
		{name: "a negative hint is none", err: after(-hour), want: waiting(5 * sec)},
		{name: "jitter goes upwards from a hint, by its own width",
			policy: retry.Policy{Backoff: retry.Backoff{Base: 10 * sec, Jitter: retry.EqualJitter}},
			err:    after(minute), u: 0.5, want: waiting(minute + 2500*ms)},
		{name: "jitter above a hint stops at MaxHint",
			policy: retry.Policy{Backoff: retry.Backoff{Base: 10 * sec, Jitter: retry.FullJitter}, MaxHint: minute},
			err:    after(58 * sec), u: 0.5, want: waiting(minute)},
		{name: "MaxHint does not shorten the backoff",
			policy:   retry.Policy{Backoff: second, MaxHint: 2 * sec},
			progress: retry.Progress{Attempt: 4}, err: after(sec), want: waiting(8 * sec)},

		{name: "u chooses the jitter", policy: retry.Policy{Backoff: retry.Backoff{Jitter: retry.FullJitter}},
			err: errFlaky, u: 0.25, want: waiting(1250 * ms)},
		{name: "u is clamped", policy: retry.Policy{Backoff: retry.Backoff{Jitter: retry.FullJitter}},
			err: errFlaky, u: math.NaN(), want: waiting(0)},
		{name: "the last delay feeds decorrelated jitter",
			policy:   retry.Policy{Backoff: retry.Backoff{Base: sec, Jitter: retry.DecorrelatedJitter}},
			progress: retry.Progress{Attempt: 2, Prev: 3 * sec}, err: errFlaky, u: 0.5, want: waiting(5 * sec)},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, row.policy.Decide(row.progress, row.err, row.u))
		})
	}
}

func TestStatusAndReasonTexts(t *testing.T) {
	for want, status := range map[string]retry.Status{
		"": 0, "succeeded": retry.Succeeded, "waiting_retry": retry.Waiting, "dead_letter": retry.DeadLettered,
		"expired": retry.Expired, "failed_no_retries": retry.Failed, "canceled": retry.Canceled, "Status(7)": 7,
	} {
		require.Equal(t, want, status.String())
	}
	for want, reason := range map[string]retry.Reason{
		"": 0, "terminal_error": retry.TerminalError, "attempts_exhausted": retry.AttemptsExhausted,
		"budget_exhausted": retry.BudgetExhausted, "ttl_elapsed": retry.TTLElapsed,
		"deadline_passed": retry.DeadlinePassed, "deadline_too_near": retry.DeadlineTooNear,
		"hint_too_long": retry.HintTooLong, "retries_disabled": retry.RetriesDisabled,
		"caller_canceled": retry.CallerCanceled, "Reason(10)": 10,
	} {
		require.Equal(t, want, reason.Error())
	}
}

func TestDecisionTexts(t *testing.T) {
	require.Equal(t, []string{"succeeded", "waiting_retry 1h", "dead_letter (terminal_error)", "expired (ttl_elapsed)", ""},
		[]string{succeeded.String(), waiting(hour).String(), terminal.String(), tooOld.String(), retry.Decision{}.String()})
}

// anyPolicy makes a policy of any bytes, valid or not.
func anyPolicy(mode, jitter uint8, attempts int, base, limit, ttl, maxHint, delay int64, factor float64, off bool) retry.Policy {
	p := retry.Policy{
		MaxAttempts: attempts,
		Backoff: retry.Backoff{Mode: retry.Mode(mode), Base: time.Duration(base), Factor: factor,
			Cap: time.Duration(limit), Jitter: retry.JitterMode(jitter)},
		TTL:      time.Duration(ttl),
		MaxHint:  time.Duration(maxHint),
		Disabled: off,
	}
	if delay != 0 {
		p.Delays = []time.Duration{time.Duration(delay)}
	}
	return p
}

func FuzzDecide(f *testing.F) {
	f.Add(uint8(0), uint8(0), 0, int64(0), int64(0), int64(0), int64(0), int64(0), 0.0, false, 1, int64(0), int64(0), uint8(1), int64(0), 0.5)
	f.Add(uint8(1), uint8(1), 3, int64(sec), int64(minute), int64(minute), int64(hour), int64(0), 2.0, false, 3, int64(sec), int64(sec), uint8(1), int64(sec), 0.5)
	f.Add(uint8(4), uint8(3), -1, int64(0), int64(0), int64(1), int64(1), int64(sec), 0.0, false, 9, int64(sec), int64(sec), uint8(2), int64(longest), 1.0)
	f.Add(uint8(9), uint8(4), -9, int64(-1), int64(-1), int64(-1), int64(-1), int64(-1), math.NaN(), true, math.MinInt, int64(math.MinInt64), int64(-1), uint8(3), int64(-1), math.Inf(-1))
	f.Fuzz(func(t *testing.T, mode, jitter uint8, attempts int, base, limit, ttl, maxHint, delay int64, factor float64, off bool,
		attempt int, elapsed, prev int64, kind uint8, hint int64, u float64) {
		p := anyPolicy(mode, jitter, attempts, base, limit, ttl, maxHint, delay, factor, off)
		pr := retry.Progress{Attempt: attempt, Elapsed: time.Duration(elapsed), Prev: time.Duration(prev)}
		class := []retry.Class{retry.Unknown, retry.Retryable, retry.Terminal}[kind%3]
		p.Classify = func(error) retry.Class { return class }
		var err error
		if kind%4 != 0 {
			err = retry.After(time.Duration(hint), errFlaky)
		}

		d := p.Decide(pr, err, u)
		require.Equal(t, d, p.Decide(pr, err, u), "Decide is pure")
		require.Contains(t, reasonsOf[d.Status], d.Reason, "each status has its own reasons")
		require.Equal(t, err == nil, d.Status == retry.Succeeded, "nil, and only nil, is a success")
		if d.Status != retry.Waiting {
			require.Zero(t, d.Delay)
		}
		if err != nil && p.Disabled {
			require.Equal(t, disabled, d, "a disabled policy never dead-letters")
		}
		if d.Status != retry.Waiting {
			return
		}
		require.NotEqual(t, retry.Terminal, class, "a terminal error never waits")
		require.GreaterOrEqual(t, d.Delay, time.Duration(0))
		if p.MaxAttempts > 0 {
			require.Less(t, max(attempt, 1), p.MaxAttempts, "never Waiting when the attempts are used up")
		}
		if p.TTL > 0 {
			require.LessOrEqual(t, d.Delay, p.TTL-max(pr.Elapsed, 0), "no wait ends past the TTL")
		}
		backoff := p.Jittered(pr.Attempt, pr.Prev, u)
		if hint <= 0 {
			require.Equal(t, backoff, d.Delay, "without a hint the wait is the backoff's")
			return
		}
		require.GreaterOrEqual(t, d.Delay, max(backoff, time.Duration(hint)), "a hint is a floor, and so is the backoff")
		most := p.MaxHint
		if most <= 0 {
			most = hour
		}
		require.LessOrEqual(t, time.Duration(hint), most, "a hint beyond MaxHint is not waited for")
		require.LessOrEqual(t, d.Delay, max(backoff, most), "a hint adds no more than MaxHint")
	})
}

// reasonsOf is the whole vocabulary: which reasons go with which status.
var reasonsOf = map[retry.Status][]retry.Reason{
	retry.Succeeded:    {0},
	retry.Waiting:      {0},
	retry.DeadLettered: {retry.TerminalError, retry.AttemptsExhausted, retry.BudgetExhausted},
	retry.Expired:      {retry.TTLElapsed, retry.DeadlinePassed, retry.DeadlineTooNear, retry.HintTooLong},
	retry.Failed:       {retry.RetriesDisabled},
	retry.Canceled:     {retry.CallerCanceled},
}

func TestReasonIsAnError(t *testing.T) {
	err := fmt.Errorf("charge card: %w", retry.AttemptsExhausted)
	require.ErrorIs(t, err, retry.AttemptsExhausted)
	require.NotErrorIs(t, err, retry.TerminalError)
	var reason retry.Reason
	require.True(t, errors.As(err, &reason))
	require.Equal(t, retry.AttemptsExhausted, reason)
}
