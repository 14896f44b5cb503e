package retrygrpc_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/contrib/retryrpc"
)

// answers are the codes that are not failures of a run.
var answers = []codes.Code{
	codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.FailedPrecondition,
	codes.Aborted, codes.OutOfRange, codes.Unauthenticated,
}

// funded is a policy of n attempts with a budget of 5 tokens, to which a success adds one.
func funded(attempts int, events *[]retry.Event) retry.Policy {
	p := upTo(attempts)
	p.Budget = retry.NewBudget(retry.BudgetConfig{Ratio: 1, Initial: 5})
	p.Observe = func(_ context.Context, e retry.Event) { *events = append(*events, e) }
	return p
}

// requireAnswer requires that the caller gets what gRPC has returned, as an answer.
func requireAnswer(t *testing.T, said, got error) {
	t.Helper()
	require.ErrorAs(t, got, new(*retryrpc.AnswerError))
	require.Same(t, said, errors.Unwrap(errors.Unwrap(got)))
	require.EqualError(t, got, said.Error())
	require.Equal(t, status.Convert(said).Proto(), status.Convert(got).Proto())
}

func TestAnAnswerIsNoFailureOfTheRun(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		t.Run(code.String(), func(t *testing.T) {
			said := status.Error(code, "no")
			var events []retry.Event
			p := funded(1, &events)
			_, err := invoke(t, t.Context(), p, retrygrpc.Options{}, []answer{{err: said}})
			if !slices.Contains(answers, code) {
				require.ErrorAs(t, err, new(*retry.Error))
				require.Equal(t, 5.0, p.Budget.Tokens(), "a failure funds nothing")
				require.Len(t, events, 2)
				return
			}
			requireAnswer(t, said, err)
			require.Equal(t, 6.0, p.Budget.Tokens())
			require.Len(t, events, 1)
			require.Equal(t, retry.Succeeded, events[0].Outcome.Status)
			require.NoError(t, events[0].Err)
		})
	}
	notFound := status.Error(codes.NotFound, "no")
	terminal := func(p *retry.Policy) {
		p.Classify = retrygrpc.OnCode(retry.Terminal, codes.Unavailable, codes.NotFound)
	}
	for _, row := range []struct {
		name    string
		set     func(*retry.Policy)
		o       retrygrpc.Options
		says    []answer
		calls   int
		failure error // zero: the answer, after which there is one more token
		tokens  float64
	}{
		{name: "an answer after a retry", says: []answer{{err: unavailable}, {err: notFound}}, calls: 2, tokens: 5},
		{name: "an answer that Classify calls terminal", set: terminal, says: []answer{{err: notFound}}, calls: 1, tokens: 6},
		{name: "an answer with a header", says: []answer{{err: notFound, header: true}}, calls: 1, tokens: 6},
		{name: "a code that is repeated by opt-in is a failure", o: retrygrpc.Options{RetryCodes: []codes.Code{codes.NotFound}},
			says: []answer{{err: notFound}}, calls: 2, failure: retry.AttemptsExhausted, tokens: 4},
		{name: "a code by opt-in that a header keeps from being repeated is a failure", o: retrygrpc.Options{RetryCodes: []codes.Code{codes.NotFound}},
			says: []answer{{err: notFound, header: true}}, calls: 1, failure: retry.TerminalError, tokens: 5},
		{name: "a code that a mark inside makes retryable is a failure", says: []answer{{err: retry.Transient(notFound)}}, calls: 2, failure: retry.AttemptsExhausted, tokens: 4},
		{name: "NOT_FOUND with a pushback that forbids the retry is a failure", says: []answer{{err: notFound, pushback: []string{"-1"}}}, calls: 1, failure: retry.TerminalError, tokens: 5},
		{name: "UNAVAILABLE with a pushback that forbids the retry is a failure", says: []answer{{err: unavailable, pushback: []string{"-1"}}}, calls: 1, failure: retry.TerminalError, tokens: 5},
		{name: "UNAVAILABLE that Classify calls terminal is a failure", set: terminal, says: []answer{{err: unavailable}}, calls: 1, failure: retry.TerminalError, tokens: 5},
	} {
		t.Run(row.name, func(t *testing.T) {
			var events []retry.Event
			p := funded(2, &events)
			if row.set != nil {
				row.set(&p)
			}
			calls, err := invoke(t, t.Context(), p, row.o, row.says)
			require.Equal(t, row.calls, calls)
			require.Equal(t, row.tokens, p.Budget.Tokens())
			outcome := events[len(events)-1].Outcome
			require.Equal(t, row.calls, outcome.Attempts)
			if row.failure == nil {
				requireAnswer(t, notFound, err)
				require.Equal(t, retry.Succeeded, outcome.Status)
			} else {
				require.ErrorIs(t, err, row.failure)
			}
		})
	}
}

func TestAnAnswerIsNoFailureOfAStream(t *testing.T) {
	for _, headerFirst := range []bool{false, true} {
		var events []retry.Event
		p := funded(2, &events)
		service := &scripted{output: func(call int, s testgrpc.TestService_StreamingOutputCallServer) error {
			if call == 1 {
				return unavailable
			}
			s.SetTrailer(metadata.Pairs("t", "2"))
			return status.Error(codes.NotFound, "none")
		}}
		var trailer metadata.MD
		s, err := serve(t, service, p, retrygrpc.Options{}).StreamingOutputCall(bounded(t), &testgrpc.StreamingOutputCallRequest{},
			grpc.Trailer(&trailer))
		require.NoError(t, err)
		if headerFirst {
			header, err := s.Header()
			require.NoError(t, err)
			require.Nil(t, header)
		}
		for range 2 {
			_, err = s.Recv()
			require.EqualError(t, err, "rpc error: code = NotFound desc = none")
			require.False(t, errors.As(err, new(*retry.Error)))
		}
		require.Equal(t, 5.0, p.Budget.Tokens(), "a retry and a success")
		require.Len(t, events, 2)
		require.Equal(t, retry.Succeeded, events[1].Outcome.Status)
		require.Equal(t, []string{"2"}, trailer.Get("t"))
		require.Equal(t, []string{"2"}, s.Trailer().Get("t"))
	}
	t.Run("the error of a stream that could not be made can be an answer", func(t *testing.T) {
		refused := status.Error(codes.Unauthenticated, "no token")
		var events []retry.Event
		var trailer metadata.MD
		s := openBy(t, t.Context(), funded(2, &events), func(context.Context, ...grpc.CallOption) (grpc.ClientStream, error) {
			return nil, refused
		}, grpc.Trailer(&trailer))
		require.NoError(t, s.SendMsg("request"))
		requireAnswer(t, refused, s.RecvMsg(nil))
		require.Nil(t, s.Trailer())
		require.Nil(t, trailer)
		require.Len(t, events, 1)
		require.Equal(t, retry.Succeeded, events[0].Outcome.Status)
	})
}
