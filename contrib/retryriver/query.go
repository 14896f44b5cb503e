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
	key       string // the unique key in hexadecimal digits
	json      string // a JSON column as such
	join      string // joins the rows of a table in the order of a query
	numbers   string // the query of the numbers in a JSON list
	lock      string // locks the rows of a query
	record    string // the record of a row of river_job, NULL if it does not have its own
	noted     string // the columns of retryjob_job for a row of river_job with a record: the same values as Adapter.info
	unmerged  string // the limit of subqueries
	keyIndex  string // the condition needed to use River's index of unique keys
	number    string // the type of the number of a row
	indexedBy string // makes a query use an index if the planner does not know the number of rows
	hasTable  string
	lockTable string
	triggers  func(d *dialect, schema string) []string
	mute      bool // the driver does not notify a process that its running job is canceled

	locked, listed, counted string // see newDialect
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
		"metadata->>'$."+metadataKey+"[0].job'",
		func(text string) string { return "cast(" + text + " as integer)" }, // of anything
		func(column string) string {
			return "cast(round(unixepoch(" + column + ", 'subsec') * 1000) as integer) * 1000"
		},
		dialect{
			argument: "?%d", object: "json_object", array: "json_group_array(%s)", key: "hex(unique_key)", json: "json(%s)", join: "CROSS JOIN",
			numbers: "SELECT value FROM json_each(?)", number: "integer", unmerged: "LIMIT -1", indexedBy: " INDEXED BY %s",
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
		"metadata#>>'{"+metadataKey+",0,job}'",
		func(text string) string {
			return "CASE WHEN jsonb_typeof(" + strings.Replace(text, "->>", "->", 1) + ") = 'number' THEN least(greatest((" + text + ")::numeric, -9e15), 9e15)::bigint END"
		},
		func(column string) string {
			return "(extract(epoch from CASE WHEN isfinite(" + column + ") THEN " + column + " END) * 1000000)::bigint"
		},
		dialect{
			argument: "$%d", object: "json_build_object", array: "coalesce(json_agg(%s), '[]')", key: "coalesce(encode(unique_key, 'hex'), '')", json: "%s", join: "JOIN",
			numbers: "SELECT value::bigint FROM json_array_elements_text($1::json)", lock: "ORDER BY id FOR UPDATE",
			number: "bigint", unmerged: "OFFSET 0", indexedBy: "%.0s", hasTable: postgresHasTable, triggers: postgresTriggers,
			lockTable: "LOCK TABLE river_job IN SHARE ROW EXCLUSIVE MODE",
			keyIndex:  "%sriver_job_state_in_bitmask(unique_states, state)",
		},
	)
)

// newDialect completes a dialect. Its arguments are SQL for the record of a row, if it is the row's own, for the ID in
// it, for a text as a number, and for the microseconds of a time. It adds locked, which locks and returns the rows
// whose numbers are in a JSON list, listed, which returns the rows whose numbers and places a query returns, and
// counted. All of them return JSON.
//
// A record may come from any program, so no record makes the query fail. SQLite compiles noted with each statement that
// writes a job, so it is as short as possible.
func newDialect(record, job string, number, micros func(string) string, d dialect) *dialect {
	d.record = strings.ReplaceAll(record, "{own}", "(unique_key IS NOT NULL OR "+job+" LIKE '"+rowPrefix+"' || id || '-%')")
	final := "coalesce(record->>'status', '') IN (" + texts(only(nil, retryjob.Status.Final)) + ")"
	seen := "coalesce(" + number("record->>'seen'") + ", 0)"
	text := func(field string) string { return fmt.Sprintf("substr(record->>'%s', 1, %d)", field, longestText+1) }
	d.noted = strings.Join([]string{"id", text("job"), "kind", text("policy"), `CASE
		WHEN state = 'running' THEN 'leased'
		WHEN state = 'completed' THEN 'succeeded'
		WHEN state IN ('cancelled', 'discarded') THEN CASE WHEN ` + final + ` THEN record->>'status' WHEN state = 'cancelled' THEN 'canceled' ELSE 'dead_letter' END
		WHEN coalesce(` + number("record->>'attempts'") + `, 0) = 0 AND attempt <= ` + seen + ` THEN 'pending'
		ELSE 'waiting_retry' END`, `CASE
		WHEN state NOT IN ('cancelled', 'discarded') THEN ''
		WHEN ` + final + ` THEN coalesce(` + text("reason") + `, '')
		WHEN state = 'cancelled' THEN 'caller_canceled'
		ELSE 'attempts_exhausted' END`, "coalesce(" + micros(`CASE
		WHEN state = 'running' OR finalized_at IS NULL AND attempt > `+seen+` THEN attempted_at
		WHEN state = 'completed' AND coalesce(record->>'status', '') <> 'succeeded' OR state <> 'completed' AND NOT `+final+` THEN finalized_at
		END`) + ", " + number("record->>'changed'") + ", " + micros("created_at") + ", 0)",
		"CASE WHEN state <> 'running' AND finalized_at IS NULL THEN " + micros("scheduled_at") + " END",
	}, ", ")
	as := func(fields ...string) string {
		return fmt.Sprintf(d.array, d.object+"("+strings.Join(fields, ", ")+")")
	}
	what := []string{
		"'id', id, 'attempt', attempt, 'state', state, 'kind', kind, 'key'", d.key, "'metadata'", fmt.Sprintf(d.json, "metadata"),
		"'created'", micros("created_at"), "'scheduled'", micros("scheduled_at"), "'attempted'", micros("attempted_at"),
	}
	d.locked = "SELECT " + as(what...) + " FROM (SELECT * FROM %s WHERE id IN (" + d.numbers + ") " + d.lock + ") AS locked"
	what = append(what, "'finalized'", micros("finalized_at"), "'args'", fmt.Sprintf(d.json, "args"), "'tags'", fmt.Sprintf(d.json, "tags"),
		"'queue', queue, 'priority', priority, 'changed', changed")
	d.listed = "SELECT " + as(what...) + " FROM (%[2]s) AS place " + d.join + " %[1]s ON id = row_id"
	d.counted = "SELECT " + as("'status', status, 'jobs', jobs, 'oldest', oldest") + " FROM (%s) AS counted"
	return &d
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
type position struct{ Changed, Row int64 }

// query is a query with its arguments.
type query struct {
	sql    *dialect
	schema string
	args   []any
}

func (q *query) arg(v any) string {
	q.args = append(q.args, v)
	return fmt.Sprintf(q.sql.argument, len(q.args))
}

// texts returns values as a SQL list.
func (q *query) texts(values []string) string {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = q.arg(v)
	}
	return "(" + strings.Join(list, ", ") + ")"
}

// branch is a part of the rows that a filter selects, which one index holds in the order of a list.
type branch struct{ index, where string }

// mostBranches bounds the branches of one status. For a filter with more values the index of the status is used.
const mostBranches = 16

// branches returns the parts of the rows that f selects. They may contain more than f selects.
func (q *query) branches(a *Adapter, f *retryjob.Filter) (list []branch) {
	kinds, policies := distinct(f.Kinds), distinct(f.Policies)
	reasons := distinct(f.Reasons)
	var also []string // the condition on each of them
	if !f.Since.IsZero() {
		also = append(also, "changed >= "+q.arg(f.Since.UnixMicro()))
	}
	if !f.Until.IsZero() {
		also = append(also, "changed < "+q.arg(f.Until.Add(999).UnixMicro())) // rounded up
	}
	ofPolicy := []string{} // the values that get a branch each
	for _, p := range policies {
		ofPolicy = append(ofPolicy, "policy = "+q.arg(p))
	}
	if plain := q.plain(a, policies); plain != "" {
		ofPolicy = append(ofPolicy, plain)
	}
	index, parts, one := "changed", []string{"true"}, len(f.IDs) > 0
	if n := len(ofPolicy); n > mostBranches || n > 0 && (one || len(kinds) > 0 || len(reasons) > 0) {
		also = append(also, "("+strings.Join(ofPolicy, " OR ")+")")
	} else if n > 0 {
		index, parts = "policy", ofPolicy
	}
	if n := len(kinds); n > mostBranches || n > 0 && (one || len(reasons) > 0) {
		also = append(also, "kind IN "+q.texts(kinds))
	} else if n > 0 {
		index, parts = "kind", nil
		for _, k := range kinds {
			parts = append(parts, "kind = "+q.arg(k))
		}
	}
	if len(reasons) > 0 { // there are fewer than mostBranches
		index, parts = "reason", nil
		for _, r := range reasons {
			parts = append(parts, "reason <> '' AND reason = '"+r.Error()+"'")
		}
	}
	statuses := distinct(only(f.Statuses, func(retryjob.Status) bool { return true }))
	if one {
		return []branch{{where: strings.Join(append(also, "status IN ("+texts(statuses)+")", "("+strings.Join(parts, " OR ")+")", "row_id IN ("+q.ids(f.IDs)+")"), " AND ")}}
	}
	for _, status := range statuses {
		for _, part := range parts {
			list = append(list, branch{index, strings.Join(append([]string{"status = '" + status.String() + "'", part}, also...), " AND ")})
		}
	}
	return list
}

// plain returns the condition for the plain jobs without a record that have one of the policies, "" if there cannot be
// any.
func (q *query) plain(a *Adapter, policies []string) string {
	var of, others []string
	for kind, policy := range a.options.PolicyOf {
		switch wanted := slices.Contains(policies, policy); {
		case kind != "" && wanted:
			of = append(of, kind)
		case kind != "":
			others = append(others, kind)
		}
	}
	switch fallback, ok := a.options.PolicyOf[""]; {
	case ok && slices.Contains(policies, fallback) && len(others) == 0:
		return "policy IS NULL"
	case ok && slices.Contains(policies, fallback):
		return "policy IS NULL AND kind NOT IN " + q.texts(distinct(others))
	case len(of) > 0:
		return "policy IS NULL AND kind IN " + q.texts(distinct(of))
	}
	return ""
}

// from returns the FROM clause of a branch.
func (q *query) from(b *branch) string {
	if b.index == "" {
		return q.schema + "retryjob_job WHERE " + b.where
	}
	return q.schema + "retryjob_job" + fmt.Sprintf(q.sql.indexedBy, "retryjob_job_"+b.index) + " WHERE " + b.where
}

// page returns the query of the numbers and places of the rows that f selects after a position.
func (q *query) page(a *Adapter, f *retryjob.Filter, after *position, limit int) string {
	branches := q.branches(a, f)
	if after != nil {
		place := " AND (changed, row_id) < (" + q.arg(after.Changed) + ", " + q.arg(after.Row) + ")"
		for i := range branches {
			branches[i].where += place
		}
	}
	most := fmt.Sprintf(" ORDER BY changed DESC, row_id DESC LIMIT %d", limit)
	parts := make([]string, len(branches))
	for i := range branches {
		parts[i] = "SELECT * FROM (SELECT row_id, changed FROM " + q.from(&branches[i]) + most + ") AS part"
	}
	return strings.Join(parts, " UNION ALL ") + most
}

// counts returns the query of the number of jobs that f selects, as JSON.
func (q *query) counts(a *Adapter, f *retryjob.Filter) string {
	branches := q.branches(a, f)
	parts := make([]string, len(branches))
	for i := range branches {
		parts[i] = "SELECT status, count(*) AS jobs, min(coalesce(due, changed)) AS oldest FROM " + q.from(&branches[i]) + " GROUP BY status"
	}
	return fmt.Sprintf(q.sql.counted, "SELECT status, sum(jobs) AS jobs, min(oldest) AS oldest FROM ("+strings.Join(parts, " UNION ALL ")+") AS parts GROUP BY status")
}

// policies returns the query of the names of the policies of all jobs that have a record, as JSON. Each is found in the
// index after the one before it.
func (q *query) policies() string {
	first := func(where string) string {
		return "SELECT min(policy) FROM " + q.from(&branch{"policy", where})
	}
	parts := []string{}
	for _, status := range retryjob.Statuses() {
		parts = append(parts, "SELECT '"+status.String()+"' AS status, ("+first("status = '"+status.String()+"'")+") AS name")
	}
	return "WITH RECURSIVE found(of_status, name) AS (SELECT * FROM (" + strings.Join(parts, " UNION ALL ") + ") AS firsts" +
		" UNION ALL SELECT of_status, (" + first("status = of_status AND policy > name") + ") FROM found WHERE name IS NOT NULL) " +
		"SELECT " + fmt.Sprintf(q.sql.array, "name") + " FROM (SELECT DISTINCT name FROM found WHERE name IS NOT NULL) AS names"
}

// ids returns the query of the numbers of the rows that may be the jobs with these IDs.
func (q *query) ids(ids []string) string {
	jobs := "SELECT id FROM " + q.schema + "river_job WHERE "
	var keys, names, rows []string
	for _, id := range distinct(ids) {
		keys, names = append(keys, q.arg(keyOf(id))), append(names, q.arg(id))
		if row, ok := rowOf(id); ok {
			rows = append(rows, q.arg(row))
		}
	}
	in := func(list []string) string { return " IN (" + strings.Join(list, ", ") + ")" }
	text := jobs + "unique_key" + in(keys) + " AND unique_key IS NOT NULL AND unique_states IS NOT NULL AND " + fmt.Sprintf(q.sql.keyIndex, q.schema) +
		// A plain job may have a unique key from its own program.
		" UNION SELECT * FROM (SELECT row_id FROM " + q.schema + "retryjob_job WHERE job_id" + in(names) + fmt.Sprintf(" LIMIT %d) AS known", 10*len(ids))
	if len(rows) > 0 {
		text += " UNION " + jobs + "id" + in(rows)
	}
	return text
}

// job returns the query of the rows that may be the job with an ID.
func (q *query) job(id string) string {
	return "SELECT row_id, changed FROM " + q.schema + "retryjob_job WHERE row_id IN (" + q.ids([]string{id}) + ")"
}

// distinct returns the values sorted, each once.
func distinct[T cmp.Ordered](values []T) []T {
	values = slices.Clone(values)
	slices.Sort(values)
	return slices.Compact(values)
}

// row is a row of River's table as the database returns it, with its place if it is in a list.
type row struct {
	ID, Attempt, Changed int64
	State, Kind, Key     string
	Queue                string
	Priority             int
	Tags                 []string
	Created, Scheduled   int64
	Attempted, Finalized *int64
	Metadata, Args       json.RawMessage
}

// read returns the rows whose numbers and places a query returns.
func (q *query) read(ctx context.Context, exec riverdriver.Executor, places string) (rows []row, err error) {
	err = q.into(ctx, exec, &rows, fmt.Sprintf(q.sql.listed, q.schema+"river_job", places))
	return rows, err
}

// into runs a query that returns JSON.
func (q *query) into(ctx context.Context, exec riverdriver.Executor, value any, sql string) error {
	if ctx == nil {
		return errNoContext
	}
	err := scan(ctx, exec, value, sql, q.args...)
	if err == nil {
		return nil
	}
	if has, hasErr := hasTable(ctx, exec, q.sql); hasErr == nil && !has {
		return fmt.Errorf("%w: %w", errNoTable, err)
	}
	return err
}

// scan runs a query that returns JSON.
func scan(ctx context.Context, exec riverdriver.Executor, value any, sql string, args ...any) error {
	var text []byte
	err := exec.QueryRow(ctx, sql, args...).Scan(&text)
	if err == nil {
		err = json.Unmarshal(text, value)
	}
	if err != nil {
		return fmt.Errorf("retryriver: %w", err)
	}
	return nil
}

// job returns the fields of the row that Adapter.info needs.
func (r *row) job() *rivertype.JobRow {
	key, _ := hex.DecodeString(r.Key) // written by hex and encode
	return &rivertype.JobRow{
		ID: r.ID, Attempt: int(r.Attempt), State: rivertype.JobState(r.State), Kind: r.Kind, UniqueKey: key,
		CreatedAt: time.UnixMicro(r.Created), ScheduledAt: time.UnixMicro(r.Scheduled), AttemptedAt: at(r.Attempted), FinalizedAt: at(r.Finalized),
		Queue: r.Queue, Priority: r.Priority, Tags: r.Tags, Metadata: r.Metadata, EncodedArgs: r.Args,
	}
}

// at returns the time of a number of microseconds, nil for nil.
func at(micros *int64) *time.Time {
	if micros == nil {
		return nil
	}
	t := time.UnixMicro(*micros)
	return &t
}
