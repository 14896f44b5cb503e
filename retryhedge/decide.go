package retryhedge

import (
	"time"

	"github.com/retrygo/retry"
)

// Action is the action of a Decision. The zero Action is not valid.
type Action uint8

// The actions.
const (
	Start Action = iota + 1 // start another call now
	Look                    // decide again after Decision.Delay, or when a call ends
	Await                   // start no further call, and decide again when a call ends
	End                     // end with the result of the call that ended last, and cancel the others
)

// String returns "start", "look", "await" or "end".
func (a Action) String() string {
	if a < Start || a > End {
		return "Action(?)"
	}
	return [...]string{"start", "look", "await", "end"}[a-1]
}

// Progress describes the calls of one attempt to Decide.
type Progress struct {
	Calls   int           // made so far, at least 1
	Running int           // of these, under way
	Since   time.Duration // since the newest call began
	Delay   time.Duration // the delay in force
	// Ended is the class of the error of the call that has just ended. It is retry.Unknown if the call succeeded, and
	// is read only if HasEnded.
	Ended    retry.Class
	HasEnded bool          // a call has just ended
	Hint     time.Duration // how long from now a server wants to be left alone, 0 for not at all
	Left     time.Duration // until the caller's deadline, 0 without one, negative if it has passed
	Gone     bool          // the caller has gone
	Refused  bool          // the budget has refused a hedge
}

// Decision is what Decide returns. Decisions are comparable with ==.
type Decision struct {
	Action Action
	Delay  time.Duration // above 0 for Look, otherwise 0
}

// Decide returns the next action, when a call has ended or when it is time to look at calls that are under way. It is
// pure and asks no budget. The caller takes a token for each Start.
//
// A call that succeeded or has a terminal error ends all. A retryable error waits for the calls that are under way, and
// ends all when the last of them has ended. Another call is started while one is under way, when the newest is older
// than the delay, unless the caller has gone, a call begun now would have less time left than the delay, the budget has
// refused one, or MaxCalls were made.
func (p Policy) Decide(pr Progress) Decision { return p.decide(&pr) }

func (p *Policy) decide(pr *Progress) Decision {
	switch {
	case pr.HasEnded && pr.Ended != retry.Retryable, pr.Running <= 0:
		return Decision{Action: End}
	case pr.Calls >= p.maxCalls(), pr.Gone, pr.Refused:
		return Decision{Action: Await}
	}
	wait := max(pr.Delay-pr.Since, pr.Hint, 0)
	switch {
	case pr.Left != 0 && pr.Left-wait <= pr.Delay: // most calls take up to the delay
		return Decision{Action: Await}
	case wait > 0:
		return Decision{Action: Look, Delay: wait}
	default:
		return Decision{Action: Start}
	}
}
