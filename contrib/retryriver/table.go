package retryriver

import (
	"context"
	"fmt"
	"strings"

	"github.com/riverqueue/river/riverdriver"
)

// Besides River's table of jobs there is one of ours, retryjob_job. For each row of River's with a record it has a row with
// the columns by which lists are filtered and sorted. Triggers write it, so it is correct no matter which program writes
// River's. A running job keeps the row that it had before: there are few, which River's index of states finds, and one
// write less for each attempt. The status is first in each index, since few lists want all statuses; those that do merge the parts.
//
//	row_id   the number of River's row
//	kind
//	policy   Record.Policy
//	status   the text of Info.Status
//	reason   the text of Info.Reason, '' for none
//	changed  Record.Changed in microseconds since 1970
//	due      when a job that waits is due, in such microseconds; NULL for others
//	cause    Record.Cause, '' for none
//	tags     the tags as JSON, '' for none
//
// A second table, retryjob_schedule, has a row for each retryjob.Schedule, as JSON.
//
// The version of this schema is in River's table of migrations, under its own line.
const (
	tableVersion = 4
	tableLine    = "retryjob"
	// An entry of a PostgreSQL index has at most 2,700 bytes, so texts are cut to this many characters.
	longestText   = 255 // a policy, all tags
	longestCause  = 100 // as retryjob limits it
	longestReason = 63
)

var noted = []string{"kind", "policy", "status", "reason", "changed", "due", "cause", "tags"}

const createTable = `CREATE TABLE %[1]sretryjob_job (
	row_id %[2]s PRIMARY KEY, kind text NOT NULL, policy text NOT NULL, status text NOT NULL, reason text NOT NULL,
	changed %[2]s NOT NULL, due %[2]s, cause text NOT NULL, tags text NOT NULL
)`

const createSchedules = `CREATE TABLE IF NOT EXISTS %[1]sretryjob_schedule (name text PRIMARY KEY, state text NOT NULL)`

// createIndexes ends with the columns that queries read besides those by which they find and sort rows.
const createIndexes = `
CREATE INDEX retryjob_job_changed ON %[1]sretryjob_job (status, changed, row_id, due, tags);
CREATE INDEX retryjob_job_group ON %[1]sretryjob_job (status, kind, policy, reason, cause, changed, row_id, due, tags)`

// note returns the statement that records rows of a table. The record is computed once, since subqueries with a limit
// are not merged into the outer query.
func (d *dialect) note(schema, table, where string) string {
	set := make([]string, len(noted))
	for i, c := range noted {
		set[i] = c + " = excluded." + c
	}
	return fmt.Sprintf(`INSERT INTO %sretryjob_job (row_id, %s) SELECT %s FROM (SELECT id, kind, state, attempt, attempted_at, finalized_at, created_at, scheduled_at, tags, %s AS record FROM %s WHERE state <> 'running' AND %s %s) AS job WHERE record IS NOT NULL
		ON CONFLICT (row_id) DO UPDATE SET %s WHERE (retryjob_job.%s) IS DISTINCT FROM (excluded.%s)`,
		schema, strings.Join(noted, ", "), d.noted, d.record, table, where, d.unmerged,
		strings.Join(set, ", "), strings.Join(noted, ", retryjob_job."), strings.Join(noted, ", excluded."))
}

// makeTable returns the statements that create the table in a schema, fill it, and create its triggers.
func (d *dialect) makeTable(schema string) []string {
	in := func(text string) string { return fmt.Sprintf(text, schema) }
	return append([]string{
		in("DROP TABLE IF EXISTS %[1]sretryjob_job"), fmt.Sprintf(createTable, schema, d.number),
		d.note(schema, schema+"river_job", "true"),
		in(createIndexes), in(createSchedules),
		fmt.Sprintf("DELETE FROM %sriver_migration WHERE line = '%s'", schema, tableLine),
		fmt.Sprintf("INSERT INTO %sriver_migration (line, version) VALUES ('%s', %d)", schema, tableLine, tableVersion),
	}, d.triggers(d, schema)...)
}

func sqliteTriggers(d *dialect, schema string) (statements []string) {
	when := map[string]string{"insert": "WHEN new.state <> 'running'", "update": "WHEN new.state <> 'running'"}
	for name, body := range map[string]string{
		"insert": d.note(schema, "river_job", "id = new.id"),
		"update": d.note(schema, "river_job", "id = new.id"),
		"delete": "DELETE FROM retryjob_job WHERE row_id = old.id",
	} {
		statements = append(statements, "DROP TRIGGER IF EXISTS retryjob_"+name,
			fmt.Sprintf("CREATE TRIGGER retryjob_%s AFTER %s ON river_job %s BEGIN %s; END", name, name, when[name], body))
	}
	return statements
}

// postgresTriggers run once for a statement. Their function does not depend on the caller: on its rights, since
// programs that do not know the table write River's, on its search path, or on the planner's estimate of the number of
// rows.
//
// As a SECURITY DEFINER the function must not touch a table that another role has made: the types of its columns can
// have casts of their own, which would run with the rights of the function's owner. So only river_job may call it, only
// its owner may make triggers with it, and the function belongs to the owner of river_job, who can change the types of
// that table. Without SECURITY DEFINER, each role that writes river_job would need the same rights on retryjob_job, and
// a role that lacked them could no longer enqueue.
func postgresTriggers(d *dialect, schema string) []string {
	statements := []string{fmt.Sprintf(`CREATE OR REPLACE FUNCTION %[1]sretryjob_note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
		SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off AS $note$
		BEGIN
			IF TG_RELID IS DISTINCT FROM to_regclass('%[3]sriver_job') THEN
				RAISE EXCEPTION 'retryjob_note() is only for %[3]sriver_job' USING ERRCODE = 'insufficient_privilege';
			ELSIF TG_OP = 'DELETE' THEN
				DELETE FROM %[1]sretryjob_job USING gone WHERE row_id = gone.id;
			ELSIF TG_OP = 'TRUNCATE' THEN
				TRUNCATE %[1]sretryjob_job;
			ELSE
				%[2]s;
			END IF;
			RETURN NULL;
		END $note$`, schema, d.note(schema, "noted", "true"), strings.ReplaceAll(schema, "'", "''")),
		"REVOKE ALL ON FUNCTION " + schema + "retryjob_note() FROM PUBLIC"}
	for name, rows := range map[string]string{
		"insert": "REFERENCING NEW TABLE AS noted", "update": "REFERENCING NEW TABLE AS noted",
		"delete": "REFERENCING OLD TABLE AS gone", "truncate": "",
	} {
		statements = append(statements, fmt.Sprintf("DROP TRIGGER IF EXISTS retryjob_%s ON %sriver_job", name, schema),
			fmt.Sprintf("CREATE TRIGGER retryjob_%[1]s AFTER %[1]s ON %[2]sriver_job %[3]s FOR EACH STATEMENT EXECUTE FUNCTION %[2]sretryjob_note()",
				name, schema, rows))
	}
	return append(statements, fmt.Sprintf(`DO $owner$ BEGIN
		EXECUTE format('ALTER TABLE %%s OWNER TO %%I', '%[1]sretryjob_job', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '%[1]sriver_job'::regclass));
		EXECUTE format('ALTER TABLE %%s OWNER TO %%I', '%[1]sretryjob_schedule', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '%[1]sriver_job'::regclass));
		EXECUTE format('ALTER FUNCTION %%s OWNER TO %%I', '%[1]sretryjob_note()', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '%[1]sriver_job'::regclass));
	END $owner$`, strings.ReplaceAll(schema, "'", "''")), "ANALYZE "+schema+"retryjob_job")
}

// The conditions under which a database has the table for this version. A program that recreates River's table drops
// the triggers with the old one.
var (
	sqliteHasTable = fmt.Sprintf(`SELECT (SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'river_job'
			AND name IN ('retryjob_insert', 'retryjob_update', 'retryjob_delete')) = 3
		AND EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'retryjob_job')
		AND EXISTS (SELECT 1 FROM river_migration WHERE line = '%s' AND version >= %d)`, tableLine, tableVersion)
	postgresHasTable = fmt.Sprintf(`SELECT (SELECT count(*) FROM pg_trigger WHERE tgrelid = to_regclass('river_job') AND tgenabled <> 'D'
			AND tgname IN ('retryjob_insert', 'retryjob_update', 'retryjob_delete', 'retryjob_truncate')) = 4
		AND to_regclass('retryjob_job') IS NOT NULL
		AND EXISTS (SELECT FROM river_migration WHERE line = '%s' AND version >= %d)`, tableLine, tableVersion)
)

// hasTable reports whether a database that River has migrated has the table.
func hasTable(ctx context.Context, exec riverdriver.Executor, d *dialect) (has bool, err error) {
	if err := exec.QueryRow(ctx, d.hasTable).Scan(&has); err != nil {
		return false, fmt.Errorf("retryriver: %w", err)
	}
	return has, nil
}

// ensureTable creates the table if the database does not have it. Meanwhile writers of jobs wait: a few seconds for a
// hundred thousand jobs.
func ensureTable[TTx any](ctx context.Context, driver riverdriver.Driver[TTx], d *dialect) error {
	if has, err := hasTable(ctx, driver.GetExecutor(), d); has || err != nil {
		return err
	}
	return within(ctx, driver.GetExecutor(), func(tx riverdriver.ExecutorTx) error {
		schema := ""
		if d.lockTable != "" {
			if err := tx.Exec(ctx, d.lockTable); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, "SELECT quote_ident(current_schema()) || '.'").Scan(&schema); err != nil {
				return err
			}
		}
		if has, err := hasTable(ctx, tx, d); has || err != nil { // another process was faster
			return err
		}
		for _, statement := range d.makeTable(schema) {
			if err := tx.Exec(ctx, statement); err != nil {
				return fmt.Errorf("retryriver: table retryjob_job: %w", err)
			}
		}
		return nil
	})
}
