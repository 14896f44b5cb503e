package retrytemporal_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrytemporal"
)

var errDown = errors.New("down")

// journal is the times of the attempts, in virtual time.
type journal struct {
	mu   sync.Mutex
	came []time.Time
}

func (j *journal) note(now time.Time) (elapsed time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.came = append(j.came, now)
	return now.Sub(j.came[0])
}

func (j *journal) waits() (waits []time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := 1; i < len(j.came); i++ {
		waits = append(waits, j.came[i].Sub(j.came[i-1]))
	}
	return waits
}

// environment returns an environment that does not log. A workflow may take longer than a second of real time between two
// of its waits, and a test longer than three, as on a busy machine.
func environment() *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Hour})
	env.SetTestTimeout(time.Hour)
	return env
}

// run runs an activity in Temporal's test suite until it ends, and returns the waits between its attempts and its
// error. failure returns the error of an attempt; elapsed is the virtual time since the first one.
func run(t *testing.T, rp *temporal.RetryPolicy, failure func(ctx context.Context, attempt int, elapsed time.Duration) error) ([]time.Duration, error) {
	t.Helper()
	return runWith(t, workflow.ActivityOptions{StartToCloseTimeout: time.Hour, RetryPolicy: rp}, failure)
}

func runWith(t *testing.T, options workflow.ActivityOptions, failure func(ctx context.Context, attempt int, elapsed time.Duration) error) ([]time.Duration, error) {
	t.Helper()
	env := environment()
	var j journal
	env.RegisterActivityWithOptions(func(ctx context.Context) error {
		elapsed := j.note(env.Now())
		return failure(ctx, int(activity.GetInfo(ctx).Attempt), elapsed)
	}, activity.RegisterOptions{Name: "work"})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		return workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options), "work").Get(ctx, nil)
	})
	require.True(t, env.IsWorkflowCompleted())
	return j.waits(), env.GetWorkflowError()
}

// runChild is run for a child workflow, which has no context of an activity.
func runChild(rp *temporal.RetryPolicy, failure func(attempt int) error) ([]time.Duration, error) {
	env := environment()
	var j journal
	env.RegisterWorkflowWithOptions(func(ctx workflow.Context) error {
		j.note(workflow.Now(ctx))
		return failure(int(workflow.GetInfo(ctx).Attempt))
	}, workflow.RegisterOptions{Name: "child"})
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{RetryPolicy: rp})
		return workflow.ExecuteChildWorkflow(ctx, "child").Get(ctx, nil)
	})
	return j.waits(), env.GetWorkflowError()
}

func alwaysDown(context.Context, int, time.Duration) error { return errDown }

// ours returns the waits of retry.Do for the same failures.
func ours(t *testing.T, p retry.Policy, failure func(ctx context.Context, attempt int, elapsed time.Duration) error) (waits []time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var j journal
		err = retry.Do(t.Context(), p, func(ctx context.Context) error {
			elapsed := j.note(time.Now())
			return failure(ctx, retry.AttemptNumber(ctx), elapsed)
		})
		waits = j.waits()
	})
	return waits, err
}

func TestPolicyRuns(t *testing.T) {
	for name, p := range map[string]retry.Policy{
		"the zero policy":        {},
		"one attempt":            {MaxAttempts: 1},
		"disabled":               {Disabled: true},
		"a cap":                  {MaxAttempts: 12, Backoff: retry.Backoff{Base: 10 * time.Second, Cap: 30 * time.Minute}},
		"tripled":                {MaxAttempts: 9, Backoff: retry.Backoff{Base: 7 * time.Nanosecond, Factor: 3}},
		"by half":                {MaxAttempts: 5, Backoff: retry.Backoff{Base: time.Second, Factor: 1.5}},
		"fixed":                  {MaxAttempts: 4, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 3 * time.Second}},
		"a base above the cap's": {MaxAttempts: 4, Backoff: retry.Backoff{Base: 90 * time.Minute}},
		"aggressive":             retry.Aggressive(),
		"standard":               retry.Standard(),
		"patient":                retry.Patient(),
	} {
		t.Run(name+" runs in Temporal as in retry.Do", func(t *testing.T) {
			p.Name = ""
			rp, lost, err := retrytemporal.Policy(p)
			require.NoError(t, err)
			if p.Disabled {
				lost = nil // tested with the lines
			}
			require.Empty(t, lost)
			want, _ := ours(t, p, alwaysDown)
			got, err := run(t, rp, alwaysDown)
			require.Error(t, err)
			require.Equal(t, want, got)
		})
	}
	t.Run("a list that is not a series runs as lost", func(t *testing.T) {
		p := retry.Cautious()
		p.Name = ""
		rp, lost, err := retrytemporal.Policy(p)
		require.NoError(t, err)
		require.Equal(t, []string{"Policy.Delays of 5 entries: the waits are 1m 5m10.8s 26m50s 2h19m 12h instead of 1m 10m 1h 4h 12h"}, lost)
		got, err := run(t, rp, alwaysDown)
		require.Error(t, err)
		var rounded []time.Duration
		for _, wait := range got {
			rounded = append(rounded, wait.Round(time.Second))
		}
		require.Equal(t, []time.Duration{time.Minute, 311 * time.Second, 1610 * time.Second, 8340 * time.Second, 12 * time.Hour}, rounded)
	})
	t.Run("unlimited is as many as the suite makes", func(t *testing.T) {
		rp, lost, err := retrytemporal.Policy(retry.Policy{MaxAttempts: retry.Unlimited})
		require.NoError(t, err)
		require.Empty(t, lost)
		got, err := run(t, rp, alwaysDown)
		require.Error(t, err)
		require.Len(t, got, 9)
	})
}

func TestPolicyRunsLocalActivitiesAndChildWorkflows(t *testing.T) {
	p := retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 2 * time.Second, Factor: 3}}
	rp, _, err := retrytemporal.Policy(p)
	require.NoError(t, err)
	want, _ := ours(t, p, alwaysDown)
	t.Run("a child workflow", func(t *testing.T) {
		got, err := runChild(rp, func(int) error { return errDown })
		require.Error(t, err)
		require.Equal(t, want, got)
	})
	t.Run("a local activity", func(t *testing.T) {
		env := environment()
		var j journal
		env.ExecuteWorkflow(func(ctx workflow.Context) error {
			ctx = workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: time.Minute, RetryPolicy: rp})
			return workflow.ExecuteLocalActivity(ctx, func(context.Context) error {
				j.note(env.Now())
				return errDown
			}).Get(ctx, nil)
		})
		require.Error(t, env.GetWorkflowError())
		require.Equal(t, want, j.waits())
	})
}

func TestErrorRuns(t *testing.T) {
	listed := retry.Cautious()
	half := func() float64 { return 0.5 }
	for name, row := range map[string]struct {
		policy  retry.Policy
		failure func(ctx context.Context, attempt int, elapsed time.Duration) error
	}{
		"a list":         {listed, alwaysDown},
		"linear":         {retry.Policy{MaxAttempts: 6, Backoff: retry.Backoff{Mode: retry.Linear, Base: time.Second}}, alwaysDown},
		"one nanosecond": {retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}}, alwaysDown},
		"full jitter":    {retry.Policy{MaxAttempts: 6, Backoff: retry.Backoff{Base: 3, Jitter: retry.FullJitter}, Rand: half}, alwaysDown},
		"equal jitter":   {retry.Policy{Backoff: retry.Backoff{Jitter: retry.EqualJitter}, Rand: half}, alwaysDown},
		"decorrelated jitter": {retry.Policy{MaxAttempts: 12, Backoff: retry.Backoff{Base: time.Second, Jitter: retry.DecorrelatedJitter}, Rand: half},
			alwaysDown},
		"a hint, above the backoff and below it": {retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Base: time.Second, Cap: 10 * time.Second}},
			func(_ context.Context, attempt int, _ time.Duration) error {
				return retry.After([]time.Duration{0, time.Minute, time.Millisecond, 0, 0, 0}[attempt], errDown)
			}},
		"a hint that is too long": {retry.Policy{MaxHint: time.Minute}, func(context.Context, int, time.Duration) error {
			return retry.After(time.Hour, errDown)
		}},
		"a permanent error": {retry.Policy{}, func(_ context.Context, attempt int, _ time.Duration) error {
			if attempt == 3 {
				return retry.Permanent(errDown)
			}
			return errDown
		}},
		"a classifier": {retry.Policy{Classify: retry.StopOn(io.EOF)}, func(_ context.Context, attempt int, _ time.Duration) error {
			if attempt == 2 {
				return io.EOF
			}
			return errDown
		}},
		"a context.Canceled of its own": {retry.Policy{}, func(context.Context, int, time.Duration) error { return context.Canceled }},
		"disabled":                      {retry.Policy{Disabled: true}, alwaysDown},
		"a success": {retry.Policy{}, func(_ context.Context, attempt int, _ time.Duration) error {
			return []error{nil, errDown, errDown, nil}[attempt]
		}},
	} {
		t.Run(name+" runs in Temporal as in retry.Do", func(t *testing.T) {
			rp, _, err := retrytemporal.PolicyForErrors(row.policy)
			require.NoError(t, err)
			want, ended := ours(t, row.policy, row.failure)
			got, err := run(t, rp, func(ctx context.Context, attempt int, elapsed time.Duration) error {
				return retrytemporal.Error(ctx, row.policy, row.failure(ctx, attempt, elapsed))
			})
			require.Equal(t, want, got)
			var ours *retry.Error
			if !errors.As(ended, &ours) {
				require.NoError(t, err)
				return
			}
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.True(t, app.NonRetryable())
			require.Contains(t, app.Message(), "("+ours.Reason.Error()+")")
		})
	}
}

func TestErrorRunsWithoutAWait(t *testing.T) {
	p := retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{0, 0, time.Second}}}
	rp, _, err := retrytemporal.PolicyForErrors(p)
	require.NoError(t, err)
	got, err := run(t, rp, func(ctx context.Context, _ int, _ time.Duration) error { return retrytemporal.Error(ctx, p, errDown) })
	require.Error(t, err)
	require.Equal(t, []time.Duration{1, 1, time.Second}, got)
}

func TestErrorWithoutRand(t *testing.T) {
	p := retry.Policy{MaxAttempts: 7, Backoff: retry.Backoff{Base: time.Second, Jitter: retry.DecorrelatedJitter}}
	rp, _, err := retrytemporal.PolicyForErrors(p)
	require.NoError(t, err)
	fail := func(ctx context.Context, _ int, _ time.Duration) error { return retrytemporal.Error(ctx, p, errDown) }
	t.Run("each wait follows from the one before", func(t *testing.T) {
		waits, err := run(t, rp, fail)
		require.Error(t, err)
		require.Len(t, waits, 6)
		prev := p.Base
		for _, wait := range waits {
			require.GreaterOrEqual(t, wait, p.Base)
			require.Less(t, wait, 3*prev)
			prev = wait
		}
	})
	t.Run("activities differ", func(t *testing.T) {
		env := environment()
		p := p
		p.Jitter = retry.FullJitter
		var mu sync.Mutex
		seen := make(map[time.Duration]bool)
		env.RegisterActivityWithOptions(func(ctx context.Context) error {
			err := retrytemporal.Error(ctx, p, errDown)
			mu.Lock()
			defer mu.Unlock()
			var app *temporal.ApplicationError
			if errors.As(err, &app) {
				seen[app.NextRetryDelay()] = true
			}
			return temporal.NewNonRetryableApplicationError("once", "", nil)
		}, activity.RegisterOptions{Name: "work"})
		const all = 20
		env.ExecuteWorkflow(func(ctx workflow.Context) error {
			ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Hour})
			var started []workflow.Future
			for range all {
				started = append(started, workflow.ExecuteActivity(ctx, "work"))
			}
			for _, f := range started {
				_ = f.Get(ctx, nil)
			}
			return nil
		})
		require.NoError(t, env.GetWorkflowError())
		require.Len(t, seen, all)
	})
}

func TestErrorAtRuns(t *testing.T) {
	t.Run("the TTL, to the nanosecond", func(t *testing.T) {
		for ttl, retries := range map[time.Duration]int{15 * time.Second: 2, 15*time.Second - 1: 1} {
			p := retry.Policy{TTL: ttl}
			rp, _, err := retrytemporal.PolicyForErrors(p)
			require.NoError(t, err)
			got, err := run(t, rp, func(_ context.Context, attempt int, elapsed time.Duration) error {
				return retrytemporal.ErrorAt(p, retry.Progress{Attempt: attempt, Elapsed: elapsed}, errDown, 0)
			})
			require.ErrorContains(t, err, "(ttl_elapsed)")
			want, ended := ours(t, p, alwaysDown)
			require.ErrorIs(t, ended, retry.TTLElapsed)
			require.Equal(t, want, got)
			require.Len(t, got, retries)
		}
	})
	t.Run("ScheduleToCloseTimeout stops where the TTL does", func(t *testing.T) {
		p := retry.Policy{TTL: 15 * time.Second}
		rp, _, err := retrytemporal.Policy(p)
		require.NoError(t, err)
		got, err := runWith(t, workflow.ActivityOptions{ScheduleToCloseTimeout: p.TTL, RetryPolicy: rp}, alwaysDown)
		require.Error(t, err)
		want, _ := ours(t, p, alwaysDown)
		require.Equal(t, want, got)
	})
	t.Run("a child workflow with a list", func(t *testing.T) {
		p := retry.Cautious()
		rp, _, err := retrytemporal.PolicyForErrors(p)
		require.NoError(t, err)
		got, err := runChild(rp, func(attempt int) error { return retrytemporal.ErrorAt(p, retry.Progress{Attempt: attempt}, errDown, 0) })
		require.ErrorContains(t, err, "(attempts_exhausted)")
		require.Equal(t, p.Delays, got)
	})
	t.Run("a delay above MaximumInterval is not cut by the suite", func(t *testing.T) {
		// The server does cut it: see the package comment. If this fails, that has changed.
		rp := &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: 2 * time.Second, MaximumAttempts: 2}
		got, err := run(t, rp, func(_ context.Context, attempt int, _ time.Duration) error {
			return retrytemporal.ErrorAt(retry.Policy{}, retry.Progress{Attempt: attempt}, retry.After(time.Minute, errDown), 0)
		})
		require.Error(t, err)
		require.Equal(t, []time.Duration{time.Minute}, got)
	})
}
