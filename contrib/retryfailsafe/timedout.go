package retryfailsafe

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/retrygo/retry"
)

// timedOut is what an attempt ended with after its timeout. It has no context.Canceled inside, which would say that
// somebody has given the work up.
type timedOut struct{ err error }

func (t timedOut) Error() string   { return retry.ErrAttemptTimeout.Error() + ": " + t.err.Error() }
func (t timedOut) Unwrap() []error { return []error{retry.ErrAttemptTimeout, standIn{t.err}} }

// standIn answers for an error inside, but for context.Canceled. It has no Unwrap on purpose.
type standIn struct{ inside error }

func (s standIn) Error() string { return s.inside.Error() }

func (s standIn) Is(target error) bool {
	return target != context.Canceled && errors.Is(s.inside, target)
}

func (s standIn) As(target any) bool { return errors.As(s.inside, target) }

// remarked returns err with the mark and the hint that retry finds in the error from. A policy that waits for nothing but a
// hint tells them: its classifier is asked only where no mark has judged.
func remarked(err, from error) error {
	ask := retry.Policy{
		MaxAttempts: retry.Unlimited,
		MaxHint:     math.MaxInt64,
		Backoff:     retry.Backoff{Delays: []time.Duration{0}},
		Classify:    retry.Otherwise(retry.Retryable),
	}
	d := ask.Decide(retry.Progress{}, from, 0)
	if d.Status != retry.Waiting {
		return retry.Permanent(err)
	}
	err = retry.After(d.Delay, err)
	ask.Classify = retry.Otherwise(retry.Terminal)
	if ask.Decide(retry.Progress{}, from, 0).Status == retry.Waiting {
		err = retry.Transient(err)
	}
	return err
}
