package retryriver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"

	"github.com/retrygo/retry"
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
}

func pluginOf(p *plugin) rivertype.Plugin { return p }

var (
	_ rivertype.HookInsertBegin  = (*plugin)(nil)
	_ rivertype.WorkerMiddleware = (*plugin)(nil)
	_ river.ClientRetryPolicy    = (*plugin)(nil)
)

// InsertBegin disables River's own limit of attempts, and gives a job its record. A plain job does not need one yet,
// unless it is scheduled: its row does not keep the time at which it was first due. One with river.UniqueOpts has none.
func (p *plugin) InsertBegin(_ context.Context, params *rivertype.JobInsertParams) error {
	args, ours := params.Args.(*jobArgs)
	if !ours {
		policy, named := p.adapter.policyOf(params.Kind)
		job, err := retryjob.Job{Kind: params.Kind, Policy: policy}, error(retryjob.ErrUnknownPolicy)
		if named {
			_, err = p.adapter.options.Policies.Of(&job)
		}
		if err != nil {
			return fmt.Errorf("retryriver: kind %q: Options.PolicyOf has no policy for it: %w", params.Kind, err)
		}
		for _, key := range []string{metadataKey, lateKey, markKey} {
			if hasKey(params.Metadata, key) {
				return fmt.Errorf("retryriver: kind %q: the key %q of the metadata is taken", params.Kind, key)
			}
		}
		if params.ScheduledAt != nil && params.UniqueKey == nil { // another unique key would not prove the record's ID
			job.ID, job.Due = retryjob.NewID(), *params.ScheduledAt
			args = newArgs(&job)
		}
	}
	params.MaxAttempts = outOfTheWay
	if params.State == rivertype.JobStateScheduled && params.ScheduledAt != nil && time.Until(*params.ScheduledAt) < soon {
		params.State = rivertype.JobStateAvailable
	}
	if args == nil {
		return nil
	}
	args.installed = true
	params.UniqueKey, params.UniqueStates = args.uniqueKey, everyState
	metadata, err := withKey(params.Metadata, metadataKey, args.record.array())
	if err != nil {
		return fmt.Errorf("retryriver: metadata of a job of kind %q: %w", params.Kind, err)
	}
	params.Metadata = metadata
	return nil
}

// hasKey reports whether the JSON object has the key.
func hasKey(object []byte, key string) bool {
	var fields map[string]json.RawMessage
	if len(object) <= len("{}") || json.Unmarshal(object, &fields) != nil {
		return false
	}
	_, has := fields[key]
	return has
}

// withKey returns the JSON object with a key added.
func withKey(object []byte, key string, value any) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if len(object) > 0 {
		if err := json.Unmarshal(object, &fields); err != nil {
			return nil, err
		}
	}
	var err error
	if fields[key], err = json.Marshal(value); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// Work makes an attempt. River calls it around everything else that it does for one.
func (p *plugin) Work(ctx context.Context, row *rivertype.JobRow, inner func(context.Context) error) error {
	a := p.adapter
	m := mark{River: row.Attempt, Line: retryjob.Attempt{Status: retryjob.Leased}}
	s, err := a.load(row)
	if err != nil {
		if failed := setMark(ctx, &m); failed != nil {
			return failed
		}
		return a.wait(row, err)
	}
	attempt, begun := s.attempt(row), time.Now().Round(0) // wall time: a process suspended with its machine has no other clock
	m.Line = retryjob.Attempt{ID: s.AttemptID(attempt), Number: attempt, Start: begun, Status: retryjob.Leased}
	if err := setMark(ctx, &m); err != nil { // also for a panic, and for river.JobCompleteTx
		return err
	}
	if s.Status.Final() {
		return again(&s.Record)
	}
	lost := attempt - s.Attempts - 1
	inside, leave, end := insideOf(ctx)
	told := false // Observe is called later with the same context
	defer func() {
		if leave(); !told {
			end(nil)
		}
	}()
	var result error // of the worker
	next, err := a.step(inside, &s.Record, attempt, func(ctx context.Context) error {
		result = inner(context.WithValue(ctx, recordKey{}, &s.Record))
		var snooze *rivertype.JobSnoozeError
		var cancel *rivertype.JobCancelError
		switch {
		case errors.As(result, &snooze):
			end(retryjob.ErrShutdown) // does not count, as in River
		case errors.As(result, &cancel):
			return retry.Permanent(result)
		}
		return result
	})
	if err != nil {
		return a.wait(row, err)
	}
	if last := s.Last(); last.ID == m.Line.ID {
		m.Line = last
	}
	took := time.Now().Round(0).Sub(begun)
	if took >= a.rescue {
		switch late, err := a.fence.Load().overtaken(ctx, row, &m); {
		case err != nil:
			a.logger.Warn("retryriver: whether an attempt is late will be seen when it is written", "job_id", row.ID, "error", err.Error())
		case late:
			return unreported{fmt.Errorf("retryriver: attempt %s ended after it was recorded as lost", m.Line.ID)}
		}
	}
	s.Seen = row.Attempt
	answer := p.answer(ctx, row, &s, next, result)
	if err := setMark(ctx, &m); err != nil {
		return err
	}
	if next.Status.Final() {
		a.ends.Store(m.Line.ID, ending{next, end})
		told = true
	}
	if next.Status == retryjob.Succeeded && lost == 0 && took < a.rescue {
		return nil // the row has all of it
	}
	if err := river.MetadataSet(ctx, metadataKey, s.array()); err != nil {
		return fmt.Errorf("retryriver: the record of River's job %d: %w", row.ID, err)
	}
	return answer
}

// setMark adds to River's writes about the attempt which attempt it is.
func setMark(ctx context.Context, m *mark) error {
	if err := river.MetadataSet(ctx, markKey, m); err != nil {
		return fmt.Errorf("retryriver: %w", err)
	}
	return nil
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
// results if one of them contains a NUL.
type asRecorded struct {
	error
	text string
}

func (t asRecorded) Error() string { return t.text }
func (t asRecorded) Unwrap() error { return t.error }

// answer returns the result of the attempt for River.
func (p *plugin) answer(ctx context.Context, row *rivertype.JobRow, s *stored, next retryjob.Next, result error) error {
	var snooze *rivertype.JobSnoozeError
	switch {
	case next.Deferred:
		s.Seen = row.Attempt - 1 // River takes it back
		if errors.As(result, &snooze) {
			s.Due = time.Now().UTC().Add(snooze.Duration)
			return result
		}
		return snoozeUntil(next.Due)
	case next.Status == retryjob.Succeeded:
		return nil
	case next.Status != retryjob.WaitingRetry:
		return ended(&s.Record, result)
	case row.Attempt >= min(snoozed, row.MaxAttempts):
		s.Seen = row.Attempt - 1
		return snoozeUntil(next.Due)
	}
	key := attemptKey{row.ID, row.Attempt}
	p.adapter.due.Store(key, next.Due)
	context.AfterFunc(ctx, func() { p.adapter.due.Delete(key) }) // River ends ctx when it is done with the attempt
	return asRecorded{result, s.Last().Err}
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
func ended(r *retryjob.Record, result error) error {
	if last := r.Last(); last.Status == r.Status && last.Err != "" {
		return river.JobCancel(asRecorded{result, last.Err})
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

// attemptKey is an attempt in River's count.
type attemptKey struct {
	row     int64
	attempt int
}

// NextRetry returns when the attempt after the one that has just failed is due: the time that Work has decided on or,
// if it could not decide, the time for a lost attempt. It is never in the past, since River would then choose its own
// time. A job that must end is due at once: Work ends it without an attempt.
func (p *plugin) NextRetry(row *rivertype.JobRow) time.Time {
	due, decided := p.adapter.due.LoadAndDelete(attemptKey{row.ID, row.Attempt})
	at, _ := due.(time.Time)
	if !decided {
		at = p.adapter.afterLoss(row)
	}
	at = ceil(at)
	if now := time.Now(); at.Before(now) {
		return now
	}
	return at
}

// afterLoss returns when the next attempt is due after one that was lost; the zero time is at once.
func (a *Adapter) afterLoss(row *rivertype.JobRow) time.Time {
	s, err := a.load(row)
	if err != nil || s.Status.Final() {
		return time.Time{}
	}
	next, err := a.judge.Lost(context.Background(), &s.Record, s.attempt(row))
	if err != nil {
		return time.Now().Add(retryjob.PutOff)
	}
	return next.Due
}

// kept reports whether a key of a job's metadata belongs to its inserter, and not to its attempts.
func kept(key string) bool {
	switch key {
	case metadataKey, lateKey, markKey, "snoozes", "cancel_attempted_at", "output", "unique_key_conflict":
		return false
	}
	return !strings.HasPrefix(key, "river:")
}
