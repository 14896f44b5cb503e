package jobtest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobtest"
)

// TestPaper plays the suite against an engine that is slow and plain but durable, so that the scenarios with a crash are
// themselves tested in virtual time.
func TestPaper(t *testing.T) {
	jobtest.Run(t, jobtest.Harness{
		New: func(_ *testing.T, c retryjob.Options) retryjob.Queue {
			return newClerk(c, &paper{sheets: map[string][]byte{}, leased: map[string]string{}, rota: map[string]retryjob.Schedule{}})
		},
		Bubble: synctest.Test,
		Unit:   time.Hour,
		Crash: func(_ *testing.T, q retryjob.Queue) retryjob.Queue {
			old := q.(*clerk)
			old.mu.Lock()
			old.fire()
			old.mu.Unlock()
			return newClerk(old.config, old.paper)
		},
		Suspend: func(_ *testing.T, q retryjob.Queue) (retryjob.Queue, func()) {
			old := q.(*clerk)
			old.mu.Lock()
			old.suspended = make(chan struct{})
			close(old.gone) // it begins nothing any more
			old.mu.Unlock()
			return newClerk(old.config, old.paper), func() { close(old.suspended) }
		},
	})
}

// paper is what outlives a clerk.
type paper struct {
	mu     sync.Mutex
	sheets map[string][]byte // a job as JSON
	rota   map[string]retryjob.Schedule
	leased map[string]string // the IDs of attempts by job
}

// clerk is an engine that goes through all sheets whenever anything has changed.
type clerk struct {
	retryjob.Stepper
	config    retryjob.Options
	paper     *paper
	mu        *sync.Mutex // the paper\'s
	changed   chan struct{}
	gone      chan struct{}
	fired     bool // what it writes from now on is lost
	closed    bool
	suspended chan struct{} // nil unless it is or was suspended; closed when it goes on
	running   map[string]context.CancelCauseFunc
	idle      sync.Cond
}

// full reports whether a queue has as many attempts under way as it may.
func (e *clerk) full(queue string) bool {
	queue = cmp.Or(queue, "default")
	n := 0
	for id := range e.running {
		if i, _ := e.read(id); cmp.Or(i.Queue, "default") == queue {
			n++
		}
	}
	return n >= cmp.Or(e.config.Queues[queue], e.config.Concurrency)
}

func newClerk(c retryjob.Options, on *paper) *clerk {
	e := &clerk{
		Stepper: retryjob.Stepper{Policies: c.Policies, Code: c.Code}, config: c, paper: on,
		changed: make(chan struct{}, 1), gone: make(chan struct{}), running: map[string]context.CancelCauseFunc{},
	}
	e.mu = &on.mu
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle.L = e.mu
	e.config.Concurrency = cmp.Or(c.Concurrency, 16)
	for id := range on.leased { // whose clerk has died
		delete(on.leased, id)
		i, _ := e.read(id)
		if _, err := e.Lost(context.Background(), &i.Record, i.Attempts+1); err == nil {
			e.write(i)
		}
	}
	go e.work()
	ctx, end := context.WithCancel(context.Background())
	go e.config.Recur(ctx, e)
	go func() {
		<-e.gone
		end()
	}()
	return e
}

func (e *clerk) fire() {
	if !e.fired {
		e.fired = true
		if e.suspended == nil {
			close(e.gone)
		}
	}
}

func (e *clerk) read(id string) (i retryjob.Info, err error) {
	sheet, ok := e.paper.sheets[id]
	if !ok {
		return i, retryjob.ErrNeverKnown
	}
	err = json.Unmarshal(sheet, &i)
	return i, err
}

func (e *clerk) write(i retryjob.Info) {
	if !e.fired {
		e.paper.sheets[i.JobID], _ = json.Marshal(i)
	}
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// all returns the jobs as they are shown, and removes those that are too old.
func (e *clerk) all() (list []retryjob.Info) {
	for id := range e.paper.sheets {
		i, _ := e.read(id)
		if i.Status.Final() && time.Since(i.Ended) >= e.config.Kept(i.Status) {
			delete(e.paper.sheets, id)
			continue
		}
		if e.paper.leased[id] != "" {
			i.Status, i.Due = retryjob.Leased, time.Time{}
		}
		list = append(list, i)
	}
	return list
}

// work starts due attempts until it is fired.
func (e *clerk) work() {
	for {
		next := time.Hour
		e.mu.Lock()
		if e.fired || e.suspended != nil {
			e.mu.Unlock()
			return
		}
		list := e.all()
		slices.SortFunc(list, func(a, b retryjob.Info) int {
			return cmp.Or(cmp.Compare(max(a.Priority, 1), max(b.Priority, 1)), a.Due.Compare(b.Due))
		})
		for _, i := range list {
			switch wait := time.Until(i.Due); {
			case i.Due.IsZero() || e.closed || e.full(i.Queue):
			case wait > 0:
				next = min(next, wait)
			default:
				ctx, cancel := context.WithCancelCause(context.Background())
				e.running[i.JobID], e.paper.leased[i.JobID] = cancel, i.AttemptID(i.Attempts+1)
				go e.run(ctx, i)
			}
		}
		e.mu.Unlock()
		timer := time.NewTimer(next)
		select {
		case <-timer.C:
		case <-e.changed:
		case <-e.gone:
			return
		}
	}
}

func (e *clerk) run(ctx context.Context, i retryjob.Info) {
	job := i.Job()
	job.Queue, job.Priority, job.Tags, job.Payload = i.Queue, i.Priority, i.Tags, i.Payload
	attempt := i.AttemptID(i.Attempts + 1)
	next, err := e.Step(ctx, &i.Record, i.Attempts+1, func(ctx context.Context) error { return e.config.Handlers[i.Kind](ctx, job) })
	if err != nil {
		i.Due = time.Now().Add(retryjob.PutOff)
	}
	e.mu.Lock()
	suspended := e.suspended
	e.mu.Unlock()
	if suspended != nil {
		<-suspended
	}
	e.mu.Lock()
	cancel := e.running[i.JobID]
	current := e.conclude(i, attempt)
	e.mu.Unlock()
	if current {
		next.Tell()
	}
	cancel(nil)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.idle.Broadcast()
}

// conclude writes what came of an attempt, and reports whether it was the job's current one.
func (e *clerk) conclude(i retryjob.Info, attempt string) bool {
	delete(e.running, i.JobID)
	if e.suspended != nil && e.paper.leased[i.JobID] != attempt {
		if now, err := e.read(i.JobID); err == nil && now.AddLate(i.Last()) {
			e.write(now)
		}
		return false
	}
	if now, err := e.read(i.JobID); err == nil {
		for _, a := range now.History {
			if a.Late {
				i.AddLate(a)
			}
		}
	}
	if !e.fired {
		delete(e.paper.leased, i.JobID)
	}
	e.write(i)
	return true
}

func (e *clerk) Enqueue(ctx context.Context, j retryjob.Job) (retryjob.Handle, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.enqueue(ctx, j)
}

func (e *clerk) enqueue(ctx context.Context, j retryjob.Job) (retryjob.Handle, error) {
	j.ID = cmp.Or(j.ID, retryjob.NewID())
	switch _, known := e.config.Handlers[j.Kind]; {
	case e.closed:
		return retryjob.Handle{}, retryjob.ErrShutdown
	case ctx.Err() != nil:
		return retryjob.Handle{}, ctx.Err()
	case j.Validate(e.Policies) != nil:
		return retryjob.Handle{}, j.Validate(e.Policies)
	case !known:
		return retryjob.Handle{}, retryjob.ErrUnknownKind
	case e.paper.sheets[j.ID] != nil:
		return retryjob.Handle{}, retryjob.ErrDuplicate
	}
	e.write(retryjob.Info{
		Record: retryjob.NewRecord(&j, time.Now()), Queue: j.Queue, Priority: j.Priority, Tags: j.Tags, Payload: j.Payload,
	})
	return retryjob.NewHandle(j.ID, e), nil
}

func (e *clerk) EnqueueMany(ctx context.Context, jobs []retryjob.Job) (handles []retryjob.Handle, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, j := range jobs {
		h, err := e.enqueue(ctx, j)
		if err != nil {
			for _, h := range handles {
				delete(e.paper.sheets, h.ID())
			}
			return nil, err
		}
		handles = append(handles, h)
	}
	return handles, nil
}

func (e *clerk) Get(_ context.Context, id string) (retryjob.Info, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, i := range e.all() {
		if i.JobID == id {
			return i, nil
		}
	}
	return retryjob.Info{}, retryjob.ErrNeverKnown
}

func (e *clerk) Wait(ctx context.Context, id string) (retryjob.Info, error) {
	for {
		if i, err := e.Get(ctx, id); err != nil || i.Status.Final() {
			return i, err
		}
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
			i, _ := e.Get(ctx, id)
			return i, ctx.Err()
		}
	}
}

func (e *clerk) selected(f retryjob.Filter, also func(retryjob.Status) bool) (list []retryjob.Info) {
	for _, i := range e.all() {
		if f.Selects(&i) && also(i.Status) {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b retryjob.Info) int { return b.Changed().Compare(a.Changed()) })
	if i := slices.IndexFunc(list, func(i retryjob.Info) bool { return i.Cursor() == f.After }); i >= 0 {
		list = list[i+1:]
	}
	if f.Limit > 0 {
		list = list[:min(f.Limit, len(list))]
	}
	return list
}

func (e *clerk) List(_ context.Context, f retryjob.Filter) iter.Seq2[retryjob.Info, error] {
	return func(yield func(retryjob.Info, error) bool) {
		e.mu.Lock()
		list := e.selected(f, func(retryjob.Status) bool { return true })
		e.mu.Unlock()
		for _, i := range list {
			if !yield(i, nil) {
				return
			}
		}
	}
}

func (e *clerk) Count(ctx context.Context, f retryjob.Filter) (map[retryjob.Status]retryjob.Tally, error) {
	f.Limit, f.After = 0, retryjob.Cursor{}
	counts := map[retryjob.Status]retryjob.Tally{}
	for i := range e.List(ctx, f) {
		t := counts[i.Status]
		t.Add(&i)
		counts[i.Status] = t
	}
	return counts, nil
}

// change changes the record of a job that is not leased.
func (e *clerk) change(id string, how func(*retryjob.Record, time.Time) error) error {
	i, err := e.read(id)
	if err != nil {
		return err
	}
	if err := how(&i.Record, time.Now()); err != nil {
		return err
	}
	e.write(i)
	return nil
}

func (e *clerk) Replay(_ context.Context, id string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.replay(id)
}

func (e *clerk) replay(id string) error {
	i, err := e.read(id)
	if err != nil {
		return err
	}
	name, occurrence := retryjob.ScheduleOf(id)
	s := e.paper.rota[name]
	open, _ := e.read(s.Job)
	if occurrence && i.Status.Replayable() {
		if err := s.Claim(id, &open); err != nil {
			return err
		}
	}
	if err := e.change(id, (*retryjob.Record).Replay); err != nil {
		return err
	}
	if occurrence {
		e.paper.rota[name] = s
	}
	return nil
}

func (e *clerk) Schedules(context.Context) ([]retryjob.Schedule, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.paper.rota)), nil
}

func (e *clerk) ChangeSchedule(ctx context.Context, name string, change func(*retryjob.Schedule) (*retryjob.Job, error)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.paper.rota[name]
	s.Name = name
	job, err := change(&s)
	if err == nil && job != nil {
		_, err = e.enqueue(ctx, *job)
	}
	if err == nil && !e.fired {
		e.paper.rota[name] = s
	}
	return err
}

func (e *clerk) ReplayAll(_ context.Context, f retryjob.Filter) (n int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, i := range e.selected(f.ForReplay(), retryjob.Status.Replayable) {
		if e.replay(i.JobID) == nil {
			n++
		}
	}
	return n, nil
}

func (e *clerk) Cancel(ctx context.Context, id string) error {
	e.mu.Lock()
	if cancel := e.running[id]; cancel != nil {
		cancel(retryjob.ErrCanceled)
		e.mu.Unlock()
		return nil
	}
	err := e.change(id, (*retryjob.Record).Cancel)
	i, _ := e.read(id)
	e.mu.Unlock()
	if err == nil {
		e.Canceled(ctx, &i.Record)
	}
	return err
}

func (e *clerk) Purge(_ context.Context, f retryjob.Filter) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.selected(f, retryjob.Status.Final)
	for _, i := range list {
		delete(e.paper.sheets, i.JobID)
	}
	return len(list), nil
}

func (e *clerk) Shutdown(ctx context.Context) ([]retryjob.Info, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	stop := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, cancel := range e.running {
			cancel(retryjob.ErrShutdown)
		}
	})
	defer stop()
	for len(e.running) > 0 {
		e.idle.Wait()
	}
	e.fire()
	return nil, nil
}

func (e *clerk) Groups(ctx context.Context, filter retryjob.Filter) ([]retryjob.Group, error) {
	filter.Limit, filter.After = 0, retryjob.Cursor{}
	return retryjob.GroupsOf(e.List(ctx, filter))
}

func (e *clerk) Queues(ctx context.Context) ([]retryjob.QueueDepth, error) {
	return retryjob.QueuesOf(e.List(ctx, retryjob.Filter{}), time.Now())
}
