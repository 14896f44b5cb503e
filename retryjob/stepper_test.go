package retryjob_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// clock is a clock that stands still.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time       { return c.now }
func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

// stepper returns one that knows one policy, p.
func stepper(p retry.Policy, c *clock) *retryjob.Stepper {
	return &retryjob.Stepper{Policies: retryjob.FromMap(map[string]retry.Policy{"p": p}), Now: c.Now}
}

// record returns the record of a new job under policy p.
func record(c *clock) retryjob.Record {
	return retryjob.NewRecord(&retryjob.Job{ID: "j", Kind: "mail", Policy: "p", Correlation: "trace"}, c.now)
}

func clone(r retryjob.Record) retryjob.Record {
	r.History = slices.Clone(r.History)
	return r
}

// ending returns a handler that ends with err at once.
func ending(err error) func(context.Context) error { return func(context.Context) error { return err } }

// never is a handler that must not be called.
func never(t *testing.T) func(context.Context) error {
	return func(context.Context) error {
		require.FailNow(t, "an attempt was made")
		return nil
	}
}

// trial is a job under one policy, and the Stepper that makes its attempts by a clock that stands still.
type trial struct {
	t *testing.T
	c *clock
	s *retryjob.Stepper
	r retryjob.Record
}

func newTrial(t *testing.T, p retry.Policy) *trial {
	c := &clock{epoch}
	return &trial{t, c, stepper(p, c), record(c)}
}

// step makes an attempt, which must be possible, and leaves a valid record that is as the result says.
func (x *trial) step(attempt int, fn func(context.Context) error) retryjob.Next {
	x.t.Helper()
	return x.stepIn(x.t.Context(), attempt, fn)
}

func (x *trial) stepIn(ctx context.Context, attempt int, fn func(context.Context) error) retryjob.Next {
	x.t.Helper()
	return x.agrees(x.s.Step(ctx, &x.r, attempt, fn))
}

// lost records that an attempt was lost, likewise.
func (x *trial) lost(attempt int) retryjob.Next {
	x.t.Helper()
	return x.agrees(x.s.Lost(x.t.Context(), &x.r, attempt))
}

func (x *trial) agrees(next retryjob.Next, err error) retryjob.Next {
	x.t.Helper()
	require.NoError(x.t, err)
	require.NoError(x.t, x.r.Validate())
	require.Equal(x.t, []any{next.Status, next.Reason, next.Due}, []any{x.r.Status, x.r.Reason, x.r.Due})
	return next
}

func evenly(attempts int, delay time.Duration) retry.Policy {
	return retry.Policy{MaxAttempts: attempts, Backoff: retry.Backoff{Mode: retry.Fixed, Base: delay}}
}

func TestStepDecidesAsThePolicyDoes(t *testing.T) {
	with := func(p retry.Policy, change func(*retry.Policy)) retry.Policy { change(&p); return p }
	for _, row := range []struct {
		name   string
		policy retry.Policy
		err    error
		took   time.Duration
		want   retry.Decision
	}{
		{"a success is final", retry.Policy{}, nil, sec, retry.Decision{Status: retry.Succeeded}},
		{"a success under a disabled policy is one", retry.Policy{Disabled: true}, nil, sec, retry.Decision{Status: retry.Succeeded}},
		{"a success after the TTL is one", retry.Policy{TTL: sec}, nil, time.Hour, retry.Decision{Status: retry.Succeeded}},
		{"a failure waits", retry.Policy{}, errFlaky, sec, retry.Decision{Status: retry.WaitingRetry, Delay: 5 * sec}},
		{"a terminal error ends", retry.Policy{}, retry.Permanent(errFlaky), sec, retry.Decision{Status: retry.DeadLettered, Reason: retry.TerminalError}},
		{"a wrapped mark is terminal", retry.Policy{}, fmt.Errorf("x: %w", retry.Permanent(errFlaky)), 0, retry.Decision{Status: retry.DeadLettered, Reason: retry.TerminalError}},
		{"one attempt is one", retry.Policy{MaxAttempts: 1}, errFlaky, sec, retry.Decision{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted}},
		{"disabled fails", retry.Policy{Disabled: true}, errFlaky, sec, retry.Decision{Status: retry.FailedNoRetries, Reason: retry.RetriesDisabled}},
		{"canceled, while the caller lives, is terminal", retry.Policy{}, context.Canceled, 0, retry.Decision{Status: retry.DeadLettered, Reason: retry.TerminalError}},
		{"a deadline is an ordinary failure", retry.Policy{}, context.DeadlineExceeded, 0, retry.Decision{Status: retry.WaitingRetry, Delay: 5 * sec}},
		{"a hint is a floor", retry.Policy{}, retry.After(time.Minute, errFlaky), sec, retry.Decision{Status: retry.WaitingRetry, Delay: time.Minute}},
		{"a hint too long expires", retry.Policy{}, retry.After(time.Hour+1, errFlaky), sec, retry.Decision{Status: retry.Expired, Reason: retry.HintTooLong}},
		{"a retry exactly at the TTL waits", with(evenly(9, 3*sec), func(p *retry.Policy) { p.TTL = 5 * sec }), errFlaky, 2 * sec, retry.Decision{Status: retry.WaitingRetry, Delay: 3 * sec}},
		{"a retry just beyond the TTL expires", with(evenly(9, 3*sec), func(p *retry.Policy) { p.TTL = 5 * sec }), errFlaky, 2*sec + 1, retry.Decision{Status: retry.Expired, Reason: retry.TTLElapsed}},
		{"a budget that refuses makes a dead letter", with(retry.Policy{}, func(p *retry.Policy) { p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: -1}) }), errFlaky, sec, retry.Decision{Status: retry.DeadLettered, Reason: retry.BudgetExhausted}},
		{"a classifier is heeded", retry.Policy{Classify: retry.StopOn(errFlaky)}, errFlaky, sec, retry.Decision{Status: retry.DeadLettered, Reason: retry.TerminalError}},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newTrial(t, row.policy)
			x.s.Code = func(error) string { return "503" }
			want := clone(x.r)
			next := x.step(1, func(context.Context) error {
				x.c.pass(row.took)
				return row.err
			})
			ended := epoch.Add(row.took)
			a := retryjob.Attempt{ID: want.AttemptID(1), Number: 1, Start: epoch, End: ended, Status: map[retry.Status]retryjob.Status{
				retry.Succeeded: retryjob.Succeeded, retry.WaitingRetry: retryjob.WaitingRetry, retry.DeadLettered: retryjob.DeadLettered,
				retry.Expired: retryjob.Expired, retry.FailedNoRetries: retryjob.FailedNoRetries,
			}[row.want.Status], Reason: row.want.Reason}
			want.Status, want.Reason, want.Attempts = a.Status, a.Reason, 1
			if want.Due = (time.Time{}); row.want.Status == retry.WaitingRetry {
				a.Due = ended.Add(row.want.Delay)
				want.Due = a.Due
			} else {
				want.Ended = ended
			}
			if row.err != nil {
				a.Err, a.Code = row.err.Error(), "503"
			}
			want.History = []retryjob.Attempt{a}
			require.Equal(t, want, x.r)
			require.Equal(t, retryjob.Next{Status: a.Status, Reason: row.want.Reason, Due: a.Due}, next)
		})
	}
}

func TestStepRefuses(t *testing.T) {
	change := func(change func(*retryjob.Record)) retryjob.Record {
		r := record(&clock{epoch})
		r.Status, r.Attempts, r.Due = retryjob.WaitingRetry, 2, epoch
		change(&r)
		return r
	}
	ended := func(status retryjob.Status) retryjob.Record {
		return change(func(r *retryjob.Record) { r.Status, r.Due, r.Ended = status, time.Time{}, epoch })
	}
	for _, row := range []struct {
		name    string
		record  retryjob.Record
		attempt int
		is      error
		says    string
	}{
		{"an unknown policy", change(func(r *retryjob.Record) { r.Policy = "q" }), 3, retryjob.ErrUnknownPolicy, `retryjob: job j: policy "q"`},
		{"a policy that does not validate", change(func(r *retryjob.Record) { r.Policy = "bad" }), 3, nil, `policy "bad": retry: Policy.MaxAttempts -9 is below -1`},
		{"a record of another version", change(func(r *retryjob.Record) { r.Version = 4 }), 3, nil, "Record.Version 4"},
		{"the zero Record", retryjob.Record{}, 1, nil, "Record.Version 0"},
		{"a record that contradicts itself", change(func(r *retryjob.Record) { r.Due = time.Time{} }), 3, nil, "Record.Due"},
		{"a job that succeeded", ended(retryjob.Succeeded), 3, nil, "job j is succeeded already"},
		{"a dead letter", ended(retryjob.DeadLettered), 3, nil, "job j is dead_letter already"},
		{"an expired job", ended(retryjob.Expired), 3, nil, "job j is expired already"},
		{"a failed job", ended(retryjob.FailedNoRetries), 3, nil, "job j is failed_no_retries already"},
		{"a canceled job", ended(retryjob.Canceled), 3, nil, "job j is canceled already"},
		{"an attempt that is recorded", change(func(*retryjob.Record) {}), 2, nil, "attempt 2 of job j is recorded already"},
		{"an earlier attempt", change(func(*retryjob.Record) {}), 1, nil, "attempt 1 of job j is recorded already"},
		{"attempt 0", change(func(r *retryjob.Record) { r.Attempts = 0 }), 0, nil, "attempt 0"},
		{"an attempt far beyond the record", change(func(*retryjob.Record) {}), math.MaxInt, nil, "is more than 10000 after attempt"},
		{"attempt 0 of a leased job", change(func(r *retryjob.Record) { r.Status, r.Attempts, r.Due = retryjob.Leased, 0, time.Time{} }), 0, nil, "attempt 0"},
		{"a negative attempt", change(func(*retryjob.Record) {}), -1, nil, "attempt -1"},
		{"an attempt before the leased one", change(func(r *retryjob.Record) { r.Status, r.Due = retryjob.Leased, time.Time{} }), 1, nil, "attempt 1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := stepper(retry.Policy{}, &clock{epoch})
			s.Policies = retryjob.FromMap(map[string]retry.Policy{"p": {Observe: func(context.Context, retry.Event) {
				require.FailNow(t, "somebody was told")
			}}, "bad": {MaxAttempts: -9}})
			for what, step := range map[string]func(*retryjob.Record) (retryjob.Next, error){
				"Step": func(r *retryjob.Record) (retryjob.Next, error) {
					return s.Step(t.Context(), r, row.attempt, never(t))
				},
				"Lost": func(r *retryjob.Record) (retryjob.Next, error) { return s.Lost(t.Context(), r, row.attempt) },
			} {
				r := clone(row.record)
				v, err := step(&r)
				require.ErrorContains(t, err, row.says, what)
				if row.is != nil {
					require.ErrorIs(t, err, row.is, what)
				}
				require.Equal(t, retryjob.Next{}, v, what)
				require.Equal(t, row.record, r, what)
			}
		})
	}
	t.Run("without policies nothing is attempted", func(t *testing.T) {
		r := record(&clock{epoch})
		_, err := (&retryjob.Stepper{}).Step(t.Context(), &r, 1, never(t))
		require.ErrorIs(t, err, retryjob.ErrUnknownPolicy)
	})
}

func TestStepDoesNotMakeAnAttempt(t *testing.T) {
	t.Run("no attempt starts beyond the TTL, and a gate is not asked", func(t *testing.T) {
		x := newTrial(t, retry.Policy{TTL: 5 * sec, Gate: func(context.Context) time.Duration { panic("asked") }})
		x.c.pass(5*sec + 1)
		require.Equal(t, retryjob.Next{Status: retryjob.Expired, Reason: retry.TTLElapsed}, x.step(1, never(t)))
		require.Equal(t, x.c.now, x.r.Ended)
		require.Zero(t, x.r.Attempts)
		require.Empty(t, x.r.History)
	})
	t.Run("an attempt starts exactly at the TTL", func(t *testing.T) {
		x := newTrial(t, retry.Policy{TTL: 5 * sec})
		x.c.pass(5 * sec)
		require.Equal(t, retryjob.Next{Status: retryjob.Succeeded}, x.step(1, ending(nil)))
	})
	for name, row := range map[string]struct {
		now  retry.Policy
		want retryjob.Next
	}{
		"no attempt starts if the policy has come to allow fewer": {retry.Policy{MaxAttempts: 2}, retryjob.Next{Status: retryjob.DeadLettered, Reason: retry.AttemptsExhausted}},
		"no attempt starts if the policy has come to be disabled": {retry.Policy{Disabled: true}, retryjob.Next{Status: retryjob.FailedNoRetries, Reason: retry.RetriesDisabled}},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTrial(t, retry.Policy{MaxAttempts: 5})
			for attempt := 1; attempt <= 3; attempt++ {
				x.c.now = x.step(attempt, ending(errFlaky)).Due
			}
			x.s = stepper(row.now, x.c)
			require.Equal(t, row.want, x.step(4, never(t)))
			require.Equal(t, 3, x.r.Attempts)
			require.Len(t, x.r.History, 3)
			require.Equal(t, x.c.now, x.r.Ended)
		})
	}
	t.Run("no attempt starts while a gate is shut", func(t *testing.T) {
		wait, asked := 3*sec, 0
		p := evenly(1, sec)
		p.TTL = 3 * sec
		p.Gate = func(context.Context) time.Duration { asked++; return wait }
		x := newTrial(t, p)
		want := clone(x.r)
		want.Due = epoch.Add(3 * sec)
		next := x.step(1, never(t))
		require.Equal(t, retryjob.Next{Status: retryjob.Pending, Due: epoch.Add(3 * sec), Deferred: true}, next)
		require.Equal(t, want, x.r)

		wait, x.c.now = 0, next.Due
		require.Equal(t, retryjob.Succeeded, x.step(1, ending(nil)).Status, "it is the first attempt still")
		require.Equal(t, 2, asked)
	})
	for _, row := range []struct {
		name   string
		ttl    time.Duration
		passes time.Duration // while the gate is asked
		wait   time.Duration
		text   string
		byGate bool
	}{
		{"a gate shut for longer than the TTL ends the job, and the outcome says so", 3 * sec, 0, 3*sec + 1, "0s (ttl_elapsed, deferred by Gate)", true},
		{"beyond the TTL no gate is to blame", sec, 2 * sec, 5 * sec, "2s (ttl_elapsed)", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			var x *trial
			var events told
			x = newTrial(t, retry.Policy{TTL: row.ttl, Observe: events.observe, Gate: func(context.Context) time.Duration {
				x.c.pass(row.passes)
				return row.wait
			}})
			require.Equal(t, retryjob.Next{Status: retryjob.Expired, Reason: retry.TTLElapsed}, tell(x.step(1, never(t))))
			require.Zero(t, x.r.Attempts)
			require.Equal(t, row.byGate, events[0].Outcome.EndedByGate)
			require.EqualError(t, events[0].Err, "retry: p: gave up after 0 attempts in "+row.text)
		})
	}
	t.Run("a gate that is open is not to blame for a failure", func(t *testing.T) {
		var events told
		x := newTrial(t, retry.Policy{MaxAttempts: 1, Gate: func(context.Context) time.Duration { return 0 }, Observe: events.observe})
		x.step(1, ending(errFlaky)).Tell()
		require.False(t, events[len(events)-1].Outcome.EndedByGate)
	})
	t.Run("the outcome says that a layer below has given up", func(t *testing.T) {
		var events told
		x := newTrial(t, retry.Policy{Classify: retry.StopIf(retry.IsGivenUp), Observe: events.observe})
		next := x.step(1, func(ctx context.Context) error {
			return retry.Do(ctx, retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: 1}}, func(context.Context) error { return errFlaky })
		})
		require.Equal(t, retry.TerminalError, tell(next).Reason)
		require.True(t, events[len(events)-1].Outcome.InnerGaveUp)
	})
	t.Run("a gate that says less than nothing is open, of a disabled policy too", func(t *testing.T) {
		wait := -sec
		p := retry.Policy{Disabled: true, Gate: func(context.Context) time.Duration { return wait }}
		require.Equal(t, retryjob.Succeeded, newTrial(t, p).step(1, ending(nil)).Status)
		wait = sec
		require.True(t, newTrial(t, p).step(1, never(t)).Deferred)
	})
	t.Run("a deferred second attempt waits and is still the second", func(t *testing.T) {
		p, wait := evenly(2, sec), time.Duration(0)
		p.Gate = func(context.Context) time.Duration { return wait }
		x := newTrial(t, p)
		x.c.now = x.step(1, ending(errFlaky)).Due
		wait = 9 * sec
		next := x.step(2, never(t))
		require.Equal(t, retryjob.Next{Status: retryjob.WaitingRetry, Due: x.c.now.Add(9 * sec), Deferred: true}, next)
		require.Equal(t, 1, x.r.Attempts)
		wait, x.c.now = 0, next.Due
		require.Equal(t, retry.AttemptsExhausted, x.step(2, ending(errFlaky)).Reason)
	})
}

func TestALongAttemptStartsAttemptsAndDelaysAnew(t *testing.T) {
	x := newTrial(t, retry.Policy{MaxAttempts: 3, ResetAfter: time.Minute, Backoff: retry.Backoff{Base: sec}})
	for attempt, row := range []struct {
		took  time.Duration
		since int
		want  retryjob.Next
	}{
		{0, 0, retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(sec)}},
		{0, 0, retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(3 * sec)}},
		{time.Minute, 2, retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(64 * sec)}},
		{time.Minute - 1, 2, retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(126*sec - 1)}},
		{0, 2, retryjob.Next{Status: retryjob.DeadLettered, Reason: retry.AttemptsExhausted}},
	} {
		next := x.step(attempt+1, func(context.Context) error { x.c.pass(row.took); return errFlaky })
		require.Equal(t, row.want, next)
		require.Equal(t, row.since, x.r.Forgiven)
		x.c.now = next.Due
	}
}

func TestPayIsAskedOfEveryRetry(t *testing.T) {
	var asked []string
	p := evenly(9, sec)
	p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 9})
	p.Pay = func(ctx context.Context, d retry.Decision) bool {
		info, ok := retryjob.AttemptFrom(ctx)
		require.True(t, ok)
		asked = append(asked, info.AttemptID)
		return len(asked) < 3
	}
	x := newTrial(t, p)
	x.step(1, ending(errFlaky))
	x.lost(2)
	require.Equal(t, retryjob.Next{Status: retryjob.DeadLettered, Reason: retry.BudgetExhausted}, x.step(3, ending(errFlaky)))
	require.Equal(t, []string{x.r.AttemptID(1), x.r.AttemptID(2), x.r.AttemptID(3)}, asked)
	require.InDelta(t, 7, p.Budget.Tokens(), 1e-9, "what Pay refused is refunded")
}

func TestBudgetIsFundedBySuccesses(t *testing.T) {
	p := evenly(9, sec)
	p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: -1, Ratio: 0.5})
	for _, row := range []struct {
		name   string
		err    error
		status retryjob.Status
		tokens float64 // then
	}{
		{"half a token", nil, retryjob.Succeeded, 0.5},
		{"and another half", nil, retryjob.Succeeded, 1},
		{"no retry, no token", retry.Permanent(errFlaky), retryjob.DeadLettered, 1},
		{"a retry", errFlaky, retryjob.WaitingRetry, 0},
	} {
		require.Equal(t, row.status, newTrial(t, p).step(1, ending(row.err)).Status, row.name)
		require.InDelta(t, row.tokens, p.Budget.Tokens(), 1e-9, row.name)
	}
}

func TestARetryThatIsNotMadeIsPaidBack(t *testing.T) {
	for name, end := range map[string]func(*trial){
		"a job that is canceled while it waits": func(x *trial) {
			require.NoError(t, x.r.Cancel(x.c.now))
			x.s.Canceled(t.Context(), &x.r)
		},
		"a job whose TTL is over when its retry is to start": func(x *trial) {
			x.c.pass(time.Hour)
			require.Equal(t, retryjob.Expired, x.step(2, never(t)).Status)
		},
	} {
		p := evenly(9, sec)
		p.TTL, p.Budget = time.Minute, retry.NewBudget(retry.BudgetConfig{Initial: 3})
		x := newTrial(t, p)
		x.step(1, ending(errFlaky))
		require.InDelta(t, 2, p.Budget.Tokens(), 1e-9, name)
		end(x)
		require.InDelta(t, 3, p.Budget.Tokens(), 1e-9, name)
	}
	p := evenly(9, sec)
	p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 3})
	x := newTrial(t, p)
	require.NoError(t, x.r.Cancel(x.c.now))
	x.s.Canceled(t.Context(), &x.r)
	require.InDelta(t, 3, p.Budget.Tokens(), 1e-9, "a first attempt has paid nothing")
	x.r.Policy = "unknown"
	x.s.Canceled(t.Context(), &x.r)
}

// answered is an error with an HTTP status.
type answered int

func (a answered) Error() string   { return "answered" }
func (a answered) HTTPStatus() int { return int(a) }

func TestTheCodeOfAnAttempt(t *testing.T) {
	for _, row := range []struct {
		name string
		code func(error) string
		err  error
		want string
	}{
		{"is the HTTP status of its error", nil, fmt.Errorf("x: %w", answered(503)), "503"},
		{"is none without a response", nil, answered(0), ""},
		{"is none for other errors", nil, errFlaky, ""},
		{"is that of Code first", func(error) string { return "busy" }, answered(503), "busy"},
		{"is the status if Code has none", func(error) string { return "" }, answered(503), "503"},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newTrial(t, retry.Policy{})
			x.s.Code = row.code
			x.step(1, ending(row.err))
			require.Equal(t, row.want, x.r.History[0].Code)
		})
	}
}

func TestAttemptFrom(t *testing.T) {
	x := newTrial(t, retry.Policy{})
	x.r.Replays = 2
	x.c.pass(sec)
	x.step(1, func(ctx context.Context) error {
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		for _, ctx := range []context.Context{ctx, inner} {
			info, ok := retryjob.AttemptFrom(ctx)
			require.True(t, ok)
			require.Equal(t, retryjob.AttemptInfo{JobID: "j", Kind: "mail", AttemptID: x.r.AttemptID(1), Correlation: "trace", Number: 1, Replays: 2, FirstDue: epoch}, info)
		}
		return nil
	})
	info, ok := retryjob.AttemptFrom(t.Context())
	require.False(t, ok)
	require.Equal(t, retryjob.AttemptInfo{}, info)
}

func TestAJobsAttemptHasItsNumberInTheContext(t *testing.T) {
	x := newTrial(t, retry.Policy{MaxAttempts: 3})
	var numbers []int
	for n := range 3 {
		x.c.now = x.step(n+1, func(ctx context.Context) error {
			numbers = append(numbers, retry.AttemptNumber(ctx))
			return context.DeadlineExceeded
		}).Due
	}
	require.Equal(t, []int{1, 2, 3}, numbers)
}
