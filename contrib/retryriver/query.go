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
	argument     string            // the placeholder of a numbered argument
	object       string            // the function that builds a JSON object
	array        string            // the aggregate that builds a JSON array
	json         string            // a JSON column as such
	each         string            // the query of the elements of a JSON list
	unhex        string            // and as bytes
	contains     string            // the condition that a text contains another one
	top          string            // joins, for each row g of a query, the jobs x that a query about g returns
	lock         string            // locks the rows of a table whose numbers are in a JSON list
	forUpdate    string            // locks the rows of a query
	columns      map[string]string // the columns of a job as expressions over those of river_job: the same values as Adapter.info
	listed       string            // the condition that a row of river_job is a job of retryjob that is not running
	keyIndex     string            // the condition needed to use River's index of unique keys
	number       string            // the type of the number of a row
	indexedBy    string            // makes a query use an index, whatever the planner expects
	hasSchema    string
	lockTable    string
	ownSchedules string
	leasedAt     string // when a running job was leased, in microseconds since 1970
	dueAt        string // when a waiting job is due, in such microseconds
	mute         bool   // the driver does not notify a process that its running job is canceled
}

func dialectOf(database string) *dialect {
	if database == riverdriver.DatabaseNameSQLite {
		return sqlite
	}
	return postgres
}

var (
	sqlite = newDialect(
		expressions{
			field:  func(name string) string { return "metadata->>'$." + metadataKey + "[0]." + name + "'" },
			number: func(name string) string { return "cast(metadata->>'$." + metadataKey + "[0]." + name + "' AS integer)" }, // of anything
			micros: func(column string) string {
				return "cast(round(unixepoch(" + column + ", 'subsec') * 1000) AS integer) * 1000"
			},
			value: "metadata->>'$." + metadataKey + "'",
			bytes: "x'%x'",
			tags:  "CASE WHEN json_valid(tags, 5) THEN json(tags) ELSE '' END",
		},
		dialect{
			argument: "?%d", object: "json_object", array: "json_group_array(%s)", json: "json(%s)",
			each: "SELECT value FROM json_each(%s)", unhex: "unhex(value)", contains: "instr(%s, %s) > 0",
			top:    "CROSS JOIN %s AS x ON x.row_id IN (SELECT row_id FROM (%s))",
			number: "integer", indexedBy: " INDEXED BY %s", hasSchema: sqliteHasSchema, mute: true,
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
		expressions{
			field:  func(name string) string { return "metadata#>>'{" + metadataKey + ",0," + name + "}'" },
			number: func(name string) string { return "(metadata#>>'{" + metadataKey + ",0," + name + "}')::bigint" },
			micros: func(column string) string { // an index cannot have the epoch of a time with a time zone
				return "(extract(epoch from (" + column + ") AT TIME ZONE 'UTC') * 1000000)::bigint"
			},
			value: "metadata->>'" + metadataKey + "'",
			bytes: `'\x%x'::bytea`,
			tags:  "array_to_json(tags)::text",
		},
		dialect{
			argument: "$%d", object: "json_build_object", array: "coalesce(json_agg(%s), '[]')", json: "%s",
			each: "SELECT value FROM json_array_elements_text(%s::json)", unhex: "decode(value, 'hex')",
			contains: "strpos(%s, %s) > 0", top: "CROSS JOIN LATERAL (%.0[1]s%[2]s) AS x", lock: "SELECT id FROM %s WHERE id IN (SELECT value::bigint FROM json_array_elements_text($1::json)) ORDER BY id FOR UPDATE",
			forUpdate: " FOR UPDATE", number: "bigint", indexedBy: "%.0s", hasSchema: postgresHasSchema,
			lockTable: "LOCK TABLE river_job IN SHARE ROW EXCLUSIVE MODE", ownSchedules: ownSchedules,
			keyIndex: "%sriver_job_state_in_bitmask(unique_states, state)",
		},
	)
)

// expressions are SQL for a field of the record in the metadata of a row as a text and as a number, for the microseconds
// of a column, for the value in the metadata, which is the policy if it is a string, for a constant of bytes, and for the
// tags of a row as JSON.
type expressions struct {
	field, number, micros func(name string) string
	value, bytes, tags    string
}

// newDialect completes a dialect. The expressions are evaluated for the rows of retryjob only, whose records this package
// has written. PostgreSQL refuses to write a row for which one fails.
func newDialect(e expressions, d dialect) *dialect {
	after := []byte(keyPrefix)
	after[len(after)-1]++
	d.listed = "unique_key >= " + fmt.Sprintf(e.bytes, keyPrefix) + " AND unique_key < " + fmt.Sprintf(e.bytes, after) + " AND state <> 'running'"
	d.leasedAt = "coalesce(" + e.micros("attempted_at") + ", 0)"
	d.dueAt = "coalesce(" + e.micros("scheduled_at") + ", 0)"
	status := "coalesce(" + e.field("status") + ", '')"
	final := status + " IN (" + texts(only(nil, retryjob.Status.Final)) + ")"
	replayable := e.field("status") + " IN (" + texts(only(nil, retryjob.Status.Replayable)) + ")"
	seen := "coalesce(" + e.number("seen") + ", 0)"
	text := func(field string, most int) string {
		return fmt.Sprintf("coalesce(substr(%s, 1, %d), '')", e.field(field), most+1)
	}
	d.columns = map[string]string{
		"row_id": "id",
		"kind":   "kind",
		"policy": fmt.Sprintf("coalesce(substr(coalesce(%s, %s), 1, %d), '')", e.field("policy"), e.value, longestText+1),
		"status": `CASE
			WHEN state = 'completed' THEN 'succeeded'
			WHEN state IN ('cancelled', 'discarded') THEN CASE WHEN ` + final + ` THEN ` + e.field("status") + ` WHEN state = 'cancelled' THEN 'canceled' ELSE 'dead_letter' END
			WHEN attempt = 0 OR coalesce(` + e.number("attempts") + `, 0) = 0 AND attempt <= ` + seen + ` THEN 'pending'
			ELSE 'waiting_retry' END`,
		"reason": `CASE
			WHEN state NOT IN ('cancelled', 'discarded') THEN ''
			WHEN ` + final + ` THEN ` + text("reason", longestReason) + `
			WHEN state = 'cancelled' THEN 'caller_canceled'
			ELSE 'attempts_exhausted' END`,
		"cause": `CASE
			WHEN state NOT IN ('cancelled', 'discarded') THEN ''
			WHEN ` + final + ` THEN CASE WHEN ` + replayable + ` THEN ` + text("cause", longestCause) + ` ELSE '' END
			WHEN state = 'cancelled' THEN ''
			WHEN attempt > ` + seen + ` THEN '` + (&retryjob.Attempt{Err: retryjob.ErrLost.Error()}).Cause() + `'
			ELSE ` + text("cause", longestCause) + ` END`,
		"changed": "coalesce(" + e.micros(`CASE
			WHEN finalized_at IS NULL AND attempt > 0 AND attempt > `+seen+` THEN attempted_at
			WHEN state = 'completed' AND `+status+` <> 'succeeded' OR state <> 'completed' AND NOT `+final+` THEN finalized_at
			END`) + ", " + e.number("changed") + ", " + e.micros("created_at") + ", 0)",
		"due":  "CASE WHEN finalized_at IS NULL THEN " + e.micros("scheduled_at") + " END",
		"tags": e.tags,
	}
	return &d
}

// jobs returns a query of these columns of the jobs in a table of River's that are not running.
func (d *dialect) jobs(table string, columns ...string) string {
	list := make([]string, len(columns))
	for i, column := range columns {
		list[i] = d.columns[column] + " AS " + column
	}
	return "(SELECT " + strings.Join(list, ", ") + " FROM " + table + " WHERE " + d.listed + ")"
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

// selection is the jobs that a filter selects, by an index: those that it has under each combination g of the columns that
// it begins with, so that it has them in the order of a list.
type selection struct {
	with string // the common table expressions that end with g
	rows string // the FROM clause of the rows x of a combination
	by   []string
}

// selection returns the jobs that f selects and that are not running. They may contain more than f selects: with
// NotInDoubt alone also jobs in doubt, which are few.
func (q *query) selection(f *retryjob.Filter) selection {
	if len(f.Kinds)+len(f.Policies)+len(f.Reasons)+len(f.Causes) == 0 && f.InDoubt != retryjob.OnlyInDoubt {
		return q.selected(f, byTime, 1)
	}
	return q.selected(f, byGroup, groupedBy)
}

// selected returns the jobs that f selects, by the first n columns of an index. Of a column that f does not mention, each
// value is found in the index after the one before it, so that no other row is read.
func (q *query) selected(f *retryjob.Filter, of *index, n int) selection {
	by := of.columns[:n]
	given := map[string][]string{"kind": f.Kinds, "policy": f.Policies, "cause": causes(f)}
	for _, status := range only(f.Statuses, unleased) {
		given["status"] = append(given["status"], status.String())
	}
	for _, reason := range f.Reasons {
		given["reason"] = append(given["reason"], reason.Error())
	}
	jobs := q.sql.jobs(q.schema+"river_job"+fmt.Sprintf(q.sql.indexedBy, of.name), "row_id", "kind", "policy", "status", "reason", "cause", "changed", "due", "tags")
	table := jobs + " AS x WHERE true"
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
	with += fmt.Sprintf("g AS (SELECT * FROM g%d WHERE %s%s) ", last, isFound(by[last]), q.doubt(f, by))
	if !f.Since.IsZero() {
		table += " AND x.changed >= " + q.arg(f.Since.UnixMicro())
	}
	if !f.Until.IsZero() {
		table += " AND x.changed < " + q.arg(f.Until.Add(999).UnixMicro()) // rounded up
	}
	tags := []string{}
	for _, tag := range distinct(f.Tags) {
		quoted, _ := json.Marshal(tag)
		tags = append(tags, fmt.Sprintf(q.sql.contains, "x.tags", q.arg(string(quoted))))
	}
	if len(tags) > 0 {
		table += " AND (" + strings.Join(tags, " OR ") + ")"
	}
	return selection{with, table, by}
}

// doubt returns the condition for combinations of jobs that f selects by doubt, if they have causes.
func (q *query) doubt(f *retryjob.Filter, by []string) string {
	const mark = " AND substr(cause, 1, 1) "
	switch {
	case !slices.Contains(by, "cause"):
		return ""
	case f.InDoubt == retryjob.OnlyInDoubt:
		return mark + "= " + q.arg(doubtMark)
	case f.InDoubt == retryjob.NotInDoubt:
		return mark + "<> " + q.arg(doubtMark)
	default:
		return ""
	}
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
		changed := q.arg(after.Changed)
		older = " AND x.changed <= " + changed + " AND (x.changed, x.row_id) < (" + changed + ", " + q.arg(after.Row) + ")"
	}
	leased := "SELECT * FROM (SELECT id AS row_id, " + q.sql.leasedAt + " AS changed FROM " + q.schema + "river_job WHERE state = 'running') AS x WHERE true" + older + end
	var parts []string
	if len(f.Statuses) == 0 || slices.Contains(f.Statuses, retryjob.Leased) {
		parts = append(parts, leased)
	}
	if len(only(f.Statuses, unleased)) > 0 {
		s := q.selection(f)
		top := "SELECT x.row_id, x.changed FROM " + s.rows + older + end
		parts = append(parts, s.with+"SELECT x.row_id, x.changed FROM g "+fmt.Sprintf(q.sql.top, q.sql.jobs(q.schema+"river_job", "row_id", "changed"), top)+end)
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return "SELECT * FROM (SELECT * FROM (" + strings.Join(parts, ") AS part UNION ALL SELECT * FROM (") + ") AS part) AS x" + end
}

// counts returns the query of the number and the oldest time of the jobs that f selects and that are not leased, for
// each combination, as JSON.
func (q *query) counts(f retryjob.Filter) string {
	f.Until = f.Until.Truncate(time.Microsecond) // like Since, so that no job is counted before a time and since it
	if f.InDoubt != 0 {
		return q.tallied(q.selected(&f, byGroup, groupedBy), false)
	}
	return q.tallied(q.selection(&f), false)
}

// groups returns the query of the groups of the jobs that f selects, each with the number of the row of its newest job,
// as JSON.
func (q *query) groups(f retryjob.Filter) string {
	f.Until = f.Until.Truncate(time.Microsecond)
	return q.tallied(q.selected(&f, byGroup, groupedBy), true)
}

func (q *query) tallied(s selection, newest bool) string {
	more := ""
	if newest {
		more = ", 'newest', (SELECT x.row_id FROM " + s.rows + newestFirst + " LIMIT 1)"
	}
	// All jobs of a combination wait, or none does, so changed is read once: it is the first of an index.
	tally := "(SELECT " + q.sql.object + "('jobs', count(*), 'oldest', coalesce(min(x.due), (SELECT min(x.changed) FROM " + s.rows + "))) FROM " + s.rows + ")"
	return s.with + "SELECT " + fmt.Sprintf(q.sql.array, q.sql.fields(s.by...)+", 'tally', "+fmt.Sprintf(q.sql.json, tally)+more+")") + " FROM g"
}

// ids returns the query of the numbers and places of the rows that may have these IDs: those with their unique keys, and
// those that generated IDs name.
func (q *query) ids(ids []string) string {
	keys := make([]string, len(ids))
	var numbers []int64
	for i, id := range ids {
		keys[i] = hex.EncodeToString(keyOf(id))
		if row, ok := rowOf(id); ok {
			numbers = append(numbers, row)
		}
	}
	places := func(list string) string {
		return "SELECT id AS row_id, CASE WHEN state = 'running' THEN " + q.sql.leasedAt + " ELSE " + q.sql.columns["changed"] + " END AS changed FROM (" +
			list + ") AS v CROSS JOIN " + q.schema + "river_job WHERE "
	}
	text := places(q.each(keys)) + "unique_key = " + q.sql.unhex + " AND unique_key IS NOT NULL AND unique_states IS NOT NULL AND " + fmt.Sprintf(q.sql.keyIndex, q.schema)
	if len(numbers) > 0 {
		text += " UNION " + places(q.each(numbers)) + "id = cast(value AS " + q.sql.number + ")"
	}
	return text
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
	if has, hasErr := hasSchema(ctx, exec, q.sql); hasErr == nil && !has {
		return fmt.Errorf("%w: %w", errNoSchema, err)
	}
	return fmt.Errorf("retryriver: %w", err)
}
