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
	// keptDone is how many jobs that are Succeeded, and how many that are Canceled, a shard keeps: enough for a Wait
	// that comes a moment late, little beside the jobs that wait. Of those that were removed it keeps the memory of as
	// many.
	keptDone = 10_240 / shards

	// farthest is how far ahead a Job.Due may be, so that the sum of it and any age of an engine is a time.Duration.
	farthest = 200 * 365 * 24 * time.Hour
)

// Engine keeps jobs in memory and runs them in its process: nothing to install, to configure or to clean up, and
// nothing left when the process ends. Memory is memory: what must survive a restart belongs in a durable engine.
//
// A job that waits is a few hundred bytes beyond its Payload and no goroutine. Jobs that are due start in the order of
// their Priority and then of their due times, those that are due together in the order in which they were enqueued or,
// before a retry, failed. An engine with nothing under way holds no goroutine, and a timer for each queue and one more
// at most. How many jobs it takes is bounded by memory only.
//
// For an ID that the engine has generated, Get returns ErrAgedOut if the job has been removed, and ErrNeverKnown if
// there never was one. For an ID of the caller or of another engine it returns ErrUnknownJob; such an ID is free again
// once its job is removed.
//
// Jobs are removed Options.Retention after they ended, or Options.KeepSucceeded after they succeeded. Those that are
// Succeeded or Canceled are removed earlier if some 10,000 others have ended so since: Wait for a job before that, or
// use the policy's Observe.
//
// Each queue in Options.Queues has workers of its own, as many as it says. All other queues, of which no other process
// could make the jobs, share those of "default". Of the jobs of such a group that are due, those with the lowest
// Priority number start first.
//
// A handler that panics or ends its goroutine has failed that attempt; the engine lives on. What is beside the handler
// is treated alike: if Classify, Gate or Options.Code panics before the attempt is decided about, or the job's policy
// can no longer be found, the job is DeadLettered with TerminalError and the error in its last Attempt. A panic of
// Observe comes after the decision and is added to the text of that Attempt.
//
// An Engine is safe for concurrent use. Policies, handlers and Observe may call its methods, but not Shutdown, which
// waits for them.
type Engine struct {
	stepper Stepper
	kinds   map[string]*kind
	lanes   map[string]*lane           // of the queues in Options.Queues; that of "" has all other jobs
	kept    func(Status) time.Duration // Options.Kept
	clock   clock
	prefix  string // of the IDs that are made up here
	seed    maphash.Seed

	mu       sync.Mutex // guards sweeper; it is locked while a shard is, not the other way around
	sweeper  *time.Timer
	sweepAt  atomic.Int64 // the instant for which it is set; 0 means that it is not
	stopping atomic.Bool  // set before the shards are looked through for the last time

	// A job is in the shard of its ID, which knows all about it. Only the order in which jobs start, which is its
	// lane's, and the order in which they change are common to all. What is written with each job is apart from what is
	// only read, so that cores do not take it from each other.
	shards  [shards]shard
	issued  atomic.Uint64 // how many IDs were made up here
	changes atomic.Uint64 // how often a job came to a status

	working sync.WaitGroup        // the workers of all lanes
	halted  chan struct{}         // closed when stopping is set
	stopped chan struct{}         // closed when the last worker has left then
	left    []Info                // of Shutdown
	cut     atomic.Pointer[error] // of Shutdown: why attempts were ended
}

var _ Queue = (*Engine)(nil)

// New returns an engine that is ready, or the error of o.Validate. Nothing runs before the first job. Shut an engine
// down when it is no longer needed, or drop it once all its jobs are final.
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
	for i := range e.shards {
		e.shards[i] = shard{made: map[uint64]*page{}, named: map[string]*job{}, watches: map[*job]*watch{}}
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

// Enqueue keeps the job and returns its handle. Beyond what Job.Validate refuses it returns ErrUnknownKind,
// ErrDuplicate while a job with that ID is there, also a final one or one whose canceled attempt still runs, and
// ErrShutdown; a Due more than 200 years ahead and an ID that this engine may yet make up are refused too. It takes a
// copy of the Payload. It never waits for room.
func (e *Engine) Enqueue(ctx context.Context, job Job) (Handle, error) {
	j, err := e.prepare(ctx, &job)
	if err != nil {
		return Handle{}, err
	}
	s := e.lock(&j)
	defer s.mu.Unlock()
	added, err := e.add(s, &j, job.ID != "")
	if err != nil {
		return Handle{}, err
	}
	e.store(added, Pending, j.enqueued)
	return Handle{j.id, e}, nil
}

// EnqueueMany is Enqueue for many jobs: all of them or, with the error of one, none.
func (e *Engine) EnqueueMany(ctx context.Context, jobs []Job) ([]Handle, error) {
	of := func(i int, err error) error { return fmt.Errorf("retryjob: job %d of %d: %w", i+1, len(jobs), err) }
	news := make([]job, len(jobs))
	for i, job := range jobs {
		var err error
		if news[i], err = e.prepare(ctx, &job); err != nil {
			return nil, of(i, err)
		}
	}
	for i := range e.shards { // in this order, and only here is more than one locked
		e.shards[i].mu.Lock()
		defer e.shards[i].mu.Unlock()
	}
	added := make([]*job, len(jobs))
	for i := range news {
		var err error
		if added[i], err = e.add(e.shard(news[i].place), &news[i], jobs[i].ID != ""); err != nil {
			for _, j := range added[:i] {
				e.drop(j)
			}
			return nil, of(i, err)
		}
	}
	handles := make([]Handle, len(jobs))
	for i, j := range added {
		e.store(j, Pending, j.enqueued)
		handles[i] = Handle{j.id, e}
	}
	return handles, nil
}

// prepare checks a job and gives it an ID if it has none.
func (e *Engine) prepare(ctx context.Context, j *Job) (made job, err error) {
	if err := ctx.Err(); err != nil {
		return made, err
	}
	if err := j.Validate(e.stepper.Policies); err != nil {
		return made, err
	}
	k := e.kinds[j.Kind]
	if k == nil {
		return made, fmt.Errorf("retryjob: Job.Kind %q: %w", j.Kind, ErrUnknownKind)
	}
	now := e.clock.now()
	due := now
	if !j.Due.IsZero() {
		delay := time.Until(j.Due)
		if delay > farthest {
			return made, fmt.Errorf("retryjob: Job.Due %v is more than 200 years ahead", j.Due)
		}
		due = now.after(max(delay, 0))
	}
	id := strings.Clone(j.ID) // the caller's may be a part of something big
	place := e.place(id)
	switch {
	case id == "":
		var text [64]byte
		place = e.issued.Add(1)
		id = string(strconv.AppendUint(append(text[:0], e.prefix...), place, 10))
	case place < named && place > e.issued.Load():
		return made, fmt.Errorf("retryjob: Job.ID %q has the form of the IDs that this engine makes up", id)
	}
	return job{
		id: id, place: place, route: k.route(e, j), payload: payloadOf(j), correlation: strings.Clone(j.Correlation),
		priority: uint8(max(j.Priority, 1) - 1), enqueued: now, first: due, at: due,
	}, nil
}

// add takes a copy of a job into s, which is locked, but without a status. A job with an ID that was given may be
// there.
func (e *Engine) add(s *shard, made *job, given bool) (*job, error) {
	if e.stopping.Load() {
		return nil, ErrShutdown
	}
	if given {
		if old := s.find(made.id, made.place); old != nil && (old.attempt != nil || !e.aged(old, made.enqueued)) {
			return nil, fmt.Errorf("%w: %q", ErrDuplicate, made.id)
		} else if old != nil {
			e.remove(old)
		}
	}
	return s.put(made), nil
}

// Get returns the job with the given ID, or ErrAgedOut, ErrNeverKnown or ErrUnknownJob.
func (e *Engine) Get(ctx context.Context, id string) (i Info, err error) {
	err = e.with(ctx, id, func(j *job) error {
		j.info(&i, e.clock)
		return nil
	})
	return i, err
}

// Inspect is Get without a context: nothing here can take long.
func (e *Engine) Inspect(id string) (Info, error) { return e.Get(context.Background(), id) }

// Wait returns the job as it was when its Status became final, even if it has been replayed or removed since. If ctx
// ends first, Wait returns the job as it is then, with ctx's error; if the engine is shut down and the job left, with
// ErrShutdown. For a job that is not there it returns the error of Get.
func (e *Engine) Wait(ctx context.Context, id string) (i Info, err error) {
	var s *shard
	var j *job
	var w *watch
	err = e.with(context.Background(), id, func(found *job) error {
		switch s, j = e.shard(found.place), found; {
		case j.status.Final():
			j.info(&i, e.clock)
		case e.stopping.Load() && j.status != Leased:
			j.info(&i, e.clock)
			return ErrShutdown
		default:
			if w = s.watches[j]; w == nil {
				w = &watch{done: make(chan struct{})}
				s.watches[j] = w
			}
			w.callers++
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
		if i, err, left := e.leave(s, j, w, err); left {
			return i, err
		}
	}
}

// watch is what the callers of Wait for a job share: the job as it was when it ended, which later changes do not reach.
type watch struct {
	callers int           // that still wait
	done    chan struct{} // closed when end and err are set
	end     Info
	err     error
}

// leave ends a call of Wait with err, or with what w has by now. It reports false if an attempt is under way that
// ErrShutdown does not end.
func (e *Engine) leave(s *shard, j *job, w *watch, err error) (i Info, _ error, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches[j] != w {
		return w.end, w.err, true
	}
	if err == ErrShutdown && !j.waits() {
		return i, nil, false
	}
	if w.callers--; w.callers == 0 {
		delete(s.watches, j)
	}
	j.info(&i, e.clock)
	return i, err, true
}

// release ends the calls of Wait for j.
func (e *Engine) release(j *job, err error) {
	s := e.shard(j.place)
	if w := s.watches[j]; w != nil {
		delete(s.watches, j)
		w.err = err
		j.info(&w.end, e.clock)
		close(w.done)
	}
}

const (
	madeUp     = "mem-" // IDs that an Engine makes up are this, the name of the engine, a hyphen and a number
	nameLength = 13     // of 5 bits each, so that no two engines share one
)

// with calls f for the job with the given ID while its shard is locked. If there is none, it returns an error that says
// as much about it as can be known.
func (e *Engine) with(ctx context.Context, id string, f func(*job) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	place := e.place(id)
	s := e.shard(place)
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.find(id, place); j != nil && j.status != 0 && !e.aged(j, e.clock.now()) {
		return f(j)
	}
	switch {
	case place < named && place > e.issued.Load():
		return fmt.Errorf("%w: %q", ErrNeverKnown, id)
	case place < named:
		return fmt.Errorf("%w: %q", ErrAgedOut, id)
	case strings.HasPrefix(id, madeUp) && len(id) > len(e.prefix) && id[len(e.prefix)-1] == '-':
		return fmt.Errorf("%w: %.300q was made up by another engine in memory, and what is in memory ends with its process", ErrUnknownJob, id)
	default:
		return fmt.Errorf("%w: %.300q", ErrUnknownJob, id)
	}
}

// named is the bit of a place that those of IDs have which were not made up here.
const named = 1 << 63

// place returns the number of an ID that this engine makes up, or a hash of another one.
func (e *Engine) place(id string) uint64 {
	digits, ours := strings.CutPrefix(id, e.prefix)
	if ours && digits != "" && digits[0] != '0' {
		if n, err := strconv.ParseUint(digits, 10, 63); err == nil {
			return n
		}
	}
	return maphash.String(e.seed, id) | named
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
