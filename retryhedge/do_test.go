package retryhedge_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
)

var (
	errDown = errors.New("down")
	errGone = errors.New("gone")
)

// step is what one call does: it lasts until a time or the end of its context, and returns its number and err.
type step struct {
	lasts   time.Duration
	ignores bool // its context
	err     error
	panics  any
	exits   bool
}

// script makes calls by script, in the order in which they begin, and notes what became of them.
type script struct {
	steps []step

	mu        sync.Mutex
	contexts  []context.Context
	discarded []int
}

func (s *script) call(ctx context.Context) (int, error) {
	s.mu.Lock()
	s.contexts = append(s.contexts, ctx)
	n := len(s.contexts)
	do := s.steps[n-1]
	s.mu.Unlock()
	if do.ignores {
		<-time.After(do.lasts)
	} else {
		select {
		case <-time.After(do.lasts):
		case <-ctx.Done():
			return n, ctx.Err()
		}
	}
	switch {
	case do.panics != nil:
		panic(do.panics)
	case do.exits:
		runtime.Goexit()
	}
	return n, do.err
}

// wait makes a call of which only the error matters.
func (s *script) wait(ctx context.Context) error {
	_, err := s.call(ctx)
	return err
}

func (s *script) discard(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.discarded = append(s.discarded, n)
}

func TestDo(t *testing.T) {
	none := retry.BudgetConfig{Initial: -1}
	for _, row := range []struct {
		name    string
		p       retryhedge.Policy
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		budget  *retry.BudgetConfig
		steps   []step
		want    int
		err     error
		elapsed time.Duration
		lost    []int // discarded by the time all calls have ended
		tokens  float64
		event   string
		single  bool // one call with the caller's context
	}{
		{name: "a fast call has no hedge", steps: []step{{lasts: 10 * ms}}, want: 1, elapsed: 10 * ms, tokens: 2.1,
			event: "won 1 of 1, slow false, refused false"},
		{name: "a hedge that is faster wins, and the first call is awaited", steps: []step{{lasts: time.Second}, {lasts: 10 * ms}},
			want: 2, elapsed: 60 * ms, lost: []int{1}, tokens: 1.1, event: "won 2 of 2, slow true, refused false"},
		{name: "a first call that ignores its context is awaited", steps: []step{{lasts: time.Second, ignores: true}, {lasts: 10 * ms}},
			want: 2, elapsed: time.Second, lost: []int{1}, tokens: 1.1, event: "won 2 of 2, slow true, refused false"},
		{name: "a first call that is faster wins, and the hedge is not awaited", steps: []step{{lasts: 60 * ms}, {lasts: time.Second, ignores: true}},
			want: 1, elapsed: 60 * ms, lost: []int{2}, tokens: 1.1, event: "won 1 of 2, slow true, refused false"},
		{name: "a failure within the delay is returned at once", steps: []step{{lasts: 10 * ms, err: errDown}}, want: 1, err: errDown,
			elapsed: 10 * ms, tokens: 2, event: "won 1 of 1, slow false, refused false"},
		{name: "a failure waits for the hedge", steps: []step{{lasts: 60 * ms, err: errDown}, {lasts: 100 * ms}}, want: 2,
			elapsed: 150 * ms, lost: []int{1}, tokens: 1.1, event: "won 2 of 2, slow true, refused false"},
		{name: "the failure of a hedge waits for the first call", steps: []step{{lasts: 100 * ms}, {lasts: 10 * ms, err: errDown}}, want: 1,
			elapsed: 100 * ms, lost: []int{2}, tokens: 1.1, event: "won 1 of 2, slow true, refused false"},
		{name: "of two failures the last is returned", steps: []step{{lasts: 100 * ms, err: errDown}, {lasts: 10 * ms, err: errGone}}, want: 1,
			err: errDown, elapsed: 100 * ms, lost: []int{2}, tokens: 1, event: "won 1 of 2, slow true, refused false"},
		{name: "a terminal error of a hedge ends all", steps: []step{{lasts: time.Second}, {lasts: 10 * ms, err: retry.Permanent(errGone)}},
			want: 2, err: errGone, elapsed: 60 * ms, lost: []int{1}, tokens: 1, event: "won 2 of 2, slow true, refused false"},
		{name: "a terminal error by Classify ends all", p: retryhedge.Policy{Classify: retry.StopOn(errGone)},
			steps: []step{{lasts: time.Second}, {lasts: 10 * ms, err: errGone}}, want: 2, err: errGone, elapsed: 60 * ms, lost: []int{1},
			tokens: 1, event: "won 2 of 2, slow true, refused false"},
		{name: "without a token there is no hedge", budget: &none, steps: []step{{lasts: time.Second}}, want: 1, elapsed: time.Second,
			tokens: 0.1, event: "won 1 of 1, slow true, refused true"},
		{name: "the last token is left for a retry", budget: &retry.BudgetConfig{Initial: 1}, steps: []step{{lasts: time.Second}}, want: 1,
			elapsed: time.Second, tokens: 1.1, event: "won 1 of 1, slow true, refused true"},
		{name: "a run around the call deposits", p: retryhedge.Policy{InRun: true}, steps: []step{{lasts: 10 * ms}}, want: 1, elapsed: 10 * ms,
			tokens: 2, event: "won 1 of 1, slow false, refused false"},
		{name: "a third call is started after as long again", p: retryhedge.Policy{MaxCalls: 3},
			budget: &retry.BudgetConfig{Initial: 3}, steps: []step{{lasts: time.Second}, {lasts: time.Second}, {lasts: 10 * ms}},
			want: 3, elapsed: 110 * ms, lost: []int{1, 2}, tokens: 1.1, event: "won 3 of 3, slow true, refused false"},
		{name: "a server that asks to be left alone delays the next hedge", p: retryhedge.Policy{MaxCalls: 3},
			budget: &retry.BudgetConfig{Initial: 3}, steps: []step{{lasts: time.Second}, {lasts: 10 * ms, err: retry.After(200*ms, errDown)}, {}},
			want: 3, elapsed: 260 * ms, lost: []int{1, 2}, tokens: 1.1, event: "won 3 of 3, slow true, refused false"},
		{name: "the hedge goes on when the caller's deadline is far", ctx: timeout(time.Second), steps: []step{{lasts: time.Minute}, {}},
			want: 2, elapsed: 50 * ms, lost: []int{1}, tokens: 1.1, event: "won 2 of 2, slow true, refused false"},
		{name: "no hedge is started near the caller's deadline", ctx: timeout(100 * ms), steps: []step{{lasts: time.Minute}},
			want: 1, err: context.DeadlineExceeded, elapsed: 100 * ms, tokens: 2, event: "won 1 of 1, slow true, refused false"},
		{name: "a caller that goes ends all calls", ctx: cancelAfter(70 * ms), steps: []step{{lasts: time.Minute}, {lasts: time.Minute}},
			err: context.Canceled, elapsed: 70 * ms, tokens: 1, event: ""},
		{name: "a hedge of one call is none", p: retryhedge.Policy{MaxCalls: 1}, steps: []step{{lasts: time.Second}}, want: 1,
			elapsed: time.Second, tokens: 2.1, single: true},
		{name: "under OneAttempt there are no hedges", ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return retry.OneAttempt(ctx), func() {}
		}, steps: []step{{lasts: time.Second}}, want: 1, elapsed: time.Second, tokens: 2.1, single: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := retry.BudgetConfig{Initial: 2}
				if row.budget != nil {
					config = *row.budget
				}
				s := &script{steps: row.steps}
				p := row.p
				p.Delay, p.Budget = 50*ms, retry.NewBudget(config)
				event := ""
				p.Observe = func(_ context.Context, e retryhedge.Event) {
					event = fmt.Sprintf("won %d of %d, slow %v, refused %v", e.Won, len(e.Calls), e.Slow, e.Refused)
				}
				ctx, cancel := t.Context(), func() {}
				if row.ctx != nil {
					ctx, cancel = row.ctx(ctx)
				}
				defer cancel()
				start := time.Now()
				got, err := retryhedge.DoValue(ctx, p, s.call, s.discard)
				require.Equal(t, row.elapsed, time.Since(start))
				require.ErrorIs(t, err, row.err)
				if row.err == nil {
					require.NoError(t, err)
				}
				<-time.After(time.Hour) // calls that ignore their context have ended
				synctest.Wait()
				if row.want != 0 {
					require.Equal(t, row.want, got)
					require.ElementsMatch(t, row.lost, s.discarded)
					require.Equal(t, row.event, event)
				}
				require.Len(t, s.contexts, len(row.steps))
				require.InDelta(t, row.tokens, p.Budget.Tokens(), 1e-9)
				if row.single {
					require.Equal(t, ctx, s.contexts[0])
					return
				}
				for i, ctx := range s.contexts {
					require.Error(t, ctx.Err(), "the context of call %d has ended", i+1)
				}
			})
		})
	}
}

func timeout(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, d) }
}

func cancelAfter(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(d, cancel)
		return ctx, cancel
	}
}

// unreturned calls DoValue, which does not return because of a panic or runtime.Goexit, and returns the panic's value.
func unreturned(t *testing.T, p retryhedge.Policy, s *script) (value any) {
	t.Helper()
	returned, done := false, make(chan struct{})
	go func() {
		defer close(done)
		defer func() { value = recover() }()
		_, _ = retryhedge.DoValue(t.Context(), p, s.call, s.discard)
		returned = true
	}()
	<-done
	require.False(t, returned)
	return value
}

func TestAPanicReachesTheCaller(t *testing.T) {
	for _, row := range []struct {
		name    string
		steps   []step
		want    any // the panic, nil for runtime.Goexit
		elapsed time.Duration
		lost    []int
		tokens  float64
	}{
		{"of the first call", []step{{lasts: 10 * ms, panics: "boom"}}, "boom", 10 * ms, nil, 5},
		{"of the first call beside a hedge", []step{{lasts: 60 * ms, panics: "boom"}, {lasts: time.Second}}, "boom", 60 * ms, []int{2}, 4},
		{"of the first call after a hedge has failed", []step{{lasts: 70 * ms, panics: "boom"}, {lasts: 10 * ms, err: errDown}}, "boom", 70 * ms, []int{2}, 4},
		{"of the first call after a hedge has won", []step{{lasts: 70 * ms, ignores: true, panics: "boom"}, {lasts: 10 * ms}}, "boom", 70 * ms, []int{2}, 4},
		{"of a hedge, which is paid back", []step{{lasts: time.Second}, {lasts: 10 * ms, panics: "boom"}}, "boom", 60 * ms, []int{1}, 5},
		{"of a hedge after the first call has failed", []step{{lasts: 55 * ms, err: errDown}, {lasts: 10 * ms, panics: "boom"}}, "boom", 60 * ms, []int{1}, 5},
		{"of a hedge that has lost, which is not paid back, while the first call is awaited", []step{
			{lasts: time.Second, ignores: true}, {lasts: 100 * ms, ignores: true, panics: "boom"}, {lasts: 10 * ms},
		}, "boom", time.Second, []int{1, 3}, 3},
		{"and not the Goexit of another hedge", []step{
			{lasts: time.Second, ignores: true}, {lasts: 100 * ms, panics: "boom"}, {lasts: 100 * ms, ignores: true, exits: true},
		}, "boom", time.Second, []int{1}, 4},
		{"Goexit of the first call", []step{{lasts: 60 * ms, exits: true}, {lasts: time.Second}}, nil, 60 * ms, []int{2}, 4},
		{"Goexit of a hedge", []step{{lasts: time.Second}, {lasts: 10 * ms, exits: true}}, nil, 60 * ms, []int{1}, 5},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: row.steps}
				p := retryhedge.Policy{Delay: 50 * ms, MaxCalls: max(len(row.steps), 2), Budget: retry.NewBudget(retry.BudgetConfig{Initial: 5})}
				p.Observe = func(context.Context, retryhedge.Event) { t.Error("an event") }
				start := time.Now()
				require.Equal(t, row.want, unreturned(t, p, s))
				require.Equal(t, row.elapsed, time.Since(start))
				synctest.Wait()
				require.ElementsMatch(t, row.lost, s.discarded)
				require.Equal(t, row.tokens, p.Budget.Tokens())
				for _, ctx := range s.contexts {
					require.Error(t, ctx.Err())
				}
			})
		})
	}
}

// A classifier, or a method of the error, can panic or exit while a call is judged.
func TestWhatHappensWhileACallIsJudgedReachesTheCaller(t *testing.T) {
	for name, steps := range map[string][]step{
		"of the first call": {{lasts: 10 * ms, err: errDown}},
		"of a hedge":        {{lasts: time.Second}, {lasts: 10 * ms, err: errDown}},
	} {
		for _, value := range []any{"boom", nil} {
			t.Run(fmt.Sprintf("%s, by a panic %v", name, value != nil), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &script{steps: steps}
					p := retryhedge.Policy{Delay: 50 * ms, Budget: retry.NewBudget(retry.BudgetConfig{Initial: 2})}
					p.Classify = func(error) retry.Class {
						if value != nil {
							panic(value)
						}
						runtime.Goexit()
						return retry.Unknown
					}
					require.Equal(t, value, unreturned(t, p, s))
					synctest.Wait()
					require.Len(t, s.discarded, len(s.steps), "no value is lost")
					require.Equal(t, float64(3-len(s.steps)), p.Budget.Tokens(), "a hedge that has returned is paid for")
					for _, ctx := range s.contexts {
						require.Error(t, ctx.Err())
					}
				})
			})
		}
	}
}

func TestASlowClassifierDoesNotHoldUpASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{{lasts: 100 * ms}, {lasts: 10 * ms, err: errDown}}}
		p := retryhedge.Policy{Delay: 50 * ms, Classify: func(error) retry.Class { <-time.After(time.Minute); return retry.Unknown }}
		start := time.Now()
		n, err := retryhedge.DoValue(t.Context(), p, s.call, s.discard)
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, 100*ms, time.Since(start))
		<-time.After(time.Hour)
	})
}

func TestAPanicOfObserveReleasesTheResult(t *testing.T) {
	for _, steps := range [][]step{{{lasts: 10 * ms}}, {{lasts: time.Second}, {lasts: 10 * ms}}} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{steps: steps}
			p := retryhedge.Policy{Delay: 50 * ms, Observe: func(context.Context, retryhedge.Event) { panic("boom") }}
			require.PanicsWithValue(t, "boom", func() { _, _, _ = retryhedge.Open(t.Context(), p, s.call, s.discard) })
			synctest.Wait()
			require.Len(t, s.discarded, len(steps))
			for _, ctx := range s.contexts {
				require.Error(t, ctx.Err())
			}
		})
	}
}

func TestAnEventHasTheTimesOfItsCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{{lasts: time.Second}, {lasts: 30 * ms, err: errDown}, {lasts: 10 * ms}}}
		p := retryhedge.Policy{Delay: 50 * ms, MaxCalls: 3}
		p.Observe = func(_ context.Context, e retryhedge.Event) {
			require.Equal(t, []retryhedge.Call{
				{Duration: 110 * ms, Err: context.Canceled},
				{Began: 50 * ms, Duration: 30 * ms, Err: errDown},
				{Began: 100 * ms, Duration: 10 * ms},
			}, e.Calls)
		}
		require.NoError(t, retryhedge.Do(t.Context(), p, s.wait))
	})
}

func TestIsHedge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []step{{lasts: time.Second}, {lasts: time.Second}, {lasts: 10 * ms}}}
		_, err := retryhedge.DoValue(t.Context(), retryhedge.Policy{Delay: 50 * ms, MaxCalls: 3}, s.call, nil)
		require.NoError(t, err)
		for i, ctx := range s.contexts {
			require.Equal(t, i > 0, retryhedge.IsHedge(ctx))
			require.Equal(t, i > 0, retryhedge.IsHedge(context.WithoutCancel(ctx)), "a derived context is of the same call")
			require.Equal(t, i+1, retryhedge.CallNumber(ctx))
		}
		require.False(t, retryhedge.IsHedge(t.Context()))
		require.Zero(t, retryhedge.CallNumber(t.Context()))

		_, release, err := retryhedge.Open(s.contexts[1], retryhedge.Policy{}, func(ctx context.Context) (int, error) {
			require.Equal(t, 2, retryhedge.CallNumber(ctx), "a single call in it has no number of its own")
			return 0, nil
		}, nil)
		release()
		require.NoError(t, err)
	})
}

// Two layers of two calls each would make four.
func TestOfTwoLayersThatHedgeTheOuterOneDoes(t *testing.T) {
	for name, outer := range map[string]retryhedge.Policy{
		"both hedge":                       {Delay: 100 * ms},
		"the outer one is off":             {},
		"the outer one is off by MaxCalls": {Delay: 100 * ms, MaxCalls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int32
				inner := func(ctx context.Context) error {
					return retryhedge.Do(ctx, retryhedge.Policy{Delay: 50 * ms}, func(ctx context.Context) error {
						calls.Add(1)
						return (&script{steps: []step{{lasts: time.Second}}}).wait(ctx)
					})
				}
				require.NoError(t, retryhedge.Do(t.Context(), outer, inner))
				require.EqualValues(t, 2, calls.Load())
				_, release, err := retryhedge.Open(t.Context(), outer, func(ctx context.Context) (int, error) { return 0, inner(ctx) }, nil)
				release()
				require.NoError(t, err)
				require.EqualValues(t, 4, calls.Load(), "two more by Open")
			})
		})
	}
}

// A retryable error that is returned has what is left of the longest wait that any of the calls was asked for.
func TestTheLongestHintOfTheCallsCounts(t *testing.T) {
	for _, row := range []struct {
		name          string
		first, second error
		want          time.Duration
	}{
		{"of the call that failed first", retry.After(2*time.Second, errDown), errGone, 1950 * ms},
		{"unless the last one asks for more", retry.After(time.Second, errDown), retry.After(3*time.Second, errGone), 3 * time.Second},
		{"unless it is over by then", retry.After(50*ms, errDown), errGone, 0},
		{"not beside a terminal error", retry.After(2*time.Second, errDown), retry.Permanent(errGone), 0},
		{"none was asked for", errDown, errGone, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: []step{{lasts: 60 * ms, err: row.first}, {lasts: 60 * ms, err: row.second}}}
				var told error
				p := retryhedge.Policy{Delay: 50 * ms, Observe: func(_ context.Context, e retryhedge.Event) { told = e.Err }}
				_, err := retryhedge.DoValue(t.Context(), p, s.call, nil)
				require.ErrorIs(t, err, errGone)
				_, hint := retry.Policy{}.Judge(err)
				require.Equal(t, row.want, hint)
				require.Equal(t, err, told)
			})
		})
	}
}

func TestOpenKeepsTheContextOfTheCallUntilItIsReleased(t *testing.T) {
	hedged := retryhedge.Policy{Delay: 50 * ms}
	for _, row := range []struct {
		name  string
		p     retryhedge.Policy
		steps []step
		want  int
		err   error
	}{
		{"that is the first one", hedged, []step{{lasts: 60 * ms}, {lasts: time.Second}}, 1, nil},
		{"that is a hedge", hedged, []step{{lasts: time.Second}, {lasts: 60 * ms}}, 2, nil},
		{"without hedges", retryhedge.Policy{}, []step{{lasts: time.Hour}}, 1, nil},
		{"that has failed", hedged, []step{{err: errDown}}, 1, errDown},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: row.steps}
				n, release, err := retryhedge.Open(t.Context(), row.p, s.call, s.discard)
				require.Equal(t, row.err, err)
				require.Equal(t, row.want, n)
				synctest.Wait()
				for i, ctx := range s.contexts {
					require.Equal(t, i+1 == row.want, ctx.Err() == nil)
				}
				release()
				release()
				require.Error(t, s.contexts[row.want-1].Err())
			})
		})
	}
}

func TestEachAttemptOfARunIsHedged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := retry.NewBudget(retry.BudgetConfig{Initial: 6})
		hedge := retryhedge.Policy{Delay: 50 * ms, Budget: budget, InRun: true}
		run := retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Second}, AttemptTimeout: 300 * ms, Budget: budget}
		s := &script{steps: []step{
			{lasts: 70 * ms, err: errDown}, {lasts: 60 * ms, err: errDown}, // attempt 1: both fail
			{lasts: time.Minute}, {lasts: time.Minute}, // attempt 2: the timeout covers both
			{lasts: time.Minute}, {lasts: 10 * ms}, // attempt 3: the hedge wins
		}}
		var mu sync.Mutex
		var numbers []int
		start := time.Now()
		n, err := retry.DoValue(t.Context(), run, func(ctx context.Context) (int, error) {
			return retryhedge.DoValue(ctx, hedge, func(ctx context.Context) (int, error) {
				mu.Lock()
				numbers = append(numbers, retry.AttemptNumber(ctx))
				mu.Unlock()
				return s.call(ctx)
			}, s.discard)
		})
		require.NoError(t, err)
		require.Equal(t, 6, n)
		require.Equal(t, []int{1, 1, 2, 2, 3, 3}, numbers)
		require.Equal(t, 110*ms+time.Second+300*ms+2*time.Second+60*ms, time.Since(start))
		require.InDelta(t, 6-3-2+0.1, budget.Tokens(), 1e-9, "three hedges, two retries, and one deposit")
	})
}

func TestWhatDoRefuses(t *testing.T) {
	ok := func(context.Context) error { return nil }
	for _, row := range []struct {
		ctx  context.Context
		p    retryhedge.Policy
		fn   func(context.Context) error
		want string
	}{
		{t.Context(), retryhedge.Policy{Delay: -1}, ok, "retryhedge: Policy.Delay -1ns is negative"},
		{t.Context(), retryhedge.Policy{MaxCalls: -1}, ok, "retryhedge: Policy.MaxCalls -1 is outside 0 to 8"},
		{t.Context(), retryhedge.Policy{MaxCalls: 9}, ok, "retryhedge: Policy.MaxCalls 9 is outside 0 to 8"},
		{t.Context(), retryhedge.Policy{Delay: ms, Tracker: tracker(t, retryhedge.TrackerConfig{})}, ok,
			"retryhedge: Policy.Delay 1ms is set beside Tracker, which chooses it"},
		{t.Context(), retryhedge.Policy{Tracker: new(retryhedge.Tracker)}, ok,
			"retryhedge: Policy.Tracker hedge 0% of calls, after 0s to 0s is not from NewTracker"},
		{nil, retryhedge.Policy{}, nil, "retryhedge: Do.ctx <nil> is not a context; Do.fn <nil> is not a function"},
	} {
		err := retryhedge.Do(row.ctx, row.p, row.fn)
		require.EqualError(t, err, row.want)
		var field *retry.FieldError
		require.ErrorAs(t, err, &field)
	}
	_, release, err := retryhedge.Open[int](t.Context(), retryhedge.Policy{}, nil, nil)
	require.Error(t, err)
	release()
	require.NoError(t, retryhedge.Policy{MaxCalls: 8}.Validate())
}

func TestPolicyString(t *testing.T) {
	for _, row := range []struct {
		p    retryhedge.Policy
		want string
	}{
		{retryhedge.Policy{}, "no hedges"},
		{retryhedge.Policy{Delay: ms, MaxCalls: 1}, "no hedges"},
		{retryhedge.Policy{Name: "prices", Delay: 50 * ms}, "prices: hedge after 50ms, at most 2 calls"},
		{retryhedge.Policy{Tracker: tracker(t, retryhedge.TrackerConfig{}), MaxCalls: 3, Budget: retry.NewBudget(retry.BudgetConfig{})},
			"hedge 5% of calls, after 1ms to 10s, at most 3 calls, with a budget"},
	} {
		require.Equal(t, row.want, row.p.String())
	}
}

func TestAllocations(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ok := func(context.Context) error { return nil }
	tracked := retryhedge.Policy{Tracker: tracker(t, retryhedge.TrackerConfig{Min: time.Minute, Max: time.Hour})}
	bare := testing.AllocsPerRun(100, func() {
		ctx, cancel := context.WithCancel(ctx)
		timer := time.AfterFunc(time.Minute, func() {})
		_ = ok(ctx)
		timer.Stop()
		cancel()
	})
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = retryhedge.Do(ctx, retryhedge.Policy{}, ok) }), "no hedges")
	const group = 4 // the group, the function around fn, and what the timer calls
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { _ = retryhedge.Do(ctx, tracked, ok) }), bare+group, "a fast call")
}

// TestManyCallsAtOnce runs random groups in many goroutines: each ends with what one of its calls returned, and the value
// of every other call is discarded once.
func TestManyCallsAtOnce(t *testing.T) {
	var made, discarded atomic.Int64
	var group sync.WaitGroup
	for g := range 64 {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for range 200 {
				p := retryhedge.Policy{Delay: time.Duration(1 + r.IntN(50_000)), MaxCalls: 2 + r.IntN(3)}
				ctx, cancel := context.WithCancel(context.Background())
				if r.IntN(4) == 0 {
					time.AfterFunc(time.Duration(r.IntN(100_000)), cancel)
				}
				n, err := retryhedge.DoValue(ctx, p, func(ctx context.Context) (int64, error) {
					for range rand.IntN(200) {
						runtime.Gosched()
					}
					n := made.Add(1)
					if rand.IntN(3) == 0 {
						return n, errDown
					}
					return n, ctx.Err()
				}, func(n int64) {
					if n > 0 {
						discarded.Add(1)
					}
				})
				cancel()
				if err == nil && n == 0 {
					t.Error("a success without its value")
				}
				discarded.Add(1) // the caller lets go of what it got
			}
		})
	}
	group.Wait()
	for discarded.Load() < made.Load() {
		runtime.Gosched() // losers may still be on their way
	}
	require.Equal(t, made.Load(), discarded.Load())
}

func ExampleDo() {
	p := retryhedge.Policy{Delay: 20 * time.Millisecond}
	var calls atomic.Int32
	err := retryhedge.Do(context.Background(), p, func(ctx context.Context) error {
		if calls.Add(1) == 1 {
			<-ctx.Done() // the first server hangs
			return ctx.Err()
		}
		return nil
	})
	fmt.Println(err, calls.Load())
	// Output: <nil> 2
}

func ExampleIsHedge() {
	replicas := []string{"a", "b"}
	read := func(ctx context.Context, replica string) (string, error) {
		if replica == "a" {
			<-ctx.Done() // it hangs
			return "", ctx.Err()
		}
		return "from " + replica, nil
	}
	p := retryhedge.Policy{Delay: 20 * time.Millisecond}
	fmt.Println(retryhedge.DoValue(context.Background(), p, func(ctx context.Context) (string, error) {
		if retryhedge.IsHedge(ctx) {
			return read(ctx, replicas[1])
		}
		return read(ctx, replicas[0])
	}, nil))
	// Output: from b <nil>
}

func ExampleCallNumber() {
	replicas := []string{"a", "b", "c"}
	p := retryhedge.Policy{Delay: time.Millisecond, MaxCalls: len(replicas)}
	fmt.Println(retryhedge.DoValue(context.Background(), p, func(ctx context.Context) (string, error) {
		replica := replicas[retryhedge.CallNumber(ctx)-1]
		if replica != "c" {
			<-ctx.Done() // it hangs
			return "", ctx.Err()
		}
		return "from " + replica, nil
	}, nil))
	// Output: from c <nil>
}

func ExampleDoValue() {
	budget := retry.NewBudget(retry.BudgetConfig{})
	tracker, err := retryhedge.NewTracker(retryhedge.TrackerConfig{Share: 0.05, Min: 5 * time.Millisecond})
	if err != nil {
		fmt.Println(err)
		return
	}
	hedge := retryhedge.Policy{Tracker: tracker, Budget: budget, InRun: true}
	policy := retry.Inline()
	policy.Budget = budget
	price, err := retry.DoValue(context.Background(), policy, func(ctx context.Context) (int, error) {
		return retryhedge.DoValue(ctx, hedge, func(context.Context) (int, error) { return 42, nil }, nil)
	})
	fmt.Println(price, err)
	fmt.Println(hedge)
	// Output:
	// 42 <nil>
	// hedge 5% of calls, after 5ms to 10s, at most 2 calls, with a budget
}

func TestAnEventInALog(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	logger.Info("slow", "hedge", retryhedge.Event{
		Policy: "prices", Delay: time.Second, Won: 2, Elapsed: 3 * time.Second, Err: errors.New("busy"), Calls: make([]retryhedge.Call, 2),
	})
	logger.Info("slow", "hedge", retryhedge.Event{Refused: true, Won: 1, Calls: make([]retryhedge.Call, 1)})
	require.Equal(t, "level=INFO msg=slow hedge.policy=prices hedge.delay=1s hedge.calls=2 hedge.won=2 hedge.refused=false hedge.elapsed=3s hedge.error=busy\n"+
		"level=INFO msg=slow hedge.policy=\"\" hedge.delay=0s hedge.calls=1 hedge.won=1 hedge.refused=true hedge.elapsed=0s\n", log.String())
}
