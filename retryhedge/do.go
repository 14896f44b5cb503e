package retryhedge

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// Do calls fn, and calls it again beside a call that is slow, as p says. It returns at the first success or terminal
// error; a retryable error waits for the calls that are under way, and is returned when none is left. Inside the fn of a
// retry.Do it hedges each attempt.
//
// The first call runs in the caller's goroutine, and each hedge in one of its own, so fn must be safe to run twice at a
// time, and its effect must be safe to repeat. Each call has a context of its own, which ends when another call has won, and
// at the latest when Do returns. Do then waits for the first call to return, so fn must honor its context. It does not wait
// for hedges that have lost.
//
// A panic or runtime.Goexit in a call passes to the caller of Do, with the stack of Do. A hedge that panics after Do has
// returned ends the program, as any goroutine does. Do returns retry.FieldErrors, before any call, for a policy that does
// not validate, a nil fn and a nil ctx.
//
// If p makes no hedges, or under retry.OneAttempt, Do calls fn once with ctx itself. A success deposits in the Budget all
// the same; Observe is not called.
func Do(ctx context.Context, p Policy, fn func(context.Context) error) error {
	if ctx == nil || fn == nil || p.check() != nil {
		return refused(ctx, &p, fn == nil)
	}
	if p.Off() || retryshell.IsOneAttempt(ctx) { // without the function below, which is allocated
		err := fn(ctx)
		p.fund(ctx, err)
		return err
	}
	_, err := DoValue(ctx, p, func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) }, nil)
	return err
}

// DoValue is Do for an fn that returns a value as well. It returns the value of the call whose error it returns. discard is
// called with the value of each other call, whatever its error, in the goroutine of a call, possibly after DoValue has
// returned; it must not panic. Nil means that values need no care. A value bound to the context of its call cannot be used
// after DoValue: see Open.
func DoValue[T any](
	ctx context.Context, p Policy, fn func(context.Context) (T, error), discard func(T),
) (T, error) {
	if ctx != nil && fn != nil && p.check() == nil && (p.Off() || retryshell.IsOneAttempt(ctx)) {
		value, err := fn(ctx)
		p.fund(ctx, err)
		return value, err
	}
	value, release, err := Open(ctx, p, fn, discard)
	release()
	return value, err
}

// Open is DoValue for a value that is bound to the context of its call, such as an HTTP response with its body. That
// context lives until release is called, which must be done when the value is no longer in use, and after an error too.
// release is never nil, and may be called more than once.
func Open[T any](
	ctx context.Context, p Policy, fn func(context.Context) (T, error), discard func(T),
) (value T, release func(), err error) {
	release = func() {}
	if ctx == nil || fn == nil || p.check() != nil {
		return value, release, refused(ctx, &p, fn == nil)
	}
	if p.Off() || retryshell.IsOneAttempt(ctx) {
		ctx, release = context.WithCancel(ctx)
		afterPanic := release
		defer func() { afterPanic() }()
		value, err = fn(ctx)
		afterPanic = func() {}
		p.fund(ctx, err)
		return value, release, err
	}
	g := &group[T]{ctx: ctx, p: p, fn: fn, discard: discard, began: time.Now(), delay: p.delay()}
	return g.run()
}

func refused(ctx context.Context, p *Policy, noFunc bool) error {
	bad := p.check()
	if ctx == nil {
		bad.Refuse("retryhedge.Do.ctx", ctx, "is not a context")
	}
	if noFunc {
		bad.Refuse("retryhedge.Do.fn", nil, "is not a function")
	}
	return bad.Err()
}

func (p *Policy) fund(ctx context.Context, err error) {
	if err == nil && p.Budget != nil && !p.InRun {
		retry.Policy{Budget: p.Budget}.Spend(ctx, retry.Decision{Status: retry.Succeeded}, time.Now())
	}
}

// IsHedge reports whether ctx is what fn was called with for a hedge, so that fn can choose another server or connection.
// To count the calls of fn is not the same, since a hedge can come to count before the first call does. IsHedge returns
// false for a context that is derived from a hedge's.
func IsHedge(ctx context.Context) bool {
	_, ok := ctx.(hedgeContext)
	return ok
}

type hedgeContext struct{ context.Context }

type group[T any] struct {
	ctx     context.Context
	p       Policy
	fn      func(context.Context) (T, error)
	discard func(T)
	began   time.Time
	delay   time.Duration

	mu      sync.Mutex
	timer   *time.Timer
	calls   []call
	room    [2]call // for calls
	running int
	slow    bool // the first call was under way after the delay
	refused bool
	holdOff time.Time // until when a server wants to be left alone

	kept     int // the index of the call whose result is below; -1 if there is none
	value    T
	err      error
	over     bool          // the calls that are under way have lost
	finished chan struct{} // closed when over
	panicked any           // by a hedge
	exited   bool          // a hedge called runtime.Goexit
	left     bool          // run has taken the result: what hedges do from now on, it does not see
}

type call struct {
	Call
	cancel context.CancelFunc
}

// run makes the first call and returns what Open does.
func (g *group[T]) run() (T, func(), error) {
	g.calls, g.kept = g.room[:0], -1
	g.mu.Lock()
	ctx, first := g.begin()
	g.timer = time.AfterFunc(g.delay, g.look)
	g.mu.Unlock()

	returned := false
	defer func() {
		if !returned { // a panic or Goexit, of fn or of a hedge
			g.abandon()
		}
	}()
	value, err := g.fn(ctx)
	g.ended(first, value, err)
	g.settle()
	switch {
	case g.panicked != nil:
		panic(g.panicked)
	case g.exited:
		runtime.Goexit()
	}
	g.p.fund(g.ctx, g.err)
	if g.p.Observe != nil {
		g.observe()
	}
	returned = true
	return g.value, g.calls[g.kept].cancel, g.err
}

// settle waits until the group is over. From then on it changes only in the calls of losers, which observe copies under the
// lock.
func (g *group[T]) settle() {
	g.mu.Lock()
	if !g.over {
		g.finished = make(chan struct{})
		g.mu.Unlock()
		<-g.finished
		g.mu.Lock()
	}
	g.left = true
	g.mu.Unlock()
}

// begin notes a call that is about to be made, and returns its context and index.
func (g *group[T]) begin() (context.Context, int) {
	ctx, cancel := context.WithCancel(g.ctx)
	if len(g.calls) > 0 {
		ctx = hedgeContext{ctx}
	}
	g.calls = append(g.calls, call{Call{Began: time.Since(g.began), Running: true}, cancel})
	g.running++
	return ctx, len(g.calls) - 1
}

// look makes a hedge if one is due. It runs in the goroutine of a timer.
func (g *group[T]) look() {
	g.mu.Lock()
	if g.over {
		g.mu.Unlock()
		return
	}
	pr := g.progress()
	if !g.slow && !pr.Gone && g.p.Tracker != nil {
		g.p.Tracker.Note(true)
	}
	g.slow = true
	switch d := g.p.decide(pr); {
	case d.Action == Look:
		g.timer.Reset(d.Wait)
	case d.Action == Start && g.pay():
		ctx, i := g.begin()
		if len(g.calls) < g.p.maxCalls() {
			g.timer.Reset(g.delay)
		}
		g.mu.Unlock()
		g.hedge(ctx, i)
		return
	}
	g.mu.Unlock()
}

// pay takes a token for a hedge, and notes if there is none.
func (g *group[T]) pay() bool {
	if g.p.Budget != nil {
		d := retry.Policy{Budget: g.p.Budget}.Spend(g.ctx, retry.Decision{Status: retry.WaitingRetry}, time.Now())
		g.refused = d.Status != retry.WaitingRetry
	}
	return !g.refused
}

// progress returns what Decide has to know when no call has ended.
func (g *group[T]) progress() *Progress {
	now := time.Now()
	newest := &g.calls[len(g.calls)-1]
	pr := &Progress{
		Calls: len(g.calls), Running: g.running, Since: now.Sub(g.began) - newest.Began, Delay: g.delay,
		Gone: g.ctx.Err() != nil, Refused: g.refused, HoldOff: max(g.holdOff.Sub(now), 0),
	}
	if deadline, ok := g.ctx.Deadline(); ok {
		pr.Left = cmp.Or(deadline.Sub(now), -1)
	}
	return pr
}

// hedge makes a call that look has begun, and which the budget has paid for.
func (g *group[T]) hedge(ctx context.Context, i int) {
	called, returned := false, false
	defer func() {
		if returned {
			return
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		if !called && !g.over {
			g.p.Budget.Refund() // of a hedge that did not return; one that has lost is not paid back
		}
		if !g.left { // otherwise the caller of Do cannot be reached, and a panic goes on
			if v := recover(); v != nil {
				g.panicked = v
			} else {
				g.exited = true
			}
			g.end()
		}
	}()
	value, err := g.fn(ctx)
	called = true
	g.ended(i, value, err)
	returned = true
}

// ended notes the result of a call. The value of a loser is discarded.
func (g *group[T]) ended(i int, value T, err error) {
	class, hint := g.judge(value, err)
	g.mu.Lock()
	g.running--
	c := &g.calls[i]
	c.Running, c.Duration, c.Err = false, time.Since(g.began)-c.Began, err
	lost := g.over || g.kept >= 0 // its own value, or that of an earlier failure
	if !g.over {
		if lost {
			g.calls[g.kept].cancel()
		}
		value, g.value = g.value, value
		g.kept, g.err = i, err
		if i == 0 && err == nil && !g.slow && g.p.Tracker != nil {
			g.p.Tracker.Note(false)
		}
		if until := time.Now().Add(hint); hint > 0 && until.After(g.holdOff) {
			g.holdOff = until
		}
		pr := Progress{Calls: len(g.calls), Running: g.running, HasEnded: true, Ended: class}
		if g.p.decide(&pr).Action == End {
			g.end()
		}
	}
	g.mu.Unlock()
	if lost && g.discard != nil {
		g.discard(value)
	}
}

// judge returns the class of err and its hint. It holds no lock, since a classifier and the methods of err can take long
// and can panic; then the value is discarded.
func (g *group[T]) judge(value T, err error) (class retry.Class, hint time.Duration) {
	if err == nil {
		return retry.Unknown, 0
	}
	judged := false
	defer func() {
		if !judged && g.discard != nil {
			g.discard(value)
		}
	}()
	class, hint = retry.Policy{Classify: g.p.Classify}.Judge(err)
	judged = true
	return class, hint
}

// end makes the calls that are under way lose, and ends all contexts but that of the result.
func (g *group[T]) end() {
	if g.over {
		return
	}
	g.over = true
	g.timer.Stop()
	for i := range g.calls {
		if i != g.kept {
			g.calls[i].cancel()
		}
	}
	if g.finished != nil {
		close(g.finished)
	}
}

// abandon ends a group whose result cannot be returned.
func (g *group[T]) abandon() {
	g.mu.Lock()
	g.end()
	kept, value := g.kept, g.value
	g.mu.Unlock()
	if kept >= 0 {
		g.calls[kept].cancel()
		if g.discard != nil {
			g.discard(value)
		}
	}
}

func (g *group[T]) observe() {
	g.mu.Lock()
	e := Event{
		Policy: g.p.Name, Delay: g.delay, Slow: g.slow, Refused: g.refused, Won: g.kept + 1,
		Elapsed: time.Since(g.began), Err: g.err, Calls: make([]Call, len(g.calls)),
	}
	for i := range g.calls {
		e.Calls[i] = g.calls[i].Call
	}
	g.mu.Unlock()
	g.p.Observe(g.ctx, e)
}
