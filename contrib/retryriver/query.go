package retryriver

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// dialect holds the differences between the databases.
type dialect struct {
	argument  string // the placeholder of a numbered argument
	object    string // the function that builds a JSON object
	array     string // the aggregate that builds a JSON array
	json      string // a JSON column as such
	each      string // the query of the elements of a JSON list
	unhex     string // and as bytes
	contains  string // the condition that a text contains another one
	top       string // joins, for each row g of a query, the rows of retryjob_job that a query about g returns
	lock      string // locks the rows of a table whose numbers are in a JSON list
	forUpdate string // locks the rows of a query
	record    string // the record of a row of river_job, NULL if it does not have its own
	tags      string // the tags of a row of river_job as JSON, cut to a number of characters; '' if it has none
	noted     string // the columns of retryjob_job for a row of river_job with a record: the same values as Adapter.info
	own       string // the condition that a row may have the unique key of its ID, which only PostgreSQL can compute
	unmerged  string // the limit of subqueries
	keyIndex  string // the condition needed to use River's index of unique keys
	number    string // the type of the number of a row
	indexedBy string // makes a query use an index if the planner does not know the number of rows
	hasTable  string
	lockTable string
	triggers  func(d *dialect, schema string) []string
	leasedAt  string // when a running job was leased, in microseconds since 1970
	dueAt     string // when a waiting job is due, in such microseconds
	mute      bool   // the driver does not notify a process that its running job is canceled
}

func dialectOf(database string) *dialect {
	if database == riverdriver.DatabaseNameSQLite {
		return sqlite
	}
	return postgres
}

var (
	sqlite = newDialect(
		"CASE WHEN {own} AND json_type(metadata, '$."+metadataKey+"[0]') = 'object' THEN jsonb_extract(metadata, '$."+metadataKey+"[0]') END",
		func(text string) string { return "cast(" + text + " as integer)" }, // of anything
		func(column string) string {
			return "cast(round(unixepoch(" + column + ", 'subsec') * 1000) as integer) * 1000"
		},
		dialect{
			argument: "?%d", object: "json_object", array: "json_group_array(%s)", json: "json(%s)",
			each: "SELECT value FROM json_each(%s)", unhex: "unhex(value)", contains: "instr(%s, %s) > 0",
			top:    "CROSS JOIN %sretryjob_job AS x ON x.row_id IN (SELECT row_id FROM (%s))",
			tags:   "CASE WHEN tags NOT IN (jsonb('[]'), '[]') AND json_valid(tags, 5) THEN substr(json(tags), 1, %d) ELSE '' END",
			number: "integer", own: "unique_key IS NOT NULL", unmerged: "LIMIT -1", indexedBy: " INDEXED BY %s",
			hasTable: sqliteHasTable, triggers: sqliteTriggers, mute: true,
			keyIndex: `%.0sCASE state
			WHEN 'available' THEN unique_states & (1 << 0)
			WHEN 'cancelled' THEN unique_states & (1 << 1)
			WHEN 'completed' THEN unique_states & (1 << 2)
			WHEN 'discarded' THEN unique_states & (1 << 3)
			WHEN 'pending'   THEN unique_states & (1 << 4)
			WHEN 'retryable' THEN unique_states & (1 << 5)
			WHEN 'running'   THEN unique_states & (1 << 6)
			WHEN 'scheduled' THEN unique_states & (1 << 7)
			ELSE 0
			END >= 1`,
		},
	)
	postgres = newDialect(
		"CASE WHEN {own} THEN metadata#>'{"+metadataKey+",0}' END",
		func(text string) string {
			return "CASE WHEN jsonb_typeof(" + strings.Replace(text, "->>", "->", 1) + ") = 'number' THEN least(greatest((" + text + ")::numeric, -9e15), 9e15)::bigint END"
		},
		func(column string) string {
			return "(extract(epoch from CASE WHEN isfinite(" + column + ") THEN " + column + " END) * 1000000)::bigint"
		},
		dialect{
			argument: "$%d", object: "json_build_object", array: "coalesce(json_agg(%s), '[]')", json: "%s",
			each: "SELECT value FROM json_array_elements_text(%s::json)", unhex: "decode(value, 'hex')",
			contains: "strpos(%s, %s) > 0", top: "CROSS JOIN LATERAL (%.0[1]s%[2]s) AS x", lock: "SELECT id FROM %s WHERE id IN (SELECT value::bigint FROM json_array_elements_text($1::json)) ORDER BY id FOR UPDATE",
			forUpdate: " FOR UPDATE",
			tags:      "CASE WHEN tags <> '{}' THEN substr(array_to_json(tags)::text, 1, %d) ELSE '' END",
			own:       "unique_key = sha256(convert_to('retryjob:' || (metadata#>>'{" + metadataKey + ",0,job}'), 'UTF8'))",
			number:    "bigint", unmerged: "OFFSET 0", indexedBy: "%.0s", hasTable: postgresHasTable, triggers: postgresTriggers,
			lockTable: "LOCK TABLE river_job IN SHARE ROW EXCLUSIVE MODE",
			keyIndex:  "%sriver_job_state_in_bitmask(unique_states, state)",
		},
	)
)

// newDialect completes a dialect. Its arguments are SQL for the record of a row, if it is the row's own, for a text as a number, and for the microseconds of a time.
//
// A record may come from any program, so no record makes the query fail. SQLite compiles noted with each statement that
// writes a job, so it is as short as possible.
func newDialect(record string, number, micros func(string) string, d dialect) *dialect {
	d.record = strings.ReplaceAll(record, "{own}", d.own)
	d.leasedAt = "coalesce(" + micros("attempted_at") + ", 0)"
	d.dueAt = "coalesce(" + micros("scheduled_at") + ", 0)"
	final := "coalesce(record->>'status', '') IN (" + texts(only(nil, retryjob.Status.Final)) + ")"
	seen := "coalesce(" + number("record->>'seen'") + ", 0)"
	none := "coalesce(" + number("record->>'attempts'") + ", 0) = 0"
	text := func(field string, most int) string {
		return fmt.Sprintf("coalesce(substr(record->>'%s', 1, %d), '')", field, most+1)
	}
	d.noted = strings.Join([]string{"id", "kind", text("policy", longestText), `CASE
		WHEN state = 'completed' THEN 'succeeded'
		WHEN state IN ('cancelled', 'discarded') THEN CASE WHEN ` + final + ` THEN record->>'status' WHEN state = 'cancelled' THEN 'canceled' ELSE 'dead_letter' END
		WHEN ` + none + ` AND attempt <= ` + seen + ` THEN 'pending'
		ELSE 'waiting_retry' END`, `CASE
		WHEN state NOT IN ('cancelled', 'discarded') THEN ''
		WHEN ` + final + ` THEN ` + text("reason", longestReason) + `
		WHEN state = 'cancelled' THEN 'caller_canceled'
		ELSE 'attempts_exhausted' END`, "coalesce(" + micros(`CASE
		WHEN finalized_at IS NULL AND attempt > `+seen+` THEN attempted_at
		WHEN finalized_at IS NULL AND `+number("record->>'v'")+` = 1 AND `+none+` THEN created_at
		WHEN state = 'completed' AND coalesce(record->>'status', '') <> 'succeeded' OR state <> 'completed' AND NOT `+final+` THEN finalized_at
		END`) + ", " + number("record->>'changed'") + ", " + micros("created_at") + ", 0)",
		"CASE WHEN finalized_at IS NULL THEN " + micros("scheduled_at") + " END",
		`CASE
		WHEN state NOT IN ('cancelled', 'discarded') THEN ''
		WHEN ` + final + ` THEN CASE WHEN record->>'status' IN (` + texts(only(nil, retryjob.Status.Replayable)) + `) THEN ` + text("cause", longestCause) + ` ELSE '' END
		WHEN state = 'cancelled' THEN ''
		WHEN attempt > ` + seen + ` THEN '` + (&retryjob.Attempt{Err: retryjob.ErrLost.Error()}).Cause() + `'
		ELSE ` + text("cause", longestCause) + ` END`,
		fmt.Sprintf(d.tags, longestText+1),
	}, ", ")
	return &d
}

// fields returns the beginning of the expression that builds a JSON object with these columns.
func (d *dialect) fields(columns ...string) string {
	text := d.object + "("
	for i, column := range columns {
		if i > 0 {
			text += ", "
		}
		text += "'" + column + "', " + column
	}
	return text
}

// texts returns constants of retryjob as a SQL list.
func texts[T retryjob.Status | retry.Reason](values []T) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = fmt.Sprintf("'%v'", v)
	}
	return strings.Join(quoted, ", ")
}

// position is a place in a list sorted by changed and then by row number, both descending.
type position struct {
	Changed int64 `json:"changed"`
	Row     int64 `json:"row_id"`
}

// compare returns a negative number if p comes before o.
func (p position) compare(o position) int {
	return cmp.Or(cmp.Compare(o.Changed, p.Changed), cmp.Compare(o.Row, p.Row))
}

// query is a query with its arguments.
type query struct {
	sql    *dialect
	client string // the schema of the client
	schema string // as a prefix of names
	args   []any
}

func (q *query) arg(v any) string {
	q.args = append(q.args, v)
	return fmt.Sprintf(q.sql.argument, len(q.args))
}

// each returns the query of the elements of a list of strings or numbers.
func (q *query) each(values any) string {
	list, _ := json.Marshal(values)
	if string(list) == "null" {
		list = []byte("[]")
	}
	return fmt.Sprintf(q.sql.each, q.arg(string(list)))
}

// groupedBy are the columns that the index retryjob_job_group begins with. The next one is changed.
var groupedBy = []string{"status", "kind", "policy", "reason", "cause"}

// selection is the rows of retryjob_job that a filter selects: those that an index has under each combination g of the
// columns that it begins with, so that it has them in the order of a list.
type selection struct {
	with string // the common table expressions that end with g
	rows string // the FROM clause of the rows x of a combination
	by   []string
}

// selection returns the rows that f selects. They may contain more than f selects.
func (q *query) selection(f *retryjob.Filter) selection {
	if len(f.Kinds)+len(f.Policies)+len(f.Reasons)+len(f.Causes) == 0 {
		return q.selected(f, "changed", groupedBy[:1])
	}
	return q.selected(f, "group", groupedBy)
}

// selected returns the rows that f selects by an index, and that are not running. Of a column that f does not mention, each value is found in the
// index after the one before it, so that no other row is read.
func (q *query) selected(f *retryjob.Filter, index string, by []string) selection {
	given := map[string][]string{"kind": f.Kinds, "policy": f.Policies, "cause": causes(f)}
	for _, status := range only(f.Statuses, unleased) {
		given["status"] = append(given["status"], status.String())
	}
	for _, reason := range f.Reasons {
		given["reason"] = append(given["reason"], reason.Error())
	}
	table := q.schema + "retryjob_job AS x" + fmt.Sprintf(q.sql.indexedBy, "retryjob_job_"+index) + " WHERE true"
	with, from := "WITH RECURSIVE ", ""
	for i, column := range by {
		before := strings.Join(append(slices.Clone(by[:i]), ""), ", ")
		with += fmt.Sprintf("g%d(%s%s) AS (", i, before, column)
		if values := given[column]; len(values) > 0 {
			values = distinct(values) // their number helps PostgreSQL as isFound does
			with += fmt.Sprintf("SELECT %svalue FROM %s(%s LIMIT %d) AS v", before, from, q.each(values), len(values))
		} else {
			least := "SELECT " + before + "(SELECT min(x." + column + ") FROM " + table
			with += least + ") FROM " + strings.TrimSuffix(from, " CROSS JOIN ") +
				fmt.Sprintf(" UNION ALL %s AND x.%s > g.%s) FROM g%d AS g WHERE %s", least, column, column, i, isFound(column))
		}
		with += "), "
		from = fmt.Sprintf("(SELECT * FROM g%d WHERE %s) AS g CROSS JOIN ", i, isFound(column))
		table += fmt.Sprintf(" AND x.%s = g.%s", column, column)
	}
	last := len(by) - 1
	with += fmt.Sprintf("g AS (SELECT * FROM g%d WHERE %s) ", last, isFound(by[last]))
	if !f.Since.IsZero() {
		table += " AND x.changed >= " + q.arg(f.Since.UnixMicro())
	}
	if !f.Until.IsZero() {
		table += " AND x.changed < " + q.arg(f.Until.Add(999).UnixMicro()) // rounded up
	}
	if len(f.Causes) == 0 {
		switch mark := "substr(x.cause, 1, 1)"; f.InDoubt {
		case retryjob.OnlyInDoubt:
			table += " AND " + mark + " = " + q.arg(doubtMark)
		case retryjob.NotInDoubt:
			table += " AND " + mark + " <> " + q.arg(doubtMark)
		}
	}
	tags := []string{}
	for _, tag := range distinct(f.Tags) {
		quoted, _ := json.Marshal(tag)
		tags = append(tags, fmt.Sprintf(q.sql.contains, "x.tags", q.arg(string(quoted))))
	}
	if len(tags) > 0 {
		table += " AND (" + strings.Join(tags, " OR ") + ")"
	}
	table += " AND x.row_id NOT IN (SELECT id FROM " + q.schema + "river_job WHERE state = 'running')"
	return selection{with, table, by}
}

// causes returns the causes that f selects as stored has them.
func causes(f *retryjob.Filter) (all []string) {
	for _, cause := range f.Causes {
		if f.InDoubt != retryjob.OnlyInDoubt {
			all = append(all, cause)
		}
		if f.InDoubt != retryjob.NotInDoubt {
			all = append(all, doubtMark+cause)
		}
	}
	return all
}

// isFound returns the condition that a column is not NULL, as it is after the last value. PostgreSQL expects few rows
// with it, unlike with IS NOT NULL: it would compile a query that looks expensive, which takes longer than the query.
func isFound(column string) string { return column + " || '' = " + column }

const newestFirst = " ORDER BY x.changed DESC, x.row_id DESC"

func unleased(s retryjob.Status) bool { return s != retryjob.Leased }

// page returns the query of the numbers and places of the rows that f selects after a position, and of all running jobs
// if it selects some of them.
func (q *query) page(f *retryjob.Filter, after *position, limit int) string {
	end, older := newestFirst+fmt.Sprintf(" LIMIT %d", limit), ""
	if after != nil {
		older = " AND (x.changed, x.row_id) < (" + q.arg(after.Changed) + ", " + q.arg(after.Row) + ")"
	}
	leased := "SELECT * FROM (SELECT id AS row_id, " + q.sql.leasedAt + " AS changed FROM " + q.schema + "river_job WHERE state = 'running') AS x WHERE true" + older + end
	if len(only(f.Statuses, unleased)) == 0 {
		return leased
	}
	s := q.selection(f)
	top := "SELECT x.row_id, x.changed FROM " + s.rows + older + end
	others := s.with + "SELECT x.row_id, x.changed FROM g " + fmt.Sprintf(q.sql.top, q.schema, top) + end
	if len(f.Statuses) > 0 && !slices.Contains(f.Statuses, retryjob.Leased) {
		return others
	}
	return "SELECT * FROM (SELECT * FROM (" + others + ") AS o UNION ALL SELECT * FROM (" + leased + ") AS l) AS x" + end
}

// counts returns the query of the number and the oldest time of the jobs that f selects and that are not leased, for
// each combination, as JSON.
func (q *query) counts(f retryjob.Filter) string {
	f.Until = f.Until.Truncate(time.Microsecond) // like Since, so that no job is counted before a time and since it
	return q.tallied(q.selection(&f), false)
}

// groups returns the query of the groups of the jobs that f selects, each with the number of the row of its newest job,
// as JSON.
func (q *query) groups(f retryjob.Filter) string {
	f.Until = f.Until.Truncate(time.Microsecond)
	return q.tallied(q.selected(&f, "group", groupedBy), true)
}

func (q *query) tallied(s selection, newest bool) string {
	more := ""
	if newest {
		more = ", 'newest', (SELECT x.row_id FROM " + s.rows + newestFirst + " LIMIT 1)"
	}
	return s.with + "SELECT " + fmt.Sprintf(q.sql.array, q.sql.fields(s.by...)+", 'tally', "+
		fmt.Sprintf(q.sql.json, "(SELECT "+q.sql.object+"('jobs', count(*), 'oldest', min(coalesce(x.due, x.changed))) FROM "+s.rows+")")+more+")") + " FROM g"
}

// ids returns the query of the numbers and places of the rows that have the unique keys of these IDs.
func (q *query) ids(ids []string) string {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = hex.EncodeToString(keyOf(id))
	}
	return "SELECT j.id AS row_id, CASE WHEN state = 'running' THEN " + q.sql.leasedAt + " ELSE coalesce(changed, 0) END AS changed FROM (" +
		q.each(keys) + ") AS v CROSS JOIN " + q.schema + "river_job AS j LEFT JOIN " + q.schema + "retryjob_job ON row_id = j.id WHERE unique_key = " + q.sql.unhex + " AND unique_key IS NOT NULL AND unique_states IS NOT NULL AND " + fmt.Sprintf(q.sql.keyIndex, q.schema)
}

// distinct returns the values sorted, each once.
func distinct[T cmp.Ordered](values []T) []T {
	values = slices.Clone(values)
	slices.Sort(values)
	return slices.Compact(values)
}

// places runs a query of the numbers and places of rows.
func (q *query) places(ctx context.Context, exec riverdriver.Executor, sql string) (places []position, err error) {
	return places, q.into(ctx, exec, &places, "SELECT "+fmt.Sprintf(q.sql.array, q.sql.fields("row_id", "changed")+")")+" FROM ("+sql+") AS place")
}

// read returns the rows with these numbers.
func (q *query) read(ctx context.Context, exec riverdriver.Executor, numbers []int64) (map[int64]*rivertype.JobRow, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	rows, err := exec.JobGetByIDMany(ctx, &riverdriver.JobGetByIDManyParams{ID: numbers, Schema: q.client})
	if err != nil {
		return nil, fmt.Errorf("retryriver: %w", err)
	}
	return byNumber(rows), nil
}

func byNumber(rows []*rivertype.JobRow) map[int64]*rivertype.JobRow {
	found := make(map[int64]*rivertype.JobRow, len(rows))
	for _, row := range rows {
		found[row.ID] = row
	}
	return found
}

// into runs a query that returns JSON.
func (q *query) into(ctx context.Context, exec riverdriver.Executor, value any, sql string) error {
	if ctx == nil {
		return errNoContext
	}
	var text []byte
	err := exec.QueryRow(ctx, sql, q.args...).Scan(&text)
	if err == nil {
		err = json.Unmarshal(text, value)
	}
	if err == nil {
		return nil
	}
	if has, hasErr := hasTable(ctx, exec, q.sql); hasErr == nil && !has {
		return fmt.Errorf("%w: %w", errNoTable, err)
	}
	return fmt.Errorf("retryriver: %w", err)
}
