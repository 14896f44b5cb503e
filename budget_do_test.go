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

// threeOfFive returns a budget of five tokens that has three.
func threeOfFive() *retry.Budget { return retry.NewBudget(retry.BudgetConfig{Burst: 5, Initial: 3}) }

// instantly retries without a wait.
func instantly(attempts int) retry.Policy {
	return retry.Policy{MaxAttempts: attempts, Backoff: noWait}
}

// everyMinute has seven waits of a minute.
var everyMinute = retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: minute}}

func TestBudgetChargesInDo(t *testing.T) {
	asked := 0
	gate := func(context.Context) time.Duration { // defers the first attempt for 1s to 4s, and so the retry
		asked++
		return time.Duration(asked%5) * sec
	}
	for _, row := range []struct {
		name   string
		policy retry.Policy
		fn     func(context.Context) error
		want   settled // with three of five tokens at first
	}{
		{"a first attempt that fails pays nothing", instantly(1), failing,
			settled{Reason: retry.AttemptsExhausted, Attempts: 1, Tokens: 3}},
		{"a first attempt that succeeds pays nothing and deposits once", retry.Policy{}, succeed, settled{Attempts: 1, Tokens: 3.1}},
		{"each retry pays one token, also when it fails", instantly(3), failing,
			settled{Reason: retry.AttemptsExhausted, Attempts: 3, Tokens: 1}},
		{"a success after one retry deposits once", instantly(8), failTimes(1), settled{Attempts: 2, Tokens: 2.1}},
		{"a success after three retries deposits once", instantly(8), failTimes(3), settled{Attempts: 4, Tokens: 0.1}},
		{"a success of a disabled policy deposits once", retry.Policy{Disabled: true}, succeed, settled{Attempts: 1, Tokens: 3.1}},
		{"a success within an AttemptTimeout deposits once", retry.Policy{AttemptTimeout: sec}, succeed, settled{Attempts: 1, Tokens: 3.1}},
		{"a success that is observed deposits once", retry.Policy{Observe: func(context.Context, retry.Event) {}}, succeed,
			settled{Attempts: 1, Tokens: 3.1}},
		{"three tokens are three retries and the fourth is refused", instantly(retry.Unlimited), failing,
			settled{Reason: retry.BudgetExhausted, Attempts: 4, Tokens: 0}},
		{"waits are made for paid retries and none for the refused one", everyMinute, failing,
			settled{Reason: retry.BudgetExhausted, Attempts: 4, Elapsed: 3 * minute, Tokens: 0}},
		{"a hint does not change the price", retry.Policy{MaxAttempts: 3}, failsWith(retry.After(hour, errOutage)),
			settled{Reason: retry.AttemptsExhausted, Attempts: 3, Elapsed: 2 * hour, Tokens: 1}},
		{"attempts that time out pay as others do", retry.Policy{MaxAttempts: 3, AttemptTimeout: sec, Backoff: noWait}, untilDone,
			settled{Reason: retry.AttemptsExhausted, Attempts: 3, Elapsed: 3 * sec, Tokens: 1}},
		{"a terminal error after a retry charges that retry only", instantly(8), failsWith(errOutage, retry.Permanent(errOutage)),
			settled{Reason: retry.TerminalError, Attempts: 2, Tokens: 2}},
		{"a retry that a gate defers pays once, however often the gate is asked", retry.Policy{MaxAttempts: 2, Backoff: noWait, Gate: gate}, failing,
			settled{Reason: retry.AttemptsExhausted, Attempts: 2, Elapsed: 20 * sec, Tokens: 2}},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			p := row.policy
			p.Budget = threeOfFive()
			require.Equal(t, row.want, settle(t.Context(), p, row.fn))
		})
	}
}

func TestBudgetAndPayAreAskedLast(t *testing.T) {
	var leave context.CancelFunc // of the row's caller
	for _, row := range []struct {
		name    string
		timeout time.Duration // of the caller
		policy  retry.Policy
		fn      func(context.Context) error
		reason  retry.Reason
		elapsed time.Duration
	}{
		{"a terminal error", hour, retry.Policy{}, failsWith(retry.Permanent(errOutage)), retry.TerminalError, 0},
		{"an error that the classifier stops", hour, retry.Policy{Classify: retry.StopOn(errFlaky)}, failing, retry.TerminalError, 0},
		{"exhausted attempts", hour, retry.Policy{MaxAttempts: 1}, failing, retry.AttemptsExhausted, 0},
		{"a disabled policy", hour, retry.Policy{Disabled: true}, failing, retry.RetriesDisabled, 0},
		{"a hint that is too long", hour, retry.Policy{}, failsWith(retry.After(hour+1, errOutage)), retry.HintTooLong, 0},
		{"a retry beyond the TTL", hour, retry.Policy{TTL: minute - 1, Backoff: everyMinute.Backoff}, failing, retry.TTLElapsed, 0},
		{"a deadline that is too near", minute, everyMinute, failing, retry.DeadlineTooNear, 0},
		{"a deadline that has passed", minute, retry.Policy{}, untilDone, retry.DeadlinePassed, minute},
		{"a caller canceled in the attempt", hour, instantly(8), func(context.Context) error { leave(); return errFlaky }, retry.CallerCanceled, 0},
	} {
		for funds, tokens := range map[int]float64{3: 3, -1: 0} {
			inBubble(t, fmt.Sprintf("%s charges nothing and goes before a refusal, with %v tokens", row.name, tokens), func(t *testing.T) {
				var ctx context.Context
				ctx, leave = context.WithTimeout(t.Context(), row.timeout)
				defer leave()
				p := row.policy
				p.Budget = retry.NewBudget(retry.BudgetConfig{Burst: 5, Initial: funds})
				p.Pay = func(context.Context, retry.Decision) bool { t.Error("Pay was asked"); return false }
				want := settled{Reason: row.reason, Attempts: 1, Elapsed: row.elapsed, Tokens: tokens}
				require.Equal(t, want, settle(ctx, p, row.fn))
			})
		}
	}
	inBubble(t, "a run without an attempt neither pays nor deposits", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p := retry.Policy{Budget: threeOfFive()}
		require.Equal(t, settled{Reason: retry.CallerCanceled, Tokens: 3}, settle(ctx, p, succeed))
		p.TTL = -1 // which is refused
		require.Equal(t, settled{Tokens: 3}, settle(t.Context(), p, succeed))
	})
	t.Run("Decide does not ask the budget", func(t *testing.T) {
		p := retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{Initial: -1})}
		require.Equal(t, waiting(5*sec), p.Decide(retry.Progress{Attempt: 1}, errOutage, 0))
		p.Budget = threeOfFive()
		require.Equal(t, waiting(5*sec), p.Decide(retry.Progress{Attempt: 1}, errOutage, 0))
		require.Equal(t, 3.0, p.Budget.Tokens())
	})
}

func TestBudgetRefusal(t *testing.T) {
	inBubble(t, "it ends the run at once as DeadLettered and keeps the last error", func(t *testing.T) {
		last := fmt.Errorf("second: %w", errOutage)
		p := everyMinute
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 1})
		began := time.Now()
		err := retry.Do(t.Context(), p, failsWith(errOutage, last))
		require.Equal(t, minute, time.Since(began))
		require.Equal(t, &retry.Error{
			Outcome: retry.Outcome{
				Status: retry.DeadLettered, Reason: retry.BudgetExhausted, Attempts: 2, Elapsed: minute,
				History: []retry.Attempt{
					{Number: 1, Start: began, Class: retry.Retryable, Err: errOutage, Delay: minute},
					{Number: 2, Start: began.Add(minute), Class: retry.Retryable, Err: last},
				},
			},
			Last: last,
		}, err)
	})
	inBubble(t, "an empty budget refuses the first retry without a wait", func(t *testing.T) {
		p := retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{Initial: -1})}
		require.Equal(t, settled{Reason: retry.BudgetExhausted, Attempts: 1}, settle(t.Context(), p, failing))
	})
	t.Run("an attempt is followed by a retry when a success has funded one meanwhile", func(t *testing.T) {
		p := instantly(2)
		p.Budget = retry.NewBudget(retry.BudgetConfig{Ratio: 1, Initial: -1})
		require.NoError(t, retry.Do(t.Context(), p, func(ctx context.Context) error {
			if retry.AttemptNumber(ctx) == 2 {
				return nil
			}
			require.NoError(t, retry.Do(ctx, p, succeed))
			return errOutage
		}))
		require.Equal(t, 1.0, p.Budget.Tokens())
	})
	inBubble(t, "a lone client with Trickle retries once a period and on its grid", func(t *testing.T) {
		takes := func(d time.Duration) func(context.Context) error {
			return func(context.Context) error { spend(d); return errOutage }
		}
		p := instantly(5)
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: -1, Trickle: minute})
		want := settled{Reason: retry.AttemptsExhausted, Attempts: 5, Elapsed: 5 * minute}
		require.Equal(t, want, settle(t.Context(), p, takes(minute)))

		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: -1, Trickle: minute})
		want = settled{Reason: retry.BudgetExhausted, Attempts: 1, Elapsed: minute - 1}
		require.Equal(t, want, settle(t.Context(), p, takes(minute-1)))

		// It is 1ns before 1m: attempts of 40s end just before 1m40s, 2m20s and 3m, so that 3m comes too late.
		want = settled{Reason: retry.BudgetExhausted, Attempts: 3, Elapsed: 2 * minute}
		require.Equal(t, want, settle(t.Context(), p, takes(40*sec)))
	})
}

func TestBudgetTokenIsTakenBeforeTheWait(t *testing.T) {
	inBubble(t, "and is back when a cancel has cut the wait short", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*minute/2, cancel)
		p := everyMinute
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 2})
		during := make(chan float64, 1)
		time.AfterFunc(minute/2, func() { during <- p.Budget.Tokens() })
		var attempts, events []float64
		p.Observe = func(context.Context, retry.Event) { events = append(events, p.Budget.Tokens()) }
		got := settle(ctx, p, func(context.Context) error { attempts = append(attempts, p.Budget.Tokens()); return errOutage })
		require.Equal(t, settled{Reason: retry.CallerCanceled, Attempts: 2, Elapsed: 3 * minute / 2, Tokens: 1}, got)
		require.Equal(t, []float64{2, 1}, attempts)
		require.Equal(t, []float64{1, 0, 1}, events)
		require.Equal(t, 1.0, <-during)
	})
}

func TestBudgetIsPaidBack(t *testing.T) {
	leave := func(cancel func()) { cancel() }
	boom := func(func()) { panic("boom") }
	exit := func(func()) { runtime.Goexit() }
	takes := func(d time.Duration) func(func()) { return func(func()) { spend(d) } }
	gated := func(ttl time.Duration) retry.Policy { return retry.Policy{TTL: ttl, Backoff: everyMinute.Backoff} }
	shortened := instantly(8)
	shortened.AttemptTimeout = sec
	aged := instantly(8)
	aged.TTL = minute
	jittered := retry.Policy{Backoff: retry.Backoff{Jitter: retry.FullJitter}}
	for _, row := range []struct {
		name     string
		policy   retry.Policy
		timeout  time.Duration       // of the caller; 0 is none
		cancel   time.Duration       // when the caller gives up; 0 is never
		deferral time.Duration       // by the gate, of the retry
		in       string              // the function of the caller in which something happens
		call     int                 // the call in which it happens, from 1
		happens  func(cancel func()) // given the caller's CancelFunc
		want     settled             // with three of five tokens at first
	}{
		{name: "a wait cut short by cancel pays back", policy: everyMinute, cancel: minute / 2,
			want: settled{Reason: retry.CallerCanceled, Attempts: 1, Elapsed: minute / 2, Tokens: 3}},
		{name: "a panic in Observe's final event does not pay back again", policy: everyMinute, cancel: minute / 2, in: "Observe", call: 2, happens: boom,
			want: settled{Panic: "boom", Attempts: 1, Elapsed: minute / 2, Tokens: 3}},
		{name: "a second wait cut short pays back its own token only", policy: everyMinute, cancel: 90 * sec,
			want: settled{Reason: retry.CallerCanceled, Attempts: 2, Elapsed: 90 * sec, Tokens: 2}},
		// It waits for the cancel, which is then seen whichever of the two comes first.
		{name: "a cancel that comes with the timer pays back", policy: everyMinute, cancel: minute, in: "Gate", call: 2,
			happens: func(func()) { synctest.Wait() }, want: settled{Reason: retry.CallerCanceled, Attempts: 1, Elapsed: minute, Tokens: 3}},
		{name: "a cancel in Observe before a retry without a wait pays back", policy: instantly(8), in: "Observe", call: 1, happens: leave,
			want: settled{Reason: retry.CallerCanceled, Attempts: 1, Tokens: 3}},
		{name: "a deadline that passes in Observe pays back", policy: instantly(8), timeout: 2 * minute, in: "Observe", call: 1, happens: takes(3 * minute),
			want: settled{Reason: retry.DeadlinePassed, Attempts: 1, Elapsed: 3 * minute, Tokens: 3}},
		{name: "a TTL that passes in Observe pays back", policy: aged, in: "Observe", call: 1, happens: takes(minute + 1),
			want: settled{Reason: retry.TTLElapsed, Attempts: 1, Elapsed: minute + 1, Tokens: 3}},

		{name: "a gate that defers past the TTL pays back", policy: gated(10 * minute), deferral: 9*minute + 1,
			want: settled{Reason: retry.TTLElapsed, Attempts: 1, Elapsed: minute, Tokens: 3}},
		{name: "a gate that defers to the deadline pays back", policy: gated(0), timeout: 10 * minute, deferral: 9 * minute,
			want: settled{Reason: retry.DeadlineTooNear, Attempts: 1, Elapsed: minute, Tokens: 3}},
		{name: "a gate's wait cut short by cancel pays back", policy: gated(0), cancel: 5 * minute, deferral: hour,
			want: settled{Reason: retry.CallerCanceled, Attempts: 1, Elapsed: 5 * minute, Tokens: 3}},
		{name: "a cancel in the gate pays back", policy: everyMinute, in: "Gate", call: 2, happens: leave,
			want: settled{Reason: retry.CallerCanceled, Attempts: 1, Elapsed: minute, Tokens: 3}},
		{name: "a panic in the gate pays back", policy: everyMinute, in: "Gate", call: 2, happens: boom,
			want: settled{Panic: "boom", Attempts: 1, Elapsed: minute, Tokens: 3}},
		{name: "runtime.Goexit in the gate pays back", policy: everyMinute, in: "Gate", call: 2, happens: exit,
			want: settled{Exited: true, Attempts: 1, Elapsed: minute, Tokens: 3}},

		{name: "a panic in a retry pays back", policy: instantly(8), in: "fn", call: 2, happens: boom, want: settled{Panic: "boom", Attempts: 2, Tokens: 3}},
		{name: "a panic in a retry with an AttemptTimeout pays back", policy: shortened, in: "fn", call: 2, happens: boom,
			want: settled{Panic: "boom", Attempts: 2, Tokens: 3}},
		{name: "a panic in a second retry pays back its own token only", policy: instantly(8), in: "fn", call: 3, happens: boom,
			want: settled{Panic: "boom", Attempts: 3, Tokens: 2}},
		{name: "runtime.Goexit in a retry pays back", policy: instantly(8), in: "fn", call: 2, happens: exit, want: settled{Exited: true, Attempts: 2, Tokens: 3}},
		{name: "runtime.Goexit in a second retry pays back its own token only", policy: instantly(8), in: "fn", call: 3, happens: exit,
			want: settled{Exited: true, Attempts: 3, Tokens: 2}},
		{name: "a panic in a first attempt has nothing to pay back", policy: instantly(8), in: "fn", call: 1, happens: boom,
			want: settled{Panic: "boom", Attempts: 1, Tokens: 3}},
		{name: "runtime.Goexit in a first attempt has nothing to pay back", policy: instantly(8), in: "fn", call: 1, happens: exit,
			want: settled{Exited: true, Attempts: 1, Tokens: 3}},
		{name: "a panic in Observe after the charge pays back", policy: everyMinute, in: "Observe", call: 1, happens: boom,
			want: settled{Panic: "boom", Attempts: 1, Tokens: 3}},
		{name: "runtime.Goexit in Observe after the charge pays back", policy: everyMinute, in: "Observe", call: 1, happens: exit,
			want: settled{Exited: true, Attempts: 1, Tokens: 3}},
		{name: "a panic in Observe after the second charge pays back the second token only", policy: instantly(8), in: "Observe", call: 2, happens: boom,
			want: settled{Panic: "boom", Attempts: 2, Tokens: 2}},
		{name: "a panic in Observe's final event pays back nothing that a retry has used", policy: instantly(2), in: "Observe", call: 3, happens: boom,
			want: settled{Panic: "boom", Attempts: 2, Tokens: 2}},
		{name: "a panic in Classify before the charge pays back nothing", in: "Classify", call: 1, happens: boom,
			want: settled{Panic: "boom", Attempts: 1, Tokens: 3}},
		{name: "a panic in Rand before the charge pays back nothing", policy: jittered, in: "Rand", call: 1, happens: boom,
			want: settled{Panic: "boom", Attempts: 1, Tokens: 3}},
		{name: "a panic in Pay pays back", in: "Pay", call: 1, happens: boom, want: settled{Panic: "boom", Attempts: 1, Tokens: 3}},
		{name: "a cancel in Pay pays back", in: "Pay", call: 1, happens: leave, want: settled{Reason: retry.CallerCanceled, Attempts: 1, Tokens: 3}},
		{name: "a retry that returned an error does not pay back", policy: instantly(2), want: settled{Reason: retry.AttemptsExhausted, Attempts: 2, Tokens: 2}},
		{name: "a retry in which the caller was canceled has returned and does not pay back", policy: instantly(8), in: "fn", call: 2, happens: leave,
			want: settled{Reason: retry.CallerCanceled, Attempts: 2, Tokens: 2}},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if row.timeout > 0 {
				ctx, cancel = context.WithTimeout(ctx, row.timeout)
				defer cancel()
			}
			if row.cancel > 0 {
				time.AfterFunc(row.cancel, cancel)
			}
			calls := 0
			called := func() {
				if calls++; calls == row.call {
					row.happens(cancel)
				}
			}
			p := row.policy
			p.Budget = threeOfFive()
			fn := failing
			switch row.in {
			case "fn":
				fn = func(context.Context) error { called(); return errFlaky }
			case "Observe":
				p.Observe = func(context.Context, retry.Event) { called() }
			case "Classify":
				p.Classify = func(error) retry.Class { called(); return retry.Unknown }
			case "Rand":
				p.Rand = func() float64 { called(); return 0 }
			case "Pay":
				p.Pay = func(context.Context, retry.Decision) bool { called(); return true }
			case "Gate":
				p.Gate = func(context.Context) time.Duration { called(); return 0 }
			}
			if row.deferral > 0 {
				p.Gate = func(context.Context) time.Duration {
					if calls++; calls == 1 {
						return 0
					}
					return row.deferral
				}
			}
			require.Equal(t, row.want, settle(ctx, p, fn))
		})
	}
}
