package retryjob

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// RecordVersion is the Version of the records that this package writes. It reads no other.
const RecordVersion = 1

// Record is what is known of a job: where it stands and what its attempts came to. It is data, for engines to keep beside
// the job. Only Stepper, Replay and Cancel change a Record, and no other way from one Status to the next exists, but that an
// engine may mark a record as Leased while an attempt is under way, which it then counts in Attempts.
type Record struct {
	Version     int    `json:"v"`
	JobID       string `json:"job"`
	Policy      string `json:"policy"`
	Correlation string `json:"correlation,omitempty"`
	// First is when the job was first due: the TTL counts from it. A replay sets it anew.
	First time.Time `json:"first"`
	// Replays is how often the job was replayed.
	Replays int    `json:"replays,omitempty"`
	Status  Status `json:"status"`
	// Reason is why the job ended without success; none otherwise.
	Reason Reason `json:"reason,omitzero"`
	// Due is when the next attempt is to start at the earliest; zero where none is to.
	Due time.Time `json:"due,omitzero"`
	// Ended is when the Status became final; zero until then.
	Ended time.Time `json:"ended,omitzero"`
	// Attempts is how many attempts have begun since First, lost ones included.
	Attempts int `json:"attempts"`
	// Prev is the backoff's own last delay, for DecorrelatedJitter.
	Prev time.Duration `json:"prev_ns,omitempty"`
	// Runs holds the attempts since First: the first one and the newest 63.
	Runs []Run `json:"runs,omitempty"`
}

// Run is the record of one attempt.
type Run struct {
	ID      string    `json:"id"`      // no other attempt has it, unless the job's ID is used again for another job
	Attempt int       `json:"attempt"` // from 1
	Start   time.Time `json:"start,omitzero"`
	End     time.Time `json:"end,omitzero"`    // zero for one that is under way and one that was lost with its worker
	Due     time.Time `json:"due,omitzero"`    // of the attempt after it; zero where none follows
	Status  Status    `json:"status"`          // what the attempt made of the job
	Reason  Reason    `json:"reason,omitzero"` // why, where Status is final and not Succeeded
	Err     string    `json:"err,omitempty"`   // the error's text, up to 1 KiB
	Code    string    `json:"code,omitempty"`  // what Stepper.Code has found, such as "503"
}

// NewRecord returns the record of a job that was taken at now.
func NewRecord(j *Job, now time.Time) Record {
	first := now
	if j.Due.After(now) {
		first = j.Due
	}
	return Record{
		Version: RecordVersion, JobID: j.ID, Policy: j.Policy, Correlation: j.Correlation,
		First: first, Status: Pending, Due: first,
	}
}

// RunID returns the ID of an attempt: the job's with the number of its replays and the attempt's.
func (r *Record) RunID(attempt int) string {
	return r.JobID + "." + strconv.Itoa(r.Replays) + "." + strconv.Itoa(attempt)
}

// Last returns the newest run, the zero Run where there is none.
func (r *Record) Last() Run {
	if len(r.Runs) == 0 {
		return Run{}
	}
	return r.Runs[len(r.Runs)-1]
}

// Changed returns when the job last came to its Status, as far as the record tells. A Pending job gives its First, which can lie
// ahead.
func (r *Record) Changed() time.Time {
	if !r.Ended.IsZero() {
		return r.Ended
	}
	for i := len(r.Runs) - 1; i >= 0; i-- {
		if run := &r.Runs[i]; !run.End.IsZero() {
			return run.End
		} else if !run.Start.IsZero() {
			return run.Start
		}
	}
	return r.First
}

// Replay makes a job that ended without success pending again: as it was enqueued first, with the same ID. Other jobs are
// refused with ErrNotReplayable.
func (r *Record) Replay(now time.Time) error {
	if !r.Status.Replayable() {
		return fmt.Errorf("%w: job %s is %s", ErrNotReplayable, r.JobID, r.Status)
	}
	*r = Record{
		Version: RecordVersion, JobID: r.JobID, Policy: r.Policy, Correlation: r.Correlation,
		First: now, Replays: r.Replays + 1, Status: Pending, Due: now,
	}
	return nil
}

// Cancel makes a job that is not final Canceled. An attempt that is under way is recorded by its Stepper.
func (r *Record) Cancel(now time.Time) error {
	if r.Status.Final() {
		return fmt.Errorf("retryjob: job %s is %s already", r.JobID, r.Status)
	}
	r.end(Canceled, retry.CallerCanceled, now)
	return nil
}

// Check returns nil or what is wrong with r: a Version or Status that this package does not know, no JobID, counts that are
// negative, a Due or Ended that does not go with the Status, Runs that are too many, out of order or beyond Attempts. Stepper asks it of each record that it is given.
func (r *Record) Check() error {
	switch {
	case r.Version != RecordVersion:
		return r.refuse("Version", r.Version, "is not 1")
	case r.Status < Pending || r.Status > Canceled:
		return r.refuse("Status", r.Status, "is not a status")
	case r.Attempts < 0:
		return r.refuse("Attempts", r.Attempts, "is negative")
	case r.Replays < 0:
		return r.refuse("Replays", r.Replays, "is negative")
	case r.JobID == "":
		return r.refuse("JobID", `""`, "is empty")
	case r.Prev < 0:
		return r.refuse("Prev", r.Prev, "is negative")
	case len(r.Runs) > keptRuns:
		return r.refuse("Runs", len(r.Runs), "are more than 64")
	case r.First.IsZero():
		return r.refuse("First", r.First, "is not set")
	case r.Status.Final() == r.Ended.IsZero():
		return r.refuse("Ended", r.Ended, "does not go with "+r.Status.String())
	case (r.Status == Pending || r.Status == WaitingRetry) == r.Due.IsZero():
		return r.refuse("Due", r.Due, "does not go with "+r.Status.String())
	}
	before := 0
	for _, run := range r.Runs {
		if run.Attempt <= before || run.Attempt > r.Attempts {
			return r.refuse("Runs", run.Attempt, "is not the next attempt, or beyond Attempts")
		}
		before = run.Attempt
	}
	return nil
}

func (r *Record) refuse(field string, value any, rule string) error {
	return fmt.Errorf("retryjob: Record.%s %v of job %q %s", field, value, r.JobID, rule)
}

// end makes the status final.
func (r *Record) end(s Status, reason retry.Reason, now time.Time) {
	r.Status, r.Reason, r.Due, r.Ended = s, Reason{reason}, time.Time{}, now
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
	if n := len(r.Runs); n > 0 && r.Runs[n-1].Attempt >= attempt {
		r.Runs = r.Runs[:n-1]
	}
}

// keptRuns is how many runs a record holds: the first and the newest 63, as Outcome.History does.
const keptRuns = 64

// note adds a run, or completes the one that is there for its attempt.
func (r *Record) note(run Run) {
	r.Attempts = max(r.Attempts, run.Attempt)
	if n := len(r.Runs); n > 0 && r.Runs[n-1].Attempt == run.Attempt {
		r.Runs[n-1] = run
		return
	}
	if len(r.Runs) == keptRuns {
		copy(r.Runs[1:], r.Runs[2:])
		r.Runs = r.Runs[:keptRuns-1]
	}
	r.Runs = append(r.Runs, run)
}

// outcome returns the record as the Outcome of a run of retry. last is the last attempt's error; of the others the text
// is left.
func (r *Record) outcome(d retry.Decision, now time.Time, last error) *retry.Outcome {
	o := &retry.Outcome{
		Policy: r.Policy, Status: d.Status, Reason: d.Reason, Attempts: r.Attempts, Elapsed: max(now.Sub(r.First), 0),
	}
	for i, run := range r.Runs {
		if run.Status == Succeeded {
			continue
		}
		err := error(recorded(run.Err))
		if i == len(r.Runs)-1 && last != nil {
			err = last
		}
		o.History = append(o.History, run.attempt(err))
	}
	return o
}

// attempt returns the run as an Attempt that failed with err.
func (run *Run) attempt(err error) retry.Attempt {
	a := retry.Attempt{Number: run.Attempt, Start: run.Start, Class: retry.Retryable, Err: err}
	if !run.End.IsZero() {
		a.Duration = max(run.End.Sub(run.Start), 0)
	}
	if run.Reason.Reason == retry.TerminalError {
		a.Class = retry.Terminal
	}
	if !run.Due.IsZero() && !run.End.IsZero() {
		a.Delay = max(run.Due.Sub(run.End), 0)
	}
	return a
}

// recorded is the text that is left of an error.
type recorded string

func (e recorded) Error() string { return string(e) }

// text returns what a Record keeps of err: up to 1 KiB of UTF-8 without NUL, which PostgreSQL's JSON cannot hold.
func text(err error) string { return clean(err.Error()) }

func clean(s string) string {
	s = strings.ReplaceAll(s, "\x00", "�")
	if len(s) > longestText {
		s = strings.Clone(s[:longestText]) // lest what is cut off is kept
	}
	return strings.ToValidUTF8(s, "")
}

// PanicError is the error of an attempt whose handler has panicked, or ended its goroutine by runtime.Goexit.
type PanicError struct {
	Value any    // what was panicked with, nil for runtime.Goexit
	Stack []byte // where, as debug.Stack gives it
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

// errRecorded is what Step returns for an attempt that the record has already.
var errRecorded = errors.New("is recorded already")
