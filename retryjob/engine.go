package retryjob

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// keptDone is how many jobs that are Succeeded, and how many that are Canceled, a shard keeps: enough for a Wait that comes a
	// moment late, little beside the jobs that wait.
	keptDone = 10_240 / shards

	// farthest is how far ahead a Job.Due may be, so that the sum of it and any age of an engine is a time.Duration.
	farthest = 200 * 365 * 24 * time.Hour
)

// Engine keeps jobs in memory and runs them in its process: nothing to install, to configure or to clean up, and nothing
// left when the process ends. Memory is memory: what must survive a restart belongs in a durable engine.
//
// A job that waits is a few hundred bytes beyond its Payload and no goroutine. Jobs that are due start in the order of
// their Priority and then of their due times, those that are due together in the order in which they were enqueued or, before a
// retry, failed. An engine with nothing under way holds no goroutine, and a timer for each queue and one more at most. How many jobs
// it takes is bounded by memory only.
//
// For an ID that the engine has generated, Get returns ErrAgedOut if the job has been removed, and ErrNeverKnown if there
// never was one. For an ID of the caller or of another engine it returns ErrUnknownJob; such an ID is free again once its job
// is removed.
//
// Jobs are removed Options.Retention after they ended, or Options.KeepSucceeded after they succeeded. Those that are Succeeded or
// Canceled are removed earlier if some 10,000 others have ended so since: Wait for a job before that, or use the policy's
// Observe.
//
// Each queue in Options.Queues has workers of its own, as many as it says. All other queues, of which no other process could
// make the jobs, share those of "default". Of the jobs of such a group that are due, those with the lowest Priority number start first.
//
// A handler that panics or ends its goroutine has failed that attempt; the engine lives on. What is beside the handler is
// treated alike: if Classify, Gate or Options.Code panics before the attempt is decided about, or the job's policy can no
// longer be found, the job is DeadLettered with TerminalError and the error in its last Attempt. A panic of Observe comes
// after the decision and is added to the text of that Attempt.
//
// An Engine is safe for concurrent use. Policies, handlers and Observe may call its methods, but not Shutdown, which waits
// for them.
type Engine struct {
	stepper Stepper
	kinds   map[string]*kind
	lanes   map[string]*lane           // of the queues in Options.Queues; that of "" has all other jobs
	kept    func(Status) time.Duration // Options.Kept
	clock   clock
	prefix  string        // of the IDs that are made up here
	issued  atomic.Uint64 // how many of them were

	// A job is in the shard of its ID, which knows all about it. Only the order in which jobs start, which is its lane's, and the
	// order in which they change are common to all.
	seed     maphash.Seed
	shards   [shards]shard
	changes  atomic.Uint64 // how often a job came to a status
	stopping atomic.Bool   // set before the shards are looked through for the last time

	sweeping atomic.Bool // sweeper is set
	sweeper  *time.Timer // guarded by the mutex of the lane of ""

	working sync.WaitGroup // the workers of all lanes
	halted  chan struct{}  // closed when stopping is set
	stopped chan struct{}  // closed when the last worker has left then
	left    []Info         // of Shutdown
	cut     error          // of Shutdown: why attempts were ended
}

var _ Queue = (*Engine)(nil)

// New returns an engine that is ready, or the error of o.Validate. Nothing runs before the first job. Shut an engine down when
// it is no longer needed, or drop it once all its jobs are final.
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
		seed:    maphash.MakeSeed(),
		halted:  make(chan struct{}),
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
	return e, nil
}

// Enqueue keeps the job and returns its handle. Beyond what Job.Validate refuses it returns ErrUnknownKind, ErrDuplicate while
// a job with that ID is there, also a final one or one whose canceled attempt still runs, and ErrShutdown; a Due more than 200 years ahead and an ID that this
// engine may yet make up are refused too. It takes a copy of the Payload. It never waits for room.
func (e *Engine) Enqueue(ctx context.Context, job Job) (Handle, error) {
	j, err := e.prepare(ctx, &job)
	if err != nil {
		return Handle{}, err
	}
	s := e.lock(j)
	t, err := e.add(s, j)
	s.mu.Unlock()
	if err != nil {
		return Handle{}, err
	}
	e.wait(t, j.enqueued)
	return Handle{j.id, e}, nil
}

// EnqueueMany is Enqueue for many jobs: all of them or, with the error of one, none.
func (e *Engine) EnqueueMany(ctx context.Context, jobs []Job) ([]Handle, error) {
	of := func(i int, err error) error { return fmt.Errorf("retryjob: job %d of %d: %w", i+1, len(jobs), err) }
	news := make([]*job, len(jobs))
	for i, job := range jobs {
		var err error
		if news[i], err = e.prepare(ctx, &job); err != nil {
			return nil, of(i, err)
		}
	}
	turns, err := e.addAll(news)
	if err != nil {
		return nil, of(len(turns), err)
	}
	handles := make([]Handle, len(jobs))
	for i, j := range news {
		e.wait(turns[i], j.enqueued)
		handles[i] = Handle{j.id, e}
	}
	return handles, nil
}

// addAll takes in jobs, or none of them if it returns an error, with the turns of those before it.
func (e *Engine) addAll(news []*job) (turns []turn, err error) {
	for i := range e.shards { // in this order, and only here is more than one locked
		e.shards[i].mu.Lock()
		defer e.shards[i].mu.Unlock()
	}
	for i, j := range news {
		t, err := e.add(&e.shards[j.hash%shards], j)
		if err != nil {
			for _, j := range news[:i] {
				e.shards[j.hash%shards].remove(j)
			}
			return turns, err
		}
		turns = append(turns, t)
	}
	return turns, nil
}

// prepare checks a job and gives it an ID if it has none.
func (e *Engine) prepare(ctx context.Context, job *Job) (*job, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := job.Validate(e.stepper.Policies); err != nil {
		return nil, err
	}
	k := e.kinds[job.Kind]
	if k == nil {
		return nil, fmt.Errorf("retryjob: Job.Kind %q: %w", job.Kind, ErrUnknownKind)
	}
	now := e.clock.now()
	due := now
	if !job.Due.IsZero() {
		delay := time.Until(job.Due)
		if delay > farthest {
			return nil, fmt.Errorf("retryjob: Job.Due %v is more than 200 years ahead", job.Due)
		}
		due = now.after(max(delay, 0))
	}
	made := job.ID == ""
	if made {
		var id [64]byte
		job.ID = string(strconv.AppendUint(append(id[:0], e.prefix...), e.issued.Add(1), 10))
	} else if n, ours := e.number(job.ID); ours && n > e.issued.Load() {
		return nil, fmt.Errorf("retryjob: Job.ID %q has the form of the IDs that this engine makes up", job.ID)
	} else {
		job.ID = strings.Clone(job.ID) // the caller's may be a part of something big
	}
	j := newJob(job, k.route(e, job))
	j.hash, j.enqueued, j.first, j.at, j.fresh = maphash.String(e.seed, j.id), now, due, due, made
	return j, nil
}

// add takes in a job of s, which is locked.
func (e *Engine) add(s *shard, j *job) (turn, error) {
	if e.stopping.Load() {
		return turn{}, ErrShutdown
	}
	if !j.fresh {
		if old := s.find(j.id, j.hash); old != nil {
			if !e.aged(old, j.enqueued) || old.underWay() {
				return turn{}, fmt.Errorf("%w: %q", ErrDuplicate, j.id)
			}
			s.remove(old)
		}
	}
	s.put(j)
	return e.store(j, Pending), nil
}

// Get returns the job with the given ID, or ErrAgedOut, ErrNeverKnown or ErrUnknownJob.
func (e *Engine) Get(ctx context.Context, id string) (Info, error) {
	if err := ctx.Err(); err != nil {
		return Info{}, err
	}
	return e.Inspect(id)
}

// Inspect is Get without a context: nothing here can take long.
func (e *Engine) Inspect(id string) (i Info, err error) {
	err = e.with(id, func(j *job) error {
		i = j.info(e.clock)
		return nil
	})
	return i, err
}

// Wait returns the job as it was when its Status became final, even if it has been replayed or removed since. If ctx ends
// first, Wait returns the job as it is then, with ctx's error; if the engine is shut down and the job left, with ErrShutdown.
// For a job that is not there it returns the error of Get.
func (e *Engine) Wait(ctx context.Context, id string) (i Info, err error) {
	var j *job
	var w *watch
	err = e.with(id, func(found *job) error {
		switch j = found; {
		case j.status.Final():
			i = j.info(e.clock)
		case e.stopping.Load() && j.status != Leased:
			i = j.info(e.clock)
			return ErrShutdown
		default:
			w = j.waitedFor()
		}
		return nil
	})
	if w == nil {
		return i, err
	}
	for halted := e.halted; ; halted = nil {
		select {
		case <-w.done:
			return w.end, w.err
		case <-ctx.Done():
			err = ctx.Err()
		case <-halted:
			err = ErrShutdown
		}
		if i, err, left := j.leave(e, w, err); left {
			return i, err
		}
	}
}

const (
	madeUp     = "mem-" // IDs that an Engine makes up are this, the name of the engine, a hyphen and a number
	nameLength = 13     // of 5 bits each, so that no two engines share one
)

// with calls f for the job with the given ID while its shard is locked. If there is none, it returns an error that says as
// much about it as can be known.
func (e *Engine) with(id string, f func(*job) error) error {
	hash := maphash.String(e.seed, id)
	s := &e.shards[hash%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.find(id, hash); j != nil && j.status != 0 && !e.aged(j, e.clock.now()) {
		return f(j)
	}
	n, ours := e.number(id)
	switch {
	case ours && n <= e.issued.Load():
		return fmt.Errorf("%w: %q", ErrAgedOut, id)
	case ours:
		return fmt.Errorf("%w: %q", ErrNeverKnown, id)
	case strings.HasPrefix(id, madeUp) && len(id) > len(e.prefix) && id[len(e.prefix)-1] == '-':
		return fmt.Errorf("%w: %.300q was made up by another engine in memory, and what is in memory ends with its process", ErrUnknownJob, id)
	default:
		return fmt.Errorf("%w: %.300q", ErrUnknownJob, id)
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
