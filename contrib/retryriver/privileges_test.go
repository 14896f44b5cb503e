package retryriver_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// TestARoleWithoutRightsGainsNoneFromTheTriggers: the function of the triggers runs with the rights of its owner, a
// superuser here. A role that may only connect makes it the trigger of a table whose id has a type with a cast of its
// own, and of a table that it truncates.
func TestARoleWithoutRightsGainsNoneFromTheTriggers(t *testing.T) {
	server := pgtest.Start(t)
	pool, err := pgxpool.New(t.Context(), server.DSN())
	require.NoError(t, err)
	defer pool.Close()
	exec := func(statement string) {
		t.Helper()
		_, err := pool.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	exec("CREATE ROLE mallory LOGIN")
	require.NoError(t, retryriver.MigratePostgres(t.Context(), pool))
	q, err := retryriver.NewPostgres(t.Context(), pool, retryjob.Options{Policies: catalog, Handlers: map[string]retryjob.Handler{"kind": func(context.Context, retryjob.Job) error { return nil }}})
	require.NoError(t, err)
	_, err = q.Enqueue(t.Context(), retryjob.Job{Kind: "kind", Policy: "quick"})
	require.NoError(t, err)
	require.NoError(t, q.Close())

	mallory, err := pgx.Connect(t.Context(), strings.Replace(server.DSN(), "postgres@", "mallory@", 1))
	require.NoError(t, err)
	defer mallory.Close(t.Context())
	attack := func() (last error) {
		for _, statement := range []string{
			"CREATE TYPE pg_temp.evil AS (x int)",
			`CREATE OR REPLACE FUNCTION pg_temp.climb(pg_temp.evil) RETURNS bigint LANGUAGE plpgsql AS
				'BEGIN ALTER ROLE mallory SUPERUSER; RETURN 1; END'`,
			"CREATE CAST (pg_temp.evil AS bigint) WITH FUNCTION pg_temp.climb(pg_temp.evil) AS IMPLICIT",
			`CREATE TEMP TABLE trap (id pg_temp.evil, kind text, state text, attempt int, attempted_at timestamptz,
				finalized_at timestamptz, created_at timestamptz, scheduled_at timestamptz, metadata jsonb, unique_key bytea)`,
			"CREATE TRIGGER t AFTER INSERT ON trap REFERENCING NEW TABLE AS noted FOR EACH STATEMENT EXECUTE FUNCTION public.retryjob_note()",
			"CREATE TEMP TABLE sweep ()",
			"CREATE TRIGGER t AFTER TRUNCATE ON sweep FOR EACH STATEMENT EXECUTE FUNCTION public.retryjob_note()",
			"INSERT INTO trap VALUES (ROW(1), 'kind', 'available', 0, now(), NULL, now(), now(), '{}', NULL)",
			"TRUNCATE sweep",
		} {
			if _, err := mallory.Exec(t.Context(), statement); err != nil {
				last = err
			}
		}
		return last
	}
	unharmed := func() {
		t.Helper()
		var super bool
		require.NoError(t, pool.QueryRow(t.Context(), "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'").Scan(&super))
		require.False(t, super, "the role became the superuser")
		var jobs int
		require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM retryjob_job").Scan(&jobs))
		require.Equal(t, 1, jobs, "the role emptied the lists")
	}
	require.Error(t, attack())
	unharmed()

	// The triggers of an attack that was prepared under version 1, when everyone could call the function, stay.
	exec("GRANT EXECUTE ON FUNCTION retryjob_note() TO PUBLIC")
	require.ErrorContains(t, attack(), "retryjob_note() is only for public.river_job")
	unharmed()
	exec("UPDATE river_migration SET version = 1 WHERE line = 'retryjob'")
	require.NoError(t, retryriver.MigratePostgres(t.Context(), pool))
	var public bool
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT has_function_privilege('mallory', 'retryjob_note()', 'EXECUTE')").Scan(&public))
	require.False(t, public)
}

// TestTheTriggersBelongToTheOwnerOfRiversTable: the owner of river_job can change the types of its columns, so the
// function must not have more rights than that role, even if a superuser migrates.
func TestTheTriggersBelongToTheOwnerOfRiversTable(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), pgtest.Start(t).DSN())
	require.NoError(t, err)
	defer pool.Close()
	exec := func(statement string) {
		t.Helper()
		_, err := pool.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	require.NoError(t, retryriver.MigratePostgres(t.Context(), pool))
	exec(`CREATE ROLE "the Owner"; CREATE ROLE writer; ALTER TABLE river_job OWNER TO "the Owner";
		GRANT INSERT, SELECT ON river_job TO writer; GRANT USAGE ON SEQUENCE river_job_id_seq TO writer;
		UPDATE river_migration SET version = 1 WHERE line = 'retryjob'`)
	require.NoError(t, retryriver.MigratePostgres(t.Context(), pool))
	var table, function string
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT pg_get_userbyid(relowner), pg_get_userbyid(proowner)
		FROM pg_class, pg_proc WHERE pg_class.oid = 'retryjob_job'::regclass AND proname = 'retryjob_note'`).Scan(&table, &function))
	require.Equal(t, []string{"the Owner", "the Owner"}, []string{table, function})
	exec(`SET ROLE writer; INSERT INTO river_job (kind, args, max_attempts, unique_key, metadata)
		VALUES ('mail', '{}', 1, sha256('retryjob:a'), '{"retryjob":[{"job":"a"}]}'); RESET ROLE`)
	var jobs int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM retryjob_job").Scan(&jobs))
	require.Equal(t, 1, jobs, "a role with rights on River's tables alone cannot enqueue")
}

// TestMigratePostgresTakesARightBackThatEveryoneHasAgain: a dump that is restored without its rights gives PUBLIC the
// right to call the function of the triggers.
func TestMigratePostgresTakesARightBackThatEveryoneHasAgain(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), pgtest.Start(t).DSN())
	require.NoError(t, err)
	defer pool.Close()
	require.NoError(t, retryriver.MigratePostgres(t.Context(), pool))
	public := func() (may bool) {
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) AS acl
			WHERE proname = 'retryjob_note' AND acl.grantee = 0)`).Scan(&may))
		return may
	}
	require.False(t, public())
	_, err = pool.Exec(t.Context(), "GRANT EXECUTE ON FUNCTION retryjob_note() TO PUBLIC")
	require.NoError(t, err)
	require.True(t, public())
	require.NoError(t, retryriver.MigratePostgres(t.Context(), pool))
	require.False(t, public())
}

func TestAnEngineWithoutHandlersIsRefusedInItsOwnWords(t *testing.T) {
	_, err := retryriver.NewSQLite(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), retryjob.Options{Policies: catalog})
	require.EqualError(t, err, "retryriver: Options.Handlers <empty> has no handler to run (a program that only enqueues uses NewClient and NewAdmin)")
}
