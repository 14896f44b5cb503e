package retry_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

func TestWait(t *testing.T) {
	capped := retry.Backoff{Base: sec, Cap: 10 * sec}
	for _, row := range []struct {
		name     string
		backoff  retry.Backoff
		policy   retry.Policy
		progress retry.Progress
		own      time.Duration // what Wait returns
		err      error
		u        float64
		want     retry.Decision
	}{
		{name: "it takes the place of the computed delay", backoff: capped, own: 7 * sec, want: waitingFor(7*sec, sec)},
		{name: "0 means at once", backoff: capped, own: 0, want: waitingFor(0, sec)},
		{name: "0 means at once, whatever the jitter", backoff: retry.Backoff{Base: 2 * sec, Jitter: retry.FullJitter}, own: 0, u: 0.5, want: waitingFor(0, sec)},
		{name: "Stop ends the run", backoff: capped, own: retry.Stop, want: exhausted},
		{name: "a negative one is Stop", backoff: capped, own: -sec, want: exhausted},
		{name: "the least one is Stop", backoff: capped, own: -longest - 1, want: exhausted},
		{name: "a hint does not override Stop", backoff: capped, own: retry.Stop, err: retry.After(sec, errFlaky),
			want: hinted(sec, exhausted)},
		{name: "a hint that is too long comes before Stop", backoff: capped, own: retry.Stop, err: retry.After(2*hour, errFlaky),
			want: hinted(2*hour, tooLong)},
		{name: "a TTL that is over comes before Stop", backoff: capped, policy: retry.Policy{TTL: sec},
			progress: retry.Progress{Elapsed: sec + 1}, own: retry.Stop, want: tooOld},
		{name: "Cap may be waited", backoff: capped, own: 10 * sec, want: waitingFor(10*sec, sec)},
		{name: "one above Cap is Cap", backoff: capped, own: 10*sec + 1, want: waitingFor(10*sec, sec)},
		{name: "the longest one is Cap", backoff: capped, own: longest, want: waitingFor(10*sec, sec)},
		{name: "the default Cap is one", own: longest, want: waitingFor(hour, 5*sec)},
		{name: "a List without Cap has none", backoff: retry.Backoff{Delays: []time.Duration{sec}}, own: longest, want: waitingFor(longest, sec)},
		{name: "a hint is a floor", backoff: capped, own: sec, err: retry.After(30*sec, errFlaky), want: hinted(30*sec, waitingFor(30*sec, sec))},
		{name: "a hint below it changes nothing", backoff: capped, own: 7 * sec, err: retry.After(3*sec, errFlaky),
			want: hinted(3*sec, waitingFor(7*sec, sec))},
		{name: "a hint keeps its share of the jitter", backoff: retry.Backoff{Base: 2 * sec, Jitter: retry.FullJitter}, own: sec, u: 0.5,
			err: retry.After(30*sec, errFlaky), want: hinted(30*sec, waitingFor(31*sec, sec))},
		{name: "what feeds decorrelated jitter is the computed delay", backoff: retry.Backoff{Base: sec, Jitter: retry.DecorrelatedJitter},
			progress: retry.Progress{Attempt: 2, Prev: 3 * sec}, own: 9 * sec, u: 0.5, want: waitingFor(9*sec, 5*sec)},
		{name: "the TTL counts it", backoff: capped, policy: retry.Policy{TTL: 7*sec - 1}, own: 7 * sec, want: tooOld},
		{name: "exactly to the TTL it is made", backoff: capped, policy: retry.Policy{TTL: 7 * sec}, own: 7 * sec, want: waitingFor(7*sec, sec)},
		{name: "the deadline counts it", backoff: capped, progress: retry.Progress{Deadline: 7 * sec}, own: 7 * sec, want: tooNear},
		{name: "it may be too short for the TTL to mind", backoff: capped, policy: retry.Policy{TTL: sec / 2}, own: 0, want: waitingFor(0, sec)},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := row.policy
			p.Backoff = row.backoff
			p.Wait = func(int, error, time.Duration) time.Duration { return row.own }
			if row.err == nil {
				row.err = errFlaky
			}
			require.Equal(t, row.want, p.Decide(row.progress, row.err, row.u))
		})
	}
	t.Run("it is given the attempt, its error and the computed delay", func(t *testing.T) {
		type asked struct {
			attempt  int
			err      error
			computed time.Duration
		}
		var got asked
		p := retry.Policy{MaxAttempts: 9, Backoff: retry.Backoff{Base: sec, Jitter: retry.EqualJitter}, ResetAfter: minute,
			Wait: func(attempt int, err error, computed time.Duration) time.Duration {
				got = asked{attempt, err, computed}
				return computed
			}}
		for _, row := range []struct {
			progress retry.Progress
			u        float64
			want     asked
		}{
			{retry.Progress{}, 0, asked{1, errFlaky, sec / 2}},
			{retry.Progress{Attempt: -5}, 0, asked{1, errFlaky, sec / 2}},
			{retry.Progress{Attempt: 3}, 0.5, asked{3, errFlaky, 3 * sec}},
			{retry.Progress{Attempt: 7, Forgiven: 4}, 0.5, asked{3, errFlaky, 3 * sec}},
			{retry.Progress{Attempt: 7, Forgiven: 4, Lasted: minute}, 0.5, asked{1, errFlaky, 750 * ms}},
			{retry.Progress{Attempt: 2, Forgiven: 4}, 0.5, asked{1, errFlaky, 750 * ms}},
		} {
			d := p.Decide(row.progress, errFlaky, row.u)
			require.Equal(t, row.want, got, "%+v", row.progress)
			require.Equal(t, waiting(row.want.computed), judged(retry.Retryable, since(0, d)))
		}
		marked := retry.After(sec, io.EOF)
		p.Decide(retry.Progress{}, marked, 0)
		require.Same(t, marked, got.err, "with its marks")
	})
	t.Run("it is not asked if no wait follows", func(t *testing.T) {
		p := retry.Policy{MaxAttempts: 2, TTL: hour, Wait: func(int, error, time.Duration) time.Duration { t.Error("asked"); return 0 }}
		for _, d := range []retry.Decision{
			p.Decide(retry.Progress{}, nil, 0),
			p.Decide(retry.Progress{}, retry.Permanent(errFlaky), 0),
			p.Decide(retry.Progress{Attempt: 2}, errFlaky, 0),
			p.Decide(retry.Progress{}, retry.After(9*hour, errFlaky), 0),
			p.Decide(retry.Progress{Elapsed: hour + 1}, errFlaky, 0),
			p.Decide(retry.Progress{Caller: retry.CallerCanceled}, errFlaky, 0),
		} {
			require.NotEqual(t, retry.WaitingRetry, d.Status)
		}
	})
	inBubble(t, "Do: at once after a reset, otherwise 1s", func(t *testing.T) {
		reset := errors.New("connection reset")
		p := retry.Policy{MaxAttempts: 5, Wait: func(_ int, err error, _ time.Duration) time.Duration {
			if errors.Is(err, reset) {
				return 0
			}
			return sec
		}}
		start := time.Now()
		err := retry.Do(t.Context(), p, failsWith(reset, errFlaky, reset, errFlaky))
		failed := requireEnd(t, err, exhausted, 5)
		require.Equal(t, 2*sec, time.Since(start))
		require.Equal(t, []time.Duration{0, sec, 0, sec, 0}, delays(failed))
	})
}

// delays returns the waits in a run's history.
func delays(failed *retry.Error) (list []time.Duration) {
	for _, a := range failed.History {
		list = append(list, a.Delay)
	}
	return list
}

// lasting returns an fn whose n-th attempt fails after the n-th of the durations, and whose further attempts fail at
// once.
func lasting(durations ...time.Duration) func(context.Context) error {
	n := 0
	return func(context.Context) error {
		if n++; n <= len(durations) {
			spend(durations[n-1])
		}
		return errFlaky
	}
}

func TestResetAfter(t *testing.T) {
	p := retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: sec}, ResetAfter: minute}
	for _, row := range []struct {
		name  string
		lasts []time.Duration
		waits []time.Duration
		since []int
	}{
		{"no attempt is long", []time.Duration{minute - 1, 0, 0}, []time.Duration{sec, 2 * sec, 0}, []int{0, 0, 0}},
		{"the first is long, as it counts anyway", []time.Duration{minute, 0, 0}, []time.Duration{sec, 2 * sec, 0}, []int{0, 0, 0}},
		{"the second is long", []time.Duration{0, minute, 0, 0}, []time.Duration{sec, sec, 2 * sec, 0}, []int{0, 1, 1, 1}},
		{"the last is long", []time.Duration{0, 0, minute, 0, 0}, []time.Duration{sec, 2 * sec, sec, 2 * sec, 0}, []int{0, 0, 2, 2, 2}},
		{"two are long", []time.Duration{0, hour, 0, hour, 0, 0}, []time.Duration{sec, sec, 2 * sec, sec, 2 * sec, 0}, []int{0, 1, 1, 3, 3, 3}},
		{"two are long, one after the other", []time.Duration{0, hour, hour, 0, 0}, []time.Duration{sec, sec, sec, 2 * sec, 0}, []int{0, 1, 2, 2, 2}},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			p := p
			var since, numbers []int
			p.Observe = func(_ context.Context, e retry.Event) {
				if e.Outcome == nil {
					since = append(since, e.Decision.Forgiven)
				}
			}
			fails := lasting(row.lasts...)
			err := retry.Do(t.Context(), p, func(ctx context.Context) error {
				numbers = append(numbers, retry.AttemptNumber(ctx))
				return fails(ctx)
			})
			require.Equal(t, row.waits, delays(requireEnd(t, err, exhausted, len(row.waits))), "all attempts are counted and recorded")
			require.Equal(t, row.since, since)
			require.Equal(t, []int{1, 2, 3, 4, 5, 6}[:len(row.waits)], numbers, "the numbers go on")
		})
	}
	inBubble(t, "a wait, a gate or an observer that takes long is not a long attempt", func(t *testing.T) {
		p := p
		p.Base = 2 * minute
		for _, slow := range []string{"Gate", "Observe", "Classify"} {
			p = calling(func() { spend(2 * minute) }, slow, p)
		}
		requireEnd(t, retry.Do(t.Context(), p, failing), exhausted, 3)
	})
}

func TestPay(t *testing.T) {
	newPolicy := func(tokens int) retry.Policy {
		p := everySecond(3)
		p.Budget = retry.NewBudget(retry.BudgetConfig{Burst: 5, Initial: tokens})
		return p
	}
	inBubble(t, "it is asked once for each retry, after the budget and before the wait, with the caller's context", func(t *testing.T) {
		start := time.Now()
		p := newPolicy(3)
		var tokens []float64
		var when []time.Duration
		p.AttemptTimeout = minute
		p.Pay = func(ctx context.Context, d retry.Decision) bool {
			require.Same(t, t.Context(), ctx)
			require.Equal(t, waiting(sec), d)
			tokens, when = append(tokens, p.Budget.Tokens()), append(when, time.Since(start))
			return true
		}
		requireEnd(t, retry.Do(t.Context(), p, failing), exhausted, 3)
		require.NoError(t, retry.Do(t.Context(), p, succeed))
		require.Equal(t, []float64{2, 1}, tokens)
		require.Equal(t, []time.Duration{0, sec}, when)
	})
	inBubble(t, "false ends the run at once as BudgetExhausted, with the token back and the last error", func(t *testing.T) {
		start := time.Now()
		p := newPolicy(3)
		var seen []retry.Decision
		p.Observe = func(_ context.Context, e retry.Event) { seen = append(seen, e.Decision) }
		p.Pay = func(context.Context, retry.Decision) bool { return time.Since(start) < sec }
		failed := requireEnd(t, retry.Do(t.Context(), p, failing), broke, 2)
		require.Equal(t, sec, time.Since(start))
		require.Same(t, errFlaky, failed.Last)
		require.Equal(t, []retry.Decision{waiting(sec), broke, broke}, seen, "the refused retry is never announced")
		require.Equal(t, 2.0, p.Budget.Tokens(), "of the one retry that was made")
	})
	inBubble(t, "it is not asked if the budget refuses", func(t *testing.T) {
		p := calling(func() { t.Error("asked") }, "Pay", newPolicy(-1))
		requireEnd(t, retry.Do(t.Context(), p, failing), broke, 1)
	})
	for _, row := range []struct {
		name     string
		ttl      time.Duration
		deadline time.Duration
		takes    time.Duration
		want     retry.Decision
		attempts int
		elapsed  time.Duration
	}{
		{"the wait still ends at the TTL: made", 10 * sec, hour, 9 * sec, tooOld, 2, 10 * sec},
		{"the wait ends after the TTL: not made", 10 * sec, hour, 9*sec + 1, tooOld, 1, 9*sec + 1},
		{"the wait still ends before the deadline: made", 0, 10*sec + 1, 9 * sec, tooNear, 2, 10 * sec},
		{"the wait ends at the deadline: not made", 0, 10 * sec, 9 * sec, tooNear, 1, 9 * sec},
		{"the deadline passes meanwhile", 0, 10 * sec, 10 * sec, passed, 1, 10 * sec},
	} {
		inBubble(t, "it may take its time: "+row.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), row.deadline)
			defer cancel()
			calls := 0
			p := calling(func() {
				if calls++; calls == 1 {
					spend(row.takes)
				}
			}, "Pay", newPolicy(3))
			p.TTL = row.ttl
			start := time.Now()
			failed := requireEnd(t, retry.Do(ctx, p, failing), row.want, row.attempts)
			require.Equal(t, row.elapsed, time.Since(start))
			require.Equal(t, row.elapsed, failed.Elapsed)
			require.Zero(t, failed.History[0].Duration)
			require.Equal(t, 3-float64(row.attempts-1), p.Budget.Tokens(), "a retry that is not made costs nothing")
			if row.attempts == 1 {
				require.Zero(t, failed.History[0].Delay, "no wait was begun")
			}
		})
	}
}

func TestACallerWhoGoesDuringPayGoesBeforeItsRefusal(t *testing.T) {
	var leave context.CancelFunc
	for name, row := range map[string]struct {
		meanwhile func()
		want      retry.Decision
	}{
		"canceled":                    {func() { leave() }, canceled},
		"out of time":                 {func() { spend(minute) }, tooOld},
		"otherwise it is the refusal": {func() {}, broke},
	} {
		inBubble(t, name, func(t *testing.T) {
			var ctx context.Context
			ctx, leave = context.WithCancel(t.Context())
			defer leave()
			p := everySecond(9)
			p.TTL = 20 * sec
			p.Pay = func(context.Context, retry.Decision) bool { row.meanwhile(); return false }
			requireEnd(t, retry.Do(ctx, p, failing), row.want, 1)
		})
	}
}
