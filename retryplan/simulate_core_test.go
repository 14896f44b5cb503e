package retryplan_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
	"github.com/stretchr/testify/require"
)

// anyLone is randomLone with features that retry.Do is not compared in, attempts that fail at the server, errors that are
// terminal, waits of one's own, and attempts that are long enough to restart the schedule.
func anyLone(rng *rand.Rand) lone {
	l := randomLone(rng)
	l.service += 20 * time.Millisecond // bounds the number of attempts
	l.fails = rng.IntN(3) == 0
	p := &l.policy
	errs := []error{retryplan.ErrWorkFailed, retryplan.ErrRejected, retry.ErrAttemptTimeout}
	if rng.IntN(5) == 0 {
		p.Classify = retry.StopOn(errs[rng.IntN(len(errs))])
	}
	if rng.IntN(5) == 0 {
		p.Wait = func(attempt int, err error, computed time.Duration) time.Duration {
			if err == retryplan.ErrWorkFailed {
				return time.Duration(attempt) * 101 * time.Millisecond
			}
			return computed/2 + 1
		}
	}
	if rng.IntN(5) == 0 {
		p.ResetAfter = l.service/2 + time.Duration(rng.Int64N(int64(2*time.Second)))
	}
	if rng.IntN(8) == 0 {
		p.MaxAttempts = retry.Unlimited
	}
	if p.TTL == 0 && l.deadline == 0 && (p.ResetAfter > 0 || p.MaxAttempts == retry.Unlimited) {
		l.deadline = time.Minute + time.Duration(rng.IntN(1000))
	}
	return l
}

// decided returns the decisions of the core about l, called in virtual time as a loop would call it: Admit before each
// attempt, Decide after it, and the budget last.
func (l lone) decided(draws []float64) (got trace) {
	p, pr := l.policy, retry.Progress{Deadline: l.deadline}
	epoch := time.Unix(0, 0)
	if l.budget != nil {
		p.Budget = l.budget.NewAt(epoch)
	}
	d := p.Admit(pr, 0)
	for d.Status == retry.WaitingRetry {
		began := pr.Elapsed
		got.Sent = append(got.Sent, began)
		var err error
		pr.Elapsed, pr.Caller, err = l.meets(began)
		got.Ended = append(got.Ended, pr.Elapsed)
		pr.Attempt++
		pr.Lasted = pr.Elapsed - began
		var u float64
		if err != nil && p.Jitter != retry.NoJitter && pr.Caller == 0 {
			u, draws = draws[0], draws[1:]
		}
		d = p.Spend(context.Background(), p.Decide(pr, err, u), epoch.Add(pr.Elapsed))
		if d.Status != retry.WaitingRetry {
			break
		}
		pr.Elapsed, pr.Prev, pr.Forgiven = pr.Elapsed+d.Delay, d.Backoff, d.Forgiven
		d = p.Admit(pr, 0)
	}
	got.Reason = d.Reason
	return got
}

// meets returns the time at which an attempt that is sent at the given time ends for its client, whether that is because
// the deadline has passed, and the error.
func (l lone) meets(sent time.Duration) (ended time.Duration, caller retry.Reason, err error) {
	switch {
	case sent < l.outage:
		ended, err = sent, retryplan.ErrRejected
	case l.fails:
		ended, err = sent+l.service, retryplan.ErrWorkFailed
	default:
		ended = sent + l.service
	}
	if timeout := l.policy.AttemptTimeout; timeout > 0 && ended >= sent+timeout {
		ended, err = sent+timeout, retry.ErrAttemptTimeout
	}
	if l.deadline > 0 && ended >= l.deadline {
		return l.deadline, retry.DeadlinePassed, retry.ErrAttemptTimeout
	}
	return ended, 0, err
}

func TestSimulateDecidesAsTheCoreDoes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	endings := map[retry.Reason]int{}
	attempts, cases := 0, trials(10_000, 10_000)
	for i := range cases {
		l := anyLone(rng)
		if l.policy.Validate() != nil {
			continue
		}
		l.hedge = 0
		want := l.simulated(t)
		want.Calls = 0
		draws := retryplan.Draws(l.seed, len(want.Sent)+1)
		require.Equal(t, want, l.decided(draws), "case %d: %+v", i, l)
		endings[want.Reason]++
		attempts += len(want.Sent)
	}
	t.Log(endings, attempts)
	require.Greater(t, attempts, 2*cases)
	for _, reason := range []retry.Reason{0, retry.TerminalError, retry.AttemptsExhausted, retry.BudgetExhausted, retry.TTLElapsed, retry.DeadlinePassed,
		retry.DeadlineTooNear, retry.RetriesDisabled} {
		require.Greater(t, endings[reason], cases/200, "%d", reason)
	}
}

// A server that works on nothing holds every attempt, and the simulation holds its run as well.
func TestProgressReportsWhatIsHeld(t *testing.T) {
	var last int
	r, err := retryplan.Run(t.Context(), retryplan.Scenario{
		Rate:     1000,
		Server:   retryplan.Server{Workers: 1, Service: retryplan.Constant(time.Hour)},
		Policy:   retry.Policy{MaxAttempts: 1},
		Duration: 100 * time.Second,
		Progress: func(held int) { last = held },
	})
	require.NoError(t, err)
	require.Greater(t, r.Runs, 90_000)
	require.InDelta(t, 2*r.Runs, last, 2<<16, "but for what began since")
}
