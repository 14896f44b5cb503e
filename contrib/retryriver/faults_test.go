package retryriver_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivertype"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// disk is a database whose nth use from now on fails; with n = 0 none does.
type disk struct{ n, used int }

var errDisk = errors.New("the disk is full")

func (d *disk) fault(statement string) error {
	if d.n == 0 || strings.Contains(statement, "river_notification") { // River goes on without one
		return nil
	}
	if d.used++; d.used == d.n {
		return fmt.Errorf("%w: %s", errDisk, statement)
	}
	return nil
}

// onDisk returns a new database with the schema, and its disk.
func onDisk(t *testing.T) (*sql.DB, *disk) {
	file := filepath.Join(t.TempDir(), "jobs.db")
	db, err := retryriver.OpenSQLite(t.Context(), file)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	d := &disk{}
	db, err = retryriver.FaultySQLite(file, d.fault)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db, d
}

// TestAnOperationThatFailsHalfwayHasDoneNothing: each use of the database, in turn, fails. The error reaches the
// caller, and the jobs are as they were. The operation then works.
func TestAnOperationThatFailsHalfwayHasDoneNothing(t *testing.T) {
	db, d := onDisk(t)
	a := newAdapter(t)
	client, err := retryriver.NewClient(a, riversqlite.New(db), &river.Config{})
	require.NoError(t, err)
	m := retryriver.NewAdmin(a, client)
	job := func(id string) retryjob.Job { return retryjob.Job{ID: id, Kind: "mail", Policy: "quick"} }
	exec := func(query string, args ...any) {
		_, err := db.ExecContext(t.Context(), query, args...)
		require.NoError(t, err)
	}
	all := func() (jobs []retryjob.Info) {
		for i, err := range m.List(t.Context(), retryjob.Filter{}) {
			require.NoError(t, err)
			jobs = append(jobs, i)
		}
		return jobs
	}
	enqueue := func(t *testing.T, id string) int64 {
		_, err := m.Enqueue(t.Context(), job(id))
		require.NoError(t, err)
		var row int64
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT max(id) FROM river_job").Scan(&row))
		return row
	}
	kill := func(t *testing.T, id string) {
		exec("UPDATE river_job SET state = 'discarded', attempt = 1, finalized_at = CURRENT_TIMESTAMP WHERE id = ?", enqueue(t, id))
	}
	read := func(f retryjob.Filter) error {
		for _, err := range m.List(t.Context(), f) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	for _, row := range []struct {
		name string
		set  func(t *testing.T)
		do   func(context.Context) error
	}{
		{"Get", nil, func(ctx context.Context) error { _, err := m.Get(ctx, "dead"); return err }},
		{"Wait", nil, func(ctx context.Context) error { _, err := m.Wait(ctx, "dead"); return err }},
		{"List", nil, func(context.Context) error { return read(retryjob.Filter{}) }},
		{"List after a job", nil, func(context.Context) error {
			return read(retryjob.Filter{After: retryjob.Cursor{Changed: time.Now(), ID: "dead"}})
		}},
		{"Count", nil, func(ctx context.Context) error { _, err := m.Count(ctx, retryjob.Filter{}); return err }},
		{"Groups", nil, func(ctx context.Context) error { _, err := m.Groups(ctx, retryjob.Filter{}); return err }},
		{"Enqueue", nil, func(ctx context.Context) error { _, err := m.Enqueue(ctx, job("new")); return err }},
		{"EnqueueMany", nil, func(ctx context.Context) error {
			_, err := m.EnqueueMany(ctx, []retryjob.Job{job("one"), job("two")})
			return err
		}},
		{"Cancel", func(t *testing.T) { enqueue(t, "waits") }, func(ctx context.Context) error { return m.Cancel(ctx, "waits") }},
		{"Cancel of an attempt under way", func(t *testing.T) {
			exec("UPDATE river_job SET state = 'running', attempt = 1, attempted_at = CURRENT_TIMESTAMP WHERE id = ?", enqueue(t, "runs"))
		}, func(ctx context.Context) error { return m.Cancel(ctx, "runs") }},
		{"Replay", nil, func(ctx context.Context) error { return m.Replay(ctx, "dead") }},
		{"ReplayAll", nil, func(ctx context.Context) error {
			n, err := m.ReplayAll(ctx, retryjob.Filter{})
			require.Equal(t, err == nil, n == 1)
			return err
		}},
		{"Purge", nil, func(ctx context.Context) error {
			n, err := m.Purge(ctx, retryjob.Filter{})
			require.Equal(t, err == nil, n == 1)
			return err
		}},
		{"Purge after a job", nil, func(ctx context.Context) error {
			_, err := m.Purge(ctx, retryjob.Filter{After: retryjob.Cursor{Changed: time.Now().Add(time.Hour), ID: "gone"}})
			return err
		}},
		{"Schedules", nil, func(ctx context.Context) error { _, err := m.Schedules(ctx); return err }},
		{"ChangeSchedule", nil, func(ctx context.Context) error {
			return m.ChangeSchedule(ctx, "beat", func(*retryjob.Schedule) (*retryjob.Job, error) { return nil, nil })
		}},
		{"a rescue", func(t *testing.T) {
			exec("UPDATE river_job SET state = 'running', attempt = 1, attempted_at = datetime('now', '-1 hour') WHERE id = ?", enqueue(t, "stuck"))
		}, func(ctx context.Context) error {
			var row int64
			if err := db.QueryRowContext(ctx, "SELECT max(id) FROM river_job").Scan(&row); err != nil {
				return err
			}
			_, err := client.Driver().GetExecutor().JobRescueMany(ctx, &riverdriver.JobRescueManyParams{
				StuckHorizon: time.Now(), ID: []int64{row}, Error: [][]byte{[]byte(`{"error":"stuck"}`)}, FinalizedAt: []*time.Time{nil},
				ScheduledAt: []time.Time{time.Now().Add(time.Hour)}, State: []string{string(rivertype.JobStateRetryable)},
			})
			return err
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			exec("DELETE FROM river_job")
			kill(t, "dead")
			if row.set != nil {
				row.set(t)
			}
			before := all()
			for n := 1; ; n++ {
				*d = disk{n: n}
				err := row.do(t.Context())
				failed := d.used >= d.n
				*d = disk{}
				if !failed {
					require.NoError(t, err)
					require.Greater(t, n, 1)
					return
				}
				require.ErrorIs(t, err, errDisk)
				require.Equal(t, before, all(), "use %d of the database failed: %v", n, err)
			}
		})
	}
}

// TestTheSchemaIsMadeWholeOrNotAtAll: each statement that makes it, in turn, fails.
func TestTheSchemaIsMadeWholeOrNotAtAll(t *testing.T) {
	db, d := onDisk(t)
	names := func() (names []string) {
		rows, err := db.QueryContext(t.Context(), "SELECT name FROM sqlite_master WHERE name LIKE 'retryjob_%' ORDER BY name")
		require.NoError(t, err)
		defer rows.Close()
		for rows.Next() {
			var name string
			require.NoError(t, rows.Scan(&name))
			names = append(names, name)
		}
		require.NoError(t, rows.Err())
		return names
	}
	whole := names()
	require.Equal(t, []string{"retryjob_changed", "retryjob_group", "retryjob_schedule"}, whole)
	_, err := db.ExecContext(t.Context(), "DROP TABLE retryjob_schedule; DROP INDEX retryjob_changed; DROP INDEX retryjob_group")
	require.NoError(t, err)
	for n := 1; ; n++ {
		*d = disk{n: n}
		err := retryriver.EnsureSchema(t.Context(), db)
		failed := d.used >= d.n
		*d = disk{}
		if !failed {
			require.NoError(t, err)
			require.Equal(t, whole, names())
			require.NoError(t, retryriver.EnsureSchema(t.Context(), db), "it is there")
			return
		}
		require.ErrorIs(t, err, errDisk)
		require.Empty(t, names(), "statement %d failed", n)
	}
}

func TestAFileThatCannotBeMadeIsAnError(t *testing.T) {
	_, err := retryriver.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "nowhere", "jobs.db"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte(strings.Repeat("no database. ", 100)), 0o600))
	_, err = retryriver.OpenSQLite(t.Context(), text)
	require.ErrorContains(t, err, "retryriver: "+text+": ")
}
