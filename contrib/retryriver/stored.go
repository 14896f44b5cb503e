package retryriver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryjob"
)

// metadataKey is the key of a job's record in its metadata. The value is an array of one element: River's SQLite driver
// would merge an object into the old one, and keep fields that the new record no longer has.
const metadataKey = "retryjob"

// stored is the data about a job that is not in River's columns.
type stored struct {
	retryjob.Record
	// Seen is River's count of attempts when the record was written. Later attempts in River's count were lost.
	Seen int `json:"seen,omitempty"`
	// ChangedAt is Record.Changed in microseconds since 1970, for sorting in SQL.
	ChangedAt int64 `json:"changed"`

	late []retryjob.Attempt // the value of lateKey
}

// lateKey is the key, in a job's metadata, of the attempts that ended after they were treated as lost.
const lateKey = "retryjob_late"

// array returns the value of metadataKey. A job that has not started yet has fewer fields, since PostgreSQL has an
// index entry for each field.
func (s *stored) array() any {
	s.ChangedAt = s.Changed().UnixMicro()
	if s.Status == retryjob.Pending && s.Seen == 0 && s.Due.Equal(s.FirstDue) {
		return []fresh{{s.Version, s.JobID, s.Policy, s.Correlation, s.Spec, s.TTL, s.BudgetKey, s.FirstDue, s.Enqueued, s.Replays, s.Earlier, s.ChangedAt}}
	}
	return []*stored{s}
}

// fresh is stored without the fields that a job gets when it starts.
type fresh struct {
	Version     int             `json:"v"`
	JobID       string          `json:"job"`
	Policy      string          `json:"policy"`
	Correlation string          `json:"correlation,omitempty"`
	Spec        *retryconf.Spec `json:"spec,omitempty"`
	TTL         time.Duration   `json:"ttl_ns,omitempty"`
	BudgetKey   string          `json:"budget_key,omitempty"`
	FirstDue    time.Time       `json:"first_due"`
	Enqueued    time.Time       `json:"enqueued,omitzero"`
	Replays     int             `json:"replays,omitempty"`
	Earlier     []retryjob.Life `json:"earlier,omitempty"`
	ChangedAt   int64           `json:"changed"`
}

// load returns the record of a job as it was last written. A plain job gets one at its first failure; until then load
// builds one from the row. It ignores a record that is not this job's own, since the metadata of a plain job may come
// from any program. If the job's own record cannot be read, load returns an error and a record built from the row.
func (a *Adapter) load(row *rivertype.JobRow) (stored, error) {
	var metadata map[string]json.RawMessage // unlike those of a struct, its keys are case-sensitive
	if len(row.Metadata) > len("{}") {
		_ = json.Unmarshal(row.Metadata, &metadata) // any other value does not have our key
	}
	var heads []struct {
		JobID string `json:"job"`
	}
	if json.Unmarshal(metadata[metadataKey], &heads) == nil && len(heads) > 0 && owns(row, heads[0].JobID) {
		var records []stored
		if err := json.Unmarshal(metadata[metadataKey], &records); err != nil {
			return a.plain(row, 0), fmt.Errorf("retryriver: metadata of River's job %d: %w", row.ID, err)
		}
		s := records[0]
		s.Kind = row.Kind
		s.fromBefore(metadata[metadataKey])
		if s.Status == 0 {
			s.Status, s.Due = retryjob.Pending, s.FirstDue
		}
		if s.Version == 1 && s.Attempts == 0 && s.Enqueued.IsZero() {
			s.Enqueued = row.CreatedAt.UTC() // First can be in the future
		}
		s.lateOnes(metadata[lateKey])
		return s, nil
	}
	var snoozes float64
	_ = json.Unmarshal(metadata["snoozes"], &snoozes)
	s := a.plain(row, snoozes)
	s.lateOnes(metadata[lateKey])
	return s, nil
}

// owns reports whether the row is the job with the given ID: it has the ID's unique key, or its own number is in the
// ID. The unique key of another client's river.UniqueOpts does not make a record in its metadata the job's own.
func owns(row *rivertype.JobRow, id string) bool {
	return id == rowID(row) || bytes.Equal(row.UniqueKey, keyOf(id))
}

// plain returns the record of a job that does not have one.
func (a *Adapter) plain(row *rivertype.JobRow, snoozes float64) stored {
	first := row.ScheduledAt
	if row.Attempt > 1 || snoozes > 0 || first.Sub(row.CreatedAt).Abs() < time.Second {
		first = row.CreatedAt // ScheduledAt belongs to a later attempt, or to none
	}
	policy, _ := a.policyOf(row.Kind)
	j := retryjob.Job{ID: rowID(row), Kind: row.Kind, Policy: policy, Due: first.UTC()}
	return stored{Record: retryjob.NewRecord(&j, row.CreatedAt.UTC())}
}

// lateOnes copies the attempts that metadata has under lateKey.
func (s *stored) lateOnes(text json.RawMessage) {
	if json.Unmarshal(text, &s.late) != nil {
		s.late = nil
	}
	var before []attemptBefore
	if json.Unmarshal(text, &before) == nil {
		numbered(s.late, before)
	}
}

// attemptBefore and recordBefore have the fields whose keys were others before version 3 of retryjob.Record.
type attemptBefore struct {
	Number int `json:"attempt"`
}

type recordBefore struct {
	FirstDue  time.Time          `json:"first"`
	BudgetKey string             `json:"budget"`
	History   []retryjob.Attempt `json:"runs"`
}

// fromBefore reads the fields of a record of version 1 or 2 that have other keys now.
func (s *stored) fromBefore(text json.RawMessage) {
	if s.Version >= 3 {
		return
	}
	var before []recordBefore
	var numbers []struct {
		Attempts []attemptBefore `json:"runs"`
	}
	if json.Unmarshal(text, &before) != nil || json.Unmarshal(text, &numbers) != nil {
		return
	}
	s.FirstDue, s.BudgetKey, s.History = before[0].FirstDue, before[0].BudgetKey, before[0].History
	numbered(s.History, numbers[0].Attempts)
}

// numbered adds the numbers of attempts.
func numbered(attempts []retryjob.Attempt, before []attemptBefore) {
	for i := range attempts {
		if attempts[i].Number == 0 {
			attempts[i].Number = before[i].Number
		}
	}
}

// JobID returns the ID of a River job as a retryjob.Job. The ID of a plain job contains its number and its creation
// time, since SQLite reuses numbers.
func JobID(row *rivertype.JobRow) string {
	s, _ := (&Adapter{}).load(row)
	return s.JobID
}

const rowPrefix = "river-"

func rowID(row *rivertype.JobRow) string {
	return rowPrefix + strconv.FormatInt(row.ID, 10) + "-" + strconv.FormatInt(row.CreatedAt.UnixMicro(), 36)
}

// rowOf returns the number in an ID of rowID.
func rowOf(id string) (int64, bool) {
	rest, ok := strings.CutPrefix(id, rowPrefix)
	digits, _, dashed := strings.Cut(rest, "-")
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, ok && dashed && err == nil
}

// attempt returns the number of the job's attempt that a leased row is for: attempts that River has counted since the
// record was written are added to those of the record.
func (s *stored) attempt(row *rivertype.JobRow) int {
	return s.Attempts + max(row.Attempt-s.Seen, 1)
}

// info returns the current state of the job. The row's state is authoritative and the record explains it: the record is
// behind if an attempt is in progress or was lost, or if River or another program has ended the job. A record that
// cannot be read is left out.
func (a *Adapter) info(row *rivertype.JobRow) retryjob.Info {
	s, _ := a.load(row)
	i := retryjob.Info{Record: s.Record, Payload: payloadOf(row.EncodedArgs)}
	i.Queue, i.Priority, i.Tags = columns(row)
	switch row.State {
	case rivertype.JobStateCompleted:
		if i.Status != retryjob.Succeeded { // of successes only late ones are recorded
			s.succeed(&i.Record, row)
			finalize(&i.Record, retryjob.Succeeded, 0, row)
		}
	case rivertype.JobStateCancelled:
		if !i.Status.Final() {
			s.lost(&i.Record, row, row.Attempt)
			finalize(&i.Record, retryjob.Canceled, retry.CallerCanceled, row)
		}
	case rivertype.JobStateDiscarded:
		if !i.Status.Final() {
			s.lost(&i.Record, row, row.Attempt)
			finalize(&i.Record, retryjob.DeadLettered, retry.AttemptsExhausted, row)
		}
	case rivertype.JobStateRunning:
		s.lost(&i.Record, row, row.Attempt-1)
		n := s.attempt(row)
		i.History = append(i.History, retryjob.Attempt{ID: i.AttemptID(n), Number: n, Start: attemptedAt(row), Status: retryjob.Leased})
		i.Status, i.Reason, i.Attempts = retryjob.Leased, 0, n
		i.Due, i.Ended = time.Time{}, time.Time{}
	default: // available, scheduled, retryable, pending
		s.lost(&i.Record, row, row.Attempt)
		i.Status, i.Reason, i.Ended = retryjob.WaitingRetry, 0, time.Time{}
		if i.Attempts == 0 {
			i.Status = retryjob.Pending
		}
		// The row differs from the decision only by River's rounding, unless another program has changed it.
		if off := row.ScheduledAt.Sub(i.Due); off < -rounding || off > rounding {
			i.Due = row.ScheduledAt.UTC()
		}
	}
	for _, attempt := range s.late {
		i.AddLate(attempt)
	}
	return i
}

const rounding = 10 * time.Millisecond

// finalize ends the record as the row shows.
func finalize(r *retryjob.Record, status retryjob.Status, reason retry.Reason, row *rivertype.JobRow) {
	r.Status, r.Reason, r.Due, r.Ended = status, reason, time.Time{}, r.FirstDue
	if row.FinalizedAt != nil {
		r.Ended = row.FinalizedAt.UTC()
	}
}

// succeed adds the row's last attempt as a success.
func (s *stored) succeed(r *retryjob.Record, row *rivertype.JobRow) {
	s.lost(r, row, row.Attempt-1)
	if row.Attempt <= s.Seen || row.FinalizedAt == nil {
		return
	}
	r.Attempts++
	start, end := attemptedAt(row), row.FinalizedAt.UTC()
	for _, earlier := range []time.Time{r.FirstDue, r.Last().End} { // which are not rounded
		if start.Before(earlier) {
			start = earlier
		}
	}
	if start.After(end) {
		start = end
	}
	r.History = append(r.History, retryjob.Attempt{ID: r.AttemptID(r.Attempts), Number: r.Attempts, Start: start, End: end, Status: retryjob.Succeeded})
}

// lost adds to r the attempts up to River's count that are not in the record: at least the newest one began at the time
// in the row.
func (s *stored) lost(r *retryjob.Record, row *rivertype.JobRow, count int) {
	n := max(count-s.Seen, 0)
	if n > keptLost {
		r.Attempts, n = r.Attempts+n-keptLost, keptLost
	}
	for ; n > 0; n-- {
		r.Attempts++
		a := retryjob.Attempt{ID: r.AttemptID(r.Attempts), Number: r.Attempts, Status: retryjob.WaitingRetry, Err: retryjob.ErrLost.Error()}
		if n == 1 && count == row.Attempt {
			a.Start = attemptedAt(row)
		}
		r.History = append(r.History, a)
	}
}

// keptLost bounds the attempts that lost adds to retryjob.Record.
const keptLost = 64

func attemptedAt(row *rivertype.JobRow) time.Time {
	if row.AttemptedAt == nil {
		return time.Time{}
	}
	return row.AttemptedAt.UTC()
}
