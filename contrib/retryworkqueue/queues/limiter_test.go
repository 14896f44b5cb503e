package queues_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/workqueue"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryworkqueue"
)

const ms = time.Millisecond

// doubling waits 100ms, 200ms, 400ms.
var doubling = retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 100 * ms}}

var errBusy = errors.New("busy")

var _ workqueue.TypedRateLimiter[string] = (*retryworkqueue.Limiter[string])(nil)

func newLimiter(t *testing.T, p retry.Policy) *retryworkqueue.Limiter[string] {
	l, err := retryworkqueue.New[string](p)
	require.NoError(t, err)
	return l
}

// worker works on the items of a queue until it is shut down.
func worker(q workqueue.TypedRateLimitingInterface[string], work func(item string)) {
	for {
		item, shutdown := q.Get()
		if shutdown {
			return
		}
		work(item)
		q.Done(item)
	}
}

// inQueue runs one item to its end in a queue of client-go with the limiter, and returns the times of its attempts.
func inQueue(l *retryworkqueue.Limiter[string], work func(q workqueue.TypedRateLimitingInterface[string], item string)) (at []time.Duration) {
	q := workqueue.NewTypedRateLimitingQueue[string](l)
	began := time.Now()
	var done sync.WaitGroup
	done.Go(func() {
		worker(q, func(item string) {
			at = append(at, time.Since(began))
			work(q, item)
		})
	})
	q.Add("item")
	time.Sleep(time.Hour) // virtual
	q.ShutDown()
	done.Wait()
	return at
}

// What the README says of a limiter alone, and its losses: each row sets a field that a queue cannot carry, and the
// waits are still those of the schedule, even beyond MaxAttempts.
func TestALimiterAloneWaitsByTheSchedule(t *testing.T) {
	plain := []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 3100 * ms}
	for name, row := range map[string]struct {
		change func(*retry.Policy)
		want   []time.Duration
	}{
		"MaxAttempts":    {want: plain},
		"Disabled":       {change: func(p *retry.Policy) { p.Disabled = true }, want: plain},
		"TTL":            {change: func(p *retry.Policy) { p.TTL = 150 * ms }, want: plain},
		"AttemptTimeout": {change: func(p *retry.Policy) { p.AttemptTimeout = ms }, want: plain},
		"ResetAfter":     {change: func(p *retry.Policy) { p.ResetAfter = ms }, want: plain},
		"MaxHint":        {change: func(p *retry.Policy) { p.MaxHint = ms }, want: plain},
		"Classify":       {change: func(p *retry.Policy) { p.Classify = func(error) retry.Class { panic("called") } }, want: plain},
		"Wait": {change: func(p *retry.Policy) {
			p.Wait = func(int, error, time.Duration) time.Duration { panic("called") }
		}, want: plain},
		"Budget":      {change: func(p *retry.Policy) { p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: -1}) }, want: plain},
		"Pay":         {change: func(p *retry.Policy) { p.Pay = func(context.Context, retry.Decision) bool { panic("called") } }, want: plain},
		"Gate":        {change: func(p *retry.Policy) { p.Gate = func(context.Context) time.Duration { panic("called") } }, want: plain},
		"Observe":     {change: func(p *retry.Policy) { p.Observe = func(context.Context, retry.Event) { panic("called") } }, want: plain},
		"full jitter": {change: func(p *retry.Policy) { p.Jitter, p.Rand = retry.FullJitter, func() float64 { return 0.5 } }, want: []time.Duration{0, 50 * ms, 150 * ms, 350 * ms, 750 * ms, 1550 * ms}},
		"decorrelated": {change: func(p *retry.Policy) { p.Jitter, p.Rand = retry.DecorrelatedJitter, func() float64 { return 0.5 } }, want: []time.Duration{
			0, 200 * ms, 550 * ms, 1125 * ms, 2037500 * time.Microsecond, 3456250 * time.Microsecond}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := doubling
				if row.change != nil {
					row.change(&p)
				}
				calls, l := 0, newLimiter(t, p)
				at := inQueue(l, func(q workqueue.TypedRateLimitingInterface[string], item string) {
					if calls++; calls < 6 {
						q.AddRateLimited(item)
						require.Equal(t, calls, q.NumRequeues(item))
					} else {
						q.Forget(item)
					}
				})
				require.Equal(t, row.want, at)
				require.Zero(t, l.NumRequeues("item"))
			})
		})
	}
}

func TestAPolicyThatDoesNotValidateIsRefused(t *testing.T) {
	_, err := retryworkqueue.New[string](retry.Policy{TTL: -1})
	require.ErrorContains(t, err, "retry: Policy.TTL -1ns is negative")
}

// failing fails as often as there are errors, and then succeeds.
func failing(errs ...error) func(context.Context) error {
	return func(context.Context) error {
		if len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}
}

func TestHandleKeepsTheWholePolicy(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*retry.Policy)
		errs   []error
		takes  time.Duration
		at     []time.Duration
		reason retry.Reason
	}{
		"success at once":       {at: []time.Duration{0}},
		"success after retries": {errs: []error{errBusy, errBusy, errBusy}, at: []time.Duration{0, 100 * ms, 300 * ms, 700 * ms}},
		"attempts are used up":  {errs: []error{errBusy, errBusy, errBusy, errBusy}, at: []time.Duration{0, 100 * ms, 300 * ms, 700 * ms}, reason: retry.AttemptsExhausted},
		"a terminal error":      {errs: []error{retry.Permanent(errBusy)}, at: []time.Duration{0}, reason: retry.TerminalError},
		"a classifier":          {change: func(p *retry.Policy) { p.Classify = retry.StopOn(errBusy) }, errs: []error{errBusy}, at: []time.Duration{0}, reason: retry.TerminalError},
		"a hint":                {errs: []error{retry.After(3*time.Second, errBusy)}, at: []time.Duration{0, 3 * time.Second}},
		"a long hint":           {change: func(p *retry.Policy) { p.MaxHint = time.Second }, errs: []error{retry.After(3*time.Second, errBusy)}, at: []time.Duration{0}, reason: retry.HintTooLong},
		"the TTL":               {change: func(p *retry.Policy) { p.TTL = 400 * ms }, errs: []error{errBusy, errBusy, errBusy}, at: []time.Duration{0, 100 * ms, 300 * ms}, reason: retry.TTLElapsed},
		"a budget":              {change: func(p *retry.Policy) { p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 1}) }, errs: []error{errBusy, errBusy}, at: []time.Duration{0, 100 * ms}, reason: retry.BudgetExhausted},
		"disabled":              {change: func(p *retry.Policy) { p.Disabled = true }, errs: []error{errBusy}, at: []time.Duration{0}, reason: retry.RetriesDisabled},
		"pay":                   {change: func(p *retry.Policy) { p.Pay = func(context.Context, retry.Decision) bool { return false } }, errs: []error{errBusy}, at: []time.Duration{0}, reason: retry.BudgetExhausted},
		"an own wait":           {change: func(p *retry.Policy) { p.Wait = func(int, error, time.Duration) time.Duration { return time.Minute } }, errs: []error{errBusy}, at: []time.Duration{0, time.Minute}},
		"an attempt's timeout":  {change: func(p *retry.Policy) { p.AttemptTimeout = time.Second }, takes: time.Minute, at: []time.Duration{0, 1100 * ms, 2300 * ms, 3700 * ms}, reason: retry.AttemptsExhausted},
		"a long attempt resets": {change: func(p *retry.Policy) { p.ResetAfter = time.Second }, takes: time.Second, errs: []error{errBusy, errBusy}, at: []time.Duration{0, 1100 * ms, 2200 * ms}},
		"full jitter":           {change: func(p *retry.Policy) { p.Jitter, p.Rand = retry.FullJitter, func() float64 { return 0.5 } }, errs: []error{errBusy, errBusy}, at: []time.Duration{0, 50 * ms, 150 * ms}},
		"decorrelated jitter":   {change: func(p *retry.Policy) { p.Jitter, p.Rand = retry.DecorrelatedJitter, func() float64 { return 0.5 } }, errs: []error{errBusy, errBusy, errBusy}, at: []time.Duration{0, 200 * ms, 550 * ms, 1125 * ms}},
		"a gate beyond the TTL": {change: func(p *retry.Policy) {
			p.TTL, p.Gate = time.Second, func(context.Context) time.Duration { return time.Minute }
		}, at: []time.Duration{0}, reason: retry.TTLElapsed},
		"a canceled error": {errs: []error{context.Canceled}, at: []time.Duration{0}, reason: retry.TerminalError},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := doubling
				if row.change != nil {
					row.change(&p)
				}
				var events []retry.Event
				p.Observe = func(_ context.Context, e retry.Event) { events = append(events, e) }
				l, fn := newLimiter(t, p), failing(row.errs...)
				var last error
				at := inQueue(l, func(q workqueue.TypedRateLimitingInterface[string], item string) {
					_, last = retryworkqueue.Handle(t.Context(), q, l, item, func(ctx context.Context) error {
						select {
						case <-ctx.Done():
							return ctx.Err()
						case <-time.After(row.takes):
							return fn(ctx)
						}
					})
				})
				require.Equal(t, row.at, at)
				require.Zero(t, l.NumRequeues("item"), "the run is dropped")
				end := events[len(events)-1]
				require.Equal(t, row.reason, end.Decision.Reason)
				require.Equal(t, last, end.Err)
				failures := end.Outcome.Attempts
				if row.reason == 0 {
					require.NoError(t, last)
					failures--
				} else {
					require.ErrorIs(t, last, row.reason)
				}
				require.Len(t, events, failures+1)
			})
		})
	}
}

// told is a queue that notes the calls of Handle.
type told []string

func (q *told) AddAfter(item string, delay time.Duration) {
	*q = append(*q, "add "+item+" after "+delay.String())
}
func (q *told) Forget(item string) { *q = append(*q, "forget "+item) }

func TestHandleForgetsAnItemWhoseRunHasEnded(t *testing.T) {
	var q told
	l, fn := newLimiter(t, doubling), failing(errBusy, retry.Permanent(errBusy))
	for range 3 { // the third is a run of its own, and succeeds
		_, _ = retryworkqueue.Handle(t.Context(), &q, l, "item", fn)
	}
	require.Equal(t, told{"add item after 100ms", "forget item", "forget item"}, q)
}

func TestOnlyTheTimeoutOfAnAttemptIsOne(t *testing.T) {
	for name, row := range map[string]struct {
		takes, within time.Duration
		err           error
		timeout       bool
	}{
		"too late":                     {takes: time.Minute, within: time.Hour, err: context.DeadlineExceeded, timeout: true},
		"too late, and another error":  {takes: time.Minute, within: time.Hour, err: errBusy},
		"in time":                      {takes: ms, within: time.Hour, err: context.DeadlineExceeded},
		"too late, and a success":      {takes: time.Minute, within: time.Hour},
		"too late for the caller, too": {takes: time.Minute, within: 2 * time.Second, err: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := doubling
				p.AttemptTimeout = time.Second
				ctx, cancel := context.WithTimeout(t.Context(), row.within)
				defer cancel()
				_, err := newLimiter(t, p).Attempt(ctx, "item", func(context.Context) error {
					time.Sleep(row.takes)
					return row.err
				})
				require.ErrorIs(t, err, row.err)
				require.Equal(t, row.timeout, errors.Is(err, retry.ErrAttemptTimeout))
			})
		})
	}
}

func TestAGateDefersAnItemAndDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opens := time.Now().Add(time.Minute)
		p := doubling
		p.Gate = func(context.Context) time.Duration { return time.Until(opens) }
		l, fn := newLimiter(t, p), failing(errBusy)
		made := 0
		at := inQueue(l, func(q workqueue.TypedRateLimitingInterface[string], item string) {
			_, _ = retryworkqueue.Handle(t.Context(), q, l, item, func(ctx context.Context) error { made++; return fn(ctx) })
		})
		require.Equal(t, []time.Duration{0, time.Minute, time.Minute + 100*ms}, at)
		require.Equal(t, 2, made)
	})
}

func TestAnEventOvertakesAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, fn := newLimiter(t, doubling), failing(retry.After(time.Minute, errBusy))
		at := inQueue(l, func(q workqueue.TypedRateLimitingInterface[string], item string) {
			if d, _ := retryworkqueue.Handle(t.Context(), q, l, item, fn); d.Delay == time.Minute {
				time.AfterFunc(time.Second, func() { q.Add(item) })
			}
		})
		// The event's attempt, which succeeds, and client-go's wait for the hint, which is not taken back.
		require.Equal(t, []time.Duration{0, time.Second, time.Minute}, at)
	})
}

func TestTheBudgetIsPaidBackForARetryThatIsNotMade(t *testing.T) {
	for name, forgo := range map[string]func(*testing.T, *retryworkqueue.Limiter[string]){
		"forgotten": func(_ *testing.T, l *retryworkqueue.Limiter[string]) { l.Forget("item") },
		"canceled": func(t *testing.T, l *retryworkqueue.Limiter[string]) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := l.Attempt(ctx, "item", nil)
			require.ErrorIs(t, err, retry.CallerCanceled)
		},
		"too late": func(t *testing.T, l *retryworkqueue.Limiter[string]) {
			time.Sleep(time.Hour)
			_, err := l.Attempt(t.Context(), "item", nil)
			require.ErrorIs(t, err, retry.TTLElapsed)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := doubling
				p.TTL, p.Budget = time.Minute, retry.NewBudget(retry.BudgetConfig{Initial: 1})
				l := newLimiter(t, p)
				d, err := l.Attempt(t.Context(), "item", failing(errBusy))
				require.Equal(t, errBusy, err)
				require.Equal(t, retry.WaitingRetry, d.Status)
				require.Zero(t, p.Budget.Tokens())
				forgo(t, l)
				require.InDelta(t, 1, p.Budget.Tokens(), 0)
				l.Forget("item")
				require.InDelta(t, 1, p.Budget.Tokens(), 0, "once")
			})
		})
	}
}

func TestAPanicIsNoRefund(t *testing.T) {
	p := doubling
	p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 1})
	l := newLimiter(t, p)
	_, err := l.Attempt(t.Context(), "item", failing(errBusy))
	require.Equal(t, errBusy, err)
	require.Panics(t, func() { _, _ = l.Attempt(t.Context(), "item", func(context.Context) error { panic("bug") }) })
	require.Equal(t, 200*ms, l.When("item"), "the queue of a controller that recovers asks for a wait")
	l.Forget("item")
	require.Zero(t, p.Budget.Tokens(), "the retry was made")
}

func TestUnderOneAttemptAnItemIsNotRepeated(t *testing.T) {
	_, err := newLimiter(t, doubling).Attempt(retry.OneAttempt(t.Context()), "item", failing(errBusy))
	require.ErrorIs(t, err, retry.RetriesDisabled)
}

func TestTheNumberOfRunsIsBounded(t *testing.T) {
	p := doubling
	p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 1e9, Burst: 1e9})
	l, err := retryworkqueue.New[int](p)
	require.NoError(t, err)
	const items, most = 300_000, 1 << 18
	for i := range items {
		_, _ = l.Attempt(t.Context(), i, failing(errBusy))
	}
	kept := 0
	for i := range items {
		kept += l.NumRequeues(i)
	}
	require.Equal(t, most, kept)
	require.InDelta(t, 1e9-most, p.Budget.Tokens(), 0, "those that were dropped were paid back")
}

func TestManyWorkersShareALimiter(t *testing.T) {
	const items = 100
	l := newLimiter(t, retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Microsecond, Jitter: retry.FullJitter}})
	q := workqueue.NewTypedRateLimitingQueue[string](l)
	var made atomic.Int64
	var ended, workers sync.WaitGroup
	ended.Add(items)
	for range 8 {
		workers.Go(func() {
			worker(q, func(item string) {
				d, _ := retryworkqueue.Handle(t.Context(), q, l, item, func(context.Context) error { made.Add(1); return errBusy })
				if d.Status != retry.WaitingRetry {
					ended.Done()
				}
			})
		})
	}
	for i := range items {
		q.Add(fmt.Sprint(i))
	}
	ended.Wait()
	q.ShutDown()
	workers.Wait()
	require.EqualValues(t, 3*items, made.Load())
}

func TestAnItemThatIsQueuedOftenHasAllItsAttempts(t *testing.T) {
	for _, p := range []retry.Policy{{MaxAttempts: 3}, {Disabled: true}} {
		l, err := retryworkqueue.New[string](p)
		require.NoError(t, err)
		for range 3 {
			l.When("a") // an informer's handler calls AddRateLimited
		}
		require.Equal(t, 3, l.NumRequeues("a"))
		calls := 0
		d, err := l.Attempt(t.Context(), "a", func(context.Context) error { calls++; return nil })
		require.NoError(t, err)
		require.Equal(t, retry.Succeeded, d.Status)
		require.Equal(t, 1, calls)
	}
}

func TestATokenIsPaidBackOnce(t *testing.T) {
	fail := func(context.Context) error { return errBusy }
	b := retry.NewBudget(retry.BudgetConfig{Burst: 10, Initial: 5})
	var l *retryworkqueue.Limiter[string]
	asked := 0
	l, err := retryworkqueue.New[string](retry.Policy{Budget: b, Gate: func(context.Context) time.Duration {
		if asked++; asked == 2 {
			l.Forget("a")
			return time.Second
		}
		return 0
	}})
	require.NoError(t, err)
	_, _ = l.Attempt(t.Context(), "a", fail)
	require.Equal(t, 4.0, b.Tokens())
	_, _ = l.Attempt(t.Context(), "a", fail)
	l.Forget("a")
	require.Equal(t, 5.0, b.Tokens(), "Forget in the gate has paid it back already")

	l, err = retryworkqueue.New[string](retry.Policy{Budget: b, Observe: func(context.Context, retry.Event) { panic("o") }})
	require.NoError(t, err)
	require.Panics(t, func() { _, _ = l.Attempt(t.Context(), "b", fail) })
	l.Forget("b")
	require.Equal(t, 5.0, b.Tokens(), "as after a panic in retry.Do")
}

func TestALimiterGivesBackTheMemoryOfRunsThatHaveEnded(t *testing.T) {
	const items, left = 100_000, 10
	l, err := retryworkqueue.New[int](doubling)
	require.NoError(t, err)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range items {
		l.When(i)
	}
	full := heap() - before
	for i := range items - left {
		l.Forget(i)
	}
	require.Less(t, heap()-before, full/20, "of %d bytes", full)
	for i := items - left; i < items; i++ {
		require.Equal(t, 1, l.NumRequeues(i))
	}
	runtime.KeepAlive(l)
}
