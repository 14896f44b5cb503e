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
			c := &clock{epoch}
			s := stepper(row.policy, c)
			s.Code = func(error) string { return "503" }
			r := record(c)
			want := clone(r)
			v, err := s.Step(t.Context(), &r, 1, func(context.Context) error {
				c.pass(row.took)
				return row.err
			})
			require.NoError(t, err)
			ended := epoch.Add(row.took)
			a := retryjob.Attempt{ID: r.AttemptID(1), Number: 1, Start: epoch, End: ended, Status: map[retry.Status]retryjob.Status{
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
			require.Equal(t, want, r)
			require.Equal(t, retryjob.Next{Status: a.Status, Reason: row.want.Reason, Due: a.Due}, v)
			require.NoError(t, r.Validate())
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
	t.Run("no attempt starts beyond the TTL", func(t *testing.T) {
		c := &clock{epoch}
		s := stepper(retry.Policy{TTL: 5 * sec}, c)
		r := record(c)
		c.pass(5*sec + 1)
		v, err := s.Step(t.Context(), &r, 1, never(t))
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.Expired, Reason: retry.TTLElapsed}, v)
		require.Equal(t, retryjob.Expired, r.Status)
		require.Equal(t, retry.TTLElapsed, r.Reason)
		require.Equal(t, c.now, r.Ended)
		require.Zero(t, r.Attempts)
		require.Empty(t, r.History)
		require.NoError(t, r.Validate())
	})
	t.Run("an attempt starts exactly at the TTL", func(t *testing.T) {
		c := &clock{epoch}
		s := stepper(retry.Policy{TTL: 5 * sec}, c)
		r := record(c)
		c.pass(5 * sec)
		v, err := s.Step(t.Context(), &r, 1, ending(nil))
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.Succeeded}, v)
	})
	t.Run("no attempt starts that the policy has come to forbid", func(t *testing.T) {
		for name, row := range map[string]struct {
			now  retry.Policy
			want retryjob.Next
		}{
			"fewer attempts": {retry.Policy{MaxAttempts: 2}, retryjob.Next{Status: retryjob.DeadLettered, Reason: retry.AttemptsExhausted}},
			"disabled":       {retry.Policy{Disabled: true}, retryjob.Next{Status: retryjob.FailedNoRetries, Reason: retry.RetriesDisabled}},
		} {
			t.Run(name, func(t *testing.T) {
				c := &clock{epoch}
				r := record(c)
				for attempt := 1; attempt <= 3; attempt++ {
					v, err := stepper(retry.Policy{MaxAttempts: 5}, c).Step(t.Context(), &r, attempt, ending(errFlaky))
					require.NoError(t, err)
					c.now = v.Due
				}
				v, err := stepper(row.now, c).Step(t.Context(), &r, 4, never(t))
				require.NoError(t, err)
				require.Equal(t, row.want, v)
				require.Equal(t, 3, r.Attempts)
				require.Len(t, r.History, 3)
				require.Equal(t, c.now, r.Ended)
				require.NoError(t, r.Validate())
			})
		}
	})
	t.Run("no attempt starts while a gate is shut", func(t *testing.T) {
		c := &clock{epoch}
		wait, asked := 3*sec, 0
		p := evenly(1, sec)
		p.TTL = 3 * sec
		p.Gate = func(context.Context) time.Duration { asked++; return wait }
		s := stepper(p, c)
		r := record(c)
		want := clone(r)
		want.Due = epoch.Add(3 * sec)
		v, err := s.Step(t.Context(), &r, 1, never(t))
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.Pending, Due: epoch.Add(3 * sec), Deferred: true}, v)
		require.Equal(t, want, r)

		wait = 0
		c.now = v.Due
		v, err = s.Step(t.Context(), &r, 1, ending(nil))
		require.NoError(t, err, "it is the first attempt still")
		require.Equal(t, retryjob.Succeeded, v.Status)
		require.Equal(t, 2, asked)
	})
	t.Run("a gate shut for longer than the TTL ends the job, and the outcome says so", func(t *testing.T) {
		c := &clock{epoch}
		var events told
		s := stepper(retry.Policy{TTL: 3 * sec, Gate: func(context.Context) time.Duration { return 3*sec + 1 }, Observe: events.observe}, c)
		r := record(c)
		v, err := s.Step(t.Context(), &r, 1, never(t))
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.Expired, Reason: retry.TTLElapsed}, tell(v))
		require.Zero(t, r.Attempts)
		require.True(t, events[0].Outcome.EndedByGate)
		require.EqualError(t, events[0].Err, "retry: p: gave up after 0 attempts in 0s (ttl_elapsed, deferred by Gate)")
	})
	t.Run("the outcome says that a layer below has given up", func(t *testing.T) {
		c := &clock{epoch}
		var events told
		s := stepper(retry.Policy{Classify: retry.StopIf(retry.IsGivenUp), Observe: events.observe}, c)
		r := record(c)
		v, err := s.Step(t.Context(), &r, 1, func(ctx context.Context) error {
			return retry.Do(ctx, retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: 1}}, func(context.Context) error { return errFlaky })
		})
		require.NoError(t, err)
		require.Equal(t, retry.TerminalError, tell(v).Reason)
		require.True(t, events[len(events)-1].Outcome.InnerGaveUp)
	})
	t.Run("beyond the TTL no gate is to blame", func(t *testing.T) {
		c := &clock{epoch}
		var events told
		s := stepper(retry.Policy{TTL: sec, Gate: func(context.Context) time.Duration { c.pass(2 * sec); return 5 * sec }, Observe: events.observe}, c)
		r := record(c)
		v, err := s.Step(t.Context(), &r, 1, never(t))
		require.NoError(t, err)
		v.Tell()
		require.False(t, events[0].Outcome.EndedByGate)
	})
	t.Run("a gate that is open is not to blame for a failure", func(t *testing.T) {
		c := &clock{epoch}
		var events told
		s := stepper(retry.Policy{MaxAttempts: 1, Gate: func(context.Context) time.Duration { return 0 }, Observe: events.observe}, c)
		r := record(c)
		v, err := s.Step(t.Context(), &r, 1, ending(errFlaky))
		require.NoError(t, err)
		v.Tell()
		require.False(t, events[len(events)-1].Outcome.EndedByGate)
	})
	t.Run("a gate is not asked once the TTL is over", func(t *testing.T) {
		c := &clock{epoch}
		s := stepper(retry.Policy{TTL: sec, Gate: func(context.Context) time.Duration { panic("asked") }}, c)
		r := record(c)
		c.pass(2 * sec)
		v, err := s.Step(t.Context(), &r, 1, never(t))
		require.NoError(t, err)
		require.Equal(t, retry.TTLElapsed, v.Reason)
	})
	t.Run("a gate that says less than nothing is open, of a disabled policy too", func(t *testing.T) {
		c := &clock{epoch}
		wait := time.Duration(-sec)
		s := stepper(retry.Policy{Disabled: true, Gate: func(context.Context) time.Duration { return wait }}, c)
		r := record(c)
		v, err := s.Step(t.Context(), &r, 1, ending(nil))
		require.NoError(t, err)
		require.Equal(t, retryjob.Succeeded, v.Status)
		wait, r = sec, record(c)
		v, err = s.Step(t.Context(), &r, 1, never(t))
		require.NoError(t, err)
		require.True(t, v.Deferred)
	})
	t.Run("a deferred second attempt waits and is still the second", func(t *testing.T) {
		c := &clock{epoch}
		shut := false
		p := evenly(2, sec)
		p.Gate = func(context.Context) time.Duration {
			if shut {
				return 9 * sec
			}
			return 0
		}
		s := stepper(p, c)
		r := record(c)
		_, err := s.Step(t.Context(), &r, 1, ending(errFlaky))
		require.NoError(t, err)
		c.now, shut = r.Due, true
		v, err := s.Step(t.Context(), &r, 2, never(t))
		require.NoError(t, err)
		require.Equal(t, retryjob.Next{Status: retryjob.WaitingRetry, Due: c.now.Add(9 * sec), Deferred: true}, v)
		require.Equal(t, 1, r.Attempts)
		shut, c.now = false, v.Due
		v, err = s.Step(t.Context(), &r, 2, ending(errFlaky))
		require.NoError(t, err)
		require.Equal(t, retry.AttemptsExhausted, v.Reason)
	})
}

func TestALongAttemptStartsAttemptsAndDelaysAnew(t *testing.T) {
	c := &clock{epoch}
	s := stepper(retry.Policy{MaxAttempts: 3, ResetAfter: time.Minute, Backoff: retry.Backoff{Base: sec}}, c)
	r := record(c)
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
		next, err := s.Step(t.Context(), &r, attempt+1, func(context.Context) error { c.pass(row.took); return errFlaky })
		require.NoError(t, err)
		require.Equal(t, row.want, next)
		require.Equal(t, row.since, r.Forgiven)
		require.NoError(t, r.Validate())
		c.now = next.Due
	}
}

// TestWhatALostAttemptsWaitIsHeldAgainst checks that, of several lost attempts, only the wait after the last one has
// not passed.
func TestWhatALostAttemptsWaitIsHeldAgainst(t *testing.T) {
	c := &clock{epoch}
	p := retry.Policy{TTL: 10 * sec, Backoff: retry.Backoff{Delays: []time.Duration{time.Hour, sec, time.Hour}}}
	r := record(c)
	next, err := stepper(p, c).Lost(t.Context(), &r, 2)
	require.NoError(t, err)
	require.Equal(t, retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(sec)}, next)
	next, err = stepper(p, c).Lost(t.Context(), &r, 3)
	require.NoError(t, err)
	require.Equal(t, retryjob.Next{Status: retryjob.Expired, Reason: retry.TTLElapsed}, next)
	require.Equal(t, 3, r.Attempts)
}

func TestPayIsAskedOfEveryRetry(t *testing.T) {
	c := &clock{epoch}
	var asked []string
	p := evenly(9, sec)
	p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 9})
	p.Pay = func(ctx context.Context, d retry.Decision) bool {
		info, ok := retryjob.AttemptFrom(ctx)
		require.True(t, ok)
		asked = append(asked, info.AttemptID)
		return len(asked) < 3
	}
	s := stepper(p, c)
	r := record(c)
	_, err := s.Step(t.Context(), &r, 1, ending(errFlaky))
	require.NoError(t, err)
	_, err = s.Lost(t.Context(), &r, 2)
	require.NoError(t, err)
	next, err := s.Step(t.Context(), &r, 3, ending(errFlaky))
	require.NoError(t, err)
	require.Equal(t, retryjob.Next{Status: retryjob.DeadLettered, Reason: retry.BudgetExhausted}, next)
	require.Equal(t, []string{r.AttemptID(1), r.AttemptID(2), r.AttemptID(3)}, asked)
	require.InDelta(t, 7, p.Budget.Tokens(), 1e-9, "what Pay refused is refunded")
}

func TestBudgetIsFundedBySuccesses(t *testing.T) {
	c := &clock{epoch}
	b := retry.NewBudget(retry.BudgetConfig{Initial: -1, Ratio: 0.5})
	p := evenly(9, sec)
	p.Budget = b
	s := stepper(p, c)
	for range 2 {
		r := record(c)
		_, err := s.Step(t.Context(), &r, 1, ending(nil))
		require.NoError(t, err)
	}
	require.InDelta(t, 1, b.Tokens(), 1e-9)
	r := record(c)
	v, err := s.Step(t.Context(), &r, 1, ending(retry.Permanent(errFlaky)))
	require.NoError(t, err)
	require.Equal(t, retry.TerminalError, v.Reason)
	require.InDelta(t, 1, b.Tokens(), 1e-9, "no retry, no token")
	r = record(c)
	v, err = s.Step(t.Context(), &r, 1, ending(errFlaky))
	require.NoError(t, err)
	require.Equal(t, retryjob.WaitingRetry, v.Status)
	require.Zero(t, b.Tokens())
}

func TestARetryThatIsNotMadeIsPaidBack(t *testing.T) {
	for name, end := range map[string]func(s *retryjob.Stepper, r *retryjob.Record, c *clock){
		"a job that is canceled while it waits": func(s *retryjob.Stepper, r *retryjob.Record, c *clock) {
			require.NoError(t, r.Cancel(c.now))
			s.Canceled(t.Context(), r)
		},
		"a job whose TTL is over when its retry is to start": func(s *retryjob.Stepper, r *retryjob.Record, c *clock) {
			c.pass(time.Hour)
			v, err := s.Step(t.Context(), r, 2, never(t))
			require.NoError(t, err)
			require.Equal(t, retryjob.Expired, v.Status)
		},
	} {
		c := &clock{epoch}
		p := evenly(9, sec)
		p.TTL, p.Budget = time.Minute, retry.NewBudget(retry.BudgetConfig{Initial: 3})
		s, r := stepper(p, c), record(c)
		_, err := s.Step(t.Context(), &r, 1, ending(errFlaky))
		require.NoError(t, err)
		require.InDelta(t, 2, p.Budget.Tokens(), 1e-9, name)
		end(s, &r, c)
		require.InDelta(t, 3, p.Budget.Tokens(), 1e-9, name)
	}
	c := &clock{epoch}
	p := evenly(9, sec)
	p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 3})
	r := record(c)
	require.NoError(t, r.Cancel(c.now))
	stepper(p, c).Canceled(t.Context(), &r)
	require.InDelta(t, 3, p.Budget.Tokens(), 1e-9, "a first attempt has paid nothing")
	r.Policy = "unknown"
	stepper(p, c).Canceled(t.Context(), &r)
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
			s := stepper(retry.Policy{}, &clock{epoch})
			s.Code = row.code
			r := record(&clock{epoch})
			_, err := s.Step(t.Context(), &r, 1, ending(row.err))
			require.NoError(t, err)
			require.Equal(t, row.want, r.History[0].Code)
		})
	}
}

func TestAttemptFrom(t *testing.T) {
	c := &clock{epoch}
	s := stepper(retry.Policy{}, c)
	r := record(c)
	r.Replays = 2
	c.pass(sec)
	_, err := s.Step(t.Context(), &r, 1, func(ctx context.Context) error {
		info, ok := retryjob.AttemptFrom(ctx)
		require.True(t, ok)
		require.Equal(t, retryjob.AttemptInfo{JobID: "j", Kind: "mail", AttemptID: r.AttemptID(1), Correlation: "trace", Number: 1, Replays: 2, FirstDue: epoch}, info)
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		again, ok := retryjob.AttemptFrom(inner)
		require.True(t, ok)
		require.Equal(t, info, again)
		return nil
	})
	require.NoError(t, err)
	info, ok := retryjob.AttemptFrom(t.Context())
	require.False(t, ok)
	require.Equal(t, retryjob.AttemptInfo{}, info)
}

func TestAJobsAttemptHasItsNumberInTheContext(t *testing.T) {
	c := &clock{epoch}
	s, r := stepper(retry.Policy{MaxAttempts: 3}, c), record(c)
	var numbers []int
	for n := range 3 {
		next, err := s.Step(t.Context(), &r, n+1, func(ctx context.Context) error {
			numbers = append(numbers, retry.AttemptNumber(ctx))
			return context.DeadlineExceeded
		})
		require.NoError(t, err)
		c.now = next.Due
	}
	require.Equal(t, []int{1, 2, 3}, numbers)
}
