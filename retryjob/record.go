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

// RecordVersion is the Version of the records that this package writes. Records of versions 1 and 2 are valid too, but
// their JSON has other keys: "first" for FirstDue, "runs" for History, "budget" for BudgetKey, and "attempt" for
// Attempt.Number. Those of version 1 have no Kind, Spec, TTL and BudgetKey.
const RecordVersion = 3

// Record is the state of a job that an engine keeps beside the Job: its status and the results of its attempts. Only
// Stepper and the methods Replay, AddLate and Cancel change a Record, except that an engine may set Status to Leased while
// an attempt is under way. It then counts that attempt in Attempts.
type Record struct {
	// Version is RecordVersion, 1 or 2.
	Version int `json:"v"`
	// JobID, Kind, Policy, Correlation, Spec, TTL and BudgetKey are those of the job.
	JobID       string          `json:"job"`
	Kind        string          `json:"kind,omitempty"`
	Policy      string          `json:"policy"`
	Correlation string          `json:"correlation,omitempty"`
	Spec        *retryconf.Spec `json:"spec,omitempty"`
	TTL         time.Duration   `json:"ttl_ns,omitempty"`
	BudgetKey   string          `json:"budget_key,omitempty"`
	// FirstDue is the time at which the job was first due, from which the TTL counts. A replay sets it to the time of the
	// replay.
	FirstDue time.Time `json:"first_due"`
	// Enqueued is the time at which the job was enqueued or replayed, if that was before FirstDue. Zero means
	// FirstDue.
	Enqueued time.Time `json:"enqueued,omitzero"`
	// Replays is the number of times that the job was replayed.
	Replays int `json:"replays,omitempty"`
	// Status is the state of the job. Zero is refused.
	Status Status `json:"status"`
	// Reason is the reason why the job ended without success. Zero means that it succeeded or has not ended.
	Reason retry.Reason `json:"reason,omitzero"`
	// Due is the earliest time of the next attempt. Zero means that no attempt is due.
	Due time.Time `json:"due,omitzero"`
	// Ended is the time at which the Status became final. Zero means that it is not final.
	Ended time.Time `json:"ended,omitzero"`
	// Attempts is the number of attempts that began since FirstDue, including lost ones.
	Attempts int `json:"attempts"`
	// PutOff is the number of times since FirstDue that a handler has put the job off with Snooze.
	PutOff int `json:"put_off,omitempty"`
	// Forgiven is retry.Decision.Forgiven of the last decision: the number of attempts that no longer count because of the
	// policy's ResetAfter.
	Forgiven int `json:"since,omitempty"`
	// Prev is retry.Decision.Backoff of the last decision. Only DecorrelatedJitter uses it. Otherwise it is zero.
	Prev time.Duration `json:"prev_ns,omitempty"`
	// History has the attempts since FirstDue: the first one and the newest 63.
	History []Attempt `json:"history,omitempty"`
	// Earlier has the newest 8 of the lives that a replay ended, oldest first.
	Earlier []Life `json:"earlier,omitempty"`
}

// Life is the part of a job from before a replay that a record keeps.
type Life struct {
	FirstDue time.Time    `json:"first_due"`
	Ended    time.Time    `json:"ended"`
	Status   Status       `json:"status"` // DeadLettered, Expired or FailedNoRetries
	Reason   retry.Reason `json:"reason,omitzero"`
	Attempts int          `json:"attempts"`
	Err      string       `json:"err,omitempty"`  // Attempt.Err of the last attempt
	Code     string       `json:"code,omitempty"` // Attempt.Code of the last attempt
	// Ambiguous is Attempt.Ambiguous of the last attempt.
	Ambiguous bool `json:"ambiguous,omitempty"`
}

const keptLives = 8

// Attempt is the record of one attempt.
type Attempt struct {
	// ID is unique to this attempt, even if the job's ID is used again for another job: see Record.AttemptID. GetAttempt
	// finds an attempt by it.
	ID     string       `json:"id"`
	Number int          `json:"number"`          // from 1
	Start  time.Time    `json:"start,omitzero"`  // zero if the attempt was lost before its start was recorded
	End    time.Time    `json:"end,omitzero"`    // zero if the attempt is under way or was lost with its worker
	Due    time.Time    `json:"due,omitzero"`    // the time of the next attempt; zero for the last attempt
	Status Status       `json:"status"`          // the status of the job after the attempt
	Reason retry.Reason `json:"reason,omitzero"` // the reason, if Status is final and not Succeeded
	// Err is the text of the error, up to 1 KiB, without the user names, passwords and queries of URLs. It can contain
	// addresses of your network, so show tenants Code instead. It contains "attempt timeout" if the AttemptTimeout was
	// over when the attempt failed.
	Err  string `json:"err,omitempty"`
	Code string `json:"code,omitempty"` // the code of the error by Stepper.Code, such as "503"
	// Ambiguous means that the error was marked with retry.Ambiguous: the work may have been done, and is not repeated
	// for that reason. Find out before you replay the job.
	Ambiguous bool `json:"ambiguous,omitempty"`
	// Late means that the attempt ended after it was recorded as lost. Start, End, Err, Code and Ambiguous are those of
	// its result, which is a success if Err is empty. The result changed only this line.
	Late bool `json:"late,omitempty"`
}

// NewRecord returns the record of a job that was enqueued at now.
func NewRecord(j *Job, now time.Time) Record {
	r := Record{
		Version: RecordVersion, JobID: j.ID, Kind: j.Kind, Policy: j.Policy, Correlation: j.Correlation,
		Spec: j.Spec, TTL: j.TTL, BudgetKey: j.BudgetKey, FirstDue: now, Status: Pending, Due: now,
	}
	if j.Due.After(now) {
		r.FirstDue = j.Due
		r.Due = j.Due
		r.Enqueued = now
	}
	return r
}

// Job returns the job without Payload, Queue, Priority and Tags, which a record does not have. Its Due is
// FirstDue.
func (r *Record) Job() Job {
	return Job{
		ID: r.JobID, Kind: r.Kind, Policy: r.Policy, Correlation: r.Correlation, Spec: r.Spec, TTL: r.TTL, BudgetKey: r.BudgetKey, Due: r.FirstDue,
	}
}

// AttemptID returns the ID of an attempt, such as "job.0.2.dn27tue4eplz": the job's ID, the number of replays, the
// number of the attempt, and FirstDue in nanoseconds in base 36, which differs from that of another job with the same ID.
func (r *Record) AttemptID(attempt int) string {
	id := make([]byte, 0, 64)
	id = append(append(id, r.JobID...), '.')
	id = append(strconv.AppendInt(id, int64(r.Replays), 10), '.')
	id = append(strconv.AppendInt(id, int64(attempt), 10), '.')
	return string(strconv.AppendInt(id, r.FirstDue.UnixNano(), 36))
}

// Last returns the newest attempt, or the zero Attempt if there is none.
func (r *Record) Last() Attempt {
	if len(r.History) == 0 {
		return Attempt{}
	}
	return r.History[len(r.History)-1]
}

// LastErr returns the newest error in History, or "" if the job has succeeded or has none.
func (r *Record) LastErr() string {
	for _, a := range slices.Backward(r.History) {
		if a.Err != "" && r.Status != Succeeded {
			return a.Err
		}
	}
	return ""
}

// InDoubt reports whether the work of a job that is DeadLettered, Expired or FailedNoRetries may have been done, because
// its last attempt is Ambiguous. Find out before you replay the job. It reports false for any other job.
func (r *Record) InDoubt() bool {
	return r.Status.Replayable() && r.Last().Ambiguous
}

// Changed returns the time of the last change of Status that the record shows.
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
	return r.FirstDue
}

// Replay makes a job that is DeadLettered, Expired or FailedNoRetries Pending again, due at now, with the same ID and no
// attempts, and adds to Earlier how it had ended. For any other job it returns ErrNotReplayable.
func (r *Record) Replay(now time.Time) error {
	if !r.Status.Replayable() {
		return fmt.Errorf("%w: job %s is %s, and only dead-lettered, expired and failed jobs are replayed", ErrNotReplayable, r.JobID, r.Status)
	}
	job := r.Job()
	replays := r.Replays
	last := r.Last()
	life := Life{r.FirstDue, r.Ended, r.Status, r.Reason, r.Attempts, last.Err, last.Code, last.Ambiguous}
	lives := append(slices.Clip(r.Earlier[max(len(r.Earlier)-keptLives+1, 0):]), life)
	job.Due = time.Time{}
	*r = NewRecord(&job, now)
	r.Replays, r.Earlier = replays+1, lives
	return nil
}

// AddLate records the result of an attempt that was recorded as lost but has ended later. a is the attempt as its
// Stepper recorded it in another copy of the record. AddLate changes only that attempt in History. It reports false and changes
// nothing if History does not have the attempt, or has its end.
func (r *Record) AddLate(a Attempt) bool {
	i := slices.IndexFunc(r.History, func(own Attempt) bool { return own.ID == a.ID })
	if i < 0 || !r.History[i].End.IsZero() || r.History[i].Status == Leased {
		return false
	}
	own := &r.History[i]
	own.Start = a.Start
	own.End = a.End
	own.Err = a.Err
	own.Code = a.Code
	own.Ambiguous = a.Ambiguous
	own.Late = true
	return true
}

// Cancel makes a job that is not final Canceled. For a final job it returns an error. The Stepper of an attempt under
// way records that attempt. If no attempt is under way, the engine calls Stepper.Canceled next.
func (r *Record) Cancel(now time.Time) error {
	if r.Status.Final() {
		return fmt.Errorf("retryjob: job %s is %s already", r.JobID, r.Status)
	}
	r.Version = RecordVersion
	r.end(Canceled, retry.CallerCanceled, now)
	return nil
}

// Validate returns nil or retry.FieldErrors. It refuses an unknown Version or Status, an empty JobID, a zero
// FirstDue,
// negative counts, a Due or Ended that contradicts the Status, too long an Earlier, and a History that is too long, out
// of order or beyond Attempts. Stepper validates each record.
func (r *Record) Validate() error {
	var bad retry.FieldErrors
	refuse := func(field string, value any, rule string) {
		bad.Refuse("retryjob.Record."+field, value, fmt.Sprintf("of job %q %s", r.JobID, rule))
	}
	if r.Version < 1 || r.Version > RecordVersion {
		refuse("Version", r.Version, "is not 1 to 3")
		return bad // its fields may have other meanings
	}
	if r.JobID == "" {
		refuse("JobID", `""`, "is empty")
	}
	if r.FirstDue.IsZero() {
		refuse("FirstDue", r.FirstDue, "is not set")
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
	}{{"Attempts", r.Attempts}, {"Replays", r.Replays}, {"PutOff", r.PutOff}, {"Forgiven", r.Forgiven}} {
		if f.value < 0 {
			refuse(f.field, f.value, "is negative")
		}
	}
	if r.Prev < 0 {
		refuse("Prev", r.Prev, "is negative")
	}
	if len(r.Earlier) > keptLives {
		refuse("Earlier", len(r.Earlier), "has more than 8 lives")
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
	r.Status = s
	r.Reason = reason
	r.Due = time.Time{}
	r.Ended = now
}

// wait makes the job wait for its next attempt.
func (r *Record) wait(due time.Time) {
	r.Status, r.Due = WaitingRetry, due
	if r.Attempts == 0 {
		r.Status = Pending
	}
}

// release removes an attempt that was leased but not made.
func (r *Record) release(attempt int) {
	r.Attempts = attempt - 1
	if n := len(r.History); n > 0 && r.History[n-1].Number >= attempt {
		r.History = r.History[:n-1]
	}
}

// keptAttempts is how many attempts a record holds: the first and the newest 63, as Outcome.History does.
const keptAttempts = 64

// note adds an attempt, or replaces the last one if it has the same number.
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

// recorded is an error of which only the text was kept.
type recorded string

func (e recorded) Error() string { return string(e) }

// text returns the text of err for a Record: up to 1 KiB of UTF-8, without secrets in URLs, and without NUL, which JSON
// in PostgreSQL cannot hold.
func text(err error) string {
	s := err.Error()
	if most := 16 * longestText; len(s) > most {
		s = s[:most]
		if i := strings.LastIndexAny(s, " \t\n\""); i >= 0 {
			s = s[:i] // do not leave a part of a URL
		}
	}
	if strings.Contains(s, ":/") { // few texts have a URL, and looking for one takes longer than all else here
		s = ofURL.ReplaceAllStringFunc(s, bare)
	}
	if strings.Contains(s, "?") {
		s = ofQuery.ReplaceAllString(s, "")
	}
	return clean(s)
}

var (
	ofURL   = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*:/[^\s"<>]*`) // a URL in a text, even a malformed one
	ofQuery = regexp.MustCompile(`\?[\w.~%[\]-]+=[^\s"<>]*`)           // the query of a URL without its scheme
)

// bare returns a URL without user, password, query and fragment. If an @ may be the end of a password with a slash in
// it, bare takes it as that.
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
	return strings.Clone(strings.ToValidUTF8(s, "")) // so that the longer text can be garbage-collected
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

// errRecorded is the error of Step for an attempt that the record has already.
var errRecorded = errors.New("is recorded already")
