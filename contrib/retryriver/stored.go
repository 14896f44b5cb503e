package retryriver

import (
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

// stored is what the database has of a job beside River's columns.
type stored struct {
	retryjob.Record
	// Seen is River's count of attempts when the record was written. What River counts beyond it was lost.
	Seen int `json:"seen,omitempty"`
	// ChangedAt is Record.Changed in microseconds since 1970, for SQL to order by.
	ChangedAt int64 `json:"changed"`

	late []retryjob.Attempt // what lateKey has
}

// lateKey is the key, in a job's metadata, of the attempts that ended after they had been given up as lost.
const lateKey = "retryjob_late"

// array returns the value of metadataKey. A job that has not started yet has fewer fields, since PostgreSQL has an
// index entry for each field.
func (s *stored) array() any {
	s.ChangedAt = s.Changed().UnixMicro()
	if s.Status == retryjob.Pending && s.Seen == 0 && s.Due.Equal(s.First) {
		return []fresh{{s.Version, s.JobID, s.Policy, s.Correlation, s.Spec, s.TTL, s.Budget, s.First, s.Enqueued, s.Replays, s.ChangedAt}}
	}
	return []*stored{s}
}

// fresh is stored without what a job has that is yet to start.
type fresh struct {
	Version     int             `json:"v"`
	JobID       string          `json:"job"`
	Policy      string          `json:"policy"`
	Correlation string          `json:"correlation,omitempty"`
	Spec        *retryconf.Spec `json:"spec,omitempty"`
	TTL         time.Duration   `json:"ttl_ns,omitempty"`
	Budget      string          `json:"budget,omitempty"`
	First       time.Time       `json:"first"`
	Enqueued    time.Time       `json:"enqueued,omitzero"`
	Replays     int             `json:"replays,omitempty"`
	ChangedAt   int64           `json:"changed"`
}

// load returns the record of a job as it was last written. A plain job gets one at its first failure; until then load
// makes one from the row. It ignores a record that is not this job's own, since the metadata of a plain job may come
// from any program. If the job's own record cannot be read, load returns an error and the record made from the row.
func (a *Adapter) load(row *rivertype.JobRow) (stored, error) {
	var metadata map[string]json.RawMessage // unlike the fields of a struct, keys are as they are written
	if len(row.Metadata) > len("{}") {
		_ = json.Unmarshal(row.Metadata, &metadata) // other than an object it has no key of ours
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
		if s.Status == 0 {
			s.Status, s.Due = retryjob.Pending, s.First
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

// owns reports whether the row is the job with the given ID: it has the ID's unique key, or its own number in it. A
// plain job with river.UniqueOpts that was scheduled has neither, but River's key, and an ID that InsertBegin has made
// up.
func owns(row *rivertype.JobRow, id string) bool {
	return id == rowID(row) || len(row.UniqueKey) > 0
}

// plain returns the record of a job that has none.
func (a *Adapter) plain(row *rivertype.JobRow, snoozes float64) stored {
	first := row.ScheduledAt
	if row.Attempt > 1 || snoozes > 0 || first.Sub(row.CreatedAt).Abs() < time.Second {
		first = row.CreatedAt // the schedule is that of a later attempt, or none
	}
	policy, _ := a.policyOf(row.Kind)
	j := retryjob.Job{ID: rowID(row), Kind: row.Kind, Policy: policy, Due: first.UTC()}
	return stored{Record: retryjob.NewRecord(&j, row.CreatedAt.UTC())}
}

// lateOnes takes over what metadata has under lateKey.
func (s *stored) lateOnes(text json.RawMessage) {
	if json.Unmarshal(text, &s.late) != nil {
		s.late = nil
	}
}

// JobID returns the ID of the retryjob.Job that a River job is. That of a plain job has its number and when it was
// created, since SQLite gives a number again.
func JobID(row *rivertype.JobRow) string {
	s, _ := (&Adapter{}).load(row)
	return s.JobID
}

const rowPrefix = "river-"

func rowID(row *rivertype.JobRow) string {
	return rowPrefix + strconv.FormatInt(row.ID, 10) + "-" + strconv.FormatInt(row.CreatedAt.UnixMicro(), 36)
}

// rowOf returns the number that an ID of rowID has.
func rowOf(id string) (int64, bool) {
	rest, ok := strings.CutPrefix(id, rowPrefix)
	digits, _, dashed := strings.Cut(rest, "-")
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, ok && dashed && err == nil
}

// attempt returns which attempt of the job a row that is leased is about: those that River has counted since the record
// was written come on top of it.
func (s *stored) attempt(row *rivertype.JobRow) int {
	return s.Attempts + max(row.Attempt-s.Seen, 1)
}

// info returns the job as it is now. The row's state is the truth and the record explains it: the record is behind if
// an attempt is under way or was lost, or if River or another program has ended the job. A record that cannot be read
// is left out.
func (a *Adapter) info(row *rivertype.JobRow) retryjob.Info {
	s, _ := a.load(row)
	i := retryjob.Info{Record: s.Record, Payload: payloadOf(row.EncodedArgs)}
	i.Queue, i.Priority, i.Tags = columns(row)
	switch row.State {
	case rivertype.JobStateCompleted:
		if i.Status != retryjob.Succeeded { // only a success that was late is recorded
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
		// The row differs from what was decided by River's rounding only, unless another program has changed the row.
		if off := row.ScheduledAt.Sub(i.Due); off < -rounding || off > rounding {
			i.Due = row.ScheduledAt.UTC()
		}
	}
	for _, attempt := range s.late {
		i.Late(attempt)
	}
	return i
}

const rounding = 10 * time.Millisecond

// finalize makes the record one that has ended as the row says.
func finalize(r *retryjob.Record, status retryjob.Status, reason retry.Reason, row *rivertype.JobRow) {
	r.Status, r.Reason, r.Due, r.Ended = status, reason, time.Time{}, r.First
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
	for _, earlier := range []time.Time{r.First, r.Last().End} { // which are not rounded
		if start.Before(earlier) {
			start = earlier
		}
	}
	if start.After(end) {
		start = end
	}
	r.History = append(r.History, retryjob.Attempt{ID: r.AttemptID(r.Attempts), Number: r.Attempts, Start: start, End: end, Status: retryjob.Succeeded})
}

// lost adds the attempts up to River's count to r of which the record does not know: the newest one at least began when
// the row says.
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

// keptLost bounds what lost adds to what retryjob.Record keeps.
const keptLost = 64

func attemptedAt(row *rivertype.JobRow) time.Time {
	if row.AttemptedAt == nil {
		return time.Time{}
	}
	return row.AttemptedAt.UTC()
}
