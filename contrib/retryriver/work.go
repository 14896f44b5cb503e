package retryriver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/retrygo/retry/retryjob"
)

const (
	// outOfTheWay is River's max_attempts, at which it discards a job without asking. Our count is bounded by snoozed
	// plus the attempts that are lost in a row.
	outOfTheWay = 10_000
	// snoozed is River's count of attempts from which on a failure is returned to River as a snooze.
	snoozed = 100
	// soon is River's interval between searches for scheduled jobs that are due: a job that is due earlier is made
	// available at once, as River does with retries.
	soon = 5 * time.Second
)

// plugin is called by River.
type plugin struct {
	river.PluginDefaults
	adapter *Adapter
	others  river.ClientRetryPolicy // of jobs that are not retryjob's
}

func pluginOf(p *plugin) rivertype.Plugin { return p }

var (
	_ rivertype.HookInsertBegin  = (*plugin)(nil)
	_ rivertype.WorkerMiddleware = (*plugin)(nil)
	_ river.ClientRetryPolicy    = (*plugin)(nil)
)

// InsertBegin disables River's own limit of attempts, and gives a job its record. Jobs that are not retryjob's stay as
// they are.
func (p *plugin) InsertBegin(_ context.Context, params *rivertype.JobInsertParams) (err error) {
	args, ours := params.Args.(*jobArgs)
	if !ours {
		return nil
	}
	params.MaxAttempts = outOfTheWay
	if params.State == rivertype.JobStateScheduled && params.ScheduledAt != nil && time.Until(*params.ScheduledAt) < soon {
		params.State = rivertype.JobStateAvailable
	}
	params.UniqueKey = args.uniqueKey
	params.UniqueStates = args.uniqueStates()
	record, created := args.record.inserted()
	params.CreatedAt = &created
	if params.Metadata, err = withKey(params.Metadata, metadataKey, record); err != nil {
		return fmt.Errorf("retryriver: metadata of a job of kind %q: %w", params.Kind, err)
	}
	return nil
}

// withKey returns the JSON object with a key added.
func withKey(object []byte, key string, value any) ([]byte, error) {
	var others map[string]json.RawMessage
	if len(object) > len("{}") {
		if err := json.Unmarshal(object, &others); err != nil {
			return nil, err
		}
	}
	fields := make(map[string]any, len(others)+1)
	for name, other := range others {
		fields[name] = other
	}
	fields[key] = value
	return json.Marshal(fields)
}

// Work makes an attempt. River calls it around everything else that it does for one.
func (p *plugin) Work(ctx context.Context, row *rivertype.JobRow, inner func(context.Context) error) error {
	a := p.adapter
	s, err := a.load(row)
	if errors.Is(err, errForeign) {
		return inner(ctx)
	}
	m := &lease{leaseKey: keyOfLease(row), job: s.Job(), river: row.Attempt, line: retryjob.Attempt{Status: retryjob.Leased}}
	a.leases.Store(m.leaseKey, m)
	if failed := river.MetadataSet(ctx, markKey, m.at); failed != nil { // also for a panic, and for river.JobCompleteTx
		return fmt.Errorf("retryriver: %w", failed)
	}
	if err != nil {
		return a.wait(row, err)
	}
	attempt, begun := s.attempt(row), time.Now().Round(0) // wall time: a process suspended with its machine has no other clock
	m.line = retryjob.Attempt{ID: s.AttemptID(attempt), Number: attempt, Start: begun, Status: retryjob.Leased}
	if s.Status.Final() {
		return again(&s.Record)
	}
	lost := attempt - s.Attempts - 1
	inside, leave, end := insideOf(ctx)
	defer func() {
		leave()
		if m.free == nil { // otherwise Observe is called later with the same context
			end(nil)
		}
	}()
	next, err := a.step(inside, &s.Record, attempt, func(ctx context.Context) error {
		return inner(context.WithValue(ctx, recordKey{}, &s.Record))
	})
	if err != nil {
		return a.wait(row, err)
	}
	if last := s.Last(); last.ID == m.line.ID {
		m.line = last
	}
	s.Seen = row.Attempt
	answer := answer(row, &s, next)
	if next.Status == retryjob.WaitingRetry {
		m.due = next.Due
	}
	if next.Status.Final() {
		m.next = next
		m.free = end
	}
	if next.Status == retryjob.Succeeded && lost == 0 {
		return nil // the row has all of it
	}
	if err := river.MetadataSet(ctx, metadataKey, s.array()); err != nil {
		return fmt.Errorf("retryriver: the record of River's job %d: %w", row.ID, err)
	}
	return answer
}

// step is Stepper.Step in a goroutine of its own: runtime.Goexit in a handler would end River's goroutine, and its slot
// among the workers would be lost. A panic of the policy's functions passes through.
func (a *Adapter) step(ctx context.Context, rec *retryjob.Record, attempt int, fn func(context.Context) error) (next retryjob.Next, err error) {
	var panicked any
	returned, done := false, make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		next, err = a.stepper.Step(ctx, rec, attempt, fn)
		returned = true
	}()
	<-done
	switch {
	case panicked != nil:
		panic(panicked)
	case !returned: // Step has recorded it
		final := rec.Status.Final()
		next = retryjob.Next{Status: rec.Status, Reason: rec.Reason, Due: rec.Due, Deferred: !final && rec.Attempts < attempt}
	}
	return next, err
}

// asRecorded is an error with the text of the record, which every database can store: PostgreSQL refuses a whole batch of
// results if one of them contains a NUL. It does not wrap the handler's error: a river.JobSnooze in it would contradict the
// record.
type asRecorded string

func (t asRecorded) Error() string { return string(t) }

// answer returns the result of the attempt for River.
func answer(row *rivertype.JobRow, s *stored, next retryjob.Next) error {
	switch {
	case next.Deferred:
		s.Seen = row.Attempt - 1 // River takes it back
		return snoozeUntil(next.Due)
	case next.Status == retryjob.Succeeded:
		return nil
	case next.Status != retryjob.WaitingRetry:
		return ended(&s.Record)
	case row.Attempt >= min(snoozed, row.MaxAttempts):
		s.Seen = row.Attempt - 1
		return snoozeUntil(next.Due)
	}
	return asRecorded(s.Last().Err)
}

// insideOf returns the context of the attempt, which ends with ctx until leave is called, but with a cause that
// retryjob recognizes.
func insideOf(ctx context.Context) (inside context.Context, leave func() bool, end context.CancelCauseFunc) {
	inside, end = context.WithCancelCause(context.WithoutCancel(ctx))
	leave = context.AfterFunc(ctx, func() {
		cause := context.Cause(ctx)
		if errors.Is(cause, rivertype.ErrJobCancelledRemotely) {
			end(fmt.Errorf("%w: %w", retryjob.ErrCanceled, cause))
		} else {
			end(fmt.Errorf("%w: %w", retryjob.ErrShutdown, cause))
		}
	})
	return inside, leave, end
}

// ended returns the error with which River ends the job for good.
func ended(r *retryjob.Record) error {
	if last := r.Last(); last.Status == r.Status && last.Err != "" {
		return river.JobCancel(asRecorded(last.Err))
	}
	return river.JobCancel(errors.New(r.Status.String() + " (" + r.Reason.Error() + ")"))
}

// again returns the result for River of a job that had ended, but was leased again, by JobRetry or by a late rescuer.
func again(r *retryjob.Record) error {
	if r.Status == retryjob.Succeeded {
		return nil
	}
	return river.JobCancel(fmt.Errorf("retryriver: job %s is %s already: only Admin.Replay replays it", r.JobID, r.Status))
}

// wait postpones a job whose policy is not known here.
func (a *Adapter) wait(row *rivertype.JobRow, err error) error {
	a.logger.Warn("retryriver: job put off for a minute", "job_id", row.ID, "kind", row.Kind, "error", err.Error())
	return river.JobSnooze(retryjob.PutOff)
}

// snoozeUntil makes River try again at due, not earlier.
func snoozeUntil(due time.Time) error { return river.JobSnooze(max(time.Until(ceil(due)), 0)) }

// ceil rounds up to the precision of SQLite, so that a due time is never too early.
func ceil(t time.Time) time.Time {
	if rounded := t.Truncate(time.Millisecond); rounded.Before(t) {
		return rounded.Add(time.Millisecond)
	}
	return t
}

// NextRetry returns the due time of the attempt after the one that has just failed. It is the time of Work's decision or,
// if it could not decide, the time for a lost attempt. It is never in the past, since River would then choose its own
// time. A job that must end is due at once, and Work ends it without an attempt.
func (p *plugin) NextRetry(row *rivertype.JobRow) time.Time {
	var due time.Time
	if m := p.adapter.leaseOf(row); m != nil && !m.due.IsZero() {
		due = m.due
	} else if s, err := p.adapter.load(row); errors.Is(err, errForeign) {
		return p.others.NextRetry(row)
	} else if err == nil && !s.Status.Final() {
		due = p.adapter.afterLoss(row, &s)
	}
	due = ceil(due)
	if now := time.Now(); due.Before(now) {
		return now
	}
	return due
}

// afterLoss returns the due time of the attempt after one that was lost. The zero time means at once.
func (a *Adapter) afterLoss(row *rivertype.JobRow, s *stored) time.Time {
	next, err := a.judge.Lost(context.Background(), &s.Record, s.attempt(row))
	if err != nil {
		return time.Now().Add(retryjob.PutOff)
	}
	return next.Due
}
