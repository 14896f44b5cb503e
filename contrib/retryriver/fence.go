package retryriver

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/retrygo/retry/retryjob"
)

// NewClient returns a river.Client that follows the policies of a. It copies cfg, adds a plugin before the existing
// ones, and sets
//   - RetryPolicy,
//   - the retention periods of canceled and discarded jobs to Options.Retention,
//   - CompletedJobRetentionPeriod, if it is not set, to 24 hours,
//   - JobTimeout, if it is not set, to a minute, or to ten seconds more than the longest AttemptTimeout of
//     Options.PolicyOf if that is longer,
//   - RescueStuckJobsAfter, if it is not set, to a minute more than JobTimeout.
//
// It refuses, with retry.FieldErrors, settings that would lose jobs or leave them leased forever: a JobTimeout that is
// negative or below an AttemptTimeout, a RescueStuckJobsAfter not above JobTimeout, a negative
// CompletedJobRetentionPeriod, which River treats as unlimited and SQLite as zero, a retention other than
// Options.Retention, and a RetryPolicy or MaxAttempts, which the policies replace. An Adapter serves one client.
//
// The client writes the result of an attempt only if that attempt is still the job's current one. If a worker was
// suspended for so long that another one has its job, it changes only its own line in the record when it resumes:
// retryjob.Attempt.Late.
func NewClient[TTx any](a *Adapter, driver riverdriver.Driver[TTx], cfg *river.Config) (*river.Client[TTx], error) {
	if cfg == nil {
		return nil, errors.New("retryriver: NewClient: river.Config is nil")
	}
	set, err := a.configure(*cfg)
	if err != nil {
		return nil, err
	}
	f := &fence{adapter: a, exec: driver.GetExecutor(), sql: dialectOf(driver.DatabaseName()), table: prefix(set.Schema) + "river_job", schema: set.Schema}
	if !a.fence.CompareAndSwap(nil, f) {
		return nil, errors.New("retryriver: NewClient: the Adapter has a client already")
	}
	return river.NewClient(riverdriver.Driver[TTx](fencedDriver[TTx]{driver, f}), &set)
}

// prefix returns the prefix of the name of a table in a schema.
func prefix(schema string) string {
	if schema == "" {
		return ""
	}
	return `"` + strings.ReplaceAll(schema, `"`, `""`) + `".`
}

// fencedDriver is a driver whose executors write through a fence.
type fencedDriver[TTx any] struct {
	riverdriver.Driver[TTx]
	fence *fence
}

func (d fencedDriver[TTx]) GetExecutor() riverdriver.Executor {
	return fencedExecutor{d.Driver.GetExecutor(), d.fence}
}

func (d fencedDriver[TTx]) UnwrapExecutor(tx TTx) riverdriver.ExecutorTx {
	return fencedTx{d.Driver.UnwrapExecutor(tx), d.fence}
}

func (d fencedDriver[TTx]) UnwrapTx(exec riverdriver.ExecutorTx) TTx {
	if own, ok := exec.(fencedTx); ok {
		exec = own.ExecutorTx
	}
	return d.Driver.UnwrapTx(exec)
}

type fencedExecutor struct {
	riverdriver.Executor
	fence *fence
}

func (e fencedExecutor) JobSetStateIfRunningMany(ctx context.Context, p *riverdriver.JobSetStateIfRunningManyParams) ([]*rivertype.JobRow, error) {
	return e.fence.setState(ctx, e.Executor, p)
}

func (e fencedExecutor) JobRescueMany(ctx context.Context, p *riverdriver.JobRescueManyParams) (*struct{}, error) {
	return e.fence.rescue(ctx, e.Executor, p)
}

// fencedTx is the executor that river.JobCompleteTx writes through.
type fencedTx struct {
	riverdriver.ExecutorTx
	fence *fence
}

func (t fencedTx) JobSetStateIfRunningMany(ctx context.Context, p *riverdriver.JobSetStateIfRunningManyParams) ([]*rivertype.JobRow, error) {
	return t.fence.setState(ctx, t.ExecutorTx, p)
}

// fence lets only the current attempt of a job write its end. River itself writes a worker's result to whichever
// attempt is running, and always writes its metadata; and a leader that was suspended rescues jobs that have ended in
// the meantime.
//
// Each result has a mark that states its attempt. In the transaction that writes it, the row is locked and read first.
type fence struct {
	adapter       *Adapter
	exec          riverdriver.Executor // of the driver itself
	sql           *dialect
	table, schema string
}

// markKey is the key under which the result of an attempt names its attempt. It is removed before the result is
// written.
const markKey = "retryjob_attempt"

// mark is the attempt that a result belongs to.
type mark struct {
	River int              `json:"river"`   // River's count of attempts
	Line  retryjob.Attempt `json:"attempt"` // for the record if it is late; without an End if there was no attempt
}

// is reports whether the row's current attempt is the marked one. It is if its job was completed by
// river.JobCompleteTx.
func (m *mark) is(row *rivertype.JobRow, a *Adapter) bool {
	if row == nil || row.Attempt != m.River || row.State != rivertype.JobStateRunning && row.State != rivertype.JobStateCompleted {
		return false
	}
	s, err := a.load(row)
	return err != nil && m.Line.ID == "" || err == nil && s.AttemptID(s.attempt(row)) == m.Line.ID
}

// setState writes the results of current attempts, and the others to their own lines.
func (f *fence) setState(ctx context.Context, exec riverdriver.Executor, p *riverdriver.JobSetStateIfRunningManyParams) (rows []*rivertype.JobRow, err error) {
	own := *p
	own.MetadataUpdates, own.MetadataDoMerge, own.State = slices.Clone(p.MetadataUpdates), slices.Clone(p.MetadataDoMerge), slices.Clone(p.State)
	marks := make([]*mark, len(p.ID))
	for i := range p.ID {
		if marks[i], own.MetadataUpdates[i], err = cutMark(p.MetadataUpdates[i]); err != nil {
			return nil, err
		}
	}
	var told, forgotten []string
	err = within(ctx, exec, func(tx riverdriver.ExecutorTx) error {
		found, err := f.lock(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		valid := riverdriver.JobSetStateIfRunningManyParams{Now: own.Now, Schema: own.Schema}
		told, forgotten = told[:0], forgotten[:0]
		for i, id := range own.ID {
			row, m := found[id], marks[i]
			if m != nil {
				current := m.is(row, f.adapter)
				if !current && !f.recorded(row, m) {
					if err := f.late(ctx, tx, row, m); err != nil {
						return err
					}
					forgotten = append(forgotten, m.Line.ID)
					continue
				}
				if told = append(told, m.Line.ID); !current {
					continue
				}
				if own.State[i] == rivertype.JobStateCompleted && hasKey(row.Metadata, "cancel_attempted_at") {
					if err := f.cancel(&own, i, row, m); err != nil {
						return err
					}
				}
			}
			valid.ID = append(valid.ID, id)
			valid.Attempt = append(valid.Attempt, own.Attempt[i])
			valid.ErrData = append(valid.ErrData, own.ErrData[i])
			valid.FinalizedAt = append(valid.FinalizedAt, own.FinalizedAt[i])
			valid.MetadataDoMerge = append(valid.MetadataDoMerge, own.MetadataDoMerge[i] && len(own.MetadataUpdates[i]) > 0)
			valid.MetadataUpdates = append(valid.MetadataUpdates, own.MetadataUpdates[i])
			valid.ScheduledAt = append(valid.ScheduledAt, own.ScheduledAt[i])
			valid.State = append(valid.State, own.State[i])
		}
		if len(valid.ID) > 0 {
			rows, err = tx.JobSetStateIfRunningMany(ctx, &valid)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, id := range told {
		f.adapter.tell(id)
	}
	for _, id := range forgotten {
		f.adapter.forget(id)
	}
	return rows, nil
}

// cancel makes a success the end of a job that was canceled during the attempt: River would complete it.
func (f *fence) cancel(p *riverdriver.JobSetStateIfRunningManyParams, i int, row *rivertype.JobRow, m *mark) error {
	s, err := f.adapter.load(row)
	if err != nil {
		return err
	}
	s.lost(&s.Record, row, row.Attempt-1)
	s.Attempts, s.History, s.Seen = m.Line.Number, append(s.History, m.Line), row.Attempt
	if err := s.Cancel(m.Line.End.UTC()); err != nil {
		return err
	}
	p.State[i], p.MetadataDoMerge[i] = rivertype.JobStateCancelled, true
	p.MetadataUpdates[i], err = withKey(p.MetadataUpdates[i], metadataKey, s.array())
	return err
}

// cutMark splits updates of metadata into the mark and the rest.
func cutMark(updates []byte) (*mark, []byte, error) {
	if !hasKey(updates, markKey) {
		return nil, updates, nil
	}
	var fields map[string]json.RawMessage
	var m mark
	if err := errors.Join(json.Unmarshal(updates, &fields), json.Unmarshal(fields[markKey], &m)); err != nil {
		return nil, nil, err
	}
	delete(fields, markKey)
	if len(fields) == 0 {
		return &m, nil, nil
	}
	rest, err := json.Marshal(fields)
	return &m, rest, err
}

// recorded reports whether the result was already written, as it is if only the database's answer was lost.
func (f *fence) recorded(row *rivertype.JobRow, m *mark) bool {
	if row == nil || m.Line.End.IsZero() {
		return false
	}
	s, err := f.adapter.load(row)
	return err == nil && slices.ContainsFunc(s.History, func(own retryjob.Attempt) bool {
		return own.ID == m.Line.ID && !own.End.IsZero()
	})
}

// late keeps the line of a late attempt next to the record, not in it: the worker of the current attempt has a copy of
// the record and will overwrite it.
func (f *fence) late(ctx context.Context, exec riverdriver.Executor, row *rivertype.JobRow, m *mark) error {
	if row == nil || m.Line.End.IsZero() {
		return nil
	}
	s, err := f.adapter.load(row)
	if err != nil || s.AttemptID(m.Line.Number) != m.Line.ID {
		return nil // the row is of an earlier or later run of the job, or of another job
	}
	if slices.ContainsFunc(s.late, func(known retryjob.Attempt) bool { return known.ID == m.Line.ID }) {
		return nil
	}
	if len(s.late) == keptLost {
		s.late = s.late[1:]
	}
	f.adapter.logger.Warn("retryriver: an attempt ended after it had been given up as lost", "job_id", row.ID, "attempt", m.Line.ID)
	m.Line.Late = true
	update, err := json.Marshal(map[string]any{lateKey: append(s.late, m.Line)})
	if err != nil {
		return err
	}
	_, err = exec.JobUpdate(ctx, &riverdriver.JobUpdateParams{ID: row.ID, MetadataDoMerge: true, Metadata: update, Schema: f.schema})
	return err
}

// overtaken reports whether the attempt is no longer current, and if so keeps its line.
func (f *fence) overtaken(ctx context.Context, row *rivertype.JobRow, m *mark) (late bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err = within(ctx, f.exec, func(tx riverdriver.ExecutorTx) error {
		found, err := f.lock(ctx, tx, []int64{row.ID})
		if late = err == nil && !m.is(found[row.ID], f.adapter); late {
			err = f.late(ctx, tx, found[row.ID], m)
		}
		return err
	})
	return late && err == nil, err
}

// rescue marks the attempts that are still running as lost.
func (f *fence) rescue(ctx context.Context, exec riverdriver.Executor, p *riverdriver.JobRescueManyParams) (done *struct{}, err error) {
	err = within(ctx, exec, func(tx riverdriver.ExecutorTx) error {
		found, err := f.lock(ctx, tx, p.ID)
		if err != nil {
			return err
		}
		stuck := riverdriver.JobRescueManyParams{Schema: p.Schema, StuckHorizon: p.StuckHorizon}
		for i, id := range p.ID {
			if row := found[id]; row == nil || row.State != rivertype.JobStateRunning || attemptedAt(row).After(p.StuckHorizon) {
				continue
			}
			stuck.ID = append(stuck.ID, id)
			stuck.Error = append(stuck.Error, p.Error[i])
			stuck.FinalizedAt = append(stuck.FinalizedAt, p.FinalizedAt[i])
			stuck.ScheduledAt = append(stuck.ScheduledAt, p.ScheduledAt[i])
			stuck.State = append(stuck.State, p.State[i])
		}
		done = &struct{}{}
		if len(stuck.ID) > 0 {
			done, err = tx.JobRescueMany(ctx, &stuck)
		}
		return err
	})
	return done, err
}

// lock locks the rows with these numbers and returns the fields that load needs, by number.
func (f *fence) lock(ctx context.Context, tx riverdriver.ExecutorTx, numbers []int64) (map[int64]*rivertype.JobRow, error) {
	list, err := json.Marshal(numbers)
	if err != nil {
		return nil, err
	}
	var rows []row
	if err := scan(ctx, tx, &rows, fmt.Sprintf(f.sql.locked, f.table), string(list)); err != nil {
		return nil, err
	}
	found := make(map[int64]*rivertype.JobRow, len(rows))
	for i := range rows {
		found[rows[i].ID] = rows[i].job()
	}
	return found, nil
}

// within runs f in a transaction of its own, or in part of exec's.
func within(ctx context.Context, exec riverdriver.Executor, f func(tx riverdriver.ExecutorTx) error) error {
	if ctx == nil {
		return errNoContext
	}
	tx, err := exec.Begin(ctx)
	if err != nil {
		return err
	}
	if err = f(tx); err != nil {
		if undone := tx.Rollback(context.WithoutCancel(ctx)); !errors.Is(undone, sql.ErrTxDone) {
			err = errors.Join(err, undone)
		}
		return err
	}
	if err = tx.Commit(ctx); errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil {
		return ctx.Err() // database/sql has undone it
	}
	return err
}

// unreported is the error of an attempt that belongs to no job, so River must not write anything.
type unreported struct{ error }

func (unreported) Jobs() []*rivertype.JobRow   { return nil }
func (unreported) ErrorsByID() map[int64]error { return nil }
