package retryrpc_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryrpc"
)

type options = retryrpc.Options[retryrpc.Code]

// call makes a call of an adapter whose attempts fail as f.
func call(t *testing.T, ctx context.Context, p retry.Policy, o options, idempotent bool, f retryrpc.Failure) (attempts int, err error) {
	layer, err := retryrpc.NewLayer(p, o, retryrpc.Errors{})
	require.NoError(t, err)
	c := &retryrpc.Call{Method: "/s/m", Idempotent: idempotent}
	require.NoError(t, layer.Begin(ctx, c))
	return attempts, c.Returned(retry.Do(ctx, c.Policy, func(ctx context.Context) error {
		attempts++
		return c.Failed(ctx, f)
	}))
}

// Each code with each fact about the attempt: what is repeated, what is an answer and what is in doubt, by the sentences
// of the package documentation.
func TestEveryFailureAgainstTheDocumentation(t *testing.T) {
	always := []retryrpc.Code{retryrpc.Unavailable}
	ifIdempotent := []retryrpc.Code{retryrpc.DeadlineExceeded}
	optedIfIdempotent := []retryrpc.Code{retryrpc.Internal, retryrpc.Unknown, retryrpc.DataLoss}
	never := []retryrpc.Code{retryrpc.Canceled, retryrpc.FailedPrecondition}
	answers := []retryrpc.Code{
		retryrpc.InvalidArgument, retryrpc.NotFound, retryrpc.AlreadyExists, retryrpc.PermissionDenied, retryrpc.Unauthenticated,
		retryrpc.FailedPrecondition, retryrpc.Aborted, retryrpc.OutOfRange,
	}
	mayHaveTakenEffect := []retryrpc.Code{
		retryrpc.Canceled, retryrpc.Unknown, retryrpc.Internal, retryrpc.DataLoss, retryrpc.DeadlineExceeded,
	}
	rows := 0
	for code := retryrpc.Canceled; code <= retryrpc.Unauthenticated; code++ {
		for bits := range 1 << 8 {
			bit := func(i int) bool { return bits>>i&1 == 1 }
			idempotent, opted, begun, unsent, told, hint, forbidden, says := bit(0), bit(1), bit(2), bit(3), bit(4), bit(5), bit(6), bit(7)
			if opted && slices.Contains(never, code) || unsent && (begun || told || says) {
				continue
			}
			rows++
			f := retryrpc.Failure{Err: errors.New("no"), Code: code, Begun: begun, Unsent: unsent, Told: told}
			o := options{}
			if opted {
				o.RetryCodes = []retryrpc.Code{code}
			}
			if hint {
				f.Hint = 1
			}
			if forbidden {
				f.Pushback = []string{"-1"}
			}
			if says {
				f.InDoubt = []string{"true"}
			}

			may := func(idempotent bool) bool {
				switch {
				case slices.Contains(never, code):
					return false
				case slices.Contains(always, code):
					return true
				case code == retryrpc.ResourceExhausted:
					return hint || opted
				case slices.Contains(ifIdempotent, code):
					return idempotent
				case slices.Contains(optedIfIdempotent, code):
					return opted && idempotent
				default:
					return opted
				}
			}
			byCode := may(idempotent)
			repeated := byCode && !forbidden && (idempotent || !begun && !says)
			answered := slices.Contains(answers, code) && !byCode && !forbidden && (idempotent || !says)
			failsAfterHeader := begun && (!slices.Contains(answers, code) || byCode && !forbidden)
			inDoubt := !idempotent && !repeated && !answered && !unsent && (says || failsAfterHeader ||
				slices.Contains(mayHaveTakenEffect, code) || code == retryrpc.Unavailable && !told)

			attempts, err := call(t, t.Context(), retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: 1}}, o, idempotent, f)
			name := fmt.Sprintf("%v idempotent=%v opted=%v begun=%v unsent=%v told=%v hint=%v forbidden=%v says=%v",
				code, idempotent, opted, begun, unsent, told, hint, forbidden, says)
			require.Equal(t, repeated, attempts == 2, name)
			answer, ok := err.(*retryrpc.AnswerError)
			require.Equal(t, answered, ok && answer.Err == f.Err, name)
			require.Equal(t, inDoubt, retry.IsAmbiguous(err), name)
		}
	}
	require.Greater(t, rows, 1000)
}

func TestTheErrorOfACall(t *testing.T) {
	failure := errors.New("no")
	one := retry.Policy{MaxAttempts: 1}
	_, err := call(t, t.Context(), one, options{}, false, retryrpc.Failure{Err: failure, Code: retryrpc.Unavailable, Told: true})
	var failed *retryrpc.CallError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, retryrpc.Unavailable, failed.Code)
	require.Same(t, failure, failed.Last)
	require.ErrorContains(t, err, "gave up after 1 attempt")

	_, err = call(t, t.Context(), one, options{}, false, retryrpc.Failure{Err: failure, Code: retryrpc.Internal, Told: true})
	require.EqualError(t, err, "no")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = call(t, ctx, one, options{}, false, retryrpc.Failure{})
	require.ErrorAs(t, err, &failed)
	require.Equal(t, retryrpc.Canceled, failed.Code)
	require.NoError(t, failed.Last)

	layer, err := retryrpc.NewLayer(retry.Policy{}, options{PolicyFor: func(string) retry.Policy { return retry.Policy{TTL: -1} }}, retryrpc.Errors{})
	require.NoError(t, err)
	err = layer.Begin(t.Context(), new(retryrpc.Call))
	require.ErrorAs(t, err, &failed)
	require.Equal(t, retryrpc.Internal, failed.Code)
	require.EqualError(t, err, "retry: Policy.TTL -1ns is negative")
}

func TestAHistoryKeepsTheShortFormAndTheCallerTheWhole(t *testing.T) {
	whole, short := errors.New("a very long story"), errors.New("a story")
	_, err := call(t, t.Context(), retry.Policy{MaxAttempts: 1}, options{}, false,
		retryrpc.Failure{Err: whole, Cut: short, Code: retryrpc.Unavailable, Told: true})
	var run *retry.Error
	require.ErrorAs(t, err, &run)
	require.ErrorIs(t, run.History[0].Err, short)
	require.NotErrorIs(t, run.History[0].Err, whole)
	require.ErrorIs(t, run.Last, whole)
}

// An adapter in 15 lines.
func ExampleLayer() {
	layer, err := retryrpc.NewLayer(retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 1}},
		retryrpc.Options[retryrpc.Code]{}, retryrpc.Errors{})
	if err != nil {
		fmt.Println(err)
		return
	}
	tries := 0
	invoke := func(context.Context) error { tries++; return errors.New("try later") } // of the library
	makeCall := func(ctx context.Context, method string) error {
		c := &retryrpc.Call{Method: method}
		if err := layer.Begin(ctx, c); err != nil {
			return err
		}
		return c.Returned(retry.Do(ctx, c.Policy, func(ctx context.Context) error {
			err := invoke(ctx)
			if err == nil {
				return nil
			}
			return c.Failed(ctx, retryrpc.Failure{Err: err, Code: retryrpc.Unavailable, Told: true})
		}))
	}
	err = makeCall(context.Background(), "/shop.Orders/Get")
	fmt.Println(tries, errors.Is(err, retry.AttemptsExhausted))
	// Output: 3 true
}
