package retryjob

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// farthest is how far ahead a Job.Due may be, so that the sum of it and any age of an engine is a time.Duration.
const farthest = 200 * 365 * 24 * time.Hour

// Engine keeps jobs in memory and runs them in its process. It needs no installation, configuration or cleanup. Its
// jobs are lost when the process ends, so use a durable engine for jobs that must survive a restart.
//
// A waiting job takes a few hundred bytes beyond its Payload and no goroutine. Due jobs start in the order of their
// Priority and then of their due times. Jobs that are due at the same time start in the order in which they were
// enqueued or, before a retry, failed. An engine without running attempts has no goroutine and at most one timer, and
// one of each for each of Options.Recurring. Only memory bounds the number of jobs.
//
// For an ID of the form that the engine generates, Get returns ErrAgedOut if the job was removed, and ErrNeverKnown if
// there was no such job. For any other ID it returns ErrUnknownJob. Such an ID can be used again once its job is
// removed.
//
// Jobs are removed Options.Retention after they ended, or Options.KeepSucceeded after they succeeded. Succeeded and
// Canceled jobs are removed earlier once about 10,000 later jobs have that status: call Wait before that, or use the
// policy's Observe.
//
// Each queue in Options.Queues has as many workers as Queues says. All other queues share the workers of "default",
// since no other process could run their jobs. Among the due jobs of one group of workers, those with the lowest
// Priority number start first.
//
// An attempt whose handler panics or ends its goroutine has failed, and the engine continues. If Classify, Gate or
// Options.Code panics before the attempt is decided about, the job is DeadLettered with TerminalError, and its last
// Attempt has the error. A panic of Observe comes after the decision and is added to the text of that Attempt. If
// Policies returns an error or panics, the job is put off for PutOff, which does not count as an attempt.
//
// An Engine is safe for concurrent use. Policies, handlers and Observe may call its methods except Shutdown, which
// waits for them.
type Engine struct {
	stepper      Stepper
	kinds        map[string]*kind
	kept         func(Status) time.Duration // Options.Kept
	clock        clock
	prefix       string        // of the IDs that this engine generates
	issued       atomic.Uint64 // the number of IDs generated so far
	endRecurring func()        // nil if no job is recurring

	// mu guards all that follows, and the jobs.
	mu        sync.Mutex
	jobs      map[string]*job
	logs      [Canceled + 1]log // the jobs by status; the log of 0 is not used
	changes   uint64            // the number of times that a job changed its status
	lanes     map[string]*lane  // of the queues in Options.Queues; the lane of "" has all other jobs
	watches   map[*job]*watch   // of the jobs that callers of Wait wait for
	schedules map[string]Schedule
	timer     *time.Timer
	armed     instant // when the timer fires; 0 means that it is not set
	stopping  bool    // Shutdown was called

	stopped chan struct{} // closed once the last worker has left after that; left and cut do not change any more
	left    []Info        // of Shutdown
	cut     error         // of Shutdown: the reason why attempts were ended
}

var _ Queue = (*Engine)(nil)

// New returns an engine that is ready to use, or the error of o.Validate. It starts no goroutine before the first job.
// Call Shutdown when the engine is no longer needed, or drop the engine once all its jobs are final.
func New(o Options) (*Engine, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	e := &Engine{
		kinds:   map[string]*kind{},
		lanes:   map[string]*lane{"": {concurrency: cmp.Or(o.Queues["default"], o.Concurrency, 16*runtime.GOMAXPROCS(0))}},
		kept:    o.Kept,
		clock:   clock{time.Now().Add(-time.Second)},
		prefix:  madeUp + NewID()[:nameLength] + "-",
		jobs:    map[string]*job{},
		watches: map[*job]*watch{},
		stopped: make(chan struct{}),
	}
	e.stepper = Stepper{Policies: o.Policies, Code: o.Code, Now: func() time.Time { return e.clock.time(e.clock.now()) }, unnamed: true}
	for name, h := range o.Handlers {
		e.kinds[name] = &kind{name: name, handler: h}
	}
	for name, most := range o.Queues {
		if name != "default" {
			e.lanes[name] = &lane{concurrency: most}
		}
	}
	if len(o.Recurring) > 0 {
		o.Recurring, o.Handlers = slices.Clone(o.Recurring), nil // a new engine has no jobs of removed names
		ctx, end := context.WithCancel(context.Background())
		e.endRecurring = end
		go o.Recur(ctx, e)
	}
	return e, nil
}

// Enqueue keeps the job and returns its handle. It returns the error of Job.Validate, ErrUnknownKind, ErrShutdown, or
// ErrDuplicate if the engine has a job with that ID, even a final one or one whose canceled attempt still runs. It also
// refuses a Due more than 200 years ahead and an ID that this engine may yet generate. It copies the Payload. It never
// blocks for lack of room.
func (e *Engine) Enqueue(ctx context.Context, job Job) (Handle, error) {
	j, err := e.prepare(ctx, &job)
	if err != nil {
		return Handle{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.add(j, job.ID != ""); err != nil {
		return Handle{}, err
	}
	e.store(j, Pending, j.enqueued)
	return Handle{j.id, e}, nil
}

// EnqueueMany enqueues all of the jobs or, with the error of one of them, none. It is otherwise like Enqueue.
func (e *Engine) EnqueueMany(ctx context.Context, jobs []Job) ([]Handle, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	of := func(i int, err error) error { return fmt.Errorf("retryjob: job %d of %d: %w", i+1, len(jobs), err) }
	news, handles := make([]*job, len(jobs)), make([]Handle, len(jobs))
	for i, job := range jobs {
		var err error
		if news[i], err = e.prepare(ctx, &job); err != nil {
			return nil, of(i, err)
		}
		handles[i] = Handle{news[i].id, e}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, j := range news {
		if err := e.add(j, jobs[i].ID != ""); err != nil {
			for _, j := range news[:i] {
				delete(e.jobs, j.id)
			}
			return nil, of(i, err)
		}
	}
	for _, j := range news {
		e.store(j, Pending, j.enqueued)
	}
	return handles, nil
}

// prepare checks a job and generates its ID if it is empty.
func (e *Engine) prepare(ctx context.Context, j *Job) (*job, error) {
	if err := contextErr(ctx); err != nil {
		return nil, err
	}
	if err := j.Validate(e.stepper.Policies); err != nil {
		return nil, err
	}
	k := e.kinds[j.Kind]
	if k == nil {
		return nil, fmt.Errorf("retryjob: Job.Kind %q: %w", j.Kind, ErrUnknownKind)
	}
	now := e.clock.now()
	due := now
	if !j.Due.IsZero() {
		delay := time.Until(j.Due)
		if delay > farthest {
			return nil, fmt.Errorf("retryjob: Job.Due %v is more than 200 years ahead", j.Due)
		}
		due = now.after(max(delay, 0))
	}
	if string(bytes.TrimSpace(j.Payload)) == "null" {
		j.Payload = nil
	}
	id := strings.Clone(j.ID) // the caller's string may be part of a longer one
	if id == "" {
		id = string(strconv.AppendUint(append(make([]byte, 0, 64), e.prefix...), e.issued.Add(1), 10))
	} else if n := e.number(id); n > e.issued.Load() {
		return nil, fmt.Errorf("retryjob: Job.ID %q has the form of the IDs that this engine generates", id)
	}
	return &job{
		id: id, route: k.route(e, j), payload: string(j.Payload), correlation: strings.Clone(j.Correlation),
		priority: uint8(max(j.Priority, 1) - 1), enqueued: now, first: due, at: due,
	}, nil
}

// add adds a job without a status. If the caller gave the ID, there may be a job with it.
func (e *Engine) add(j *job, given bool) error {
	if e.stopping {
		return ErrShutdown
	}
	if given {
		if old := e.jobs[j.id]; old != nil && (old.attempt != nil || !e.aged(old, j.enqueued)) {
			return fmt.Errorf("%w: %q", ErrDuplicate, j.id)
		} else if old != nil {
			e.remove(old)
		}
	}
	e.jobs[j.id] = j
	return nil
}

// Get returns the job with the given ID, or ErrAgedOut, ErrNeverKnown or ErrUnknownJob.
func (e *Engine) Get(ctx context.Context, id string) (i Info, err error) {
	err = e.with(ctx, id, func(j *job) error {
		j.info(&i, e.clock)
		return nil
	})
	return i, err
}

// Wait returns the job as it was when its Status became final, even if it has been replayed or removed since. If ctx
// ends first, it returns the current job and ctx's error. If the engine is shut down before the job is final, it
// returns the current job and ErrShutdown. If there is no such job, it returns the error of Get.
func (e *Engine) Wait(ctx context.Context, id string) (i Info, err error) {
	if ctx == nil {
		return i, errNoContext
	}
	var j *job
	var w *watch
	err = e.with(context.Background(), id, func(found *job) error {
		j = found
		j.info(&i, e.clock)
		if j.status.Final() {
			return nil
		}
		if e.stopping && j.status != Leased {
			return ErrShutdown
		}
		if w = e.watches[j]; w == nil {
			w = &watch{done: make(chan struct{})}
			e.watches[j] = w
		}
		w.callers++
		return nil
	})
	if w == nil {
		return i, err
	}
	select {
	case <-w.done:
		return w.end, w.err
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watches[j] != w {
		return w.end, w.err
	}
	if w.callers--; w.callers == 0 {
		delete(e.watches, j)
	}
	j.info(&i, e.clock)
	return i, ctx.Err()
}

// watch is shared by the callers of Wait for a job. It has the job as it was when it ended, without later changes.
type watch struct {
	callers int           // of Wait that have not returned
	done    chan struct{} // closed when end and err are set
	end     Info
	err     error
}

// release ends the calls of Wait for j.
func (e *Engine) release(j *job, err error) {
	if w := e.watches[j]; w != nil {
		delete(e.watches, j)
		w.err = err
		j.info(&w.end, e.clock)
		close(w.done)
	}
}

const (
	madeUp     = "mem-" // a generated ID is this, the name of the engine, a hyphen and a number
	nameLength = 13     // characters of 5 bits each, so that no two engines have the same name
)

var errNoContext = errors.New("retryjob: ctx is nil")

// contextErr returns the error of ctx, or errNoContext.
func contextErr(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	return ctx.Err()
}

// with calls f for the job with the given ID while the engine is locked. If there is no such job, it returns the most
// specific error.
func (e *Engine) with(ctx context.Context, id string, f func(*job) error) error {
	if err := contextErr(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if j := e.jobs[id]; j != nil && j.status != 0 && !e.aged(j, e.clock.now()) {
		return f(j)
	}
	switch n := e.number(id); {
	case n > e.issued.Load():
		return fmt.Errorf("%w: %q", ErrNeverKnown, id)
	case n > 0:
		return fmt.Errorf("%w: %q", ErrAgedOut, id)
	case strings.HasPrefix(id, madeUp) && len(id) > len(e.prefix) && id[len(e.prefix)-1] == '-':
		return fmt.Errorf("%w: %.300q is of another engine in memory, whose jobs ended with its process", ErrUnknownJob, id)
	default:
		return fmt.Errorf("%w: %.300q", ErrUnknownJob, id)
	}
}

// number returns the number in an ID of the form that this engine generates, and 0 for any other ID.
func (e *Engine) number(id string) uint64 {
	digits, ours := strings.CutPrefix(id, e.prefix)
	if !ours || strings.HasPrefix(digits, "0") {
		return 0
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return 0
	}
	return n
}

// clock turns times into instants and back.
type clock struct{ epoch time.Time }

// instant is a time in nanoseconds since the epoch of an engine, which is a second before the engine was made, so that
// 0 can mean no time. It is a third of the size of a time.Time, and changes of the wall clock do not affect it.
type instant int64

func (c clock) now() instant { return instant(time.Since(c.epoch)) }

func (c clock) instant(t time.Time) instant {
	if t.IsZero() {
		return 0
	}
	return instant(t.Sub(c.epoch))
}

func (c clock) time(i instant) time.Time {
	if i == 0 {
		return time.Time{}
	}
	return c.epoch.Add(time.Duration(i))
}

// after returns i + d, or the last instant if that is too late.
func (i instant) after(d time.Duration) instant {
	if d > math.MaxInt64-time.Duration(i) {
		return math.MaxInt64
	}
	return i + instant(d)
}
