package scenario

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"time"

	avast4 "github.com/avast/retry-go/v4"
	avast5 "github.com/avast/retry-go/v5"
	backoff5 "github.com/cenkalti/backoff/v5"
	backoff7 "github.com/cenkalti/backoff/v7"
	codegroove "github.com/codeGROOVE-dev/retry"
	"github.com/eapache/go-resiliency/retrier"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	sethvargo "github.com/sethvargo/go-retry"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/bench/internal/contest"
)

const waiting = 100_000 // goroutines

// Waiters returns the scenarios of runs that last: what one holds while it waits, how soon it ends, and what it keeps of
// its attempts.
func Waiters() []contest.Scenario {
	return slices.Concat([]contest.Scenario{memoryOfWaiters()}, cancelling(), []contest.Scenario{retained()})
}

func memoryOfWaiters() contest.Scenario {
	return overWaiters(contest.Scenario{
		Name: "Memory of a waiter",
		About: "100,000 goroutines wait in a retry, which will be in an hour: stack and heap in use, for each. With a peer " +
			"they are 20,000, to save time: each takes what it takes among 100,000.",
		Unit: "B",
		Targets: []contest.Target{
			{Rule: "a waiter takes as little as a bare goroutine with a timer", Kind: contest.Ratio, Against: bareWaiter, Most: 1.05, Why: "the run's state, " +
				"128 B, is on the heap; on the stack it would make that 4 kB. A Policy of 168 B is passed by value, so that allocations " +
				"of the runtime's outgrow the first stack of one waiter in 16, twice as often as of a bare one"},
		},
	}, func(w waiter) float64 {
		n := waiting
		if w.form != contest.Limit && w.form != contest.Ours {
			n /= 5
		}
		return bytesPerWaiter(w, n)
	})
}

// overWaiters returns s with all waiters as its contenders.
func overWaiters(s contest.Scenario, sample func(waiter) float64) contest.Scenario {
	for _, w := range waiters {
		s.Contenders = append(s.Contenders, contest.Contender{
			Name: w.name, Form: w.form, Remark: w.remark,
			Sample: func() float64 { return sample(w) },
		})
	}
	return s
}

// waiter is a way to wait for a retry or the end of a context.
type waiter struct {
	name   string
	form   contest.Form
	remark string
	// start starts n goroutines. Each calls fn, which fails, waits for an hour or until ctx is done, and calls returned
	// with what it got.
	start func(ctx context.Context, n int, fn func(context.Context) error, returned func(error))
}

const bareWaiter = "bare goroutine with a timer"

// waiters are those whose waits end with a context. They share what their libraries allow to be built once.
var waiters = []waiter{
	{bareWaiter, contest.Limit, "", waitBare},
	{"retry", contest.Ours, "", waitOurs},
	{"cenkalti/backoff v5", contest.Fastest, "", waitCenkalti5},
	{"cenkalti/backoff v7", contest.Fastest, "", waitCenkalti7},
	{"avast/retry-go v4", contest.Fastest, "Its timer is not stopped.", waitAvast4},
	{"avast/retry-go v5", contest.Fastest, "Its timer is not stopped.", waitAvast5},
	{"codeGROOVE-dev/retry", contest.Fastest, "Its timer is not stopped.", waitCodegroove},
	{"sethvargo/go-retry", contest.Fastest, "", waitSethvargo},
	{"failsafe-go", contest.Fastest, "", waitFailsafe},
	{"eapache/go-resiliency", contest.Fastest, "", waitEapache},
	{"k8s.io/apimachinery wait", contest.Fastest, "Its timer is not stopped. It does not return the error of an attempt.", waitK8s},
}

func waitBare(ctx context.Context, n int, fn func(context.Context) error, returned func(error)) {
	for range n {
		go func() { returned(bareWait(ctx, fn)) }()
	}
}

//go:noinline
func bareWait(ctx context.Context, fn func(context.Context) error) error {
	err := fn(ctx)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	select {
	case <-timer.C:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func waitOurs(ctx context.Context, n int, fn func(context.Context) error, returned func(error)) {
	p := retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Hour}}
	for range n {
		go func() { returned(retry.Do(ctx, p, fn)) }()
	}
}

func waitCenkalti5(ctx context.Context, n int, fn func(context.Context) error, returned func(error)) {
	attempt := func() (struct{}, error) { return struct{}{}, fn(ctx) }
	hourly, unlimited := backoff5.WithBackOff(backoff5.NewConstantBackOff(time.Hour)), backoff5.WithMaxElapsedTime(0)
	for range n {
		go func() {
			_, err := backoff5.Retry(ctx, attempt, hourly, unlimited)
			returned(err)
		}()
	}
}

func waitCenkalti7(ctx context.Context, n int, fn func(context.Context) error, returned func(error)) {
	attempt := func() (struct{}, error) { return struct{}{}, fn(ctx) }
	hourly, unlimited := backoff7.WithBackOff(backoff7.NewConstantBackOff(time.Hour)), backoff7.WithMaxElapsedTime(0)
	for range n {
		go func() {
			_, err := backoff7.Retry(ctx, attempt, hourly, unlimited)
			returned(err)
		}()
	}
}

func waitAvast4(ctx context.Context, n int, fn func(context.Context) error, returned func(error)) {
	attempt := func() error { return fn(ctx) }
	options := []avast4.Option{
		avast4.Context(ctx), avast4.Delay(time.Hour), avast4.DelayType(avast4.FixedDelay), avast4.LastErrorOnly(true),
	}
	for range n {
		go func() { returned(avast4.Do(attempt, options...)) }()
	}
}

func waitAvast5(ctx context.Context, n int, fn func(context.Context) error, returned func(error)) {
	attempt := func() error { return fn(ctx) }
	retrier := avast5.New(
		avast5.Context(ctx), avast5.Delay(time.Hour), avast5.DelayType(avast5.FixedDelay), avast5.LastErrorOnly(true),
	)
	for range n {
		go func() { returned(retrier.Do(attempt)) }()
	}
}

func waitCodegroove(ctx context.Context, n int, fn func(context.Context) error, returned func(error)) {
	attempt := func() error { return fn(ctx) }
	options := []codegroove.Option{
		codegroove.Context(ctx), codegroove.Delay(time.Hour), codegroove.DelayType(codegroove.FixedDelay), codegroove.LastErrorOnly(true),
	}
	for range n {
		go func() { returned(codegroove.Do(attempt, options...)) }()
	}
}

func waitSethvargo(ctx context.Context, n int, fn func(context.Context) error, returned func(error)) {
	attempt := func(ctx context.Context) error { return sethvargo.RetryableError(fn(ctx)) }
	hourly := sethvargo.NewConstant(time.Hour)
	for range n {
		go func() { returned(sethvargo.Do(ctx, hourly, attempt)) }()
	}
}

func waitFailsafe(ctx context.Context, n int, fn func(context.Context) error, returned func(error)) {
	attempt := func() error { return fn(ctx) }
	executor := failsafe.With(retrypolicy.NewBuilder[any]().WithDelay(time.Hour).Build()).WithContext(ctx)
	for range n {
		go func() { returned(executor.Run(attempt)) }()
	}
}

func waitEapache(ctx context.Context, n int, fn func(context.Context) error, returned func(error)) {
	r := retrier.New(retrier.ConstantBackoff(1, time.Hour), nil)
	for range n {
		go func() { returned(r.RunCtx(ctx, fn)) }()
	}
}

func waitK8s(ctx context.Context, n int, fn func(context.Context) error, returned func(error)) {
	condition := func(ctx context.Context) (bool, error) { return fn(ctx) == nil, nil }
	hourly := wait.Backoff{Duration: time.Hour, Steps: 2}
	for range n {
		go func() { returned(wait.ExponentialBackoffWithContext(ctx, hourly, condition)) }()
	}
}

// bytesPerWaiter returns the stack and heap that each of n waiters has in use.
func bytesPerWaiter(w waiter, n int) float64 {
	grown(n)
	collect() // lest the small stacks lie scattered among those of the last contender and hold them back
	defer smallStacks()()
	before := inUse()
	p := gather(w, n)
	collect()
	after := inUse()
	p.dismiss()
	return float64(after-before) / float64(n)
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.StackInuse + m.HeapInuse)
}

// collect is runtime.GC with all cores, which is no part of what is measured.
func collect() {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
	runtime.GC()
}

// party is waiters that are all parked in their waits.
type party struct {
	cancel context.CancelFunc
	there  sync.WaitGroup
}

// gather returns once all n have called fn and none is running or about to.
func gather(w waiter, n int) *party {
	ctx, cancel := context.WithCancel(context.Background())
	p := &party{cancel: cancel}
	var called sync.WaitGroup
	called.Add(n)
	p.there.Add(n)
	w.start(ctx, n, func(context.Context) error {
		called.Done()
		return errFlaky
	}, func(error) { p.there.Done() })
	called.Wait()
	parked()
	return p
}

// dismiss cancels the waits and returns when the last waiter has returned.
func (p *party) dismiss() {
	p.cancel()
	p.there.Wait()
}

// parked returns once no goroutine but the caller's is running or about to. The counts are approximate while goroutines
// change places, so it wants them twice.
func parked() {
	states := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/goroutines/running:goroutines"}}
	for times := 0; times < 2; {
		runtime.Gosched()
		metrics.Read(states)
		switch {
		case states[0].Value.Kind() != metrics.KindUint64: // before Go 1.26: all others have their turn many times
			for range 1000 {
				runtime.Gosched()
			}
			return
		case states[0].Value.Uint64() == 0 && states[1].Value.Uint64() <= 1:
			times++
		default:
			times = 0
		}
	}
}

var mostWaiters int // that there were at once

// grown makes n goroutines once: the runtime keeps their descriptors for ever, and the first waiters would pay for all.
func grown(n int) {
	if n > mostWaiters {
		gather(waiters[0], n).dismiss()
		mostWaiters = n
	}
}

// smallStacks has found mostly small stacks in a collection, and has no other come but by call until release. A new
// goroutine's stack is as large as the average that the last collection found (runtime, gcComputeStartingStackSize):
// without this it would be what the last contender left.
func smallStacks() (release func()) {
	percent := debug.SetGCPercent(-1)
	end := make(chan struct{})
	for range 1000 {
		go func() { <-end }()
	}
	parked()
	collect()
	return func() {
		close(end)
		parked()
		debug.SetGCPercent(percent)
	}
}
