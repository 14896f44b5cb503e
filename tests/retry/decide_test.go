package retry_test

import (
	"context"
	"io"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

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
	f.Add(uint8(0), uint8(0), 0, int64(0), int64(0), int64(0), int64(0), int64(0), 0.0, false, 1, 0, int64(0), int64(0), int64(0), int64(0), uint8(0), uint8(1), int64(0), 0.5)
	f.Add(uint8(1), uint8(1), 3, int64(sec), int64(minute), int64(minute), int64(hour), int64(0), 2.0, false, 3, 1, int64(sec), int64(hour), int64(sec), int64(minute), uint8(0), uint8(1), int64(sec), 0.5)
	f.Add(uint8(4), uint8(3), -1, int64(0), int64(0), int64(1), int64(1), int64(sec), 0.0, false, 9, 9, int64(sec), int64(1), int64(sec), int64(-1), uint8(9), uint8(2), int64(longest), 1.0)
	f.Add(uint8(9), uint8(4), -9, int64(-1), int64(-1), int64(-1), int64(-1), int64(-1), math.NaN(), true, math.MinInt, math.MinInt, int64(math.MinInt64), int64(-1), int64(-1), int64(math.MinInt64), uint8(255), uint8(3), int64(-1), math.Inf(-1))
	f.Fuzz(func(t *testing.T, mode, jitter uint8, attempts int, base, limit, ttl, maxHint, delay int64, factor float64, off bool,
		attempt, since int, elapsed, lasted, prev, deadline int64, caller, kind uint8, hint int64, u float64) {
		p := anyPolicy(mode, jitter, attempts, base, limit, ttl, maxHint, delay, factor, off)
		p.ResetAfter = p.TTL / 2
		pr := retry.Progress{Attempt: attempt, Forgiven: since, Elapsed: time.Duration(elapsed), Lasted: time.Duration(lasted),
			Prev: time.Duration(prev), Deadline: time.Duration(deadline), Caller: retry.Reason(caller), Waited: kind > 127}
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
		require.Equal(t, err == nil, d.Class == retry.Unknown, "an error is acted on as retryable or terminal")
		require.GreaterOrEqual(t, d.Forgiven, 0)
		if err == nil {
			return
		}
		require.Equal(t, max(time.Duration(hint), 0), d.Hint)
		late := pr.Deadline != 0 && pr.Deadline <= max(pr.Elapsed, 0)
		require.Equal(t, pr.Caller != 0 && pr.Caller != retry.DeadlinePassed, d.Reason == retry.CallerCanceled)
		require.Equal(t, d.Reason != retry.CallerCanceled && (late || pr.Caller == retry.DeadlinePassed), d.Reason == retry.DeadlinePassed)
		if d.Status != retry.WaitingRetry {
			require.Zero(t, d.Delay)
			require.Zero(t, d.Backoff)
			return
		}
		require.False(t, p.Disabled, "a disabled policy never waits")
		require.NotEqual(t, retry.Terminal, class, "a terminal error never waits")
		require.GreaterOrEqual(t, d.Delay, time.Duration(0))
		counted, last := max(attempt, 1)-d.Forgiven, pr.Prev
		if p.ResetAfter > 0 && pr.Lasted >= p.ResetAfter {
			require.Equal(t, 1, counted, "a long attempt counts as the first")
			last = 0
		}
		if p.MaxAttempts > 0 {
			require.Less(t, max(counted, 1), p.MaxAttempts, "it never waits when the attempts are used up")
		}
		if p.TTL > 0 && !pr.Waited {
			require.LessOrEqual(t, d.Delay, p.TTL-max(pr.Elapsed, 0), "no wait ends past the TTL")
		}
		if pr.Deadline != 0 && !pr.Waited {
			require.Less(t, d.Delay, pr.Deadline-max(pr.Elapsed, 0), "no wait ends at or after the deadline")
		}
		require.Equal(t, p.Jittered(counted, last, u), d.Backoff)
		if hint <= 0 {
			require.Equal(t, d.Backoff, d.Delay, "without a hint the wait is the backoff's")
			return
		}
		require.GreaterOrEqual(t, d.Delay, max(d.Backoff, time.Duration(hint)), "a hint is a floor, and so is the backoff")
		most := p.MaxHint
		if most <= 0 {
			most = hour
		}
		require.LessOrEqual(t, time.Duration(hint), most, "a hint beyond MaxHint is not waited for")
		require.LessOrEqual(t, d.Delay, max(d.Backoff, most), "a hint adds no more than MaxHint")
	})
}

// FuzzDo plays a script of outcomes, one byte each, against a policy without waits, and requires what every run
// promises.
func FuzzDo(f *testing.F) {
	f.Add([]byte{1, 1, 1, 0}, 5, false, int8(3))
	f.Add([]byte{1, 2}, 0, false, int8(0))
	f.Add([]byte{1, 3, 1}, -1, true, int8(9))
	f.Add([]byte{1, 1, 4}, 4, true, int8(-1))
	f.Fuzz(func(t *testing.T, script []byte, attempts int, off bool, tokens int8) {
		p := retry.Policy{MaxAttempts: attempts, Disabled: off, Backoff: retry.Backoff{Delays: []time.Duration{0}}}
		if p.Validate() != nil {
			return
		}
		if tokens != 0 {
			p.Budget = retry.NewBudget(retry.BudgetConfig{Burst: 100, Initial: int(tokens)})
		}
		before := p.Budget.Tokens()
		var events []retry.Event
		p.Observe = func(_ context.Context, e retry.Event) { events = append(events, e) }
		ctx, cancel := context.WithCancelCause(context.Background())
		calls, stopped := 0, false
		err := retry.Do(ctx, p, func(context.Context) error {
			calls++
			if calls > len(script) {
				return nil
			}
			switch script[calls-1] % 5 {
			case 0:
				return nil
			case 2:
				return retry.Permanent(errFlaky)
			case 3:
				return context.Canceled
			case 4:
				stopped = true
				cancel(io.EOF)
			}
			return errFlaky
		})
		cancel(nil)

		last := events[len(events)-1]
		require.NotNil(t, last.Outcome, "exactly one final event, the last")
		require.Equal(t, calls, last.Outcome.Attempts)
		require.Contains(t, reasonsOf[last.Outcome.Status], last.Outcome.Reason)
		require.NotEqual(t, retry.WaitingRetry, last.Outcome.Status)
		failures := calls
		if err == nil {
			failures--
		}
		require.Len(t, events, failures+1, "one event for each failed attempt and one for the end")
		for i, e := range events[:failures] {
			require.Nil(t, e.Outcome)
			require.Equal(t, i+1, e.Attempt.Number)
			require.Equal(t, i < failures-1 || err == nil, e.Decision.Status == retry.WaitingRetry, "a retry is announced if and only if one follows")
		}
		require.Len(t, last.Outcome.History, min(failures, 64))
		if err == nil {
			require.Equal(t, retry.Succeeded, last.Outcome.Status)
		} else {
			failed := must[*retry.Error](t, err)
			require.Equal(t, *last.Outcome, failed.Outcome)
			require.Equal(t, failed, last.Err)
			require.Equal(t, stopped, failed.Status == retry.Canceled, "a canceled caller is Canceled and never dead-lettered")
			require.Equal(t, off && !stopped, failed.Status == retry.FailedNoRetries, "a disabled policy fails and never dead-letters")
			if p.MaxAttempts > 0 {
				require.LessOrEqual(t, calls, p.MaxAttempts)
			}
		}
		if p.Budget != nil {
			gained := 0.0
			if err == nil {
				gained = 0.1
			}
			require.InDelta(t, min(before-float64(calls-1)+gained, 100), p.Budget.Tokens(), 1e-9, "each retry cost one token")
		}
	})
}

// FuzzPolicy holds for any policy, valid or not: nothing panics, nothing takes long, and what Do trusts is what Validate
// says.
func FuzzPolicy(f *testing.F) {
	f.Add(uint8(0), uint8(0), 0, int64(0), int64(0), int64(0), int64(0), int64(0), 0.0, false, 0.0, int64(0))
	f.Add(uint8(1), uint8(3), retry.Unlimited, int64(1), int64(longest), int64(sec), int64(1), int64(0), 1.0000001, false, 0.5, int64(sec))
	f.Add(uint8(2), uint8(4), maxTries, int64(1), int64(longest), int64(1), int64(1), int64(0), 1e-9, false, 2.0, int64(2))
	f.Add(uint8(4), uint8(9), math.MinInt, int64(-1), int64(-1), int64(-1), int64(-1), int64(-1), math.NaN(), true, math.NaN(), int64(-1))
	f.Fuzz(func(t *testing.T, mode, jitter uint8, attempts int, base, limit, ttl, maxHint, delay int64, factor float64, off bool, ratio float64, timeout int64) {
		p := anyPolicy(mode, jitter, attempts, base, limit, ttl, maxHint, delay, factor, off)
		p.JitterRatio, p.AttemptTimeout = ratio, time.Duration(timeout)
		err := p.Validate()
		calls := 0
		ran := retry.Do(context.Background(), p, func(context.Context) error { calls++; return nil })
		if err == nil {
			require.NoError(t, ran)
			require.Equal(t, 1, calls)
		} else {
			require.Equal(t, err, ran)
			require.Zero(t, calls)
			require.NotContains(t, err.Error(), "\n")
		}
		lo, hi := p.TotalWait()
		require.GreaterOrEqual(t, lo, time.Duration(0))
		require.GreaterOrEqual(t, hi, lo)
		require.NotContains(t, p.String(), "\n")
		require.Equal(t, p.Or(retry.Policy{}).String(), p.String())
	})
}

func TestContinueIsDoAfterAFirstAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		time.Sleep(3 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), hour)
		defer cancel()
		run := func(ctx context.Context, p retry.Policy) *retry.Error {
			var failed *retry.Error
			require.ErrorAs(t, p.Continue(ctx, time.Since(began), errFlaky, failing), &failed)
			return failed
		}
		failed := run(ctx, retry.Policy{TTL: 7 * time.Second})
		require.Equal(t, retry.TTLElapsed, failed.Reason)
		require.Equal(t, 1, failed.Attempts, "5s more would be too late")
		require.Equal(t, 3*time.Second, failed.Elapsed)
		require.Equal(t, 3*time.Second, failed.History[0].Duration)
		require.True(t, began.Equal(failed.History[0].Start))
		require.Equal(t, 2, run(ctx, retry.Policy{MaxAttempts: 2}).Attempts)
		require.Equal(t, retry.RetriesDisabled, run(retry.OneAttempt(ctx), retry.Policy{}).Reason)
		require.Equal(t, retry.RetriesDisabled, run(ctx, retry.Policy{Disabled: true}).Reason)
		var instant *retry.Error
		require.ErrorAs(t, retry.Policy{Disabled: true}.Continue(ctx, -1, errFlaky, failing), &instant)
		require.Zero(t, instant.Elapsed, "a negative time counts as 0")
		gone, leave := context.WithCancel(ctx)
		leave()
		require.Equal(t, retry.CallerCanceled, run(gone, retry.Policy{}).Reason)
	})
}
