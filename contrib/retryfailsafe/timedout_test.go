package retryfailsafe_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/fallback"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

var errBusy = errors.New("busy")

// What fn says of an attempt that AttemptTimeout ended counts as it does in retry.Do, to the nanosecond.
func TestATimedOutAttemptEndsAsInDo(t *testing.T) {
	for name, wrap := range map[string]func(error) error{
		"as it is":              func(err error) error { return err },
		"wrapped":               func(err error) error { return fmt.Errorf("reading: %w", err) },
		"permanent":             func(err error) error { return retry.Permanent(fmt.Errorf("op: %w", err)) },
		"permanent inside":      func(err error) error { return fmt.Errorf("op: %w", retry.Permanent(err)) },
		"permanent below a sum": func(err error) error { return errors.Join(retry.Permanent(errBusy), err) },
		"a classified error":    func(err error) error { return errors.Join(errBusy, err) },
		"classified by type":    func(err error) error { return &fs.PathError{Op: "read", Path: "x", Err: err} },
		"transient goes first":  func(err error) error { return retry.Transient(errors.Join(errBusy, err)) },
		"the outer mark wins":   func(err error) error { return retry.Transient(retry.Permanent(err)) },
		"a hint":                func(err error) error { return fmt.Errorf("op: %w", retry.After(time.Minute, err)) },
		"a hint and a mark":     func(err error) error { return retry.Transient(retry.After(time.Minute, errors.Join(errBusy, err))) },
		"a hint that is far":    func(err error) error { return retry.After(3*time.Hour, err) },
		"a mark of another run": func(err error) error { return &retry.Error{Last: retry.Permanent(err)} },
		"an answer of its own":  func(error) error { return errBusy },
	} {
		inBubble(t, name, func(t *testing.T) {
			p := retry.Policy{MaxAttempts: 3, AttemptTimeout: 50 * time.Millisecond, Backoff: retry.Backoff{Base: 100 * time.Millisecond}}
			p.Classify = retry.FirstOf(retry.StopOn(errBusy), retry.StopIf(func(err error) bool {
				var at *fs.PathError
				return errors.As(err, &at)
			}))
			var calls int
			fn := func(ctx context.Context) error {
				calls++
				<-ctx.Done()
				return wrap(ctx.Err())
			}
			start := time.Now()
			want := retry.Do(t.Context(), p, fn)
			wantCalls, wantTime := calls, time.Since(start)
			calls, start = 0, time.Now()
			err := failsafe.With(policy(t, p)).RunWithExecution(func(e failsafe.Execution[string]) error { return fn(e.Context()) })
			require.Equal(t, wantCalls, calls)
			require.Equal(t, wantTime, time.Since(start))
			var gaveUp, gaveUpThere *retry.Error
			require.ErrorAs(t, want, &gaveUpThere)
			require.ErrorAs(t, err, &gaveUp)
			require.Equal(t, gaveUpThere.Reason, gaveUp.Reason)
			require.Equal(t, errors.Is(want, errBusy), errors.Is(err, errBusy))
			require.NotErrorIs(t, err, context.Canceled)
			require.Equal(t, errors.Is(want, context.DeadlineExceeded), errors.Is(err, context.DeadlineExceeded))
		})
	}
}

// A timeout of an earlier attempt is not the ending of a run that is canceled later: there failsafe-go reports what the
// context ended with, as it does without a timeout.
func TestATimeoutIsNotTheEndingOfARunThatIsCanceledLater(t *testing.T) {
	for name, outside := range map[string]func() failsafe.Policy[string]{
		"fallback": func() failsafe.Policy[string] { return fallback.NewWithResult("cached") },
		"hedge":    func() failsafe.Policy[string] { return hedgepolicy.NewWithDelay[string](time.Hour) },
		"breaker":  func() failsafe.Policy[string] { return circuitbreaker.NewWithDefaults[string]() },
	} {
		for _, deferred := range []bool{false, true} {
			inBubble(t, fmt.Sprintf("%s, cancellation put off %v", name, deferred), func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(500*time.Millisecond, cancel)
				start := time.Now()
				_, err := failsafe.With(outside(), policy(t, limited(3, 50*time.Millisecond))).WithContext(ctx).GetWithExecution(func(e failsafe.Execution[string]) (string, error) {
					if deferred {
						defer e.(interface{ DeferCancel() func() }).DeferCancel()()
					}
					<-e.Canceled()
					require.Equal(t, 50*time.Millisecond, time.Since(start))
					return "", errDown
				})
				require.Equal(t, 500*time.Millisecond, time.Since(start))
				require.ErrorIs(t, err, context.Canceled)
				require.NotErrorIs(t, err, retry.ErrAttemptTimeout)
				if name != "breaker" {
					require.Equal(t, context.Canceled, err) // failsafe-go's own word
				}
			})
		}
	}
}

// If a hedge's attempt times out, another execution that has put its cancellation off keeps that.
func TestATimeoutLeavesADeferredCancellationDeferred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hedged := hedgepolicy.NewBuilderWithDelay[string](500 * time.Millisecond).CancelIf(func(head string, _ error) bool { return head != "" }).Build()
		start := time.Now()
		var kept context.Context
		var release func()
		result, err := failsafe.With(failsafe.Policy[string](hedged), policy(t, limited(2, time.Second))).GetWithExecution(func(e failsafe.Execution[string]) (string, error) {
			switch {
			case e.IsHedge(): // from 0.5s to 1.5s
				<-e.Canceled()
				return "", retry.Permanent(e.Context().Err())
			case time.Since(start) == 0:
				return "", errDown
			default: // from 1s to 1.8s
				kept, release = e.Context(), e.(interface{ DeferCancel() func() }).DeferCancel()
				<-time.After(800 * time.Millisecond)
				return "head", nil
			}
		})
		require.NoError(t, err)
		require.Equal(t, "head", result)
		require.Equal(t, 1800*time.Millisecond, time.Since(start))
		require.NoError(t, kept.Err())
		release()
		require.ErrorIs(t, kept.Err(), context.Canceled)
		synctest.Wait()
	})
}
