package retry_test

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// shell is a shell that sleeps, as Do is, without AttemptTimeout and Gate. It returns how the run ended and the last
// error.
func shell(ctx context.Context, p retry.Policy, fn func(context.Context) error) (d retry.Decision, err error) {
	began := time.Now()
	pr := retry.Progress{Deadline: untilDeadline(ctx), Caller: ended(ctx)}
	for d = p.Admit(pr, 0); d.Status == retry.WaitingRetry; {
		err = fn(ctx)
		pr.Attempt++
		pr.Lasted = time.Since(began) - pr.Elapsed
		pr.Elapsed = time.Since(began)
		pr.Caller = ended(ctx)
		d = p.Spend(ctx, p.Decide(pr, err, p.Draw()), time.Now())
		if p.Observe != nil {
			p.Observe(ctx, retry.Event{Decision: d})
		}
		if d.Status == retry.WaitingRetry {
			sleep(ctx, d.Delay)
			pr.Prev = d.Backoff
			pr.Forgiven = d.Forgiven
			pr.Elapsed = time.Since(began)
			pr.Caller = ended(ctx)
			d = p.Admit(pr, 0)
			if d.Status != retry.WaitingRetry {
				p.Budget.Refund() // of a retry that was paid for and is not made
			}
		}
	}
	return d, err
}

// untilDeadline returns Progress.Deadline for a run that begins now.
func untilDeadline(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return cmp.Or(time.Until(deadline), -1)
}

// ended returns the Progress.Caller of a run under ctx.
func ended(ctx context.Context) retry.Reason {
	switch ctx.Err() {
	case nil:
		return 0
	case context.DeadlineExceeded:
		return retry.DeadlinePassed
	default:
		return retry.CallerCanceled
	}
}

// sleep waits for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// scene is a run by script. What happens depends on the number of attempts made so far and on nothing else.
type scene struct {
	policy   retry.Policy
	budget   *retry.BudgetConfig
	attempts []scripted
	wait     []time.Duration // what Policy.Wait answers, if not nil
	pay      []bool          // what Policy.Pay answers, if not nil
	deadline time.Duration   // of the caller; 0 is none, and -1 has passed
	cancel   time.Duration   // 0 is never, and -1 before the call
}

// scripted is one attempt.
type scripted struct {
	err     error
	lasts   time.Duration
	ignores bool // its context
	u       float64
}

// played is what a run by script has come to.
type played struct {
	decisions []retry.Decision // after each failed attempt
	end       retry.Decision
	last      error
	starts    []time.Duration // of the attempts
	elapsed   time.Duration
	tokens    float64
}

// play plays s with run, which returns how the run ended.
func (s *scene) play(run func(context.Context, retry.Policy, func(context.Context) error) (retry.Decision, error)) (got played) {
	start := time.Now()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	switch {
	case s.cancel > 0:
		defer time.AfterFunc(s.cancel, cancel).Stop()
	case s.cancel < 0:
		cancel()
	}
	if s.deadline != 0 {
		ctx, cancel = context.WithTimeout(ctx, s.deadline)
		defer cancel()
	}
	p := s.policy
	if s.budget != nil {
		p.Budget = s.budget.NewAt(start)
	}
	made := 0
	now := func() int { return max(made, 1) - 1 } // the place of the attempt in the script
	p.Rand = func() float64 { return s.attempts[now()].u }
	if s.wait != nil {
		p.Wait = func(attempt int, _ error, computed time.Duration) time.Duration {
			return s.wait[now()] + time.Duration(attempt) + computed/2
		}
	}
	if s.pay != nil {
		p.Pay = func(context.Context, retry.Decision) bool { return s.pay[now()] }
	}
	p.Observe = func(_ context.Context, e retry.Event) {
		if e.Outcome == nil && e.Decision.Status != retry.Succeeded {
			got.decisions = append(got.decisions, e.Decision)
		}
		got.end = e.Decision
	}
	d, err := run(ctx, p, func(ctx context.Context) error {
		got.starts = append(got.starts, time.Since(start))
		made++
		a := s.attempts[now()]
		if a.ignores {
			<-time.After(a.lasts)
		} else {
			sleep(ctx, a.lasts)
		}
		return a.err
	})
	got.end, got.last, got.elapsed, got.tokens = d, err, time.Since(start), p.Budget.Tokens()
	return got
}

// anyScene returns a scene whose durations are small, so that exact boundaries are met, with as many scripted attempts
// as any policy in it can make. Only a cancellation is at no instant at which anything else is.
func anyScene(r *rand.Rand) *scene {
	some := func(n int) time.Duration { return time.Duration(r.IntN(n)) * 10 * ms }
	one := func(in int) bool { return r.IntN(in) == 0 }
	s := &scene{policy: retry.Policy{
		MaxAttempts: r.IntN(9),
		Backoff: retry.Backoff{Mode: retry.Mode(r.IntN(4)), Base: 10*ms + some(5), Factor: []float64{0, 1, 1.5, 3}[r.IntN(4)],
			Cap: 100*ms + some(100), Jitter: retry.JitterMode(r.IntN(4))},
		MaxHint: some(30), Disabled: one(20),
	}}
	if p := &s.policy; one(6) {
		p.Backoff = retry.Backoff{Delays: []time.Duration{some(4), some(10), some(10)}}
	} else if one(4) {
		p.Backoff = retry.Backoff{Base: 10*ms + some(5), Cap: sec, Jitter: retry.DecorrelatedJitter}
	}
	if one(10) {
		s.policy.MaxAttempts = retry.Unlimited
	}
	if one(3) {
		s.policy.TTL = some(60)
	}
	if one(3) {
		s.policy.ResetAfter = some(15)
	}
	if one(3) {
		s.deadline = some(60) - 10*ms
	}
	if one(4) {
		s.cancel = some(60) + 7*time.Nanosecond
	}
	if one(40) {
		s.cancel = -1
	}
	if one(2) {
		s.budget = &retry.BudgetConfig{Ratio: 0.5, Burst: 1 + r.IntN(4), Initial: r.IntN(6) - 1, Trickle: some(20)}
	}
	if one(3) {
		s.policy.Classify = retry.FirstOf(retry.StopOn(errOutage), retry.RetryOn(context.Canceled))
	}
	failures := []error{errFlaky, errFlaky, errFlaky, errFlaky, errFlaky, errOutage, context.Canceled, context.DeadlineExceeded,
		retry.Permanent(errFlaky), retry.Transient(errOutage), retry.Ambiguous(errFlaky), runOf(retry.Permanent(errFlaky))}
	for range 60 {
		a := scripted{err: failures[r.IntN(len(failures))], ignores: one(2), u: r.Float64()}
		if one(3) {
			a.lasts = some(20)
		}
		if one(3) {
			a.err = retry.After(some(40), a.err)
		}
		if one(8) {
			a.err = retry.Progressed(a.err)
		}
		if one(8) {
			a.err = nil
		}
		s.attempts = append(s.attempts, a)
	}
	s.attempts = append(s.attempts, scripted{})
	s.attempts[59].err = nil // so that the run ends
	if one(5) {
		for range s.attempts {
			s.wait = append(s.wait, some(60)-100*ms)
		}
	}
	if one(5) {
		for range s.attempts {
			s.pay = append(s.pay, !one(8))
		}
	}
	return s
}

// inFormOfShell returns run in the form of shell.
func inFormOfShell(run runFunc) func(context.Context, retry.Policy, func(context.Context) error) (retry.Decision, error) {
	return func(ctx context.Context, p retry.Policy, fn func(context.Context) error) (end retry.Decision, last error) {
		observe := p.Observe
		p.Observe = func(ctx context.Context, e retry.Event) {
			end = e.Decision
			observe(ctx, e)
		}
		var failed *retry.Error
		if errors.As(run(ctx, p, fn), &failed) {
			last = failed.Last
		}
		return end, last
	}
}

type runFunc func(context.Context, retry.Policy, func(context.Context) error) error

func loop(ctx context.Context, p retry.Policy, fn func(context.Context) error) (err error) {
	for ctx := range retry.Attempts(ctx, p, &err) {
		err = fn(ctx)
	}
	return err
}

// TestShell holds that the loop that anybody can write with Admit, Decide, Spend and Refund is Do: the same decisions
// at the same instants, the same endings, and as many tokens left. So is a loop of Attempts. It logs the first scenes.
func TestShell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(14, 1))
		endings := map[string]int{}
		retries, resets := 0, 0
		for i := range 10_000 {
			s := anyScene(r)
			want := s.play(inFormOfShell(retry.Do))
			require.Equal(t, want, s.play(shell), "scene %d: %+v %+v", i, s.policy, *s)
			require.Equal(t, want, s.play(inFormOfShell(loop)), "a loop of Attempts, scene %d: %+v %+v", i, s.policy, *s)
			if i < 3 {
				t.Logf("%v, deadline %v, cancel %v, budget %+v: attempts at %v, %v after %v, tokens %v",
					s.policy, s.deadline, s.cancel, s.budget, want.starts, want.decisions, want.elapsed, want.tokens)
			}
			endings[want.end.String()]++
			for _, d := range want.decisions {
				if d.Status == retry.WaitingRetry {
					retries++
				}
				if d.Forgiven > 0 {
					resets++
				}
			}
		}
		t.Log(endings, "retries:", retries, "after a reset:", resets)
		for status, reasons := range reasonsOf {
			for _, reason := range reasons {
				d := retry.Decision{Status: status, Reason: reason}
				require.True(t, status == retry.WaitingRetry || endings[d.String()] > 50, "scenes that end as %s", d)
			}
		}
		require.Greater(t, retries, 5_000)
		require.Greater(t, resets, 500)
	})
}

func TestShellUnderAPolicyWithoutFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		d, err := shell(t.Context(), retry.Inline(), failing)
		require.Equal(t, "dead_letter (attempts_exhausted)", d.String())
		require.Equal(t, errFlaky, err)
		require.Less(t, time.Since(start), 350*ms, "the sum of its waits")
	})
}
