package retryjob_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// taken is an Enqueuer that keeps or refuses the jobs that it gets.
type taken struct {
	retryjob.Enqueuer // nil
	jobs              []retryjob.Job
	refuse            error
	look              func(context.Context)
}

func (q *taken) Enqueue(ctx context.Context, j retryjob.Job) (retryjob.Handle, error) {
	if q.look != nil {
		q.look(ctx)
	}
	if q.refuse == nil {
		q.jobs = append(q.jobs, j)
	}
	return retryjob.Handle{}, q.refuse
}

func handed(context.Context, retry.Event) (retryjob.Job, bool) {
	return retryjob.Job{ID: "order-7", Kind: "work", Policy: "p", Payload: json.RawMessage(`"secret"`)}, true
}

func TestDeadLetterToHandsOverEachRunThatDidNotSucceedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		gone   bool // the caller, before the run
		policy retry.Policy
		fn     func(context.Context) error
		want   int
	}{
		"success":            {false, retry.Policy{}, func(context.Context) error { return nil }, 0},
		"attempts exhausted": {false, fixed(3, time.Second), func(context.Context) error { return errDown }, 1},
		"terminal":           {false, fixed(3, time.Second), func(context.Context) error { return retry.Permanent(errDown) }, 1},
		"disabled":           {false, retry.Policy{Disabled: true}, func(context.Context) error { return errDown }, 1},
		"caller canceled":    {true, retry.Policy{}, func(context.Context) error { return errDown }, 1},
		"success at last": {false, fixed(2, time.Second), func(ctx context.Context) error {
			if retry.AttemptNumber(ctx) == 1 {
				return errDown
			}
			return nil
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var q taken
				c.policy.Observe = toDeadLetters(t, &q)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.gone {
					cancel()
				}
				_ = retry.Do(ctx, c.policy, c.fn)
				require.Len(t, q.jobs, c.want)
			})
		})
	}
}

func TestDeadLetterToDoesNotHandOnDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		refused error
	}{
		"doubt":                     {retry.Ambiguous(errDown), retryjob.ErrInDoubt},
		"doubt under another error": {fmt.Errorf("charge: %w", retry.Ambiguous(errDown)), retryjob.ErrInDoubt},
		"permanent":                 {retry.Permanent(errDown), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var q taken
			var refused error
			observe, err := retryjob.DeadLetterTo(&q, handed, func(_ context.Context, j retryjob.Job, err error) {
				require.Equal(t, "order-7", j.ID)
				refused = err
			})
			require.NoError(t, err)
			_ = retry.Do(t.Context(), retry.Policy{Observe: observe}, func(context.Context) error { return c.err })
			require.Equal(t, c.refused, refused)
			require.Equal(t, c.refused == nil, len(q.jobs) == 1)
		})
	}
}

func TestDeadLetterToOutlivesTheCallerByTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "tenant"))
		var given context.Context
		q := &taken{look: func(ctx context.Context) {
			given = ctx
			require.NoError(t, ctx.Err())
			require.Equal(t, "tenant", ctx.Value(key{}))
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, 10*time.Second, time.Until(deadline))
		}}
		p := fixed(3, time.Minute)
		p.Observe = toDeadLetters(t, q)
		err := retry.Do(ctx, p, func(context.Context) error {
			cancel()
			return errDown
		})
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.Len(t, q.jobs, 1)
		require.ErrorIs(t, given.Err(), context.Canceled, "its timer is stopped when it is no longer needed")
	})
}

func TestDeadLetterToReportsJobsThatAreNotTaken(t *testing.T) {
	refuse := errors.New("disk full")
	none := func(context.Context, retry.Event) (retryjob.Job, bool) { return retryjob.Job{}, false }
	has := open(t, retry.Policy{}, succeed)
	put(t, has, "order-7", time.Hour)
	closed := open(t, retry.Policy{}, succeed)
	shutdown(t, closed)
	for name, c := range map[string]struct {
		q    retryjob.Enqueuer
		job  func(context.Context, retry.Event) (retryjob.Job, bool)
		id   string
		want string
	}{
		"refused":             {&taken{refuse: refuse}, handed, "order-7", "disk full"},
		"nothing to do":       {&taken{refuse: refuse}, none, "", ""},
		"taken":               {&taken{}, handed, "", ""},
		"an engine shut down": {closed, handed, "order-7", "retryjob: the engine is shut down"},
		"there already":       {has, handed, "order-7", `retryjob: a job with that ID is there already: "order-7"`},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			p := fixed(1, time.Second)
			observe, err := retryjob.DeadLetterTo(c.q, c.job, func(_ context.Context, j retryjob.Job, err error) {
				require.Equal(t, c.id, j.ID)
				got = append(got, err.Error())
			})
			require.NoError(t, err)
			p.Observe = observe
			require.Error(t, retry.Do(t.Context(), p, func(context.Context) error { return errDown }))
			if c.want == "" {
				require.Empty(t, got)
			} else {
				require.Equal(t, []string{c.want}, got)
			}
		})
	}
}

func TestDeadLetterToRefusesWhatIsNotSet(t *testing.T) {
	_, err := retryjob.DeadLetterTo(nil, nil, nil)
	require.EqualError(t, err, "retryjob: DeadLetterTo.q <nil> must be set; DeadLetterTo.job <nil> must be set; "+
		"DeadLetterTo.failed <nil> must be set: it gets the jobs that q refuses")
}

// toDeadLetters is DeadLetterTo for a queue that accepts all jobs.
func toDeadLetters(t *testing.T, q retryjob.Enqueuer) func(context.Context, retry.Event) {
	observe, err := retryjob.DeadLetterTo(q, handed, func(_ context.Context, _ retryjob.Job, err error) { require.NoError(t, err) })
	require.NoError(t, err)
	return observe
}
