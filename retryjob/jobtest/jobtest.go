// Package jobtest is for tests of jobs. NewJobs is an engine for the tests of handlers, in virtual time, and Timeline
// shows the attempts of a job and its end. Run is for the tests of engines: it plays the same scenarios against any of them.
//
// This package may change until it says otherwise.
package jobtest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// Harness says how to get at an engine. New and Unit must be set.
type Harness struct {
	// New returns a new engine without jobs. It must be set. Run shuts the engine down when the scenario is over.
	New func(t *testing.T, c retryjob.Options) retryjob.Queue
	// Bubble runs one scenario: synctest.Test for an engine that can live in virtual time. Nil means a plain call.
	Bubble func(t *testing.T, f func(t *testing.T))
	// Unit is the unit of the suite's time: delays and TTLs are multiples of it, up to ten. An hour in virtual time,
	// else as short as the engine's lateness allows. It must be above zero.
	Unit time.Duration
	// Late is how late an attempt may start. Zero means virtual time: attempts start when they are due, to the
	// nanosecond. Otherwise an attempt may start up to Late after its due time and up to a millisecond before it, for
	// engines that keep due times in milliseconds.
	Late time.Duration
	// Crash abandons q without a Shutdown, as the death of its process does, and opens a new engine on the same data
	// with the same Config. The result of an abandoned handler must not reach the data. Crash is also called after a
	// Shutdown of q, to reopen its data. Nil means that the engine is not durable: scenarios that need it are skipped,
	// and Shutdown must return the jobs that are not final.
	Crash func(t *testing.T, q retryjob.Queue) retryjob.Queue
	// Suspend suspends q in an attempt, as SIGSTOP does its process, and opens another engine on the same data with the
	// same Config, which in time takes the attempts of q for lost. Until resume is called, q does not read or write.
	// After that the results of its attempts reach the data as q writes them. Nil means that scenarios that need it are
	// skipped.
	Suspend func(t *testing.T, q retryjob.Queue) (other retryjob.Queue, resume func())
	// Parallel runs the scenarios beside each other. Zero means one after the other.
	Parallel bool
}

// Run plays every scenario, each as a subtest with an engine of its own, named after its claim. In virtual time
// it takes milliseconds, otherwise about ten units a scenario, and a minute or two for a scenario with a crash or a
// retention if the engine takes as long to notice.
func Run(t *testing.T, h Harness) {
	require.NotNil(t, h.New, "jobtest: Harness.New")
	require.Positive(t, h.Unit, "jobtest: Harness.Unit")
	ends := make([]scenario, len(outcomes))
	for i := range outcomes {
		ends[i] = outcomes[i].scenario()
	}
	for _, list := range [][]scenario{ends, attempts, timing, needs, lives, enqueuing, listing, replaying, purging, sharing, stopping, crashing, suspending, observing, recurring} {
		for _, sc := range list {
			t.Run(sc.claim, func(t *testing.T) {
				if sc.needs == aCrash && h.Crash == nil || sc.needs == aSuspension && h.Suspend == nil || sc.needs == virtualTime && h.Late > 0 {
					t.Skip("the engine does not have what it needs")
				}
				if h.Parallel {
					t.Parallel()
				}
				play := func(t *testing.T) { sc.play(&stage{t: t, h: h, unit: h.Unit}) }
				if h.Bubble != nil {
					h.Bubble(t, play)
				} else {
					play(t)
				}
			})
		}
	}
}

// need is a property of an engine that a scenario requires.
type need uint8

const (
	nothing need = iota
	virtualTime
	aCrash
	aSuspension
)

// scenario is a claim about engines and the play that shows it.
type scenario struct {
	claim string
	needs need
	play  func(s *stage)
}

// stage is the engine and the settings of one scenario.
type stage struct {
	t    *testing.T
	h    Harness
	unit time.Duration
	q    retryjob.Queue
	down bool // the scenario has shut q down by itself
}

// kind is the kind of most jobs here.
const kind = "work"

// policies is short for the policies of a Config.
type policies = map[string]retry.Policy

// open makes the engine for jobs of one kind.
func (s *stage) open(p policies, h retryjob.Handler) {
	s.openWith(retryjob.Options{Policies: retryjob.FromMap(p), Handlers: map[string]retryjob.Handler{kind: h}})
}

// openWith makes the engine.
func (s *stage) openWith(c retryjob.Options) {
	if s.q == nil {
		s.t.Cleanup(s.close)
	}
	s.q, s.down = s.h.New(s.t, c), false
}

// close ends the engine that the scenario has left running. All handlers here end with their context.
func (s *stage) close() {
	if s.q == nil || s.down {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, _ = s.q.Shutdown(ctx)
}

// crash puts a new engine in the place of one that has died.
func (s *stage) crash() { s.q, s.down = s.h.Crash(s.t, s.q), false }

// busy opens an engine with one worker, for jobs of the usual kind, and occupies the worker until free is called with the result of its attempt.
func (s *stage) busy(p policies, h retryjob.Handler) (free func(result error)) {
	s.t.Helper()
	begun, release := make(chan struct{}), make(chan error)
	p["busy"] = s.held(retry.Policy{})
	s.openWith(retryjob.Options{
		Policies: retryjob.FromMap(p), Handlers: map[string]retryjob.Handler{kind: h, "busy": wait(begun, release)}, Concurrency: 1,
	})
	s.put(retryjob.Job{ID: "busy", Kind: "busy", Policy: "busy"})
	receive(s, begun, "the worker to be busy")
	return func(result error) {
		send(s, release, result)
		close(release)
	}
}

// enqueue enqueues a job of the usual kind.
func (s *stage) enqueue(id, policy string) retryjob.Handle {
	return s.put(retryjob.Job{ID: id, Kind: kind, Policy: policy})
}

// put enqueues a job.
func (s *stage) put(j retryjob.Job) retryjob.Handle {
	s.t.Helper()
	handle, err := s.q.Enqueue(s.t.Context(), j)
	require.NoError(s.t, err)
	return handle
}

// get returns a job that is there.
func (s *stage) get(id string) retryjob.Info {
	s.t.Helper()
	info, err := s.q.Get(s.t.Context(), id)
	require.NoError(s.t, err)
	return info
}

// longest is as long as anything here may take, such as a rescuer, a cleaner or an election.
func (s *stage) longest() time.Duration { return max(2*time.Minute, 160*s.unit) }

// far is a delay at whose end the scenario has long since done what comes before, on a slow machine too.
func (s *stage) far() time.Duration { return 6 * s.unit }

// never is a wait that no scenario outlives, however slow the machine is.
func (s *stage) never() time.Duration { return 2 * s.longest() }

// unlucky returns a policy under which a job that fails is expired at once: the next attempt would miss the TTL.
func (s *stage) unlucky(attempts int) retry.Policy {
	return within(s.longest(), fixed(attempts, s.never()))
}

// patience returns a context that lives as long as that.
func (s *stage) patience() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.t.Context(), s.longest())
}

// held returns p for attempts that last until the scenario ends them, however slow the machine is: a durable engine takes
// an attempt without an AttemptTimeout for lost after a time of its own, which is short in its tests.
func (s *stage) held(p retry.Policy) retry.Policy {
	p.AttemptTimeout = s.longest()
	return p
}

// final waits for a job to end and returns it.
func (s *stage) final(id string) retryjob.Info {
	s.t.Helper()
	return s.until(id, "is final", func(i retryjob.Info) bool { return i.Status.Final() })
}

// reaches waits until a job has the status and returns it.
func (s *stage) reaches(id string, status retryjob.Status) retryjob.Info {
	s.t.Helper()
	return s.until(id, "is "+status.String(), func(i retryjob.Info) bool { return i.Status == status })
}

// until looks at a job until it is as it should be and returns it.
func (s *stage) until(id, what string, ok func(retryjob.Info) bool) (i retryjob.Info) {
	s.t.Helper()
	s.poll("job "+id+" "+what, func() bool {
		i = s.get(id)
		return ok(i)
	})
	return i
}

// poll asks ok until it is true.
func (s *stage) poll(what string, ok func() bool) {
	s.t.Helper()
	ctx, cancel := s.patience()
	defer cancel()
	ticker := time.NewTicker(max(s.unit/50, 1))
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			require.FailNow(s.t, "waited in vain", "until %s", what)
		}
	}
}

// receive returns the next value from a channel.
func receive[T any](s *stage, from <-chan T, what string) (v T) {
	s.t.Helper()
	ctx, cancel := s.patience()
	defer cancel()
	select {
	case v = <-from:
	case <-ctx.Done():
		require.FailNow(s.t, "waited in vain", "for %s", what)
	}
	return v
}

// onTime holds an attempt to its due time.
func (s *stage) onTime(due, start time.Time) {
	s.t.Helper()
	early := time.Millisecond
	if s.h.Late == 0 {
		early = 0
	}
	late := start.Sub(due)
	require.GreaterOrEqual(s.t, late, -early, "the attempt of %v was early", due)
	require.LessOrEqual(s.t, late, s.h.Late, "the attempt of %v was late", due)
}

// made is an attempt as its handler saw it.
type made struct {
	retryjob.AttemptInfo
	job retryjob.Job
	at  time.Time
}

// diary has the attempts that handlers recorded.
type diary struct {
	mu       sync.Mutex
	attempts []made
}

// script returns a handler that ends attempt n of a job with errs[n-1], and an attempt beyond them with nil.
func (d *diary) script(errs ...error) retryjob.Handler {
	return func(ctx context.Context, job retryjob.Job) error {
		if n := d.note(ctx, job).Number; n <= len(errs) {
			return errs[n-1]
		}
		return nil
	}
}

// always returns a handler that always ends with err.
func (d *diary) always(err error) retryjob.Handler {
	return func(ctx context.Context, job retryjob.Job) error {
		d.note(ctx, job)
		return err
	}
}

// mended returns a handler that ends with err until its job is replayed.
func (d *diary) mended(err error) retryjob.Handler {
	return func(ctx context.Context, job retryjob.Job) error {
		if d.note(ctx, job).Replays > 0 {
			return nil
		}
		return err
	}
}

// note writes an attempt down.
func (d *diary) note(ctx context.Context, job retryjob.Job) retryjob.AttemptInfo {
	info, _ := retryjob.AttemptFrom(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attempts = append(d.attempts, made{info, job, time.Now()})
	return info
}

// all returns the entries that have been written until now.
func (d *diary) all() []made {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]made(nil), d.attempts...)
}

// jobs returns the IDs of the jobs in the order of their attempts.
func (d *diary) jobs() (ids []string) {
	for _, a := range d.all() {
		ids = append(ids, a.JobID)
	}
	return ids
}

// fixed returns a policy with the given number of attempts and the same delay between them.
func fixed(attempts int, delay time.Duration) retry.Policy {
	return retry.Policy{MaxAttempts: attempts, Backoff: retry.Backoff{Mode: retry.Fixed, Base: delay}}
}

// short is a delay that is not a wait.
const short = time.Nanosecond
