package retryjob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/retrygo/retry"
)

// Status is the state of a job, the same in all engines:
//
//	Pending → Leased → Succeeded
//	                 → WaitingRetry → Leased → ...
//	                 → DeadLettered, Expired, FailedNoRetries or Canceled
//
// A job that is not leased can also become Expired (its TTL ended before an attempt could start), DeadLettered (its
// last attempt was lost with its worker) or Canceled. A replay makes a DeadLettered, Expired or FailedNoRetries job Pending
// again.
type Status uint8

// The statuses. The last five are final. The zero Status is not a status of a job.
const (
	Pending         Status = iota + 1 // its first attempt has not started
	Leased                            // an attempt is under way
	WaitingRetry                      // another attempt is due
	Succeeded                         // the handler returned nil
	DeadLettered                      // the policy gave up: see the Reason
	Expired                           // out of time: see the Reason
	FailedNoRetries                   // failed under a policy that is Disabled; not a dead letter
	Canceled                          // its caller or an Admin canceled it
)

// decided has the retry.Status for each Status that follows from a decision.
var decided = [...]retry.Status{
	WaitingRetry: retry.WaitingRetry, Succeeded: retry.Succeeded, DeadLettered: retry.DeadLettered, Expired: retry.Expired,
	FailedNoRetries: retry.FailedNoRetries, Canceled: retry.Canceled,
}

// Statuses returns all statuses in the order of a job's life.
func Statuses() []Status {
	return []Status{Pending, Leased, WaitingRetry, Succeeded, DeadLettered, Expired, FailedNoRetries, Canceled}
}

// String returns "pending", "leased", "waiting_retry", "succeeded", "dead_letter", "expired", "failed_no_retries" or
// "canceled", and "" for the zero Status.
func (s Status) String() string {
	switch {
	case s == Pending:
		return "pending"
	case s == Leased:
		return "leased"
	case s > Canceled:
		return fmt.Sprintf("Status(%d)", uint8(s))
	default:
		return decided[s].String()
	}
}

// MarshalText returns the text of String, or a *retry.FieldError if s is not a status.
func (s Status) MarshalText() ([]byte, error) {
	if s < Pending || s > Canceled {
		return nil, s.unknown(strconv.Itoa(int(s)))
	}
	return []byte(s.String()), nil
}

// UnmarshalText sets s to the status with the given text. It returns a *retry.FieldError if there is none.
func (s *Status) UnmarshalText(text []byte) error {
	for _, known := range Statuses() {
		if known.String() == string(text) {
			*s = known
			return nil
		}
	}
	return s.unknown(strconv.Quote(string(text)))
}

func (Status) unknown(value string) error {
	var texts []string
	for _, known := range Statuses() {
		texts = append(texts, known.String())
	}
	return &retry.FieldError{Package: "retryjob", Field: "Status", Value: value, Rule: "is not one of " + strings.Join(texts, ", ")}
}

// Final reports whether a job with this status has ended. Only a replay changes it then.
func (s Status) Final() bool { return s >= Succeeded && s <= Canceled }

// Replayable reports whether Admin.Replay accepts a job with this status: DeadLettered, Expired or FailedNoRetries.
func (s Status) Replayable() bool { return s == DeadLettered || s == Expired || s == FailedNoRetries }

// of returns the status of a job after d.
func of(d retry.Decision) Status { return Status(slices.Index(decided[:], d.Status)) }

// Reasons returns all reasons in the order of their values.
func Reasons() []retry.Reason {
	var all []retry.Reason
	for r := retry.TerminalError; r <= retry.CallerCanceled; r++ {
		all = append(all, r)
	}
	return all
}
