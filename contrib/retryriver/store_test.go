package retryriver_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

func TestOpenStoreSaysWhatIsWrongWithAFile(t *testing.T) {
	dir := t.TempDir()
	text, empty, foreign := filepath.Join(dir, "text"), filepath.Join(dir, "empty"), filepath.Join(dir, "foreign.db")
	require.NoError(t, os.WriteFile(text, []byte("no database, but long enough to be one"), 0o600))
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	pipe := filepath.Join(dir, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	db := openSQLite(t, foreign)
	_, err := db.ExecContext(t.Context(), "DROP TABLE river_job; DROP TABLE river_migration")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	before, err := os.ReadFile(foreign)
	require.NoError(t, err)
	for _, row := range []struct {
		name, path string
		want       error
	}{
		{"there is no file", filepath.Join(dir, "none"), retryriver.ErrNoDatabase},
		{"there is no folder", filepath.Join(dir, "no", "such", "folder"), retryriver.ErrNoDatabase},
		{"it is a folder", dir, retryriver.ErrNoDatabase},
		{"it is a text", text, retryriver.ErrNoDatabase},
		{"it is empty", empty, retryriver.ErrNotMigrated},
		{"it has other tables", "sqlite:" + foreign, retryriver.ErrNotMigrated},
		{"there is no name", "", retryriver.ErrNoDatabase},
		{"it is a pipe that nothing writes to", pipe, retryriver.ErrNoDatabase},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := retryriver.OpenStore(t.Context(), row.path)
			require.ErrorIs(t, err, row.want)
			t.Log(err)
		})
	}
	require.NoFileExists(t, filepath.Join(dir, "none"))
	after, err := os.ReadFile(foreign)
	require.NoError(t, err)
	require.True(t, bytes.Equal(before, after), "the database of another program was changed")
}

// TestAProgramsOwnTablesCanBeChanged: SQLite reads its whole schema again if any column is renamed.
func TestAProgramsOwnTablesCanBeChanged(t *testing.T) {
	db := newSQLite(t)
	for _, statement := range []string{
		"CREATE TABLE orders (id integer, amount integer)", "ALTER TABLE orders RENAME COLUMN amount TO price",
		"ALTER TABLE orders RENAME TO invoices", "ALTER TABLE invoices ADD COLUMN paid integer", "ALTER TABLE invoices DROP COLUMN price", "DROP TABLE invoices",
	} {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
	}
}

func TestOpenStoreSaysWhatIsWrongWithAServer(t *testing.T) {
	server := pgtest.Start(t)
	_, err := retryriver.OpenStore(t.Context(), server.DSN())
	require.ErrorIs(t, err, retryriver.ErrNotMigrated)
	_, err = retryriver.OpenStore(t.Context(), "postgres://postgres@"+server.Addr()+"/none?sslmode=disable")
	require.ErrorIs(t, err, retryriver.ErrUnreachable)
	_, err = retryriver.OpenStore(t.Context(), "postgres://%zz")
	require.ErrorIs(t, err, retryriver.ErrUnreachable)
	pool, err := pgxpool.New(t.Context(), server.DSN())
	require.NoError(t, err)
	defer pool.Close()
	_, err = retryriver.NewPostgres(t.Context(), pool, retryjob.Options{Policies: catalog})
	require.ErrorIs(t, err, retryriver.ErrNotMigrated)
	both := make(chan error, 2)
	for range 2 {
		go func() { both <- retryriver.MigratePostgres(t.Context(), pool) }()
	}
	require.NoError(t, <-both)
	require.NoError(t, <-both)
	s, err := retryriver.OpenStore(t.Context(), server.DSN())
	require.NoError(t, err)
	require.NoError(t, s.Close())
	server.Kill(t)
	_, err = retryriver.OpenStore(t.Context(), server.DSN())
	require.ErrorIs(t, err, retryriver.ErrUnreachable)
}

func TestOpenStoreShowsNoPassword(t *testing.T) {
	for _, database := range []string{
		"postgres:/me:hush@host/db", "postgres:me:hush@host/db", "postgres//me:hush@host/db", "POSTGRES://me:hush@host/db", "//me:hush@host/db",
		" postgres://me:hush@host/db", "me:hush@host/db", "host=h password=hush", "mysql://me:hush@host/db", "postgres://me:hush%zz@host/db",
		"postgres:///db?password=hush&port=x",
	} {
		_, err := retryriver.OpenStore(t.Context(), database)
		require.Error(t, err, database)
		require.NotContains(t, err.Error(), "hush", database)
	}
}

func TestASQLiteFileIsForItsOwnerAlone(t *testing.T) {
	dir := t.TempDir()
	defer syscall.Umask(syscall.Umask(0o022))
	openSQLite(t, filepath.Join(dir, "jobs.db"))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 3, "the database, its journal and what they share")
	for _, entry := range entries {
		info, err := entry.Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode(), entry.Name())
	}
	theirs := filepath.Join(dir, "theirs.db")
	require.NoError(t, os.WriteFile(theirs, nil, 0o640))
	openSQLite(t, theirs)
	info, err := os.Stat(theirs)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode(), "a file that was there stays as it is")
}

func TestManyOpenTheSameFileAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	const many = 8
	opened := make(chan error, many)
	for range many {
		go func() {
			db, err := retryriver.OpenSQLite(t.Context(), path)
			if err == nil {
				err = db.Close()
			}
			opened <- err
		}()
	}
	for range many {
		require.NoError(t, <-opened)
	}
	s, err := retryriver.OpenStore(t.Context(), path)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

func TestStoreReplaysWithoutPoliciesOrWorkers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "with space? and #%.db")
	var mended atomic.Bool
	q, _, err := retryriver.NewMortalSQLite(t.Context(), path, retryjob.Options{
		Policies: catalog, Handlers: map[string]retryjob.Handler{"mail": func(context.Context, retryjob.Job) error {
			if mended.Load() {
				return nil
			}
			return os.ErrClosed
		}},
	}, nil)
	require.NoError(t, err)
	defer q.Close()
	h, err := q.Enqueue(t.Context(), retryjob.Job{ID: "m-1", Kind: "mail", Policy: "quick", Payload: []byte(`[1,{"retryjob":2}]`), Correlation: "c"})
	require.NoError(t, err)
	require.Equal(t, retryjob.DeadLettered, ended(t, h).Status)
	mended.Store(true)
	s, err := retryriver.OpenStore(t.Context(), path)
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Replay(t.Context(), "m-1"))
	i := ended(t, h)
	require.Equal(t, []any{retryjob.Succeeded, 1, "c"}, []any{i.Status, i.Replays, i.Correlation})
	require.JSONEq(t, `[1,{"retryjob":2}]`, string(i.Payload))
	n, err := s.Purge(t.Context(), retryjob.Filter{Until: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestCloseOfAStoreReturnsTheErrorOfItsDatabase(t *testing.T) {
	db, err := retryriver.OpenSQLite(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	require.NoError(t, err)
	s, err := retryriver.StoreOn(db, func() error { return errors.Join(db.Close(), os.ErrClosed) })
	require.NoError(t, err)
	require.ErrorIs(t, s.Close(), os.ErrClosed)
}

// TestOpenSQLiteRefusesADatabaseThatIsNotAFile: SQLite would keep its jobs in memory, or in a file that is named like
// the URI.
func TestOpenSQLiteRefusesADatabaseThatIsNotAFile(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{
		"", "sqlite:", ":memory:", "sqlite::memory:",
		"file::memory:", "file::memory:?cache=shared", "file:jobs.db?mode=memory", "sqlite:file:jobs.db",
	} {
		_, err := retryriver.OpenSQLite(t.Context(), name)
		require.ErrorIs(t, err, retryriver.ErrNoDatabase, name)
		_, err = retryriver.OpenStore(t.Context(), name)
		require.ErrorIs(t, err, retryriver.ErrNoDatabase, name)
		_, err = retryriver.NewSQLite(t.Context(), name, fine)
		require.ErrorIs(t, err, retryriver.ErrNoDatabase, name)
	}
	made, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, made)
}

func TestANameThatOpenStoreTakesIsTheSameFileForNewSQLite(t *testing.T) {
	t.Chdir(t.TempDir())
	q := queue(t, "sqlite:jobs.db", fine)
	_, err := q.Enqueue(t.Context(), retryjob.Job{ID: "one", Kind: "kind", Policy: "once"})
	require.NoError(t, err)
	require.NoError(t, q.Close())
	require.FileExists(t, "jobs.db")
	for _, name := range []string{"jobs.db", "sqlite:jobs.db"} {
		s, err := retryriver.OpenStore(t.Context(), name)
		require.NoError(t, err, name)
		_, err = s.Get(t.Context(), "one")
		require.NoError(t, err, name)
		require.NoError(t, s.Close())
	}
}
