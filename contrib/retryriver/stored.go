package retryriver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryjob"
)

// metadataKey is the key of a job's record in its metadata. The value is an array of one element: River's SQLite driver
// would merge an object into the old one, and keep fields that the new record no longer has. A new job that has only a
// policy has the policy's name instead, a string: PostgreSQL's index of the metadata has an entry for each key and value.
const metadataKey = "retryjob"

// stored is the data about a job that is not in River's columns.
type stored struct {
	retryjob.Record
	// Seen is River's count of attempts when the record was written. Later attempts in River's count were lost.
	Seen int `json:"seen,omitempty"`
	// ChangedAt is Record.Changed in microseconds since 1970, for sorting in SQL.
	ChangedAt int64 `json:"changed,omitempty"`
	// Cause is that of the last attempt, for groups in SQL, after doubtMark if the attempt is in doubt.
	Cause string `json:"cause,omitempty"`

	late []retryjob.Attempt // the value of lateKey
}

// lateKey is the key, in a job's metadata, of the attempts that ended after they were treated as lost.
const lateKey = "retryjob_late"

// array returns the value of metadataKey.
func (s *stored) array() any {
	s.ChangedAt = s.Changed().UnixMicro()
	last := s.Last()
	s.Cause = last.Cause()
	if last.Ambiguous {
		s.Cause = doubtMark + s.Cause
	}
	return []*stored{s}
}

// doubtMark begins the cause of a job in doubt, so that SQL finds these jobs and groups them apart. Lists also look at the
// record, so a code that begins with the mark affects counts alone.
const doubtMark = "\x01"

// inserted returns the value of metadataKey for a new job, and when its row is created. The value has neither what a job
// gets when it starts nor the time if that is the row's.
func (s *stored) inserted() (value any, created time.Time) {
	f := fresh{s.JobID, s.Policy, s.Correlation, s.Spec, s.TTL, s.BudgetKey, s.FirstDue, s.Enqueued, s.Replays, s.Earlier, s.Changed().UnixMicro()}
	if !s.Enqueued.IsZero() {
		return []fresh{f}, s.Enqueued
	}
	created = s.FirstDue.Truncate(time.Millisecond) // the precision of SQLite
	f.FirstDue = time.Time{}
	f.ChangedAt = 0
	if f.plain() {
		return f.Policy, created
	}
	return []fresh{f}, created
}

// fresh is stored without the fields that a job gets when it starts, without a version, which means unversioned, and
// without an ID if that follows from the row.
type fresh struct {
	JobID       string          `json:"job,omitempty"`
	Policy      string          `json:"policy"`
	Correlation string          `json:"correlation,omitempty"`
	Spec        *retryconf.Spec `json:"spec,omitempty"`
	TTL         time.Duration   `json:"ttl_ns,omitempty"`
	BudgetKey   string          `json:"budget_key,omitempty"`
	FirstDue    time.Time       `json:"first_due,omitzero"`
	Enqueued    time.Time       `json:"enqueued,omitzero"`
	Replays     int             `json:"replays,omitempty"`
	Earlier     []retryjob.Life `json:"earlier,omitempty"`
	ChangedAt   int64           `json:"changed,omitempty"`
}

// plain reports whether f has nothing but a policy. A job that was replayed has a JobID too.
func (f *fresh) plain() bool {
	return f.JobID == "" && f.Correlation == "" && f.Spec == nil && f.TTL == 0 && f.BudgetKey == ""
}

// unversioned is the version of a record without one.
const unversioned = 3

// errForeign means that a row is not a retryjob.Job.
var errForeign = errors.New("retryriver: River's job has no record of its own")

// load returns the record of a job as it was last written. The metadata of a row may come from any program, so a record
// without the unique key of its ID is not a job's own: load returns errForeign. If the job's own record cannot be read,
// load returns an error and a record built from the row.
func (a *Adapter) load(row *rivertype.JobRow) (s stored, err error) {
	if !bytes.HasPrefix(row.UniqueKey, []byte(keyPrefix)) {
		return s, errForeign
	}
	s, short := shortest(row.Metadata)
	if !short {
		if s, err = parse(row); errors.Is(err, errForeign) {
			return s, err
		}
	}
	if isRandom(row.UniqueKey) {
		s.JobID = generatedID(row.ID, row.UniqueKey)
	} else if !bytes.Equal(row.UniqueKey, keyOf(s.JobID)) {
		return s, errForeign
	}
	s.Version = cmp.Or(s.Version, unversioned)
	s.Kind = row.Kind
	if s.FirstDue.IsZero() {
		s.FirstDue = row.CreatedAt.UTC()
	}
	if err != nil {
		return s, fmt.Errorf("retryriver: metadata of River's job %d: %w", row.ID, err)
	}
	if s.Status == 0 {
		s.Status = retryjob.Pending
		s.Due = s.FirstDue
	}
	return s, nil
}

// parse returns the record in the metadata of a row, with an error if it is not complete, or errForeign.
func parse(row *rivertype.JobRow) (s stored, err error) {
	var metadata map[string]json.RawMessage // unlike those of a struct, its keys are case-sensitive
	if json.Unmarshal(row.Metadata, &metadata) != nil {
		return s, errForeign
	}
	value := metadata[metadataKey]
	if bytes.HasPrefix(value, []byte(`"`)) {
		err = json.Unmarshal(value, &s.Policy)
	} else {
		s, err = parseArray(row, value)
	}
	if late := metadata[lateKey]; late != nil && json.Unmarshal(late, &s.late) != nil {
		s.late = nil
	}
	return s, err
}

// parseArray returns the record in an array.
func parseArray(row *rivertype.JobRow, array []byte) (s stored, err error) {
	var records []stored
	if err = json.Unmarshal(array, &records); err == nil && len(records) > 0 {
		return records[0], nil
	}
	var heads []struct {
		JobID string `json:"job"`
	}
	_ = json.Unmarshal(array, &heads) // at least this
	if err == nil || len(heads) == 0 {
		return s, errForeign
	}
	j := retryjob.Job{ID: heads[0].JobID, Kind: row.Kind, Due: row.CreatedAt.UTC()}
	return stored{Record: retryjob.NewRecord(&j, row.CreatedAt.UTC())}, err
}

// shortest reads the metadata that most first attempts find on PostgreSQL, in a fraction of the time that parsing takes:
// a policy, or a record of inserted with an ID and a policy. It returns false for any other form.
func shortest(metadata []byte) (s stored, ok bool) {
	text, found := strings.CutPrefix(string(metadata), `{"`+metadataKey+`": `)
	end := `"}`
	if record, chosen := strings.CutPrefix(text, `[{"job": "`); chosen {
		s.JobID, text, _ = strings.Cut(record, `", "policy": `)
		end = `"}]}`
	}
	text, begun := strings.CutPrefix(text, `"`)
	policy, ended := strings.CutSuffix(text, end)
	if !found || !begun || !ended || strings.ContainsFunc(s.JobID+policy, unlikeASCII) {
		return stored{}, false
	}
	s.Policy = policy
	return s, true
}

// unlikeASCII reports whether JSON has a character in another form than its own, or might have.
func unlikeASCII(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }

// attempt returns the number of the job's attempt that a leased row is for: attempts that River has counted since the
// record was written are added to those of the record.
func (s *stored) attempt(row *rivertype.JobRow) int {
	return s.Attempts + max(row.Attempt-s.Seen, 1)
}

// info returns the current state of the job, and false if the row is not a job's. The row's state is authoritative and
// the record explains it: the record is behind if an attempt is in progress or was lost, or if River or another program
// has ended the job. A record that cannot be read is left out.
func (a *Adapter) info(row *rivertype.JobRow) (retryjob.Info, bool) {
	s, err := a.load(row)
	if errors.Is(err, errForeign) {
		return retryjob.Info{}, false
	}
	i := retryjob.Info{Record: s.Record, Payload: payloadOf(row.EncodedArgs)}
	i.Queue, i.Priority, i.Tags = columns(row)
	switch row.State {
	case rivertype.JobStateCompleted:
		if i.Status != retryjob.Succeeded { // of successes only those after a lost attempt are recorded
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
		i.Status = retryjob.Leased
		i.Reason = 0
		i.Attempts = n
		i.Due = time.Time{}
		i.Ended = time.Time{}
		if n := len(row.AttemptedBy); n > 0 {
			i.Worker = row.AttemptedBy[n-1]
		}
	default: // available, scheduled, retryable, pending
		s.lost(&i.Record, row, row.Attempt)
		i.Status = retryjob.WaitingRetry
		i.Reason = 0
		i.Ended = time.Time{}
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
	return i, true
}

const rounding = 10 * time.Millisecond

// finalize ends the record as the row shows.
func finalize(r *retryjob.Record, status retryjob.Status, reason retry.Reason, row *rivertype.JobRow) {
	r.Status = status
	r.Reason = reason
	r.Due = time.Time{}
	r.Ended = r.FirstDue
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
