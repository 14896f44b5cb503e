package retry

import (
	"context"

	"github.com/retrygo/retry/internal/attempt"
)

// AttemptNumber returns the number of the attempt whose context ctx is or descends from. It is 1 on the first attempt,
// and 2, 3, ... on retries. It is 1 if no run has marked ctx. A nested run counts from 1 again.
func AttemptNumber(ctx context.Context) int { return max(attempt.Number(ctx), 1) }

// LastAttempt reports whether ctx is of an attempt that no other one of its run follows by count, because MaxAttempts
// are used up, the policy is Disabled or the run is under OneAttempt. It is true for the only attempt of a run, and
// false if no run has marked ctx. A nested run answers for itself.
//
// The answer holds for the moment. After ResetAfter or Progressed another attempt can follow a last one. Stop, TTL,
// Budget and a terminal error can end the run earlier.
func LastAttempt(ctx context.Context) bool { return attempt.Last(ctx) }

// OneAttempt returns a context under which every run makes one attempt, whatever its policy, because other code repeats
// the work. A failure ends the run as FailedNoRetries(RetriesDisabled), and no budget is asked. All contexts derived
// from it inherit this, context.WithoutCancel included. OneAttempt(nil) is nil, which Do refuses.
func OneAttempt(ctx context.Context) context.Context { return attempt.One(ctx) }

// ErrAttemptTimeout is context.Cause of an attempt's context once AttemptTimeout has passed, unless the caller's own
// deadline came first or at the same instant. It matches context.DeadlineExceeded, which such a context's Err returns.
var ErrAttemptTimeout = attempt.ErrTimeout
