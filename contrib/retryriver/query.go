package retryriver

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/rivertype"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// dialect is what differs between the databases. Its expressions say of a row what Adapter.info does.
type dialect struct {
	changed  string // Record.Changed in microseconds
	status   string // the text of Info.Status
	reason   string // the text of Info.Reason, '' for none
	policy   string // NULL for a job without a record
	holds    string // the condition that metadata has the record of @job; "" if there is no index for it
	keyIndex string // what a condition must have to use the index of unique keys
	jobID    string
	rows     string // what lock selects, as JSON
	mute     bool   // the driver does not tell a process that its running job is canceled
}

func dialectOf(database string) dialect {
	if database == riverdriver.DatabaseNameSQLite {
		return sqlite
	}
	return postgres
}

var (
	sqlite = newDialect(
		func(field string) string { return "metadata->>'$." + metadataKey + "[0]." + field + "'" },
		func(field string) string {
			path := "'$." + metadataKey + "[0]." + field + "'"
			return "CASE WHEN json_type(metadata, " + path + ") IN ('integer', 'real')" +
				" THEN cast(max(min(metadata->>" + path + ", 9e15), -9e15) as integer) END"
		},
		func(column string) string {
			return "cast(round(unixepoch(" + column + ", 'subsec') * 1000) as integer) * 1000"
		},
		dialect{mute: true, rows: `json_group_array(json_object('id', id, 'attempt', attempt, 'state', state, 'kind', kind,
			'key', hex(unique_key), 'created', %s, 'scheduled', %s, 'attempted', %s, 'metadata', json(metadata)))
			FROM %s WHERE id IN (SELECT value FROM json_each(?))`, keyIndex: `CASE state
			WHEN 'available' THEN unique_states & (1 << 0)
			WHEN 'cancelled' THEN unique_states & (1 << 1)
			WHEN 'completed' THEN unique_states & (1 << 2)
			WHEN 'discarded' THEN unique_states & (1 << 3)
			WHEN 'pending'   THEN unique_states & (1 << 4)
			WHEN 'retryable' THEN unique_states & (1 << 5)
			WHEN 'running'   THEN unique_states & (1 << 6)
			WHEN 'scheduled' THEN unique_states & (1 << 7)
			ELSE 0
			END >= 1`},
	)
	postgres = newDialect(
		func(field string) string { return "metadata#>>'{" + metadataKey + ",0," + field + "}'" },
		func(field string) string {
			path := "'{" + metadataKey + ",0," + field + "}'"
			return "CASE WHEN jsonb_typeof(metadata#>" + path + ") = 'number'" +
				" THEN least(greatest((metadata#>>" + path + ")::numeric, -9e15), 9e15)::bigint END"
		},
		func(column string) string { return "(extract(epoch from " + column + ") * 1000000)::bigint" },
		dialect{rows: `coalesce(json_agg(locked), '[]') FROM (SELECT id, attempt, state, kind,
			coalesce(encode(unique_key, 'hex'), '') AS key, %s AS created, %s AS scheduled, %s AS attempted, metadata
			FROM %s WHERE id IN (SELECT value::bigint FROM json_array_elements_text($1::json)) ORDER BY id FOR UPDATE) AS locked`,
			keyIndex: "river_job_state_in_bitmask(unique_states, state)", holds: "metadata @> @job::jsonb"},
	)
)

// newDialect completes a dialect by how it has a field of the record, one that is a number, and the microseconds of a time. A
// record may be of anybody's making: none fails.
func newDialect(text, figure, micros func(string) string, d dialect) dialect {
	job := text("job")
	own := func(value string) string { // a record that is not the row's own has no fields
		return "(CASE WHEN unique_key IS NOT NULL OR " + job + " LIKE '" + rowPrefix + "' || id || '-%' THEN " + value + " END)"
	}
	field, number := func(name string) string { return own(text(name)) }, func(name string) string { return own(figure(name)) }
	recorded, seen := field("status"), "coalesce("+number("seen")+", 0)"
	d.policy, d.jobID = field("policy"), "("+job+")"
	d.status = `(CASE
		WHEN state = 'running' THEN 'leased'
		WHEN state = 'completed' THEN 'succeeded'
		WHEN state IN ('cancelled', 'discarded') THEN CASE
			WHEN coalesce(` + recorded + `, '') IN (` + finals + `) THEN ` + recorded + `
			WHEN state = 'cancelled' THEN 'canceled'
			ELSE 'dead_letter' END
		WHEN coalesce(` + number("attempts") + `, 0) = 0 AND attempt <= ` + seen + ` THEN 'pending'
		ELSE 'waiting_retry' END)`
	d.reason = `(CASE
		WHEN state NOT IN ('cancelled', 'discarded') THEN ''
		WHEN coalesce(` + recorded + `, '') IN (` + finals + `) THEN coalesce(` + field("reason") + `, '')
		WHEN state = 'cancelled' THEN 'caller_canceled'
		ELSE 'attempts_exhausted' END)`
	d.changed = `(CASE
		WHEN state = 'running' THEN ` + micros("attempted_at") + `
		WHEN state = 'completed' AND coalesce(` + recorded + `, '') <> 'succeeded' THEN ` + micros("finalized_at") + `
		WHEN state IN ('cancelled', 'discarded') AND coalesce(` + recorded + `, '') NOT IN (` + finals + `) THEN ` + micros("finalized_at") + `
		WHEN state NOT IN ('completed', 'cancelled', 'discarded') AND attempt > ` + seen + ` AND attempted_at IS NOT NULL THEN ` + micros("attempted_at") + `
		ELSE coalesce(` + number("changed") + `, ` + micros("created_at") + `) END)`
	d.rows = fmt.Sprintf("SELECT "+d.rows, micros("created_at"), micros("scheduled_at"), "coalesce("+micros("attempted_at")+", 0)", "%s")
	return d
}

// lock returns the query that locks the rows whose numbers are in a list of JSON, and returns them as JSON.
func (d *dialect) lock(table string) string { return fmt.Sprintf(d.rows, table) }

// changedAt returns what d.changed is of a row, also if its record is not its own or cannot be read: the order in which a
// database has its rows.
func changedAt(row *rivertype.JobRow) int64 {
	var metadata, record map[string]json.RawMessage
	var records []json.RawMessage
	_ = json.Unmarshal(row.Metadata, &metadata)
	_ = json.Unmarshal(metadata[metadataKey], &records)
	if len(records) > 0 {
		_ = json.Unmarshal(records[0], &record)
	}
	var job string
	if _ = json.Unmarshal(record["job"], &job); len(row.UniqueKey) == 0 && !strings.HasPrefix(job, fmt.Sprintf("%s%d-", rowPrefix, row.ID)) {
		record = nil
	}
	number := func(field string) (int64, bool) {
		var v float64
		n, err := strconv.ParseInt(string(record[field]), 10, 64)
		if err == nil {
			v = float64(n)
		} else if record[field] == nil || json.Unmarshal(record[field], &v) != nil || string(record[field]) == "null" {
			return 0, false
		}
		if err != nil || v > 9e15 || v < -9e15 {
			n = int64(max(min(v, 9e15), -9e15))
		}
		return n, true
	}
	var status string
	_ = json.Unmarshal(record["status"], &status)
	seen, _ := number("seen")
	ended := row.State == rivertype.JobStateCancelled || row.State == rivertype.JobStateDiscarded
	open := row.State != rivertype.JobStateCompleted && !ended
	switch final := slices.ContainsFunc(only(nil, retryjob.Status.Final), func(s retryjob.Status) bool { return s.String() == status }); {
	case row.State == rivertype.JobStateRunning || open && int64(row.Attempt) > seen && row.AttemptedAt != nil:
		return attemptedAt(row).UnixMicro()
	case row.FinalizedAt != nil && (row.State == rivertype.JobStateCompleted && status != retryjob.Succeeded.String() || ended && !final):
		return row.FinalizedAt.UnixMicro()
	}
	if n, ok := number("changed"); ok {
		return n
	}
	return row.CreatedAt.UnixMicro()
}

var finals = texts(only(nil, retryjob.Status.Final))

// texts returns constants of retryjob as a list of SQL.
func texts[T retryjob.Status | retry.Reason](values []T) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = fmt.Sprintf("'%v'", v)
	}
	return strings.Join(quoted, ", ")
}

// condition is a WHERE clause with its arguments.
type condition struct {
	sql  string
	args map[string]any
}

// position is a place in a list that is sorted by changed and id, the greatest first.
type position struct{ changed, id int64 }

// newest is before everything.
var newest = position{math.MaxInt64, math.MaxInt64}

// where returns the condition of the jobs that f selects and that come after a position. It may select more than f does.
func (d *dialect) where(f *retryjob.Filter, after position) condition {
	parts, args := []string{"state IN (" + states(f.Statuses) + ")"}, map[string]any{}
	name := func(list string, i int, v any) string {
		key := fmt.Sprintf("%s_%06d", list, i) // of one length, for River replaces them one by one
		args[key] = v
		return "@" + key
	}
	if len(f.Statuses) > 0 {
		parts = append(parts, d.status+" IN ("+texts(f.Statuses)+")")
	}
	if len(f.Reasons) > 0 {
		parts = append(parts, d.reason+" IN ("+texts(f.Reasons)+")")
	}
	for _, list := range []struct {
		column, name string
		values       []string
	}{{"kind", "kind", f.Kinds}, {d.policy, "policy", f.Policies}} {
		if len(list.values) == 0 {
			continue
		}
		names := make([]string, len(list.values))
		for i, v := range list.values {
			names[i] = name(list.name, i, v)
		}
		in := list.column + " IN (" + strings.Join(names, ", ") + ")"
		if list.column == d.policy {
			in = "(" + in + " OR " + d.policy + " IS NULL)" // the adapter knows
		}
		parts = append(parts, in)
	}
	if !f.Since.IsZero() {
		parts = append(parts, d.changed+" >= "+name("since", 0, f.Since.UnixMicro()))
	}
	if !f.Until.IsZero() {
		parts = append(parts, d.changed+" <= "+name("until", 0, f.Until.UnixMicro()))
	}
	if after != newest {
		c, id := name("changed", 0, after.changed), name("id", 0, after.id)
		parts = append(parts, "("+d.changed+" < "+c+" OR ("+d.changed+" = "+c+" AND id < "+id+"))")
	}
	return condition{strings.Join(parts, " AND "), args}
}

// states returns the states of River that jobs with one of the statuses may have; of none means any.
func states(statuses []retryjob.Status) string {
	if len(statuses) == 0 {
		statuses = retryjob.Statuses()
	}
	var list []string
	for _, s := range statuses {
		switch s {
		case retryjob.Pending, retryjob.WaitingRetry:
			list = append(list, "'available'", "'scheduled'", "'retryable'", "'pending'")
		case retryjob.Leased:
			list = append(list, "'running'")
		case retryjob.Succeeded:
			list = append(list, "'completed'", "'cancelled'", "'discarded'")
		default:
			list = append(list, "'cancelled'", "'discarded'")
		}
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}

// byID returns the conditions by which the job with an ID is looked for, one after the other.
func (d *dialect) byID(id string) []condition {
	indexed := condition{
		"unique_key = @key AND unique_key IS NOT NULL AND unique_states IS NOT NULL AND " + d.keyIndex, map[string]any{"key": keyOf(id)},
	}
	// A plain job may have a unique key that its own program has given it.
	other := condition{d.jobID + " = @job", map[string]any{"job": id}}
	if d.holds != "" {
		fragment, _ := json.Marshal(map[string]any{metadataKey: []any{map[string]string{"job": id}}})
		other = condition{d.holds, map[string]any{"job": string(fragment)}}
	}
	list := []condition{indexed, other}
	if row, ok := rowOf(id); ok {
		list = append(list, condition{"id = @row", map[string]any{"row": row}})
	}
	return list
}
