package retryriver

import (
	"context"
	"fmt"
	"strings"

	"github.com/riverqueue/river/riverdriver"
)

// Lists and counts read River's own table by two indexes on expressions over its columns and the record in the metadata.
// The indexes have only jobs of retryjob, so River's own cost the database a comparison. An index is correct no matter
// which program writes the table, and needs no rights of its own.
//
// The indexes do not have running jobs. There are few, which River's index of states finds, and so an attempt that
// succeeds adds one entry to each. An entry costs the server 2 to 5 µs on PostgreSQL, so an expression looks at the state
// and the attempt before it reads the record.
//
// A second table, retryjob_schedule, has a row for each retryjob.Schedule, as JSON.
//
// The version of this schema is in River's table of migrations, under its own line.
const (
	schemaVersion = 1
	schemaLine    = "retryjob"
	// An entry of a PostgreSQL index has at most 2,700 bytes, so texts are cut to this many characters.
	longestText   = 255 // a policy
	longestCause  = 100 // as retryjob limits it
	longestReason = 63
)

const createSchedules = `CREATE TABLE IF NOT EXISTS %sretryjob_schedule (name text PRIMARY KEY, state text NOT NULL)`

// index is an index of river_job. Its columns begin with the status, since few lists want all statuses, and end with the
// order of a list.
type index struct {
	name    string
	columns []string
}

var (
	byTime  = &index{"retryjob_changed", []string{"status", "changed", "row_id"}}
	byGroup = &index{"retryjob_group", []string{"status", "kind", "policy", "reason", "cause", "changed", "row_id"}}
)

// groupedBy is the number of columns of byGroup that come before the order of a list.
const groupedBy = 5

// makeSchema returns the statements that create the indexes and the table of schedules in a schema.
func (d *dialect) makeSchema(schema string) (statements []string) {
	for _, index := range []*index{byTime, byGroup} {
		expressions := make([]string, len(index.columns))
		for i, column := range index.columns {
			expressions[i] = "(" + d.columns[column] + ")"
		}
		statements = append(statements, fmt.Sprintf("DROP INDEX IF EXISTS %s%s", schema, index.name),
			fmt.Sprintf("CREATE INDEX %s ON %sriver_job (%s) WHERE %s", index.name, schema, strings.Join(expressions, ", "), d.listed))
	}
	statements = append(statements, fmt.Sprintf(createSchedules, schema))
	if d.ownSchedules != "" {
		statements = append(statements, fmt.Sprintf(d.ownSchedules, strings.ReplaceAll(schema, "'", "''")), "ANALYZE "+schema+"river_job")
	}
	return append(statements,
		fmt.Sprintf("DELETE FROM %sriver_migration WHERE line = '%s'", schema, schemaLine),
		fmt.Sprintf("INSERT INTO %sriver_migration (line, version) VALUES ('%s', %d)", schema, schemaLine, schemaVersion))
}

// ownSchedules gives the table of schedules to the owner of River's table, who has the indexes too.
const ownSchedules = `DO $owner$ BEGIN
	EXECUTE format('ALTER TABLE %%s OWNER TO %%I', '%[1]sretryjob_schedule', (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '%[1]sriver_job'::regclass));
END $owner$`

// The conditions under which a database has the schema of this version. A program that recreates River's table drops
// the indexes with the old one.
var (
	sqliteHasSchema = fmt.Sprintf(`SELECT (SELECT count(*) FROM sqlite_master WHERE type = 'index' AND tbl_name = 'river_job'
			AND name IN ('retryjob_changed', 'retryjob_group')) = 2
		AND EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'retryjob_schedule')
		AND EXISTS (SELECT 1 FROM river_migration WHERE line = '%s' AND version >= %d)`, schemaLine, schemaVersion)
	postgresHasSchema = fmt.Sprintf(`SELECT (SELECT count(*) FROM pg_index WHERE indrelid = to_regclass('river_job') AND indisvalid
			AND indexrelid IN (to_regclass('retryjob_changed'), to_regclass('retryjob_group'))) = 2
		AND to_regclass('retryjob_schedule') IS NOT NULL
		AND EXISTS (SELECT FROM river_migration WHERE line = '%s' AND version >= %d)`, schemaLine, schemaVersion)
)

// hasSchema reports whether a database that River has migrated has the indexes and the table of schedules.
func hasSchema(ctx context.Context, exec riverdriver.Executor, d *dialect) (has bool, err error) {
	if err := exec.QueryRow(ctx, d.hasSchema).Scan(&has); err != nil {
		return false, fmt.Errorf("retryriver: %w", err)
	}
	return has, nil
}

// ensureSchema creates the indexes and the table of schedules if the database does not have them. Meanwhile writers of
// jobs wait, a second or two for a hundred thousand jobs.
func ensureSchema[TTx any](ctx context.Context, driver riverdriver.Driver[TTx], d *dialect) error {
	if has, err := hasSchema(ctx, driver.GetExecutor(), d); has || err != nil {
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
		if has, err := hasSchema(ctx, tx, d); has || err != nil { // another process was faster
			return err
		}
		for _, statement := range d.makeSchema(schema) {
			if err := tx.Exec(ctx, statement); err != nil {
				return fmt.Errorf("retryriver: indexes of river_job: %w", err)
			}
		}
		return nil
	})
}
