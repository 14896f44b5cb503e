package retryjob

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

// RecordVersion is the Version of the records that this package writes. It reads those of version 1 too, which have no
// Kind, Spec, TTL and Budget.
const RecordVersion = 2

// Record is what an engine keeps of a job beside the Job itself: its status and the results of its attempts. Only
// Stepper, Replay and Cancel change a Record, except that an engine may mark it as Leased while an attempt is under
// way, and then counts that attempt in Attempts.
type Record struct {
	Version     int    `json:"v"`
	JobID       string `json:"job"`
	Kind        string `json:"kind,omitempty"`
	Policy      string `json:"policy"`
	Correlation string `json:"correlation,omitempty"`
	// Spec, TTL and Budget are the job's.
	Spec   *retryconf.Spec `json:"spec,omitempty"`
	TTL    time.Duration   `json:"ttl_ns,omitempty"`
	Budget string          `json:"budget,omitempty"`
	// First is when the job was first due: the TTL counts from it. A replay sets it again.
	First time.Time `json:"first"`
	// Enqueued is when the job was enqueued or replayed, if that was before First. Zero means First.
	Enqueued time.Time `json:"enqueued,omitzero"`
	// Replays is how often the job was replayed.
	Replays int    `json:"replays,omitempty"`
	Status  Status `json:"status"`
	// Reason is why the job ended without success. Zero means that it did not.
	Reason retry.Reason `json:"reason,omitzero"`
	// Due is when the next attempt is to start at the earliest. Zero means that none is to.
	Due time.Time `json:"due,omitzero"`
	// Ended is when the Status became final. Zero means that it is not.
	Ended time.Time `json:"ended,omitzero"`
	// Attempts is the number of attempts begun since First, lost ones included.
	Attempts int `json:"attempts"`
	// Since is retry.Decision.Since of the last decision: how many of Attempts the policy's ResetAfter has written off.
	Since int `json:"since,omitempty"`
	// Prev is retry.Decision.Backoff of the last decision, kept for DecorrelatedJitter only.
	Prev time.Duration `json:"prev_ns,omitempty"`
	// History holds the attempts since First: the first one and the newest 63.
	History []Attempt `json:"runs,omitempty"`
}

// Attempt is the record of one attempt.
type Attempt struct {
	// ID is unique to this attempt, even if the job's ID is used again for another job. It is the job's ID and three
	// parts with a dot in front of each (see Record.AttemptID): no Admin finds a job by it, so cut off these three or
	// log the job's ID, too.
	ID     string       `json:"id"`
	Number int          `json:"attempt"` // from 1
	Start  time.Time    `json:"start,omitzero"`
	End    time.Time    `json:"end,omitzero"`    // zero for one that is under way and one that was lost with its worker
	Due    time.Time    `json:"due,omitzero"`    // of the attempt after it; zero if none follows
	Status Status       `json:"status"`          // what the attempt made of the job
	Reason retry.Reason `json:"reason,omitzero"` // why, if Status is final and not Succeeded
	// Err is the error's text, up to 1 KiB, without the users and queries of URLs. It is for
	// operators, since it can name addresses of your network: show tenants Code. It says "attempt timeout" if the
	// AttemptTimeout was over when the attempt failed.
	Err  string `json:"err,omitempty"`
	Code string `json:"code,omitempty"` // of the error, as Stepper.Code says: "503"
	// Late means that the attempt ended after it had been given up as lost: Start, End, Err and Code are those of its
	// result, a success if Err is empty, which changed nothing else.
	Late bool `json:"late,omitempty"`
}

// NewRecord returns the record of a job that was enqueued at now.
func NewRecord(j *Job, now time.Time) Record {
	r := Record{
		Version: RecordVersion, JobID: j.ID, Kind: j.Kind, Policy: j.Policy, Correlation: j.Correlation,
		Spec: j.Spec, TTL: j.TTL, Budget: j.Budget, First: now, Status: Pending, Due: now,
	}
	if j.Due.After(now) {
		r.First, r.Due, r.Enqueued = j.Due, j.Due, now
	}
	return r
}

// Job returns the job as far as its record has it: without its Payload, Queue, Priority and Tags. Due is First.
func (r *Record) Job() Job {
	return Job{
		ID: r.JobID, Kind: r.Kind, Policy: r.Policy, Correlation: r.Correlation, Spec: r.Spec, TTL: r.TTL, Budget: r.Budget, Due: r.First,
	}
}

// AttemptID returns the ID of an attempt, "job.0.2.dn27tue4eplz": the job's ID, how often the job was replayed, the
// attempt's number, and First in nanoseconds to base 36, which another job with the same ID does not have.
func (r *Record) AttemptID(attempt int) string {
	return attemptID(r.JobID, r.Replays, attempt, r.First)
}

func attemptID(job string, replays, attempt int, first time.Time) string {
	id := make([]byte, 0, 64)
	id = append(append(id, job...), '.')
	id = append(strconv.AppendInt(id, int64(replays), 10), '.')
	id = append(strconv.AppendInt(id, int64(attempt), 10), '.')
	return string(strconv.AppendInt(id, first.UnixNano(), 36))
}

// Last returns the newest attempt, or the zero Attempt if there is none.
func (r *Record) Last() Attempt {
	if len(r.History) == 0 {
		return Attempt{}
	}
	return r.History[len(r.History)-1]
}

// Changed returns when the job last came to its Status, as far as the record shows.
func (r *Record) Changed() time.Time {
	if !r.Ended.IsZero() {
		return r.Ended
	}
	for i := len(r.History) - 1; i >= 0; i-- {
		if a := &r.History[i]; !a.End.IsZero() && !a.Late {
			return a.End
		} else if !a.Start.IsZero() {
			return a.Start
		}
	}
	if !r.Enqueued.IsZero() {
		return r.Enqueued
	}
	return r.First
}

// Replay makes a job that ended without success Pending again, as it was when it was enqueued, with the same ID. It
// refuses other jobs with ErrNotReplayable.
func (r *Record) Replay(now time.Time) error {
	if !r.Status.Replayable() {
		return fmt.Errorf("%w: job %s is %s", ErrNotReplayable, r.JobID, r.Status)
	}
	job, replays := r.Job(), r.Replays
	job.Due = time.Time{}
	*r = NewRecord(&job, now)
	r.Replays = replays + 1
	return nil
}

// Late records the result of an attempt that had been given up as lost and has ended after all: a as its Stepper
// recorded it elsewhere. It changes that attempt's own line and nothing else. It reports false, and changes nothing, if
// History has no attempt with that ID, or that attempt has ended.
func (r *Record) Late(a Attempt) bool {
	i := slices.IndexFunc(r.History, func(own Attempt) bool { return own.ID == a.ID })
	if i < 0 || !r.History[i].End.IsZero() || r.History[i].Status == Leased {
		return false
	}
	own := &r.History[i]
	own.Start, own.End, own.Err, own.Code, own.Late = a.Start, a.End, a.Err, a.Code, true
	return true
}

// Cancel makes a job that is not final Canceled. An attempt that is under way is recorded by its Stepper; if none is,
// Stepper.Canceled is called next.
func (r *Record) Cancel(now time.Time) error {
	if r.Status.Final() {
		return fmt.Errorf("retryjob: job %s is %s already", r.JobID, r.Status)
	}
	r.Version = RecordVersion
	r.end(Canceled, retry.CallerCanceled, now)
	return nil
}

// Validate returns nil or retry.FieldErrors. Refused are: a Version or Status that this package does not know, an empty
// JobID, negative counts, a Due or Ended that does not go with the Status, and a History that is too long, out of order
// or beyond Attempts. Stepper validates each record that it is given.
func (r *Record) Validate() error {
	var bad retry.FieldErrors
	refuse := func(field string, value any, rule string) {
		bad.Add("retryjob", "Record."+field, value, fmt.Sprintf("of job %q %s", r.JobID, rule))
	}
	if r.Version != RecordVersion && r.Version != 1 {
		refuse("Version", r.Version, "is not 1 or 2")
		return bad // its fields may mean something else
	}
	if r.JobID == "" {
		refuse("JobID", `""`, "is empty")
	}
	if r.First.IsZero() {
		refuse("First", r.First, "is not set")
	}
	if r.Status < Pending || r.Status > Canceled {
		refuse("Status", r.Status, "is not a status")
	} else {
		if r.Status.Final() == r.Ended.IsZero() {
			refuse("Ended", r.Ended, "does not go with "+r.Status.String())
		}
		if (r.Status == Pending || r.Status == WaitingRetry) == r.Due.IsZero() {
			refuse("Due", r.Due, "does not go with "+r.Status.String())
		}
	}
	for _, f := range [...]struct {
		field string
		value int
	}{{"Attempts", r.Attempts}, {"Replays", r.Replays}, {"Since", r.Since}} {
		if f.value < 0 {
			refuse(f.field, f.value, "is negative")
		}
	}
	if r.Prev < 0 {
		refuse("Prev", r.Prev, "is negative")
	}
	if len(r.History) > keptAttempts {
		refuse("History", len(r.History), "has more than 64 attempts")
	}
	before := 0
	for i := range r.History {
		n := r.History[i].Number
		if n <= before || n > r.Attempts {
			refuse("History", n, "is not the number of the next attempt, or is beyond Attempts")
			break
		}
		before = n
	}
	return bad.Err()
}

// end makes the status final.
func (r *Record) end(s Status, reason retry.Reason, now time.Time) {
	r.Status, r.Reason, r.Due, r.Ended = s, reason, time.Time{}, now
}

// wait makes the job wait for its next attempt.
func (r *Record) wait(due time.Time) {
	r.Status, r.Due = WaitingRetry, due
	if r.Attempts == 0 {
		r.Status = Pending
	}
}

// release takes back the lease of an attempt that was not made.
func (r *Record) release(attempt int) {
	r.Attempts = min(r.Attempts, attempt-1)
	if n := len(r.History); n > 0 && r.History[n-1].Number >= attempt {
		r.History = r.History[:n-1]
	}
}

// keptAttempts is how many attempts a record holds: the first and the newest 63, as Outcome.History does.
const keptAttempts = 64

// note adds an attempt, or completes the one that is there with its number.
func (r *Record) note(a Attempt) {
	r.Attempts = max(r.Attempts, a.Number)
	if n := len(r.History); n > 0 && r.History[n-1].Number == a.Number {
		r.History[n-1] = a
		return
	}
	if len(r.History) == keptAttempts {
		copy(r.History[1:], r.History[2:])
		r.History = r.History[:keptAttempts-1]
	}
	r.History = append(r.History, a)
}

// failed returns a as the core records an attempt that failed with err.
func (a *Attempt) failed(class retry.Class, err error) retry.Attempt {
	f := retry.Attempt{Number: a.Number, Start: a.Start, Class: class, Err: err}
	if !a.End.IsZero() {
		f.Duration = max(a.End.Sub(a.Start), 0)
		if !a.Due.IsZero() {
			f.Delay = max(a.Due.Sub(a.End), 0)
		}
	}
	return f
}

// recorded is an error of which the record kept the text.
type recorded string

func (e recorded) Error() string { return string(e) }

// text returns what a Record keeps of err: up to 1 KiB of UTF-8, without what URLs may have of secrets and without NUL,
// which PostgreSQL's JSON cannot hold.
func text(err error) string {
	s := err.Error()
	if most := 16 * longestText; len(s) > most {
		s = s[:most]
		if i := strings.LastIndexAny(s, " \t\n\""); i >= 0 {
			s = s[:i] // not a part of a URL
		}
	}
	s = ofURL.ReplaceAllStringFunc(s, bare)
	return clean(ofQuery.ReplaceAllString(s, ""))
}

var (
	ofURL   = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*:/[^\s"<>]*`) // a URL in a text, also a malformed one
	ofQuery = regexp.MustCompile(`\?[\w.~%[\]-]+=[^\s"<>]*`)           // the query of a URL without its scheme
)

// bare returns a URL without user, password, query and fragment. An @ that may end a password with a slash in it does.
func bare(url string) string {
	scheme, rest, _ := strings.Cut(url, ":")
	if i := strings.IndexAny(rest, "?#"); i >= 0 && !strings.Contains(rest[i:], "@") {
		rest = rest[:i]
	}
	own := strings.TrimLeft(rest, "/")
	slashes := rest[:len(rest)-len(own)]
	authority, _, _ := strings.Cut(own, "/")
	if strings.ContainsAny(authority, ":@?#") {
		own = own[strings.LastIndexByte(own, '@')+1:]
	}
	own, _, _ = strings.Cut(own, "?")
	own, _, _ = strings.Cut(own, "#")
	return scheme + ":" + slashes + own
}

func clean(s string) string {
	s = strings.ReplaceAll(s, "\x00", "�")
	if len(s) > longestText {
		s = s[:longestText]
	}
	return strings.Clone(strings.ToValidUTF8(s, "")) // so that a longer text can be collected
}

// PanicError is the error of an attempt whose handler panicked or called runtime.Goexit.
type PanicError struct {
	Value any    // of the panic; nil for runtime.Goexit
	Stack []byte // from debug.Stack
}

// Error returns "retryjob: the handler panicked: value", without the stack.
func (e *PanicError) Error() string {
	if e.Value == nil {
		return "retryjob: the handler ended its goroutine"
	}
	return fmt.Sprintf("retryjob: the handler panicked: %v", e.Value)
}

// Unwrap returns the value, if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Snooze returns an error with which a handler asks to be called again after d, for example because what it waits for
// is not there yet. The attempt does not count, costs the budget nothing and leaves no line in the record. The TTL goes
// on: a d that would end after it ends the job as Expired at once. A negative d counts as 0. A canceled job is not put
// off.
func Snooze(d time.Duration) error { return &snooze{d} }

type snooze struct{ by time.Duration }

func (s *snooze) Error() string {
	return fmt.Sprintf("retryjob: the handler asks to be called again after %v", s.by)
}

// errRecorded is the error of Step for an attempt that is in the record already.
var errRecorded = errors.New("is recorded already")
