package retryriver

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/retrygo/retry/retryjob"
)

// NewClient returns a river.Client that follows the policies of a. It copies cfg, adds a plugin before the existing
// ones, and sets
//   - RetryPolicy, which gives way to the existing one, or River's, for jobs that are not retryjob's,
//   - the retention periods of canceled and discarded jobs to Options.Retention,
//   - CompletedJobRetentionPeriod, if it is not set, to 24 hours,
//   - JobTimeout, if it is not set, to a minute,
//   - RescueStuckJobsAfter, if it is not set, to a minute more than JobTimeout.
//
// It refuses, with retry.FieldErrors, settings that would lose jobs or leave them leased forever: a negative JobTimeout,
// a RescueStuckJobsAfter not above JobTimeout, a negative CompletedJobRetentionPeriod, which River treats as unlimited
// and SQLite as zero, and a retention other than Options.Retention. An Adapter serves one client.
//
// Jobs that Admin or InsertTx has inserted follow their policies. Jobs that the client itself inserts stay River's own:
// Admin does not list them.
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
	f := &fence{adapter: a, exec: driver.GetExecutor(), sql: dialectOf(driver.DatabaseName()), schema: set.Schema}
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

// fence lets only the current attempt of a job write its end. River itself writes a worker's result to whichever
// attempt is running, and always writes its metadata; and a leader that was suspended rescues jobs that have ended in
// the meantime.
//
// Each result has a mark that states its lease. The rows that River returns show whether each result was written to its
// own lease. If one was not, the transaction is undone, and the rows are locked and read before the results are written.
type fence struct {
	adapter *Adapter
	exec    riverdriver.Executor // of the driver itself
	sql     *dialect
	schema  string
}

// leaseKey is a row, and when it was leased, in microseconds since 1970.
type leaseKey struct{ row, at int64 }

func keyOfLease(row *rivertype.JobRow) leaseKey {
	return leaseKey{row.ID, attemptedAt(row).UnixMicro()}
}

// lease is an attempt that this process makes. The goroutine that makes it writes it, and later the one that writes the
// result.
type lease struct {
	leaseKey
	job   retryjob.Job     // without its payload; it does not change
	river int              // River's count of attempts
	line  retryjob.Attempt // for the record if it is late; without an End if there was no attempt
	due   time.Time        // of the next attempt, for NextRetry
	next  retryjob.Next    // the end of the job, for Observe, if the attempt has ended it
	free  context.CancelCauseFunc
}

// leaseOf returns the lease of the row that this process has, or nil.
func (a *Adapter) leaseOf(row *rivertype.JobRow) *lease {
	m, _ := a.leases.Load(keyOfLease(row))
	own, _ := m.(*lease)
	return own
}

// markKey is the key under which the result of an attempt has the time of its lease. It is removed before the result is
// written.
const markKey = "retryjob_attempt"

// is reports whether the row's current attempt is that of the lease.
func (m *lease) is(row *rivertype.JobRow, a *Adapter) bool {
	if row == nil || row.Attempt != m.river || row.State != rivertype.JobStateRunning {
		return false
	}
	s, err := a.load(row)
	if err != nil {
		return m.line.ID == "" // its worker could not read the record either
	}
	return s.AttemptID(s.attempt(row)) == m.line.ID
}

// setState writes the results of current attempts, and the others to their own lines.
func (f *fence) setState(ctx context.Context, exec riverdriver.Executor, p *riverdriver.JobSetStateIfRunningManyParams) (rows []*rivertype.JobRow, err error) {
	own := *p
	own.MetadataUpdates = slices.Clone(p.MetadataUpdates)
	own.MetadataDoMerge = slices.Clone(p.MetadataDoMerge)
	own.State = slices.Clone(p.State)
	leases := make([]*lease, len(p.ID))
	for i := range p.ID {
		if leases[i], own.MetadataUpdates[i], err = f.cut(p.ID[i], p.MetadataUpdates[i]); err != nil {
			return nil, err
		}
		own.MetadataDoMerge[i] = own.MetadataDoMerge[i] && len(own.MetadataUpdates[i]) > 0
	}
	late := make([]bool, len(p.ID))
	err = within(ctx, exec, func(tx riverdriver.ExecutorTx) (err error) {
		if rows, err = tx.JobSetStateIfRunningMany(ctx, &own); err != nil {
			return err
		}
		found := byNumber(rows)
		for i, m := range leases {
			if m == nil {
				continue
			}
			row := found[own.ID[i]]
			if !m.asAsked(&own, i, row) {
				return errOvertaken
			}
			if row.State == rivertype.JobStateCompleted && toCancel(row) {
				return errOvertaken
			}
		}
		return nil
	})
	if errors.Is(err, errOvertaken) {
		err = within(ctx, exec, func(tx riverdriver.ExecutorTx) (err error) {
			rows, err = f.each(ctx, tx, &own, leases, late)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	for i, m := range leases {
		switch {
		case m == nil || !f.adapter.leases.CompareAndDelete(m.leaseKey, m):
		case !late[i]:
			f.adapter.tell(m)
		case m.free != nil:
			m.free(nil)
		}
	}
	return rows, nil
}

var errOvertaken = errors.New("retryriver: a lease is no longer current")

// asAsked reports whether the row of the lease is as the result asks. A row that River has not changed, as another
// program has ended its lease, differs in its state or in a time.
func (m *lease) asAsked(p *riverdriver.JobSetStateIfRunningManyParams, i int, row *rivertype.JobRow) bool {
	near := func(is, asked *time.Time) bool {
		return asked == nil || is != nil && is.Sub(*asked).Abs() < time.Millisecond // the precision of SQLite
	}
	attempt := m.river
	if p.Attempt[i] != nil {
		attempt = *p.Attempt[i]
	}
	if row == nil || row.State != p.State[i] || row.Attempt != attempt {
		return false
	}
	return keyOfLease(row) == m.leaseKey && near(row.FinalizedAt, p.FinalizedAt[i]) && near(&row.ScheduledAt, p.ScheduledAt[i])
}

// toCancel reports whether River was asked to cancel the job while it was running.
func toCancel(row *rivertype.JobRow) bool {
	return bytes.Contains(row.Metadata, []byte("cancel_attempted_at"))
}

// each locks the rows and writes the results of current leases. Those of others change their own lines, and are late.
func (f *fence) each(
	ctx context.Context, tx riverdriver.ExecutorTx, p *riverdriver.JobSetStateIfRunningManyParams, leases []*lease, late []bool,
) ([]*rivertype.JobRow, error) {
	found, err := f.lock(ctx, tx, p.ID)
	if err != nil {
		return nil, err
	}
	valid := riverdriver.JobSetStateIfRunningManyParams{Now: p.Now, Schema: p.Schema}
	for i, id := range p.ID {
		if row, m := found[id], leases[i]; m != nil {
			current := m.is(row, f.adapter)
			if late[i] = !current && !m.asAsked(p, i, row); late[i] { // it is as asked if only the database's answer was lost
				if err := f.late(ctx, tx, row, m); err != nil {
					return nil, err
				}
			}
			if !current {
				continue
			}
			if p.State[i] == rivertype.JobStateCompleted && toCancel(row) {
				if err := f.cancel(p, i, row, m); err != nil {
					return nil, err
				}
			}
		}
		valid.ID = append(valid.ID, id)
		valid.Attempt = append(valid.Attempt, p.Attempt[i])
		valid.ErrData = append(valid.ErrData, p.ErrData[i])
		valid.FinalizedAt = append(valid.FinalizedAt, p.FinalizedAt[i])
		valid.MetadataDoMerge = append(valid.MetadataDoMerge, p.MetadataDoMerge[i])
		valid.MetadataUpdates = append(valid.MetadataUpdates, p.MetadataUpdates[i])
		valid.ScheduledAt = append(valid.ScheduledAt, p.ScheduledAt[i])
		valid.State = append(valid.State, p.State[i])
	}
	if len(valid.ID) == 0 {
		return nil, nil
	}
	return tx.JobSetStateIfRunningMany(ctx, &valid)
}

// cancel makes a success the end of a job that was canceled during the attempt: River would complete it.
func (f *fence) cancel(p *riverdriver.JobSetStateIfRunningManyParams, i int, row *rivertype.JobRow, m *lease) error {
	s, err := f.adapter.load(row)
	if err != nil {
		return err
	}
	s.lost(&s.Record, row, row.Attempt-1)
	s.Attempts = m.line.Number
	s.History = append(s.History, m.line)
	s.Seen = row.Attempt
	if err := s.Cancel(m.line.End.UTC()); err != nil {
		return err
	}
	p.State[i], p.MetadataDoMerge[i] = rivertype.JobStateCancelled, true
	p.MetadataUpdates[i], err = withKey(p.MetadataUpdates[i], metadataKey, s.array())
	return err
}

// cut splits updates of metadata into the lease that they mark, if any, and the rest.
func (f *fence) cut(row int64, updates []byte) (*lease, []byte, error) {
	mark := []byte(`"` + markKey + `":`)
	if !bytes.Contains(updates, mark) {
		return nil, updates, nil
	}
	var fields map[string]json.RawMessage
	text, rest := bytes.TrimSuffix(bytes.TrimPrefix(updates[1:], mark), []byte("}")), []byte(nil) // most have nothing else
	at, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		if err := json.Unmarshal(updates, &fields); err != nil {
			return nil, nil, err
		}
		if fields[markKey] == nil { // the key of another object in it
			return nil, updates, nil
		}
		if err := json.Unmarshal(fields[markKey], &at); err != nil {
			return nil, nil, err
		}
		delete(fields, markKey)
		if rest, err = json.Marshal(fields); err != nil {
			return nil, nil, err
		}
	}
	m, _ := f.adapter.leases.Load(leaseKey{row, at})
	own, ok := m.(*lease)
	if !ok {
		return nil, nil, fmt.Errorf("retryriver: River's job %d: no attempt of this process has the mark %d", row, at)
	}
	return own, rest, nil
}

// late keeps the line of a late attempt next to the record, not in it: the worker of the current attempt has a copy of
// the record and will overwrite it.
func (f *fence) late(ctx context.Context, exec riverdriver.Executor, row *rivertype.JobRow, m *lease) error {
	if row == nil || m.line.End.IsZero() {
		return nil
	}
	s, err := f.adapter.load(row)
	if err != nil || s.AttemptID(m.line.Number) != m.line.ID {
		return nil // the row is of an earlier or later run of the job, or of another job
	}
	if slices.ContainsFunc(s.late, func(known retryjob.Attempt) bool { return known.ID == m.line.ID }) {
		return nil
	}
	if len(s.late) == keptLost {
		s.late = s.late[1:]
	}
	f.adapter.logger.Warn("retryriver: an attempt ended after it had been given up as lost", "job_id", row.ID, "attempt", m.line.ID)
	m.line.Late = true
	update, err := json.Marshal(map[string]any{lateKey: append(s.late, m.line)})
	if err != nil {
		return err
	}
	_, err = exec.JobUpdate(ctx, &riverdriver.JobUpdateParams{ID: row.ID, MetadataDoMerge: true, Metadata: update, Schema: f.schema})
	return err
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

// lock locks the rows with these numbers and returns them, by number.
func (f *fence) lock(ctx context.Context, tx riverdriver.ExecutorTx, numbers []int64) (map[int64]*rivertype.JobRow, error) {
	if f.sql.lock != "" {
		list, err := json.Marshal(numbers)
		if err != nil {
			return nil, err
		}
		if err := tx.Exec(ctx, fmt.Sprintf(f.sql.lock, prefix(f.schema)+"river_job"), string(list)); err != nil {
			return nil, err
		}
	}
	return (&query{client: f.schema}).read(ctx, tx, numbers)
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
