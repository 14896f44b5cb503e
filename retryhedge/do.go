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

// Do calls fn, and calls it again beside a call that p finds slow. It returns at the first success or terminal error.
// After a retryable error it waits for the calls that are under way, and returns the error of the last one if all fail.
// Inside the fn of a retry.Do it hedges each attempt.
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
// If a retryable error is returned after a call that asked for a longer wait (see retry.After), it carries the rest of
// that wait.
//
// Do calls fn once, with ctx itself, if p makes no hedges, under retry.OneAttempt, and within a call that may be hedged
// already. So of two layers that hedge, the outer one does. A success funds the Budget all the same, and Observe is
// not called.
func Do(ctx context.Context, p Policy, fn func(context.Context) error) error {
	if bad := refused(ctx, &p, fn == nil); bad != nil {
		return bad
	}
	if p.isSingle(ctx) { // without the function below, which is allocated
		err := fn(ctx)
		p.fund(ctx, err)
		return err
	}
	_, err := DoValue(ctx, p, func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) }, nil)
	return err
}

// DoValue is Do for an fn that returns a value as well. It returns the value of the call whose error it returns.
// discard is called with the value of each other call, whatever its error, in the goroutine of a call, possibly after
// DoValue has returned. It must not panic. Nil means that values need no care. A value that is bound to the context of
// its call cannot be used after DoValue (see Open).
func DoValue[T any](
	ctx context.Context, p Policy, fn func(context.Context) (T, error), discard func(T),
) (value T, err error) {
	if bad := refused(ctx, &p, fn == nil); bad != nil {
		return value, bad
	}
	if p.isSingle(ctx) {
		value, err = fn(ctx)
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
	if bad := refused(ctx, &p, fn == nil); bad != nil {
		return value, func() {}, bad
	}
	g := &group[T]{ctx: ctx, p: p, fn: fn, discard: discard}
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

// isSingle reports whether Do makes one call only.
func (p *Policy) isSingle(ctx context.Context) bool {
	return p.Off() || retryshell.IsOneAttempt(ctx) || CallNumber(ctx) > 0
}

func (p *Policy) fund(ctx context.Context, err error) {
	if err == nil && p.Budget != nil && !p.InRun {
		retry.Policy{Budget: p.Budget}.Spend(ctx, retry.Decision{Status: retry.Succeeded}, time.Now())
	}
}

// IsHedge reports whether ctx is the context of a hedge, or is derived from it, so that fn can choose another server or
// connection. Do not count the calls of fn instead, since a hedge can be counted before the first call is.
func IsHedge(ctx context.Context) bool { return CallNumber(ctx) > 1 }

// CallNumber returns the number of the call whose context ctx is, or is derived from. It is 1 for the first call, and 2
// or more for hedges. It returns 0 if no call of Do has ctx, and if Do makes only one.
func CallNumber(ctx context.Context) int {
	number, _ := ctx.Value(numberKey{}).(int)
	return number
}

// numberKey is the key of a call's number in its context.
type numberKey struct{}

// call is one call of fn, and its context.
type call[T any] struct {
	context.Context
	cancel context.CancelFunc
	number int // from 1, or 0 if there is no other
	phase  phase
	record Call

	value T
	err   error
	class retry.Class   // of err
	hint  time.Duration // of err
}

// phase is the state of a call. Only its own goroutine reads and writes it.
type phase uint8

const (
	calling phase = iota
	judging       // fn has returned
	noted         // the group knows
)

func (c *call[T]) Value(key any) any {
	if key == (numberKey{}) && c.number > 0 {
		return c.number
	}
	return c.Context.Value(key)
}

// group is the calls of one Do.
type group[T any] struct {
	ctx     context.Context
	p       Policy
	fn      func(context.Context) (T, error)
	discard func(T)
	began   time.Time
	delay   time.Duration
	first   call[T]

	mu      sync.Mutex
	timer   *time.Timer
	calls   []*call[T]
	room    [2]*call[T] // for calls
	running int
	slow    bool // the first call was under way after the delay
	refused bool
	holdOff time.Time // until when a server wants to be left alone

	kept     *call[T]      // whose result Do returns, nil before there is one, and once Do has it
	over     bool          // the calls that are under way have lost
	finished chan struct{} // closed when over
	panicked any           // by a hedge
	exited   bool          // a hedge called runtime.Goexit
	left     bool          // run has taken the result, and does not see later work of hedges
}

// run makes the first call and returns the results of Open.
func (g *group[T]) run() (T, func(), error) {
	defer g.finish()
	g.began = time.Now()
	g.calls = g.room[:0]
	g.mu.Lock()
	g.begin(&g.first)
	single := g.p.isSingle(g.ctx)
	if single {
		g.first.number = 0
	} else {
		g.delay = g.p.delay()
		g.timer = time.AfterFunc(g.delay, g.look)
	}
	g.mu.Unlock()
	g.call(&g.first)
	g.settle()
	if g.panicked != nil {
		panic(g.panicked)
	}
	if g.exited {
		runtime.Goexit()
	}
	c := g.kept
	err := g.hinted(c)
	g.p.fund(g.ctx, err)
	if g.p.Observe != nil && !single {
		g.observe(err)
	}
	g.kept = nil // the caller has it now
	return c.value, c.cancel, err
}

// finish ends all calls, in whatever way run ends, and lets go of the result if run has not returned it.
func (g *group[T]) finish() {
	g.mu.Lock()
	g.end()
	kept := g.kept
	g.kept = nil
	g.mu.Unlock()
	if kept != nil {
		kept.cancel()
		g.drop(kept)
	}
	if g.first.phase == judging {
		g.drop(&g.first)
	}
}

// drop discards the value of a call.
func (g *group[T]) drop(c *call[T]) {
	if g.discard != nil {
		g.discard(c.value)
	}
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

// hinted returns the error of c. If a server has asked for a longer wait than c's error did, hinted adds the rest of
// that wait.
func (g *group[T]) hinted(c *call[T]) error {
	if c.class != retry.Retryable {
		return c.err
	}
	if left := time.Until(g.holdOff); left > c.hint {
		return retry.After(left, c.err)
	}
	return c.err
}

// begin notes that c is about to be made.
func (g *group[T]) begin(c *call[T]) {
	c.Context, c.cancel = context.WithCancel(g.ctx)
	g.calls = append(g.calls, c)
	g.running++
	c.number = len(g.calls)
	c.record = Call{Began: time.Since(g.began), Running: true}
}

// look makes a hedge if one is due. It runs in the goroutine of a timer.
func (g *group[T]) look() {
	if c := g.due(); c != nil {
		defer g.caught(c)
		g.call(c)
	}
}

// due returns the hedge to make now, for which the budget has paid, or nil for no hedge.
func (g *group[T]) due() *call[T] {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return nil
	}
	pr := g.progress()
	if !g.slow && !pr.Gone {
		g.p.note(true)
	}
	g.slow = true
	d := g.p.decide(pr)
	if d.Action == Look {
		g.timer.Reset(d.Delay)
	}
	if d.Action != Start || !g.pay() {
		return nil
	}
	c := new(call[T])
	g.begin(c)
	if len(g.calls) < g.p.maxCalls() {
		g.timer.Reset(g.delay)
	}
	return c
}

// pay takes a token for a hedge, and notes if there is no token to spare. The last token is left for a retry.
func (g *group[T]) pay() bool {
	if g.p.Budget == nil {
		return true
	}
	g.refused = g.p.Budget.Tokens() < 2
	if !g.refused {
		d := retry.Policy{Budget: g.p.Budget}.Spend(g.ctx, retry.Decision{Status: retry.WaitingRetry}, time.Now())
		g.refused = d.Status != retry.WaitingRetry
	}
	return !g.refused
}

// progress returns the input of Decide when no call has ended.
func (g *group[T]) progress() *Progress {
	now := time.Now()
	newest := g.calls[len(g.calls)-1].record
	pr := &Progress{
		Calls: len(g.calls), Running: g.running, Since: now.Sub(g.began.Add(newest.Began)), Delay: g.delay,
		Gone: g.ctx.Err() != nil, Refused: g.refused, Hint: max(g.holdOff.Sub(now), 0),
	}
	if deadline, ok := g.ctx.Deadline(); ok {
		pr.Left = cmp.Or(deadline.Sub(now), -1)
	}
	return pr
}

// call calls fn and notes the result. It holds no lock while it judges an error, since a classifier and the methods of the
// error can take long and can panic.
func (g *group[T]) call(c *call[T]) {
	c.value, c.err = g.fn(c)
	c.phase = judging
	if c.err != nil {
		c.class, c.hint = retry.Policy{Classify: g.p.Classify}.Judge(c.err)
	}
	loser := g.note(c)
	c.phase = noted
	if loser != nil {
		g.drop(loser)
	}
}

// note notes the result of c. It returns the call whose value is of no use, which is c if it has lost, or else an
// earlier failure. It returns nil if there is no such call.
func (g *group[T]) note(c *call[T]) (loser *call[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running--
	now := time.Now()
	c.record.Running = false
	c.record.Duration = now.Sub(g.began) - c.record.Began
	c.record.Err = c.err
	if g.over {
		return c
	}
	loser = g.kept
	if loser != nil {
		loser.cancel()
	}
	g.kept = c
	if c == &g.first && c.err == nil && !g.slow {
		g.p.note(false)
	}
	if until := now.Add(c.hint); until.After(g.holdOff) {
		g.holdOff = until
	}
	pr := Progress{Calls: len(g.calls), Running: g.running, HasEnded: true, Ended: c.class}
	if g.p.decide(&pr).Action == End {
		g.end()
	}
	return loser
}

// caught ends the goroutine of the hedge c. If fn has panicked in it or ended it, it has Do do so too, as long as that waits.
func (g *group[T]) caught(c *call[T]) {
	if c.phase == noted {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case c.phase == judging:
		g.drop(c)
	case !g.over:
		g.p.Budget.Refund() // of a hedge that did not return, but not of one that has lost
	}
	if g.left {
		return // a panic goes on
	}
	if v := recover(); v != nil {
		g.panicked = v
	} else {
		g.exited = true
	}
	g.end()
}

// end makes the calls that are under way lose, and ends all contexts but the result's.
func (g *group[T]) end() {
	if g.over {
		return
	}
	g.over = true
	if g.timer != nil {
		g.timer.Stop()
	}
	for _, c := range g.calls {
		if c != g.kept {
			c.cancel()
		}
	}
	if g.finished != nil {
		close(g.finished)
	}
}

func (g *group[T]) observe(err error) {
	g.mu.Lock()
	e := Event{
		Policy: g.p.Name, Delay: g.delay, Slow: g.slow, Refused: g.refused, Won: g.kept.number,
		Elapsed: time.Since(g.began), Err: err, Calls: make([]Call, len(g.calls)),
	}
	for i, c := range g.calls {
		e.Calls[i] = c.record
	}
	g.mu.Unlock()
	g.p.Observe(g.ctx, e)
}
