package retry_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// settled is how a run and its budget stand once Do is over.
type settled struct {
	Reason   retry.Reason // zero after a success, a panic and runtime.Goexit
	Panic    any
	Exited   bool // by runtime.Goexit
	Attempts int
	Elapsed  time.Duration
	Tokens   float64
}

// settle calls Do in a goroutine of its own, so that it survives whatever ends it.
func settle(ctx context.Context, p retry.Policy, fn func(context.Context) error) (s settled) {
	began := time.Now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		returned := false
		defer func() {
			s.Panic = recover()
			s.Exited = !returned && s.Panic == nil
		}()
		err := retry.Do(ctx, p, func(ctx context.Context) error {
			s.Attempts++
			return fn(ctx)
		})
		errors.As(err, &s.Reason)
		returned = true
	}()
	<-done
	s.Elapsed = time.Since(began)
	s.Tokens = p.Budget.Tokens()
	return s
}

// failsWith returns an fn whose n-th attempt gives the n-th of errs, and whose further attempts give the last.
func failsWith(errs ...error) func(context.Context) error {
	return func(ctx context.Context) error {
		return errs[min(retry.AttemptNumber(ctx), len(errs))-1]
	}
}

// alwaysTimeout returns when its context is done.
func alwaysTimeout(ctx context.Context) error {
	<-ctx.Done()
	return errOutage
}

func TestBudgetChargesInDo(t *testing.T) {
	for _, row := range []struct {
		name   string
		policy retry.Policy
		fn     func(context.Context) error
		want   settled // with three of five tokens at first
	}{
		{
			name:   "a first attempt that fails pays nothing",
			policy: retry.Policy{MaxAttempts: 1},
			fn:     failsWith(errOutage),
			want:   settled{Reason: retry.AttemptsExhausted, Attempts: 1, Tokens: 3},
		},
		{
			name:   "a first attempt that succeeds pays nothing and deposits once",
			policy: retry.Policy{},
			fn:     failsWith(nil),
			want:   settled{Attempts: 1, Tokens: 3.1},
		},
		{
			name:   "each retry pays one token, also when it fails",
			policy: retry.Policy{MaxAttempts: 3, Backoff: noWait},
			fn:     failsWith(errOutage),
			want:   settled{Reason: retry.AttemptsExhausted, Attempts: 3, Tokens: 1},
		},
		{
			name:   "a success after one retry deposits once",
			policy: retry.Policy{MaxAttempts: 8, Backoff: noWait},
			fn:     failsWith(errOutage, nil),
			want:   settled{Attempts: 2, Tokens: 2.1},
		},
		{
			name:   "a success after three retries deposits once",
			policy: retry.Policy{MaxAttempts: 8, Backoff: noWait},
			fn:     failsWith(errOutage, errOutage, errOutage, nil),
			want:   settled{Attempts: 4, Tokens: 0.1},
		},
		{
			name:   "a success of a disabled policy deposits once",
			policy: retry.Policy{Disabled: true},
			fn:     failsWith(nil),
			want:   settled{Attempts: 1, Tokens: 3.1},
		},
		{
			name:   "a success within an AttemptTimeout deposits once",
			policy: retry.Policy{AttemptTimeout: time.Second},
			fn:     failsWith(nil),
			want:   settled{Attempts: 1, Tokens: 3.1},
		},
		{
			name:   "a success that is observed deposits once",
			policy: retry.Policy{Observe: func(context.Context, retry.Event) {}},
			fn:     failsWith(nil),
			want:   settled{Attempts: 1, Tokens: 3.1},
		},
		{
			name:   "three tokens are three retries and the fourth is refused",
			policy: retry.Policy{MaxAttempts: retry.Unlimited, Backoff: noWait},
			fn:     failsWith(errOutage),
			want:   settled{Reason: retry.BudgetExhausted, Attempts: 4, Tokens: 0},
		},
		{
			name:   "waits are made for paid retries and none for the refused one",
			policy: retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Minute}},
			fn:     failsWith(errOutage),
			want:   settled{Reason: retry.BudgetExhausted, Attempts: 4, Elapsed: 3 * time.Minute, Tokens: 0},
		},
		{
			name:   "a hint does not change the price",
			policy: retry.Policy{MaxAttempts: 3},
			fn:     failsWith(retry.After(time.Hour, errOutage)),
			want:   settled{Reason: retry.AttemptsExhausted, Attempts: 3, Elapsed: 2 * time.Hour, Tokens: 1},
		},
		{
			name:   "attempts that time out pay as others do",
			policy: retry.Policy{MaxAttempts: 3, AttemptTimeout: time.Second, Backoff: noWait},
			fn:     alwaysTimeout,
			want:   settled{Reason: retry.AttemptsExhausted, Attempts: 3, Elapsed: 3 * time.Second, Tokens: 1},
		},
		{
			name:   "a terminal error after a retry charges that retry only",
			policy: retry.Policy{MaxAttempts: 8, Backoff: noWait},
			fn:     failsWith(errOutage, retry.Permanent(errOutage)),
			want:   settled{Reason: retry.TerminalError, Attempts: 2, Tokens: 2},
		},
		{
			name: "a retry that a gate defers pays once, however often the gate is asked",
			policy: retry.Policy{MaxAttempts: 2, Backoff: noWait, Gate: func() func(context.Context) time.Duration {
				asked := 0
				return func(context.Context) time.Duration {
					asked++ // 1 for the first attempt, then the retry's
					return time.Duration(asked%5) * time.Second
				}
			}()},
			fn:   failsWith(errOutage),
			want: settled{Reason: retry.AttemptsExhausted, Attempts: 2, Elapsed: 20 * time.Second, Tokens: 2},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := row.policy
				p.Budget = retry.NewBudget(retry.BudgetConfig{Burst: 5, Initial: 3})
				require.Equal(t, row.want, settle(t.Context(), p, row.fn))
			})
		})
	}
}

func TestBudgetIsAskedLast(t *testing.T) {
	for _, row := range []struct {
		name    string
		timeout time.Duration // of the caller; 0 is none
		policy  retry.Policy
		fn      func(context.Context) error
		reason  retry.Reason
		elapsed time.Duration
	}{
		{
			name:   "a terminal error charges nothing",
			policy: retry.Policy{},
			fn:     failsWith(retry.Permanent(errOutage)),
			reason: retry.TerminalError,
		},
		{
			name:   "an error that the classifier stops charges nothing",
			policy: retry.Policy{Classify: retry.StopOn(errOutage)},
			fn:     failsWith(errOutage),
			reason: retry.TerminalError,
		},
		{
			name:   "exhausted attempts charge nothing",
			policy: retry.Policy{MaxAttempts: 1},
			fn:     failsWith(errOutage),
			reason: retry.AttemptsExhausted,
		},
		{
			name:   "a disabled policy charges nothing",
			policy: retry.Policy{Disabled: true},
			fn:     failsWith(errOutage),
			reason: retry.RetriesDisabled,
		},
		{
			name:   "a hint that is too long charges nothing",
			policy: retry.Policy{},
			fn:     failsWith(retry.After(time.Hour+1, errOutage)),
			reason: retry.HintTooLong,
		},
		{
			name:   "a retry beyond the TTL charges nothing",
			policy: retry.Policy{TTL: time.Minute, Backoff: retry.Backoff{Base: time.Minute + 1}},
			fn:     failsWith(errOutage),
			reason: retry.TTLElapsed,
		},
		{
			name:    "a deadline that is too near charges nothing",
			timeout: time.Minute,
			policy:  retry.Policy{Backoff: retry.Backoff{Base: time.Minute}},
			fn:      failsWith(errOutage),
			reason:  retry.DeadlineTooNear,
		},
		{
			name:    "a deadline that has passed charges nothing",
			timeout: time.Minute,
			policy:  retry.Policy{},
			fn:      alwaysTimeout,
			reason:  retry.DeadlinePassed,
			elapsed: time.Minute,
		},
	} {
		for _, funds := range []struct {
			name    string
			initial int
			tokens  float64
		}{
			{name: "with a full budget", initial: 3, tokens: 3},
			{name: "with an empty budget, which it goes before", initial: -1, tokens: 0},
		} {
			t.Run(row.name+" "+funds.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx := t.Context()
					if row.timeout > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, row.timeout)
						defer cancel()
					}
					p := row.policy
					p.Budget = retry.NewBudget(retry.BudgetConfig{Burst: 5, Initial: funds.initial})
					want := settled{Reason: row.reason, Attempts: 1, Elapsed: row.elapsed, Tokens: funds.tokens}
					require.Equal(t, want, settle(ctx, p, row.fn))
				})
			})
		}
	}
	t.Run("a caller canceled in the attempt charges nothing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		p := retry.Policy{MaxAttempts: 8, Backoff: noWait, Budget: retry.NewBudget(retry.BudgetConfig{Initial: 1})}
		s := settle(ctx, p, func(context.Context) error {
			cancel()
			return errOutage
		})
		s.Elapsed = 0
		require.Equal(t, settled{Reason: retry.CallerCanceled, Attempts: 1, Tokens: 1}, s)
	})
	t.Run("a caller canceled before the first attempt neither pays nor deposits", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p := retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{Initial: 1})}
		s := settle(ctx, p, failsWith(nil))
		s.Elapsed = 0
		require.Equal(t, settled{Reason: retry.CallerCanceled, Tokens: 1}, s)
	})
	t.Run("a policy that is refused neither pays nor deposits", func(t *testing.T) {
		p := retry.Policy{TTL: -1, Budget: retry.NewBudget(retry.BudgetConfig{Initial: 1})}
		require.Error(t, retry.Do(t.Context(), p, failsWith(nil)))
		require.Equal(t, 1.0, p.Budget.Tokens())
	})
	t.Run("Decide does not ask the budget", func(t *testing.T) {
		p := retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{Initial: -1})}
		want := waiting(5 * sec)
		require.Equal(t, want, p.Decide(retry.Progress{Attempt: 1}, errOutage, 0))
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 1})
		require.Equal(t, want, p.Decide(retry.Progress{Attempt: 1}, errOutage, 0))
		require.Equal(t, 1.0, p.Budget.Tokens())
	})
}

func TestBudgetRefusal(t *testing.T) {
	t.Run("it ends the run at once as DeadLettered and keeps the last error", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			last := fmt.Errorf("second: %w", errOutage)
			p := retry.Policy{Backoff: retry.Backoff{Base: time.Minute}, Budget: retry.NewBudget(retry.BudgetConfig{Initial: 1})}
			began := time.Now()
			err := retry.Do(t.Context(), p, failsWith(errOutage, last))
			want := &retry.Error{
				Outcome: retry.Outcome{
					Status:   retry.DeadLettered,
					Reason:   retry.BudgetExhausted,
					Attempts: 2,
					Elapsed:  time.Minute,
					History: []retry.Attempt{
						{Number: 1, Start: began, Class: retry.Retryable, Err: errOutage, Delay: time.Minute},
						{Number: 2, Start: began.Add(time.Minute), Class: retry.Retryable, Err: last},
					},
				},
				Last: last,
			}
			require.Equal(t, want, err)
			require.ErrorIs(t, err, retry.BudgetExhausted)
			require.ErrorIs(t, err, errOutage)
			require.NotErrorIs(t, err, retry.AttemptsExhausted)
			require.EqualError(t, err, "retry: gave up after 2 attempts in 1m0s (budget_exhausted): second: outage")
			require.Equal(t, time.Minute, time.Since(began))
		})
	})
	t.Run("an empty budget refuses the first retry without a wait", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{Initial: -1})}
			want := settled{Reason: retry.BudgetExhausted, Attempts: 1}
			require.Equal(t, want, settle(t.Context(), p, failsWith(errOutage)))
		})
	})
	t.Run("Observe sees the refusal and never a wait that does not follow", func(t *testing.T) {
		var seen []retry.Decision
		p := retry.Policy{
			MaxAttempts: 8,
			Backoff:     noWait,
			Budget:      retry.NewBudget(retry.BudgetConfig{Initial: 1}),
			Observe:     func(_ context.Context, e retry.Event) { seen = append(seen, e.Decision) },
		}
		require.Error(t, retry.Do(t.Context(), p, failsWith(errOutage)))
		require.Equal(t, []retry.Decision{waiting(0), broke, broke}, seen)
	})
	t.Run("no run waits for a token that a success is about to fund", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := retry.NewBudget(retry.BudgetConfig{Ratio: 1, Initial: -1})
			time.AfterFunc(time.Second, func() { fund(b) })
			p := retry.Policy{Backoff: retry.Backoff{Base: time.Minute}, Budget: b}
			want := settled{Reason: retry.BudgetExhausted, Attempts: 1}
			require.Equal(t, want, settle(t.Context(), p, failsWith(errOutage)))
		})
	})
	t.Run("an attempt is followed by a retry when a success has funded one meanwhile", func(t *testing.T) {
		b := retry.NewBudget(retry.BudgetConfig{Ratio: 1, Initial: -1})
		p := retry.Policy{MaxAttempts: 2, Backoff: noWait, Budget: b}
		require.NoError(t, retry.Do(t.Context(), p, func(ctx context.Context) error {
			if retry.AttemptNumber(ctx) == 2 {
				return nil
			}
			require.NoError(t, retry.Do(ctx, retry.Policy{Budget: b}, failsWith(nil)))
			return errOutage
		}))
		require.Equal(t, 1.0, b.Tokens())
	})
	t.Run("a lone client with Trickle retries once a period and on its grid", func(t *testing.T) {
		takes := func(d time.Duration) func(context.Context) error {
			return func(context.Context) error {
				<-time.After(d)
				return errOutage
			}
		}
		synctest.Test(t, func(t *testing.T) {
			p := retry.Policy{MaxAttempts: 5, Backoff: noWait}
			p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: -1, Trickle: time.Minute})
			want := settled{Reason: retry.AttemptsExhausted, Attempts: 5, Elapsed: 5 * time.Minute}
			require.Equal(t, want, settle(t.Context(), p, takes(time.Minute)))

			p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: -1, Trickle: time.Minute})
			want = settled{Reason: retry.BudgetExhausted, Attempts: 1, Elapsed: time.Minute - 1}
			require.Equal(t, want, settle(t.Context(), p, takes(time.Minute-1)))

			// It is 1ns before 1m: attempts of 40s end just before 1m40s, 2m20s and 3m, so that 3m comes too late.
			want = settled{Reason: retry.BudgetExhausted, Attempts: 3, Elapsed: 2 * time.Minute}
			require.Equal(t, want, settle(t.Context(), p, takes(40*time.Second)))
		})
	})
}

func TestBudgetTokenIsTakenBeforeTheWait(t *testing.T) {
	t.Run("it is gone while the wait is under way and in the retry", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := retry.NewBudget(retry.BudgetConfig{Initial: 2})
			p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: time.Minute}, Budget: b}
			var before, retrying float64
			during := make(chan float64, 1)
			time.AfterFunc(time.Minute/2, func() { during <- b.Tokens() })
			want := settled{Reason: retry.AttemptsExhausted, Attempts: 2, Elapsed: time.Minute, Tokens: 1}
			require.Equal(t, want, settle(t.Context(), p, func(ctx context.Context) error {
				if retry.AttemptNumber(ctx) == 1 {
					before = b.Tokens()
				} else {
					retrying = b.Tokens()
				}
				return errOutage
			}))
			require.Equal(t, []float64{2, 1, 1}, []float64{before, <-during, retrying})
		})
	})
	t.Run("Observe finds it taken before the wait, and back after the cancel", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Minute/2, cancel)
			b := retry.NewBudget(retry.BudgetConfig{Initial: 2})
			var seen []float64
			p := retry.Policy{
				Backoff: retry.Backoff{Base: time.Minute},
				Budget:  b,
				Observe: func(context.Context, retry.Event) { seen = append(seen, b.Tokens()) },
			}
			want := settled{Reason: retry.CallerCanceled, Attempts: 1, Elapsed: time.Minute / 2, Tokens: 2}
			require.Equal(t, want, settle(ctx, p, failsWith(errOutage)))
			require.Equal(t, []float64{1, 2}, seen)
		})
	})
}

func TestBudgetIsPaidBack(t *testing.T) {
	type run struct {
		policy retry.Policy
		fn     func(context.Context) error
	}
	// onAttempt fails, and calls do on the given attempt.
	onAttempt := func(n int, do func()) func(context.Context) error {
		return func(ctx context.Context) error {
			if retry.AttemptNumber(ctx) == n {
				do()
			}
			return errOutage
		}
	}
	// onEvent calls do at the n-th event.
	onEvent := func(n int, do func()) func(context.Context, retry.Event) {
		seen := 0
		return func(context.Context, retry.Event) {
			if seen++; seen == n {
				do()
			}
		}
	}
	// onAsk calls do when the gate is called for the n-th time, and lets all attempts go.
	onAsk := func(n int, do func()) func(context.Context) time.Duration {
		asked := 0
		return func(context.Context) time.Duration {
			if asked++; asked == n {
				do()
			}
			return 0
		}
	}
	// deferRetry lets the first attempt go and the retry wait for d.
	deferRetry := func(d time.Duration) func(context.Context) time.Duration {
		asked := 0
		return func(context.Context) time.Duration {
			if asked++; asked == 1 {
				return 0
			}
			return d
		}
	}
	boom := func() { panic("boom") }
	for _, row := range []struct {
		name    string
		timeout time.Duration // of the caller; 0 is none
		given   func(cancel context.CancelFunc) run
		want    settled // with three of five tokens at first
	}{
		{
			name: "a wait cut short by cancel pays back",
			given: func(cancel context.CancelFunc) run {
				time.AfterFunc(time.Minute/2, cancel)
				return run{policy: retry.Policy{Backoff: retry.Backoff{Base: time.Minute}}}
			},
			want: settled{Reason: retry.CallerCanceled, Attempts: 1, Elapsed: time.Minute / 2, Tokens: 3},
		},
		{
			name: "a panic in Observe's final event does not pay back again",
			given: func(cancel context.CancelFunc) run {
				time.AfterFunc(time.Minute/2, cancel)
				return run{policy: retry.Policy{Backoff: retry.Backoff{Base: time.Minute}, Observe: onEvent(2, boom)}}
			},
			want: settled{Panic: "boom", Attempts: 1, Elapsed: time.Minute / 2, Tokens: 3},
		},
		{
			name: "a second wait cut short pays back its own token only",
			given: func(cancel context.CancelFunc) run {
				time.AfterFunc(90*time.Second, cancel)
				return run{policy: retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Minute}}}
			},
			want: settled{Reason: retry.CallerCanceled, Attempts: 2, Elapsed: 90 * time.Second, Tokens: 2},
		},
		{
			name: "a cancel that comes with the timer pays back",
			given: func(cancel context.CancelFunc) run {
				time.AfterFunc(time.Minute, cancel)
				return run{policy: retry.Policy{
					Backoff: retry.Backoff{Base: time.Minute},
					// So that the cancel is seen whichever of the two comes first.
					Gate: func(context.Context) time.Duration { synctest.Wait(); return 0 },
				}}
			},
			want: settled{Reason: retry.CallerCanceled, Attempts: 1, Elapsed: time.Minute, Tokens: 3},
		},
		{
			name: "a cancel in Observe before a retry without a wait pays back",
			given: func(cancel context.CancelFunc) run {
				return run{policy: retry.Policy{MaxAttempts: 8, Backoff: noWait, Observe: onEvent(1, cancel)}}
			},
			want: settled{Reason: retry.CallerCanceled, Attempts: 1, Tokens: 3},
		},
		{
			name:    "a deadline that passes in Observe pays back",
			timeout: 2 * time.Minute,
			given: func(context.CancelFunc) run {
				slow := onEvent(1, func() { <-time.After(3 * time.Minute) })
				return run{policy: retry.Policy{MaxAttempts: 8, Backoff: noWait, Observe: slow}}
			},
			want: settled{Reason: retry.DeadlinePassed, Attempts: 1, Elapsed: 3 * time.Minute, Tokens: 3},
		},
		{
			name: "a TTL that passes in Observe pays back",
			given: func(context.CancelFunc) run {
				slow := onEvent(1, func() { <-time.After(time.Minute + 1) })
				return run{policy: retry.Policy{MaxAttempts: 8, Backoff: noWait, TTL: time.Minute, Observe: slow}}
			},
			want: settled{Reason: retry.TTLElapsed, Attempts: 1, Elapsed: time.Minute + 1, Tokens: 3},
		},
		{
			name: "a gate that defers past the TTL pays back",
			given: func(context.CancelFunc) run {
				return run{policy: retry.Policy{
					Backoff: retry.Backoff{Base: time.Minute}, TTL: 10 * time.Minute, Gate: deferRetry(9*time.Minute + 1),
				}}
			},
			want: settled{Reason: retry.TTLElapsed, Attempts: 1, Elapsed: time.Minute, Tokens: 3},
		},
		{
			name:    "a gate that defers to the deadline pays back",
			timeout: 10 * time.Minute,
			given: func(context.CancelFunc) run {
				return run{policy: retry.Policy{Backoff: retry.Backoff{Base: time.Minute}, Gate: deferRetry(9 * time.Minute)}}
			},
			want: settled{Reason: retry.DeadlineTooNear, Attempts: 1, Elapsed: time.Minute, Tokens: 3},
		},
		{
			name: "a gate's wait cut short by cancel pays back",
			given: func(cancel context.CancelFunc) run {
				time.AfterFunc(5*time.Minute, cancel)
				return run{policy: retry.Policy{Backoff: retry.Backoff{Base: time.Minute}, Gate: deferRetry(time.Hour)}}
			},
			want: settled{Reason: retry.CallerCanceled, Attempts: 1, Elapsed: 5 * time.Minute, Tokens: 3},
		},
		{
			name: "a cancel in the gate pays back",
			given: func(cancel context.CancelFunc) run {
				return run{policy: retry.Policy{Backoff: retry.Backoff{Base: time.Minute}, Gate: onAsk(2, cancel)}}
			},
			want: settled{Reason: retry.CallerCanceled, Attempts: 1, Elapsed: time.Minute, Tokens: 3},
		},
		{
			name: "a panic in the gate pays back",
			given: func(context.CancelFunc) run {
				return run{policy: retry.Policy{Backoff: retry.Backoff{Base: time.Minute}, Gate: onAsk(2, boom)}}
			},
			want: settled{Panic: "boom", Attempts: 1, Elapsed: time.Minute, Tokens: 3},
		},
		{
			name: "runtime.Goexit in the gate pays back",
			given: func(context.CancelFunc) run {
				return run{policy: retry.Policy{Backoff: retry.Backoff{Base: time.Minute}, Gate: onAsk(2, runtime.Goexit)}}
			},
			want: settled{Exited: true, Attempts: 1, Elapsed: time.Minute, Tokens: 3},
		},
		{
			name: "a panic in a retry pays back",
			given: func(context.CancelFunc) run {
				return run{policy: retry.Policy{MaxAttempts: 8, Backoff: noWait}, fn: onAttempt(2, boom)}
			},
			want: settled{Panic: "boom", Attempts: 2, Tokens: 3},
		},
		{
			name: "a panic in a retry with an AttemptTimeout pays back",
			given: func(context.CancelFunc) run {
				return run{
					policy: retry.Policy{MaxAttempts: 8, Backoff: noWait, AttemptTimeout: time.Second},
					fn:     onAttempt(2, boom),
				}
			},
			want: settled{Panic: "boom", Attempts: 2, Tokens: 3},
		},
		{
			name: "a panic in a second retry pays back its own token only",
			given: func(context.CancelFunc) run {
				return run{policy: retry.Policy{MaxAttempts: 8, Backoff: noWait}, fn: onAttempt(3, boom)}
			},
			want: settled{Panic: "boom", Attempts: 3, Tokens: 2},
		},
		{
			name: "runtime.Goexit in a retry pays back",
			given: func(context.CancelFunc) run {
				return run{policy: retry.Policy{MaxAttempts: 8, Backoff: noWait}, fn: onAttempt(2, runtime.Goexit)}
			},
			want: settled{Exited: true, Attempts: 2, Tokens: 3},
		},
		{
			name: "runtime.Goexit in a second retry pays back its own token only",
			given: func(context.CancelFunc) run {
				return run{policy: retry.Policy{MaxAttempts: 8, Backoff: noWait}, fn: onAttempt(3, runtime.Goexit)}
			},
			want: settled{Exited: true, Attempts: 3, Tokens: 2},
		},
		{
			name: "a panic in a first attempt has nothing to pay back",
			given: func(context.CancelFunc) run {
				return run{policy: retry.Policy{MaxAttempts: 8, Backoff: noWait}, fn: onAttempt(1, boom)}
			},
			want: settled{Panic: "boom", Attempts: 1, Tokens: 3},
		},
		{
			name: "a panic in Observe after the charge pays back",
			given: func(context.CancelFunc) run {
				return run{policy: retry.Policy{Backoff: retry.Backoff{Base: time.Minute}, Observe: onEvent(1, boom)}}
			},
			want: settled{Panic: "boom", Attempts: 1, Tokens: 3},
		},
		{
			name: "runtime.Goexit in Observe after the charge pays back",
			given: func(context.CancelFunc) run {
				return run{policy: retry.Policy{Backoff: retry.Backoff{Base: time.Minute}, Observe: onEvent(1, runtime.Goexit)}}
			},
			want: settled{Exited: true, Attempts: 1, Tokens: 3},
		},
		{
			name: "a panic in Observe after the second charge pays back the second token only",
			given: func(context.CancelFunc) run {
				return run{policy: retry.Policy{MaxAttempts: 8, Backoff: noWait, Observe: onEvent(2, boom)}}
			},
			want: settled{Panic: "boom", Attempts: 2, Tokens: 2},
		},
		{
			name: "a panic in Observe's final event pays back nothing that a retry has used",
			given: func(context.CancelFunc) run {
				return run{policy: retry.Policy{MaxAttempts: 2, Backoff: noWait, Observe: onEvent(3, boom)}}
			},
			want: settled{Panic: "boom", Attempts: 2, Tokens: 2},
		},
		{
			name: "a panic in Classify before the charge pays back nothing",
			given: func(context.CancelFunc) run {
				return run{policy: retry.Policy{Classify: func(error) retry.Class { panic("boom") }}}
			},
			want: settled{Panic: "boom", Attempts: 1, Tokens: 3},
		},
		{
			name: "a panic in Rand before the charge pays back nothing",
			given: func(context.CancelFunc) run {
				return run{policy: retry.Policy{
					Backoff: retry.Backoff{Jitter: retry.FullJitter}, Rand: func() float64 { panic("boom") },
				}}
			},
			want: settled{Panic: "boom", Attempts: 1, Tokens: 3},
		},
		{
			name: "a retry that returned an error does not pay back",
			given: func(context.CancelFunc) run {
				return run{policy: retry.Policy{MaxAttempts: 2, Backoff: noWait}}
			},
			want: settled{Reason: retry.AttemptsExhausted, Attempts: 2, Tokens: 2},
		},
		{
			name: "a retry in which the caller was canceled has returned and does not pay back",
			given: func(cancel context.CancelFunc) run {
				return run{policy: retry.Policy{MaxAttempts: 8, Backoff: noWait}, fn: onAttempt(2, cancel)}
			},
			want: settled{Reason: retry.CallerCanceled, Attempts: 2, Tokens: 2},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if row.timeout > 0 {
					ctx, cancel = context.WithTimeout(ctx, row.timeout)
					defer cancel()
				}
				given := row.given(cancel)
				if given.fn == nil {
					given.fn = failsWith(errOutage)
				}
				given.policy.Budget = retry.NewBudget(retry.BudgetConfig{Burst: 5, Initial: 3})
				require.Equal(t, row.want, settle(ctx, given.policy, given.fn))
			})
		})
	}
}
