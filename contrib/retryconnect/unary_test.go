package retryconnect_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryconnect"
	"github.com/retrygo/retry/contrib/retryrpc"
)

func TestACallIsRepeatedUntilItSucceeds(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		s := &server{unary: func(_ context.Context, n int, req *request) (string, error) {
			if n < 4 {
				return "", connect.NewError(connect.CodeUnavailable, nil)
			}
			return req.Msg.GetValue() + " pong", nil
		}}
		unary, _ := s.start(t, protocol, upTo(5), retryconnect.Options{})
		answer, err := ping(t.Context(), unary)
		require.NoError(t, err)
		require.Equal(t, "ping pong", answer, "each attempt brings the request")
		require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, s.waits())
	})
}

// TestWhatIsRepeated checks the table of the package documentation.
func TestWhatIsRepeated(t *testing.T) {
	type repeated struct{ byDefault, ifIdempotent, optedIn, both bool }
	never, always, optIn := repeated{}, repeated{true, true, true, true}, repeated{false, false, true, true}
	for code, want := range map[connect.Code]repeated{
		connect.CodeUnavailable:        always,
		connect.CodeResourceExhausted:  optIn,
		connect.CodeAborted:            optIn,
		connect.CodeDeadlineExceeded:   {false, true, false, true},
		connect.CodeCanceled:           never,
		connect.CodeInternal:           {false, false, false, true},
		connect.CodeUnknown:            {false, false, false, true},
		connect.CodeDataLoss:           {false, false, false, true},
		connect.CodeFailedPrecondition: never,
		connect.CodeInvalidArgument:    optIn,
		connect.CodeNotFound:           optIn,
		connect.CodeAlreadyExists:      optIn,
		connect.CodePermissionDenied:   optIn,
		connect.CodeUnauthenticated:    optIn,
		connect.CodeOutOfRange:         optIn,
		connect.CodeUnimplemented:      optIn,
	} {
		t.Run(code.String(), func(t *testing.T) {
			inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
				attempts := func(o retryconnect.Options, more ...connect.ClientOption) bool {
					s := fails(code)
					unary, stream := s.start(t, protocol, upTo(2), o, more...)
					_, err := ping(t.Context(), unary)
					require.Equal(t, code, connect.CodeOf(err))
					n := s.requests()
					_, err = read(t.Context(), stream)
					require.Equal(t, code, connect.CodeOf(err))
					require.Equal(t, 2*n, s.requests(), "a stream without a message is repeated alike")
					return n == 2
				}
				opted := retryconnect.Options{RetryCodes: []connect.Code{code}}
				if opted.Validate() != nil {
					opted.RetryCodes = nil
				}
				require.Equal(t, want, repeated{
					attempts(retryconnect.Options{}), attempts(retryconnect.Options{}, idempotent),
					attempts(opted), attempts(opted, idempotent),
				})
				opted.Idempotent = func(procedure string) bool { return strings.HasPrefix(procedure, "/test.Service/") }
				require.Equal(t, want.both, attempts(opted), "as Options say")
			})
		})
	}
}

func TestAStatusThatIsNoAnswerOfConnects(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		for status, want := range map[int]connect.Code{
			400: connect.CodeInternal, 401: connect.CodeUnauthenticated, 403: connect.CodePermissionDenied, 404: connect.CodeUnimplemented,
			408: connect.CodeUnknown, 409: connect.CodeUnknown, 500: connect.CodeUnknown, 501: connect.CodeUnknown,
			429: connect.CodeUnavailable, 502: connect.CodeUnavailable, 503: connect.CodeUnavailable, 504: connect.CodeUnavailable,
		} {
			s := &server{}
			proxy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.record(r.Header)
				w.WriteHeader(status)
			})
			unary, _ := s.over(t, start(t, proxy), protocol, upTo(2), retryconnect.Options{})
			_, err := ping(t.Context(), unary)
			require.Equal(t, want, connect.CodeOf(err), status)
			require.Equal(t, want == connect.CodeUnavailable, s.requests() == 2, status)
		}
	})
}

func TestAnAnswerIsNoFailure(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		for code := connect.CodeCanceled; code <= connect.CodeUnauthenticated; code++ {
			budget := retry.NewBudget(retry.BudgetConfig{Ratio: 1, Burst: 10, Initial: -1})
			p := upTo(2)
			p.Budget = budget
			var ends []retry.Status
			p.Observe = func(_ context.Context, e retry.Event) { ends = append(ends, e.Decision.Status) }
			s := fails(code)
			unary, _ := s.start(t, protocol, p, retryconnect.Options{})
			_, err := ping(t.Context(), unary)
			answered := errors.As(err, new(*retryrpc.AnswerError))
			switch code {
			case connect.CodeInvalidArgument, connect.CodeNotFound, connect.CodeAlreadyExists, connect.CodePermissionDenied,
				connect.CodeUnauthenticated, connect.CodeFailedPrecondition, connect.CodeAborted, connect.CodeOutOfRange:
				require.True(t, answered, code)
				require.IsType(t, &connect.Error{}, errors.Unwrap(err), "connect's own error")
				require.Equal(t, []retry.Status{retry.Succeeded}, ends)
				require.Equal(t, 1.0, budget.Tokens())
			default:
				require.False(t, answered, code)
				require.Equal(t, retry.DeadLettered, ends[len(ends)-1], code)
				require.Zero(t, budget.Tokens(), code)
			}
		}
	})
}

func TestThePolicysClassifyGoesFirst(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		p := upTo(2)
		p.Classify = retryconnect.OnCode(retry.Retryable, connect.CodeNotFound)
		s := fails(connect.CodeNotFound)
		unary, _ := s.start(t, protocol, p, retryconnect.Options{})
		_, err := ping(t.Context(), unary)
		require.Equal(t, 2, s.requests())
		require.ErrorIs(t, err, retry.AttemptsExhausted, "what is to be repeated is not an answer")

		p.Classify = retryconnect.OnCode(retry.Terminal, connect.CodeUnavailable)
		s = fails(connect.CodeUnavailable)
		unary, _ = s.start(t, protocol, p, retryconnect.Options{})
		_, err = ping(t.Context(), unary)
		require.Equal(t, 1, s.requests())
		require.ErrorIs(t, err, retry.TerminalError)
		require.EqualError(t, err, "unavailable: no", "the text is connect's")
	})
}

func TestEachAttemptHasAHeaderOfItsOwn(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		var maps []http.Header
		beneath := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
				n := len(maps)
				maps = append(maps, req.Header())
				req.Header().Add("Trace", fmt.Sprint(n))
				if n == 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 9999*time.Millisecond)
					defer cancel()
				}
				return next(ctx, req)
			}
		})
		s := &server{unary: func(_ context.Context, n int, _ *request) (string, error) {
			if n < 3 {
				return "", connect.NewError(connect.CodeUnavailable, nil)
			}
			return "pong", nil
		}}
		unary, _ := s.start(t, protocol, upTo(3), retryconnect.Options{}, connect.WithInterceptors(beneath))
		req := connect.NewRequest(wrapperspb.String("ping"))
		req.Header().Set("Grpc-Previous-Rpc-Attempts", "7")
		_, err := unary.CallUnary(t.Context(), req)
		require.NoError(t, err)
		timeout := func(h http.Header) string { return h.Get("Connect-Timeout-Ms") + h.Get("Grpc-Timeout") }
		require.Contains(t, timeout(s.headers[0]), "9999")
		for n, h := range s.headers {
			require.Equal(t, []string{fmt.Sprint(n)}, h["Trace"])
			require.Equal(t, []string{"", "1", "2"}[n], h.Get("Grpc-Previous-Rpc-Attempts"), "what the caller has passed on is not an attempt's")
			if n > 0 {
				require.Empty(t, timeout(h), "the timeout of an attempt before is not sent")
				require.NotEqual(t, maps[n-1], maps[n])
			}
		}
		require.Equal(t, "7", req.Header().Get("Grpc-Previous-Rpc-Attempts"), "the caller's is not touched")
		require.Empty(t, req.Header().Get("Trace")+timeout(req.Header()))
	})
}

func TestAnAttemptTimeout(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		p := upTo(3)
		p.AttemptTimeout = 500 * time.Millisecond
		var events []retry.Event
		p.Observe = func(_ context.Context, e retry.Event) { events = append(events, e) }
		s := answers(func(ctx context.Context) error { <-time.After(time.Minute); return ctx.Err() })
		unary, stream := s.start(t, protocol, p, retryconnect.Options{}, idempotent)
		for name, call := range map[string]func(context.Context) error{"unary": pings(unary), "stream": reads(stream)} {
			events, s.headers, s.at = nil, nil, nil
			err := call(t.Context())
			require.Equal(t, []time.Duration{1500 * time.Millisecond, 2500 * time.Millisecond}, s.waits(), name)
			require.ErrorIs(t, err, retry.AttemptsExhausted)
			require.Len(t, events, 4)
			for _, err := range []error{err, events[0].Attempt.Err, events[3].Err} {
				require.ErrorIs(t, err, retry.ErrAttemptTimeout, name)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.NotErrorIs(t, err, context.Canceled)
				require.Equal(t, connect.CodeDeadlineExceeded, connect.CodeOf(err))
				require.ErrorContains(t, err, "(attempt timeout)")
				var failed *retryrpc.AttemptError
				require.ErrorAs(t, err, &failed)
				require.Equal(t, retryrpc.AttemptTimeout, failed.Origin)
			}
		}
		time.Sleep(2 * time.Minute) // virtual: the handlers end
		s.headers = nil
		unary, _ = s.start(t, protocol, p, retryconnect.Options{})
		_, err := ping(t.Context(), unary)
		require.ErrorIs(t, err, retry.TerminalError, "not of a procedure that is not idempotent: it may have taken effect")
		require.Equal(t, 1, s.requests())
		time.Sleep(2 * time.Minute)
	})
}

func TestACallerWhoLeaves(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		s := fails(connect.CodeUnavailable)
		unary, _ := s.start(t, protocol, upTo(3), retryconnect.Options{})
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		time.AfterFunc(2*time.Second, func() { cancel(gone) })
		_, err := ping(ctx, unary)
		require.Equal(t, connect.CodeCanceled, connect.CodeOf(err), "not UNAVAILABLE, as the last attempt")
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, gone)
		var run *retry.Error
		require.ErrorAs(t, err, &run)
		require.Equal(t, connect.CodeUnavailable, connect.CodeOf(run.Last))

		inTime, cancelTimer := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancelTimer()
		_, err = ping(inTime, unary)
		require.ErrorIs(t, err, retry.DeadlineTooNear)
		require.Equal(t, connect.CodeUnavailable, connect.CodeOf(err), "the last attempt's: the caller can still act")

		cancelTimer()
		_, err = ping(inTime, unary)
		require.Equal(t, connect.CodeCanceled, connect.CodeOf(err))

		late, cancelLate := context.WithTimeout(t.Context(), -1)
		defer cancelLate()
		_, err = ping(late, unary)
		require.Equal(t, connect.CodeDeadlineExceeded, connect.CodeOf(err))
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestTheCallersDeadlineIsNotTheAttempts(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		s := &server{unary: func(ctx context.Context, _ int, _ *request) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}}
		p := upTo(3)
		p.AttemptTimeout = time.Minute
		unary, _ := s.start(t, protocol, p, retryconnect.Options{}, idempotent)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := ping(ctx, unary)
		require.Equal(t, 1, s.requests())
		require.Equal(t, connect.CodeDeadlineExceeded, connect.CodeOf(err))
		require.NotErrorIs(t, err, retry.ErrAttemptTimeout)
		var failed *retryrpc.AttemptError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, retryrpc.Caller, failed.Origin)
	})
}

func TestAMessageThatIsTooLargeIsNeverSentAgain(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		s := &server{}
		p, asked := upTo(3), 0
		p.Classify = func(err error) retry.Class { asked++; return retry.Retryable }
		o := retryconnect.Options{RetryCodes: []connect.Code{connect.CodeResourceExhausted}}
		unary, stream := s.start(t, protocol, p, o, connect.WithSendMaxBytes(2), idempotent)
		_, err := ping(t.Context(), unary)
		require.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err))
		require.ErrorIs(t, err, retry.TerminalError)
		require.ErrorContains(t, err, "(not repeated: local)")
		require.Equal(t, 1, asked)
		synctest.Wait()
		n := s.requests()
		require.LessOrEqual(t, n, 1, "in its own protocol connect 1.21 sends an empty request then, and discards the answer")
		_, err = read(t.Context(), stream)
		require.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err))
		synctest.Wait()
		require.Equal(t, n, s.requests())
	})
}

func TestOneLayerRepeats(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		inner, err := retryconnect.NewInterceptor(upTo(3), retryconnect.Options{})
		require.NoError(t, err)
		s := fails(connect.CodeUnavailable)
		unary, stream := s.start(t, protocol, upTo(3), retryconnect.Options{}, connect.WithInterceptors(inner))
		_, err = ping(t.Context(), unary)
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, 3, s.requests(), "the outermost interceptor alone")
		_, err = read(t.Context(), stream)
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, 6, s.requests())

		_, err = ping(retry.OneAttempt(t.Context()), unary)
		require.ErrorIs(t, err, retry.RetriesDisabled)
		require.Equal(t, 7, s.requests())
		_, err = read(retry.OneAttempt(t.Context()), stream)
		require.ErrorIs(t, err, retry.RetriesDisabled)
		require.Equal(t, 8, s.requests())
	})
}

func TestTheCallInfoIsTheLastAttempts(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		s := &server{unary: func(ctx context.Context, n int, _ *request) (string, error) {
			if n == 1 {
				return "", connect.NewError(connect.CodeUnavailable, nil)
			}
			info, _ := connect.CallInfoForHandlerContext(ctx)
			info.ResponseHeader().Set("Number", fmt.Sprint(n))
			return "pong", nil
		}}
		unary, _ := s.start(t, protocol, upTo(2), retryconnect.Options{})
		ctx, info := connect.NewClientContext(t.Context())
		info.RequestHeader().Set("Mine", "1")
		_, err := ping(ctx, unary)
		require.NoError(t, err)
		require.Equal(t, "2", info.ResponseHeader().Get("Number"))
		for _, h := range s.headers {
			require.Equal(t, "1", h.Get("Mine"))
		}
	})
}

func TestAGetIsRepeatedAsAGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var methods []string
		s := &server{unary: func(_ context.Context, n int, req *request) (string, error) {
			methods = append(methods, req.HTTPMethod())
			if n == 3 {
				return "", connect.NewNotModifiedError(nil)
			}
			return "", connect.NewError(connect.CodeDeadlineExceeded, nil)
		}}
		o := retryconnect.Options{RetryCodes: []connect.Code{connect.CodeUnknown}}
		unary, _ := s.start(t, nil, upTo(5), o, connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects))
		_, err := ping(t.Context(), unary)
		require.Equal(t, []string{"GET", "GET", "GET"}, methods)
		require.True(t, connect.IsNotModifiedError(err))
		require.IsType(t, &retryrpc.AnswerError{}, err, "304 is an answer, although its code is UNKNOWN")
	})
}
