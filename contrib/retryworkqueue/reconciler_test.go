package retryworkqueue_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryworkqueue"
)

// result is reconcile.Result.
type result struct{ RequeueAfter time.Duration }

// terminal is the result of reconcile.TerminalError.
type terminal struct{ error }

func (t terminal) Unwrap() error { return t.error }

// reconciler is reconcile.TypedReconciler[string].
type reconciler interface {
	Reconcile(ctx context.Context, item string) (result, error)
}

// control handles a result as controller-runtime 0.25 does (internal/controller, reconcileHandler).
func control(q workqueue.TypedRateLimitingInterface[string], item string, res result, err error) {
	switch {
	case errors.As(err, new(terminal)): // neither a requeue nor Forget
	case err != nil:
		q.AddRateLimited(item)
	case res.RequeueAfter > 0:
		q.Forget(item)
		q.AddAfter(item, res.RequeueAfter)
	default:
		q.Forget(item)
	}
}

func TestAReconcilerKeepsTheWholePolicy(t *testing.T) {
	for name, row := range map[string]struct {
		errs []error
		at   []time.Duration
		end  retry.Reason
	}{
		"success after retries": {errs: []error{errBusy, errBusy}, at: []time.Duration{0, 100 * ms, 300 * ms}},
		"a hint":                {errs: []error{retry.After(time.Minute, errBusy), errBusy}, at: []time.Duration{0, time.Minute, time.Minute + 200*ms}},
		"a terminal error":      {errs: []error{errBusy, retry.Permanent(errBusy)}, at: []time.Duration{0, 100 * ms}, end: retry.TerminalError},
		"attempts are used up":  {errs: []error{errBusy, errBusy, errBusy, errBusy}, at: []time.Duration{0, 100 * ms, 300 * ms, 700 * ms}, end: retry.AttemptsExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, fn := newLimiter(t, doubling), failing(row.errs...)
				var r reconciler = &retryworkqueue.Reconciler[string, result]{
					Limiter:  l,
					Inside:   func(ctx context.Context, _ string) (result, error) { return result{}, fn(ctx) },
					Terminal: func(err error) error { return terminal{err} },
				}
				var last error
				at := inQueue(l, func(q workqueue.TypedRateLimitingInterface[string], item string) {
					var res result
					res, last = r.Reconcile(t.Context(), item)
					control(q, item, res, last)
				})
				require.Equal(t, row.at, at)
				require.Zero(t, l.NumRequeues("item"), "also without a Forget")
				if row.end == 0 {
					require.NoError(t, last)
					return
				}
				require.ErrorIs(t, last, row.end)
				require.ErrorAs(t, last, new(terminal))
			})
		})
	}
}

func TestARequeueAfterIsASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls, l := 0, newLimiter(t, doubling)
		r := retryworkqueue.Reconciler[string, result]{Limiter: l, Terminal: func(err error) error { return err },
			Inside: func(context.Context, string) (result, error) {
				calls++
				switch calls {
				case 1, 3:
					return result{}, errBusy // each the first failure of its run
				case 2:
					return result{RequeueAfter: time.Second}, nil
				}
				return result{}, nil
			}}
		at := inQueue(l, func(q workqueue.TypedRateLimitingInterface[string], item string) {
			res, err := r.Reconcile(t.Context(), item)
			control(q, item, res, err)
		})
		require.Equal(t, []time.Duration{0, 100 * ms, 1100 * ms, 1200 * ms}, at)
	})
}
