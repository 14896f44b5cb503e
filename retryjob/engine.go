package retryjob

import (
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// keptDone is how many jobs that are Succeeded or Canceled an Engine keeps: enough for a Wait that comes a moment late,
	// little beside the jobs that wait.
	keptDone = 10_000

	// farthest is how far ahead a Job.Due may be, so that the sum of it and any age of an engine is a time.Duration.
	farthest = 200 * 365 * 24 * time.Hour
)

// Engine keeps jobs in memory and runs them in its process: nothing to install, to configure or to clean up, and nothing
// left when the process ends. Memory is memory: what must survive a restart belongs in a durable engine.
//
// A job that waits is a few hundred bytes beyond its Payload and no goroutine; jobs that are due start in the order of
// their due times, those that are due together in the order in which they were enqueued. An engine with nothing under way
// holds no goroutine and one timer at most. How many jobs it takes is bounded by memory only.
//
// For an ID that the engine has generated, Get returns ErrAgedOut if the job has been removed, and ErrNeverKnown if there
// never was one. For an ID of the caller or of another engine it returns ErrUnknownJob; such an ID is free again once its job
// is removed.
//
// Jobs are removed Options.Retention after they ended, or Options.KeepSucceeded after they succeeded. Those that are Succeeded or
// Canceled are removed earlier if 10,000 others of them have ended since: Wait for a job before that, or use the policy's
// Observe.
//
// Queue and Priority are kept, and change nothing: jobs start in the order of their due times, up to Options.Concurrency of
// them at once. For a limit of its own, give a kind of work an engine of its own.
//
// A handler that panics or ends its goroutine has failed that attempt; the engine lives on. What is beside the handler is
// treated alike: if Classify, Gate or Options.Code panics before the attempt is decided about, or the job's policy can no
// longer be found, the job is DeadLettered with TerminalError and the error in its last Attempt. A panic of Observe comes
// after the decision and is added to the text of that Attempt.
//
// An Engine is safe for concurrent use. Policies, handlers and Observe may call its methods, but not Shutdown, which waits
// for them.
type Engine struct {
	stepper     Stepper
	handlers    map[string]Handler
	concurrency int
	kept        func(Status) time.Duration // Options.Kept
	clock       clock
	prefix      string        // of the IDs that are made up here
	issued      atomic.Uint64 // how many of them were

	mu       sync.Mutex // guards all below
	jobs     map[string]*job
	shelves  [Canceled + 1]shelf
	agenda   agenda
	enqueued uint64 // how many jobs were
	changes  uint64 // how often a job came to a status

	workers int          // goroutines that make attempts, at most concurrency
	coming  atomic.Int32 // those that are about to ask for an attempt; it is read and written without the lock
	timer   *time.Timer
	armed   instant // when the timer fires; 0 means that it is not set

	stopping bool
	stopped  chan struct{} // closed when stopping and the last worker has left
	left     []Info        // of Shutdown
	cut      error         // of Shutdown: why attempts were ended
}

var _ Queue = (*Engine)(nil)

// New returns an engine that is ready, or the error of o.Validate. Nothing runs before the first job. Shut an engine down when
// it is no longer needed, or drop it once all its jobs are final.
func New(o Options) (*Engine, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	e := &Engine{
		stepper:     Stepper{Policies: o.Policies, Code: o.Code},
		handlers:    maps.Clone(o.Handlers),
		concurrency: o.Concurrency,
		kept:        o.Kept,
		clock:       clock{time.Now().Add(-time.Second)},
		prefix:      madeUp + NewID()[:nameLength] + "-",
		jobs:        map[string]*job{},
		stopped:     make(chan struct{}),
	}
	if e.concurrency == 0 {
		e.concurrency = 16 * runtime.GOMAXPROCS(0)
	}
	return e, nil
}

// Enqueue keeps the job and returns its handle. Beyond what Job.Validate refuses it returns ErrUnknownKind, ErrDuplicate while
// a job with that ID is there, also a final one or one whose canceled attempt still runs, and ErrShutdown; a Due more than 200 years ahead and an ID that this
// engine may yet make up are refused too. It takes a copy of the Payload. It never waits for room.
func (e *Engine) Enqueue(ctx context.Context, job Job) (Handle, error) {
	j, due, err := e.prepare(ctx, &job)
	if err != nil {
		return Handle{}, err
	}
	e.lock()
	err = e.add(j, due)
	e.mu.Unlock()
	if err != nil {
		return Handle{}, err
	}
	return Handle{j.id, e}, nil
}

// EnqueueMany is Enqueue for many jobs: all of them or, with the error of one, none.
func (e *Engine) EnqueueMany(ctx context.Context, jobs []Job) ([]Handle, error) {
	news, due := make([]*job, len(jobs)), make([]instant, len(jobs))
	for i, job := range jobs {
		var err error
		if news[i], due[i], err = e.prepare(ctx, &job); err != nil {
			return nil, fmt.Errorf("retryjob: job %d of %d: %w", i+1, len(jobs), err)
		}
	}
	e.lock()
	defer e.mu.Unlock()
	handles, ids := make([]Handle, len(jobs)), make(map[string]bool, len(jobs))
	for i, j := range news {
		err := e.room(j.id)
		if err == nil && ids[j.id] {
			err = fmt.Errorf("%w: %q", ErrDuplicate, j.id)
		}
		if err != nil {
			return nil, fmt.Errorf("retryjob: job %d of %d: %w", i+1, len(jobs), err)
		}
		ids[j.id], handles[i] = true, Handle{j.id, e}
	}
	for i, j := range news {
		_ = e.add(j, due[i]) // there is room
	}
	return handles, nil
}

// prepare checks a job, gives it an ID if it has none, and returns it with its due time, 0 for at once.
func (e *Engine) prepare(ctx context.Context, job *Job) (*job, instant, error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	if err := job.Validate(e.stepper.Policies); err != nil {
		return nil, 0, err
	}
	if e.handlers[job.Kind] == nil {
		return nil, 0, fmt.Errorf("retryjob: Job.Kind %q: %w", job.Kind, ErrUnknownKind)
	}
	var due instant // 0 means at once
	if now := time.Now(); job.Due.After(now) {
		delay := job.Due.Sub(now)
		if delay > farthest {
			return nil, 0, fmt.Errorf("retryjob: Job.Due %v is more than 200 years ahead", job.Due)
		}
		due = e.clock.instant(now).after(delay)
	}
	if job.ID == "" {
		var id [64]byte
		job.ID = string(strconv.AppendUint(append(id[:0], e.prefix...), e.issued.Add(1), 10))
	} else if n, ours := e.number(job.ID); ours && n > e.issued.Load() {
		return nil, 0, fmt.Errorf("retryjob: Job.ID %q has the form of the IDs that this engine makes up", job.ID)
	} else {
		job.ID = strings.Clone(job.ID) // the caller's may be a part of something big
	}
	return newJob(job), due, nil
}

// room returns nil if a job with that ID can be taken in.
func (e *Engine) room(id string) error {
	e.sweep(e.clock.now())
	if e.stopping {
		return ErrShutdown
	}
	if e.jobs[id] != nil {
		return fmt.Errorf("%w: %q", ErrDuplicate, id)
	}
	return nil
}

// add takes in a job that is due then, or at once if due is 0.
func (e *Engine) add(j *job, due instant) error {
	if err := e.room(j.id); err != nil {
		return err
	}
	now := e.clock.now()
	e.jobs[j.id] = j
	e.enqueued++
	j.seq, j.enqueued = e.enqueued, now
	if due == 0 {
		j.first, j.at = now, now
		e.agenda.enqueue(j)
	} else {
		j.first, j.at = due, due
		e.agenda.wait(j)
	}
	e.become(j, Pending)
	e.drive(now)
	return nil
}

// Get returns the job with the given ID, or ErrAgedOut, ErrNeverKnown or ErrUnknownJob.
func (e *Engine) Get(ctx context.Context, id string) (Info, error) {
	if err := ctx.Err(); err != nil {
		return Info{}, err
	}
	return e.Inspect(id)
}

// Inspect is Get without a context: nothing here can take long.
func (e *Engine) Inspect(id string) (Info, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	j, err := e.find(id)
	if err != nil {
		return Info{}, err
	}
	return e.info(j), nil
}

// Wait returns the job as it was when its Status became final, even if it has been replayed or removed since. If ctx ends
// first, Wait returns the job as it is then, with ctx's error; if the engine is shut down and the job left, with ErrShutdown.
// For a job that is not there it returns the error of Get.
func (e *Engine) Wait(ctx context.Context, id string) (Info, error) {
	e.mu.Lock()
	j, err := e.find(id)
	if err != nil || j.status.Final() || e.stopping && j.status != Leased {
		defer e.mu.Unlock()
		switch {
		case err != nil:
			return Info{}, err
		case !j.status.Final():
			err = ErrShutdown
		}
		return e.info(j), err
	}
	w := j.waitedFor()
	e.mu.Unlock()
	select {
	case <-w.done:
		return w.end, w.err
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-w.done: // it ended with ctx, and the end is what was asked for
		return w.end, w.err
	default:
		j.leave(w)
		return e.info(j), ctx.Err()
	}
}

const (
	madeUp     = "mem-" // IDs that an Engine makes up are this, the name of the engine, a hyphen and a number
	nameLength = 13     // of 5 bits each, so that no two engines share one
)

// find returns the job with the given ID, or an error that says as much about it as can be known.
func (e *Engine) find(id string) (*job, error) {
	e.sweep(e.clock.now())
	if j := e.jobs[id]; j != nil && !(j.underWay() && j.live.removed) {
		return j, nil
	}
	n, ours := e.number(id)
	switch {
	case ours && n <= e.issued.Load():
		return nil, fmt.Errorf("%w: %q", ErrAgedOut, id)
	case ours:
		return nil, fmt.Errorf("%w: %q", ErrNeverKnown, id)
	case strings.HasPrefix(id, madeUp) && len(id) > len(e.prefix) && id[len(e.prefix)-1] == '-':
		return nil, fmt.Errorf("%w: %.300q was made up by another engine in memory, and what is in memory ends with its process", ErrUnknownJob, id)
	default:
		return nil, fmt.Errorf("%w: %.300q", ErrUnknownJob, id)
	}
}

// number returns the number of an ID that this engine makes up, and reports whether id has the form of one.
func (e *Engine) number(id string) (uint64, bool) {
	digits, ours := strings.CutPrefix(id, e.prefix)
	if !ours {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0 && digits[0] != '0' && digits[0] != '+'
}

// clock turns times into instants and back.
type clock struct{ epoch time.Time }

// instant is a time in nanoseconds since an engine's epoch, which lies a second before the engine was made so that 0 is
// free to mean none. It is a third of a time.Time, and the clock on the wall does not move it.
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
