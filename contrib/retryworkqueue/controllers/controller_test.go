package controllers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryworkqueue"
)

const ms = time.Millisecond

// The limiter and the reconciler are what a controller takes.
var (
	_ workqueue.TypedRateLimiter[reconcile.Request] = (*retryworkqueue.Limiter[reconcile.Request])(nil)
	_ reconcile.Reconciler                          = (*retryworkqueue.Reconciler[reconcile.Request, reconcile.Result])(nil)
)

var (
	errBusy = errors.New("busy")
	item    = reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "broken"}}
)

// step is what one call of Reconcile does.
type step struct {
	err    error
	result reconcile.Result
	panics bool
	hangs  bool // until its context ends
}

func fails(err error) step { return step{err: err} }

//lint:ignore SA1019 it is deprecated, and still handled
var requeue = step{result: reconcile.Result{Requeue: true}}

// run is one controller with one item.
type run struct {
	at      []time.Duration // when the item was reconciled
	events  []string        // of Policy.Observe: "waiting_retry 100ms", "end: succeeded"
	budget  *retry.Budget
	limiter *retryworkqueue.Limiter[reconcile.Request]
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	stop    func() // and waits for the controller's end
}

// newRun returns a run with its limiter. The policy waits 100ms, 200ms, 400ms, and its budget has 5 tokens.
func newRun(t *testing.T, change func(*retry.Policy)) *run {
	r := &run{budget: retry.NewBudget(retry.BudgetConfig{Initial: 5})}
	p := retry.Policy{
		MaxAttempts: 4, Backoff: retry.Backoff{Base: 100 * ms}, Budget: r.budget,
		Observe: func(_ context.Context, e retry.Event) {
			if e.Outcome != nil {
				r.events = append(r.events, fmt.Sprintf("end: %v", e.Decision))
			} else {
				r.events = append(r.events, fmt.Sprint(e.Decision))
			}
		},
	}
	if change != nil {
		change(&p)
	}
	limiter, err := retryworkqueue.New[reconcile.Request](p)
	require.NoError(t, err)
	r.limiter = limiter
	return r
}

// start starts a controller whose reconciler takes the steps, and then succeeds. With a nil wrap it has no adapter.
func (r *run) start(
	t *testing.T, priority bool, limiter workqueue.TypedRateLimiter[reconcile.Request],
	wrap func(reconcile.Func) reconcile.Reconciler, steps ...step,
) {
	began, n := time.Now(), 0
	var reconciler reconcile.Reconciler = reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		require.Equal(t, item, req)
		r.at = append(r.at, time.Since(began))
		if n == len(steps) {
			return reconcile.Result{}, nil
		}
		s := steps[n]
		n++
		if s.panics {
			panic("a bug")
		}
		if s.hangs {
			<-ctx.Done()
			return reconcile.Result{}, ctx.Err()
		}
		return s.result, s.err
	})
	if wrap != nil {
		reconciler = wrap(reconciler.(reconcile.Func))
	}
	skip := true
	c, err := controller.NewTypedUnmanaged("c", controller.TypedOptions[reconcile.Request]{
		SkipNameValidation: &skip, UsePriorityQueue: &priority, RateLimiter: limiter, Reconciler: reconciler,
	})
	require.NoError(t, err)
	require.NoError(t, c.Watch(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.queue = q
		q.Add(item)
		return nil
	})))
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = c.Start(ctx)
	}()
	r.stop = func() { cancel(); <-stopped }
	t.Cleanup(r.stop)
}

// wrap is the adapter, as the README shows it.
func (r *run) wrap(inner reconcile.Func) reconcile.Reconciler {
	return &retryworkqueue.Reconciler[reconcile.Request, reconcile.Result]{
		Limiter: r.limiter, Inside: inner.Reconcile, Terminal: reconcile.TerminalError,
	}
}

// bothQueues runs a test in virtual time, with the priority queue of controller-runtime and with that of client-go.
func bothQueues(t *testing.T, test func(t *testing.T, priority bool)) {
	for name, priority := range map[string]bool{"priority queue": true, "client-go": false} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, priority) }) })
	}
}

// pass lets virtual time pass. After it the test may read what the controller has written.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestAReconcilerKeepsTheWholePolicy(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*retry.Policy)
		steps  []step
		at     []time.Duration
		events []string
		tokens float64 // of 5
	}{
		"success": {at: []time.Duration{0}, events: []string{"end: succeeded"}, tokens: 5.1},
		"success after retries": {
			steps: []step{fails(errBusy), fails(errBusy)},
			at:    []time.Duration{0, 100 * ms, 300 * ms}, events: []string{"waiting_retry 100ms", "waiting_retry 200ms", "end: succeeded"}, tokens: 3.1,
		},
		"attempts are used up": {
			steps: []step{fails(errBusy), fails(errBusy), fails(errBusy), fails(errBusy)}, tokens: 2,
			at:     []time.Duration{0, 100 * ms, 300 * ms, 700 * ms},
			events: []string{"waiting_retry 100ms", "waiting_retry 200ms", "waiting_retry 400ms", "dead_letter (attempts_exhausted)", "end: dead_letter (attempts_exhausted)"},
		},
		"a hint": {
			steps: []step{fails(retry.After(time.Minute, errBusy))},
			at:    []time.Duration{0, time.Minute}, events: []string{"waiting_retry 1m", "end: succeeded"}, tokens: 4.1,
		},
		"the TTL": {
			change: func(p *retry.Policy) { p.TTL = 250 * ms }, steps: []step{fails(errBusy), fails(errBusy)}, tokens: 4,
			at: []time.Duration{0, 100 * ms}, events: []string{"waiting_retry 100ms", "expired (ttl_elapsed)", "end: expired (ttl_elapsed)"},
		},
		"an error that must not be repeated": {
			steps: []step{fails(errBusy), fails(retry.Permanent(errBusy))}, tokens: 4,
			at: []time.Duration{0, 100 * ms}, events: []string{"waiting_retry 100ms", "dead_letter (terminal_error)", "end: dead_letter (terminal_error)"},
		},
		"a TerminalError": {
			steps: []step{fails(reconcile.TerminalError(errBusy))}, tokens: 5,
			at: []time.Duration{0}, events: []string{"dead_letter (terminal_error)", "end: dead_letter (terminal_error)"},
		},
		"a TerminalError in another error, after a failure": {
			steps: []step{fails(errBusy), fails(fmt.Errorf("pod: %w", reconcile.TerminalError(errBusy)))}, tokens: 4,
			at: []time.Duration{0, 100 * ms}, events: []string{"waiting_retry 100ms", "dead_letter (terminal_error)", "end: dead_letter (terminal_error)"},
		},
		"a TerminalError, although a mark asks for a retry": {
			steps: []step{fails(retry.Transient(reconcile.TerminalError(errBusy)))}, tokens: 5,
			at: []time.Duration{0}, events: []string{"dead_letter (terminal_error)", "end: dead_letter (terminal_error)"},
		},
		"a RequeueAfter is a success": {
			steps: []step{fails(errBusy), {result: reconcile.Result{RequeueAfter: time.Second}}, fails(errBusy)}, tokens: 3.2,
			at:     []time.Duration{0, 100 * ms, 1100 * ms, 1200 * ms},
			events: []string{"waiting_retry 100ms", "end: succeeded", "waiting_retry 100ms", "end: succeeded"},
		},
		"a RequeueAfter with an error is ignored": {
			steps: []step{{err: errBusy, result: reconcile.Result{RequeueAfter: time.Second}}}, tokens: 4.1,
			at: []time.Duration{0, 100 * ms}, events: []string{"waiting_retry 100ms", "end: succeeded"},
		},
		"repeated Requeues wait as with the limiter alone": {
			steps: []step{requeue, requeue, requeue, requeue, requeue}, tokens: 5.6,
			at:     []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 3100 * ms},
			events: []string{"end: succeeded", "end: succeeded", "end: succeeded", "end: succeeded", "end: succeeded", "end: succeeded"},
		},
		"a Requeue between failures": {
			steps: []step{requeue, requeue, fails(errBusy), requeue}, tokens: 4.4,
			at:     []time.Duration{0, 100 * ms, 300 * ms, 400 * ms, 800 * ms},
			events: []string{"end: succeeded", "end: succeeded", "waiting_retry 100ms", "end: succeeded", "end: succeeded"},
		},
		"a success forgets the Requeues": {
			steps: []step{requeue, {result: reconcile.Result{RequeueAfter: time.Second}}, requeue}, tokens: 5.4,
			at:     []time.Duration{0, 100 * ms, 1100 * ms, 1200 * ms},
			events: []string{"end: succeeded", "end: succeeded", "end: succeeded", "end: succeeded"},
		},
		"panics are attempts": {
			steps: []step{{panics: true}, {panics: true}, {panics: true}, {panics: true}}, tokens: 5,
			at: []time.Duration{0, 100 * ms, 300 * ms, 700 * ms}, events: []string{"end: dead_letter (attempts_exhausted)"},
		},
		"an attempt's timeout": {
			change: func(p *retry.Policy) { p.AttemptTimeout = time.Second }, steps: []step{{hangs: true}},
			at: []time.Duration{0, 1100 * ms}, events: []string{"waiting_retry 100ms", "end: succeeded"}, tokens: 4.1,
		},
		"a gate": {
			change: func(p *retry.Policy) {
				opens := time.Now().Add(time.Minute)
				p.Gate = func(context.Context) time.Duration { return time.Until(opens) }
			},
			at: []time.Duration{time.Minute}, events: []string{"end: succeeded"}, tokens: 5.1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothQueues(t, func(t *testing.T, priority bool) {
				r := newRun(t, row.change)
				r.start(t, priority, r.limiter, r.wrap, row.steps...)
				pass(time.Hour)
				require.Equal(t, row.at, r.at)
				require.Equal(t, row.events, r.events)
				require.InDelta(t, row.tokens, r.budget.Tokens(), 1e-6)
				require.Zero(t, r.limiter.NumRequeues(item), "the run is dropped")
			})
		})
	}
}

// Without the adapter, a TerminalError leaves the item's count behind; Requeues wait as in the table above.
func TestWithoutTheAdapter(t *testing.T) {
	bothQueues(t, func(t *testing.T, priority bool) {
		r := newRun(t, nil)
		theirs := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*ms, time.Hour)
		r.start(t, priority, theirs, nil, requeue, requeue, requeue, requeue, requeue, fails(reconcile.TerminalError(errBusy)))
		pass(time.Hour)
		require.Equal(t, []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 3100 * ms}, r.at)
		require.Equal(t, 5, theirs.NumRequeues(item))
	})
}

func TestAnEventAfterATerminalErrorBeginsANewRun(t *testing.T) {
	bothQueues(t, func(t *testing.T, priority bool) {
		r := newRun(t, nil)
		r.start(t, priority, r.limiter, r.wrap, fails(errBusy), fails(reconcile.TerminalError(errBusy)), fails(errBusy))
		pass(time.Minute)
		r.queue.Add(item)
		pass(time.Minute)
		require.Equal(t, []time.Duration{0, 100 * ms, time.Minute, time.Minute + 100*ms}, r.at)
		require.Equal(t, []string{"waiting_retry 100ms", "dead_letter (terminal_error)", "end: dead_letter (terminal_error)",
			"waiting_retry 100ms", "end: succeeded"}, r.events)
	})
}

func TestAShutdownEndsTheRun(t *testing.T) {
	t.Run("during an attempt", func(t *testing.T) {
		bothQueues(t, func(t *testing.T, priority bool) {
			r := newRun(t, nil)
			r.start(t, priority, r.limiter, r.wrap, fails(errBusy), step{hangs: true})
			pass(time.Second)
			r.stop()
			require.Equal(t, []string{"waiting_retry 100ms", "canceled (caller_canceled)", "end: canceled (caller_canceled)"}, r.events)
			require.InDelta(t, 4, r.budget.Tokens(), 1e-6, "the retry was made")
			require.Zero(t, r.limiter.NumRequeues(item))
		})
	})
	t.Run("during a wait", func(t *testing.T) {
		bothQueues(t, func(t *testing.T, priority bool) {
			r := newRun(t, nil)
			r.start(t, priority, r.limiter, r.wrap, fails(retry.After(time.Minute, errBusy)))
			pass(time.Second)
			r.stop()
			require.Equal(t, []time.Duration{0}, r.at)
			require.Equal(t, []string{"waiting_retry 1m"}, r.events)
		})
	})
}

// The error that the controller logs names the reason once.
func TestTheErrorOfARunThatHasEnded(t *testing.T) {
	for name, row := range map[string]struct {
		err    error
		reason retry.Reason
		text   string
	}{
		"a terminal error":     {retry.Permanent(errBusy), retry.TerminalError, "terminal error: busy"},
		"a TerminalError":      {reconcile.TerminalError(errBusy), retry.TerminalError, "terminal error: busy"},
		"attempts are used up": {errBusy, retry.AttemptsExhausted, "terminal error: retry: gave up after 1 attempt in 0s (attempts_exhausted): busy"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRun(t, func(p *retry.Policy) { p.MaxAttempts = 1 })
				_, err := r.wrap(func(context.Context, reconcile.Request) (reconcile.Result, error) {
					return reconcile.Result{}, row.err
				}).Reconcile(t.Context(), item)
				require.ErrorIs(t, err, reconcile.TerminalError(nil))
				require.ErrorIs(t, err, row.reason)
				require.ErrorIs(t, err, errBusy)
				require.EqualError(t, err, row.text)
			})
		})
	}
}
