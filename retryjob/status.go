package retryjob

import (
	"fmt"
	"slices"

	"github.com/retrygo/retry"
)

// Status says where a job stands, the same over all engines:
//
//	Pending → Leased → Succeeded
//	                 → WaitingRetry → Leased → ...
//	                 → DeadLettered, Expired, Failed or Canceled
//
// A job that is not leased can also become Expired (its TTL is over before an attempt could start), DeadLettered (its
// last attempt was lost with its worker) and Canceled. A replay takes DeadLettered, Expired and Failed back to Pending.
type Status uint8

// The statuses. The last five are final.
const (
	Pending      Status = iota + 1 // its first attempt is yet to start
	Leased                         // an attempt is under way
	WaitingRetry                   // another attempt is due
	Succeeded                      // the handler returned nil
	DeadLettered                   // given up with work undone: see the Reason
	Expired                        // out of time: see the Reason
	Failed                         // failed under a policy that is Disabled; not a dead letter
	Canceled                       // somebody gave it up
)

var statusTexts = [...]string{
	"", "pending", "leased", "waiting_retry", "succeeded", "dead_letter", "expired", "failed_no_retries", "canceled",
}

// Statuses returns all statuses in the order of a job's life.
func Statuses() []Status {
	return []Status{Pending, Leased, WaitingRetry, Succeeded, DeadLettered, Expired, Failed, Canceled}
}

// String returns "pending", "leased", "waiting_retry", "succeeded", "dead_letter", "expired", "failed_no_retries" or
// "canceled", and "" for the zero Status.
func (s Status) String() string {
	if int(s) < len(statusTexts) {
		return statusTexts[s]
	}
	return fmt.Sprintf("Status(%d)", uint8(s))
}

// MarshalText returns the String of a status that is one.
func (s Status) MarshalText() ([]byte, error) {
	if s == 0 || int(s) >= len(statusTexts) {
		return nil, fmt.Errorf("retryjob: Status %d is not one of %q", uint8(s), statusTexts[1:])
	}
	return []byte(statusTexts[s]), nil
}

// UnmarshalText accepts what MarshalText returns.
func (s *Status) UnmarshalText(text []byte) error {
	for i, known := range statusTexts {
		if i > 0 && known == string(text) {
			*s = Status(i)
			return nil
		}
	}
	return fmt.Errorf("retryjob: Status %q is not one of %q", text, statusTexts[1:])
}

// Final reports whether nothing more happens to a job with this status, unless it is replayed.
func (s Status) Final() bool { return s >= Succeeded && s <= Canceled }

// Replayable reports whether Admin.Replay takes a job with this status: DeadLettered, Expired or Failed.
func (s Status) Replayable() bool { return s == DeadLettered || s == Expired || s == Failed }

// of returns the status of a job about which d was decided.
func of(d retry.Decision) Status {
	switch d.Status {
	case retry.Succeeded:
		return Succeeded
	case retry.Waiting:
		return WaitingRetry
	case retry.DeadLettered:
		return DeadLettered
	case retry.Expired:
		return Expired
	case retry.Failed:
		return Failed
	default:
		return Canceled
	}
}

// Reason is a retry.Reason with a text form, for JSON and flags. The zero Reason is none.
type Reason struct{ retry.Reason }

var reasons = []retry.Reason{
	retry.TerminalError, retry.AttemptsExhausted, retry.BudgetExhausted,
	retry.TTLElapsed, retry.DeadlinePassed, retry.DeadlineTooNear, retry.HintTooLong,
	retry.RetriesDisabled, retry.CallerCanceled,
}

// Reasons returns all reasons.
func Reasons() []retry.Reason { return slices.Clone(reasons) }

// String returns the text of the reason, "" for none.
func (r Reason) String() string { return r.Reason.Error() }

// IsZero reports whether there is none.
func (r Reason) IsZero() bool { return r.Reason == 0 }

// MarshalText returns the String.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText accepts the texts of retry.Reason, and "" for none.
func (r *Reason) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		r.Reason = 0
		return nil
	}
	for _, known := range reasons {
		if known.Error() == string(text) {
			r.Reason = known
			return nil
		}
	}
	return fmt.Errorf("retryjob: Reason %q is not one of %q", text, reasons)
}
