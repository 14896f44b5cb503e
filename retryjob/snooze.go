package retryjob

import (
	"errors"
	"time"

	"github.com/retrygo/retry"
)

// Snooze returns an error with which a Handler puts its job off: the attempt does not count, and is due again after d. It
// is not a failure, so Observe and the budget do not see it. Record.PutOff counts it. The TTL goes on: if it would pass
// before the attempt is due again, the job is Expired at once. A d below 0 is 0, which means at once. If the job was
// canceled meanwhile, it ends. The error can be wrapped.
//
// A panic with the error is a failure. An error for which retry.IsAmbiguous reports true ends the job in doubt, even if
// it contains that of Snooze.
func Snooze(d time.Duration) error { return snooze(max(d, 0)) }

type snooze time.Duration

func (s snooze) Error() string { return "retryjob: put off for " + time.Duration(s).String() }

// snoozed returns the argument of Snooze. It reports false for any other error, for a panic, and for an error in doubt.
func snoozed(err error) (time.Duration, bool) {
	var panicked *PanicError
	if errors.As(err, &panicked) || retry.IsAmbiguous(err) {
		return 0, false
	}
	var s snooze
	ok := errors.As(err, &s)
	return time.Duration(s), ok
}
