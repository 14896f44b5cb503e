package retryriver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/riverqueue/river/riverdriver"

	"github.com/retrygo/retry/retryjob"
)

// Schedules implements retryjob.Admin.
func (m *Admin[TTx]) Schedules(ctx context.Context) ([]retryjob.Schedule, error) {
	q := m.query()
	var rows []struct{ State string }
	sql := "SELECT " + fmt.Sprintf(q.sql.array, q.sql.fields("state")+")") + " FROM " + q.schema + "retryjob_schedule"
	if err := q.into(ctx, m.client.Driver().GetExecutor(), &rows, sql); err != nil {
		return nil, err
	}
	schedules := make([]retryjob.Schedule, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal([]byte(row.State), &schedules[i]); err != nil {
			return nil, fmt.Errorf("retryriver: table retryjob_schedule: %w", err)
		}
	}
	return schedules, nil
}

// ChangeSchedule implements retryjob.Admin. It locks the row of the schedule for the transaction.
func (m *Admin[TTx]) ChangeSchedule(ctx context.Context, name string, change func(s *retryjob.Schedule) (*retryjob.Job, error)) error {
	return m.within(ctx, func(exec riverdriver.Executor, tx TTx) error {
		before, s, err := m.lockSchedule(ctx, exec, name)
		if err != nil {
			return err
		}
		job, err := change(&s)
		if err != nil {
			return err
		}
		if job != nil {
			args, opts, err := m.prepare(ctx, job)
			if err != nil {
				return err
			}
			if _, err := m.client.InsertTx(ctx, tx, args, opts); err != nil {
				return insertError(err)
			}
		}
		return m.keepSchedule(ctx, exec, before, &s)
	})
}

// lockSchedule returns the schedule of a name as text and as a value, and locks its row. The row of a new schedule is
// empty.
func (m *Admin[TTx]) lockSchedule(ctx context.Context, exec riverdriver.Executor, name string) (text string, s retryjob.Schedule, err error) {
	q := m.query()
	table, which := q.schema+"retryjob_schedule", q.arg(name)
	if err := exec.Exec(ctx, "INSERT INTO "+table+" (name, state) VALUES ("+which+", '{}') ON CONFLICT (name) DO NOTHING", name); err != nil {
		return "", s, fmt.Errorf("retryriver: %w", err)
	}
	if err := exec.QueryRow(ctx, "SELECT state FROM "+table+" WHERE name = "+which+q.sql.forUpdate, name).Scan(&text); err != nil {
		return "", s, fmt.Errorf("retryriver: %w", err)
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return "", s, fmt.Errorf("retryriver: schedule %s: %w", name, err)
	}
	s.Name = name
	return text, s, nil
}

// keepSchedule writes a schedule if it differs from the text.
func (m *Admin[TTx]) keepSchedule(ctx context.Context, exec riverdriver.Executor, before string, s *retryjob.Schedule) error {
	after, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("retryriver: schedule %s: %w", s.Name, err)
	}
	if string(after) == before {
		return nil
	}
	q := m.query()
	sql := "UPDATE " + q.schema + "retryjob_schedule SET state = " + q.arg(string(after)) + " WHERE name = " + q.arg(s.Name)
	if err := exec.Exec(ctx, sql, q.args...); err != nil {
		return fmt.Errorf("retryriver: %w", err)
	}
	return nil
}

// claim makes an occurrence that is to be replayed the one that its schedule waits for. It returns
// retryjob.ErrNotReplayable if another occurrence has not ended, and does nothing for any other job.
func (m *Admin[TTx]) claim(ctx context.Context, exec riverdriver.Executor, id string) error {
	name, ok := retryjob.ScheduleOf(id)
	if !ok {
		return nil
	}
	before, s, err := m.lockSchedule(ctx, exec, name)
	if err != nil {
		return err
	}
	var open retryjob.Info
	if s.Job != "" {
		_, open, err = m.find(ctx, exec, s.Job)
		if err != nil && !errors.Is(err, retryjob.ErrUnknownJob) {
			return err
		}
	}
	if err := s.Claim(id, &open); err != nil {
		return err
	}
	return m.keepSchedule(ctx, exec, before, &s)
}

// claimAll returns the rows of those jobs that claim does not refuse, at most one for each schedule. Schedules are locked
// in the order of their names, so that two callers do not wait for each other.
func (m *Admin[TTx]) claimAll(ctx context.Context, exec riverdriver.Executor, jobs []chosen) (free []int64, err error) {
	occurrences := map[string]chosen{}
	for _, job := range jobs {
		name, ok := retryjob.ScheduleOf(job.id)
		if !ok {
			free = append(free, job.row)
		} else if _, known := occurrences[name]; !known {
			occurrences[name] = job
		}
	}
	for _, name := range slices.Sorted(maps.Keys(occurrences)) {
		job := occurrences[name]
		err := m.claim(ctx, exec, job.id)
		if err != nil && !errors.Is(err, retryjob.ErrNotReplayable) {
			return nil, err
		}
		if err == nil {
			free = append(free, job.row)
		}
	}
	return free, nil
}
