package migrating_test

import (
	"context"
	"errors"
	"testing"
	"time"

	avast4 "github.com/avast/retry-go/v4"
	avast5 "github.com/avast/retry-go/v5"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// avast4With and avast5With are calls with these options, ours with that policy.
func avast4With(options ...avast4.Option) call {
	return func(c client, ctx context.Context) (string, error) {
		return avast4.DoWithData(func() (string, error) { return c.fetch(ctx) }, append(options, avast4.Context(ctx))...)
	}
}

func avast5With(options ...avast5.Option) call {
	return func(c client, ctx context.Context) (string, error) {
		return avast5.NewWithData[string](append(options, avast5.Context(ctx))...).
			Do(func() (string, error) { return c.fetch(ctx) })
	}
}

func with(p retry.Policy) call {
	return func(c client, ctx context.Context) (string, error) { return retry.DoValue(ctx, p, c.fetch) }
}

func TestRetryGoKeepsEveryError(t *testing.T) {
	errFirst := errors.New("first")
	s := failing(errFirst, errBusy, errBusy, errBusy, errBusy)
	v4, v5 := watch(t, client.retryGoV4, s).err, watch(t, client.retryGoV5, s).err
	for _, err := range []error{v4, v5} {
		require.ErrorIs(t, err, errFirst)
		require.ErrorIs(t, err, errBusy)
		require.EqualError(t, err, "All attempts fail:\n#1: first\n#2: busy\n#3: busy\n#4: busy\n#5: busy")
	}
	require.Equal(t, errBusy, errors.Unwrap(v4))
	require.NoError(t, errors.Unwrap(v5))

	err := watch(t, client.afterRetryGo, s).err
	require.ErrorIs(t, err, errBusy)
	require.NotErrorIs(t, err, errFirst)
	require.EqualError(t, err, "retry: gave up after 5 attempts in 1.5s (attempts_exhausted): busy")
	var ended *retry.Error
	require.ErrorAs(t, err, &ended)
	var every []error
	for _, attempt := range ended.History {
		every = append(every, attempt.Err)
	}
	require.ErrorIs(t, errors.Join(every...), errFirst)
}

func TestRetryGoAttemptsZero(t *testing.T) {
	const hour = time.Hour
	for _, do := range []call{
		avast4With(avast4.Attempts(0), avast4.Delay(time.Minute), avast4.DelayType(avast4.FixedDelay)),
		avast5With(avast5.Attempts(0), avast5.Delay(time.Minute), avast5.DelayType(avast5.FixedDelay)),
	} {
		r := watchUntil(t, hour-1, do, always(errBusy))
		require.Len(t, r.at, 60)
		require.Equal(t, context.DeadlineExceeded, r.err) // and nothing of errBusy
	}
	fixed := retry.Backoff{Mode: retry.Fixed, Base: time.Minute}
	require.Len(t, watchUntil(t, hour-1, with(retry.Policy{Backoff: fixed}), always(errBusy)).at, 8)
	list := retry.Backoff{Delays: []time.Duration{time.Minute, time.Minute}}
	require.Len(t, watchUntil(t, hour-1, with(retry.Policy{Backoff: list}), always(errBusy)).at, 3)
	r := watchUntil(t, hour-1, with(retry.Policy{Backoff: fixed, MaxAttempts: retry.Unlimited}), always(errBusy))
	require.Len(t, r.at, 60)
	require.ErrorIs(t, r.err, errBusy)
}

func TestRetryGoRetryIfReplacesUnrecoverable(t *testing.T) {
	yes := func(error) bool { return true }
	v4 := avast4With(avast4.Attempts(5), avast4.RetryIf(yes))
	v5 := avast5With(avast5.Attempts(5), avast5.RetryIf(yes))
	after := with(retry.Policy{MaxAttempts: 5, Classify: retry.RetryIf(yes)})
	require.Len(t, watch(t, v4, always(avast4.Unrecoverable(errBusy))).at, 5)
	require.Len(t, watch(t, v5, always(avast5.Unrecoverable(errBusy))).at, 5)
	require.Len(t, watch(t, after, always(retry.Permanent(errBusy))).at, 1)
}

func TestRetryGoFullJitterBeginsAtTwiceTheDelay(t *testing.T) {
	longest := func(do call) (longest time.Duration) {
		for range 200 {
			longest = max(longest, watch(t, do, failing(errBusy)).waits()[0])
		}
		return longest
	}
	for _, do := range []call{
		avast4With(avast4.DelayType(avast4.FullJitterBackoffDelay), avast4.Delay(time.Second)),
		avast5With(avast5.DelayType(avast5.FullJitterBackoffDelay), avast5.Delay(time.Second)),
		with(retry.Policy{Backoff: retry.Backoff{Base: 2 * time.Second, Jitter: retry.FullJitter}}),
	} {
		got := longest(do)
		require.Greater(t, got, time.Second)
		require.Less(t, got, 2*time.Second)
	}
	same := with(retry.Policy{Backoff: retry.Backoff{Base: time.Second, Jitter: retry.FullJitter}})
	require.Less(t, longest(same), time.Second)
}

func TestRetryGoV4PanicsWithoutJitter(t *testing.T) {
	require.Panics(t, func() { _ = avast4.Do(func() error { return errBusy }, avast4.MaxJitter(0)) })
	require.Len(t, watch(t, avast5With(avast5.MaxJitter(0)), always(errBusy)).at, 10)
	require.Len(t, watch(t, with(retry.Policy{}), always(errBusy)).at, 8)
}

// A count for one error is a count of the caller's own.
func TestRetryGoAttemptsForError(t *testing.T) {
	counted := func(c client, ctx context.Context) (string, error) {
		busy := 0
		return retry.DoValue(ctx, retry.Policy{MaxAttempts: 10}, func(ctx context.Context) (string, error) {
			s, err := c.fetch(ctx)
			if errors.Is(err, errBusy) {
				if busy++; busy == 2 {
					err = retry.Permanent(err)
				}
			}
			return s, err
		})
	}
	s := failing(errNotFound, errBusy, errNotFound, errBusy)
	for _, do := range []call{
		avast4With(avast4.AttemptsForError(2, errBusy)), avast5With(avast5.AttemptsForError(2, errBusy)), counted,
	} {
		r := watch(t, do, s)
		require.Len(t, r.at, 4)
		require.ErrorIs(t, r.err, errBusy)
	}
}

func TestRetryGoThrottleAndBudget(t *testing.T) {
	throttle := avast5.NewFixedTokenBucketThrottle(avast5.FixedTokenBucketThrottleConfig{})
	r := watch(t, avast5With(avast5.Attempts(50), avast5.WithThrottle(throttle)), always(errBusy))
	require.Len(t, r.at, 21) // 100 tokens at first, 5 for each retry
	require.ErrorIs(t, r.err, avast5.ErrThrottled)
	require.ErrorIs(t, r.err, errBusy)

	budget := retry.NewBudget(retry.BudgetConfig{})
	r = watch(t, with(retry.Policy{MaxAttempts: 50, Budget: budget}), always(errBusy))
	require.Len(t, r.at, 11) // 10 tokens at first, 1 for each retry
	require.ErrorIs(t, r.err, retry.BudgetExhausted)
	require.ErrorIs(t, r.err, errBusy)

	budget = retry.NewBudget(retry.BudgetConfig{Burst: 20, Initial: 20, Ratio: 0.2})
	r = watch(t, with(retry.Policy{MaxAttempts: 50, Budget: budget}), always(errBusy))
	require.Len(t, r.at, 21) // as theirs: a first-try success is worth 1/5 of a retry
}
