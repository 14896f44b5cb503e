package retryriver

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/riverqueue/river/riverdriver"

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
	snoozes  string // how River's count of snoozes is got at
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
		func(field string) string { return "(metadata->>'$." + metadataKey + "[0]." + field + "')" },
		func(number string) string { return number },
		func(column string) string {
			return "cast(round(unixepoch(" + column + ", 'subsec') * 1000) as integer) * 1000"
		},
		dialect{snoozes: "$.snoozes", mute: true, keyIndex: `CASE state
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
		func(field string) string { return "(metadata#>>'{" + metadataKey + ",0," + field + "}')" },
		func(number string) string { return number + "::bigint" },
		func(column string) string { return "(extract(epoch from " + column + ") * 1000000)::bigint" },
		dialect{snoozes: "snoozes", keyIndex: "river_job_state_in_bitmask(unique_states, state)", holds: "metadata @> @job::jsonb"},
	)
)

// newDialect completes a dialect by how it has a field of the record, a number of a text and the microseconds of a time.
func newDialect(field, number, micros func(string) string, d dialect) dialect {
	recorded, seen := field("status"), "coalesce("+number(field("seen"))+", 0)"
	d.policy, d.jobID = field("policy"), field("job")
	d.status = `(CASE
		WHEN state = 'running' THEN 'leased'
		WHEN state = 'completed' THEN 'succeeded'
		WHEN state IN ('cancelled', 'discarded') THEN CASE
			WHEN coalesce(` + recorded + `, '') IN (` + finals + `) THEN ` + recorded + `
			WHEN state = 'cancelled' THEN 'canceled'
			ELSE 'dead_letter' END
		WHEN coalesce(` + number(field("attempts")) + `, 0) = 0 AND attempt <= ` + seen + ` THEN 'pending'
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
		ELSE coalesce(` + number(field("changed")) + `,
			CASE WHEN metadata->>'` + d.snoozes + `' IS NULL THEN ` + micros("scheduled_at") + ` ELSE ` + micros("created_at") + ` END) END)`
	return d
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
