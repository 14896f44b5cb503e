package retryriver_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/contrib/retryriver"
	"github.com/retrygo/retry/retryjob"
)

// TestTheSchemaBelongsToTheOwnerOfRiversTable: also if a superuser migrates. A role with rights on River's tables alone
// can enqueue and work on jobs, as the indexes need none.
func TestTheSchemaBelongsToTheOwnerOfRiversTable(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), pgtest.Start(t).DSN()) // roles are of a whole server
	require.NoError(t, err)
	defer pool.Close()
	require.NoError(t, retryriver.MigratePostgres(t.Context(), pool))
	exec := func(statement string) {
		t.Helper()
		_, err := pool.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	exec(`CREATE ROLE "the Owner"; CREATE ROLE writer; ALTER TABLE river_job OWNER TO "the Owner"; DROP INDEX retryjob_group;
		GRANT INSERT, SELECT, UPDATE ON river_job TO writer; GRANT USAGE ON SEQUENCE river_job_id_seq TO writer`)
	require.NoError(t, retryriver.MigratePostgres(t.Context(), pool))
	for _, name := range []string{"retryjob_schedule", "retryjob_changed", "retryjob_group"} {
		var owner string
		require.NoError(t, pool.QueryRow(t.Context(), "SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = $1::text::regclass", name).Scan(&owner))
		require.Equal(t, "the Owner", owner, name)
	}
	exec(fmt.Sprintf(`SET ROLE writer; INSERT INTO river_job (kind, args, max_attempts, unique_key, metadata)
		VALUES ('mail', '{}', 1, '\x%x', '{"retryjob":[{"job":"a","policy":"quick"}]}');
		UPDATE river_job SET state = 'discarded', finalized_at = now(); RESET ROLE`, retryriver.KeyOf("a")))
	var jobs int
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM "+retryriver.JobsQuery(false, "status")+" AS x WHERE status = 'dead_letter'").Scan(&jobs))
	require.Equal(t, 1, jobs)
}

func TestAnEngineWithoutHandlersIsRefusedInItsOwnWords(t *testing.T) {
	_, err := retryriver.NewSQLite(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), retryjob.Options{Policies: catalog})
	require.EqualError(t, err, "retryriver: Options.Handlers <empty> has no handler to run (a program that only enqueues uses NewClient and NewAdmin)")
}
