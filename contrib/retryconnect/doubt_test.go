package retryconnect_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/iotest"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryconnect"
)

// A call that is not safe to repeat, and has timed out or lost its answer, is made once, whatever runs are around it.
func TestDoubtOutlivesTheRun(t *testing.T) {
	hangs := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	says := func(code connect.Code) func(context.Context) error {
		return func(context.Context) error { return connect.NewError(code, errors.New("no")) }
	}
	with := func(code connect.Code, name, value string) func(context.Context) error {
		return func(context.Context) error {
			err := connect.NewError(code, errors.New("no"))
			err.Meta().Set(name, value)
			return err
		}
	}
	timeout := retry.Policy{AttemptTimeout: time.Second}
	for name, row := range map[string]struct {
		fails      func(ctx context.Context) error // in the handler
		policy     retry.Policy
		idempotent bool
		calls      int // of three outer attempts
	}{
		"the timeout of the attempt has passed":     {fails: hangs, policy: timeout, calls: 1},
		"an idempotent call may be repeated":        {fails: hangs, policy: timeout, idempotent: true, calls: 6},
		"the server's timeout has passed":           {fails: says(connect.CodeDeadlineExceeded), calls: 1},
		"INTERNAL of the server":                    {fails: says(connect.CodeInternal), calls: 1},
		"a handler's plain error, which is UNKNOWN": {fails: func(context.Context) error { return errors.New("no") }, calls: 1},
		"RESOURCE_EXHAUSTED":                        {fails: says(connect.CodeResourceExhausted), calls: 3},
		"an answer of a server that is in doubt":    {fails: with(connect.CodeAborted, "retry-in-doubt", "true"), calls: 1},
		"UNAVAILABLE of a server that is in doubt":  {fails: with(connect.CodeUnavailable, "retry-in-doubt", "true"), calls: 1},
		"UNAVAILABLE of a server that has given up": {fails: with(connect.CodeUnavailable, "grpc-retry-pushback-ms", "-1"), calls: 3},
		"the attempts are used up":                  {fails: says(connect.CodeUnavailable), calls: 6},
		"the server has begun to answer, and is lost": {fails: func(context.Context) error { panic(http.ErrAbortHandler) }, policy: retry.Policy{
			Classify: retryconnect.OnCode(retry.Terminal, connect.CodeUnavailable, connect.CodeInternal, connect.CodeUnknown),
		}, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
				s := answers(row.fails)
				o := retryconnect.Options{Idempotent: func(string) bool { return row.idempotent }}
				unary, stream := s.start(t, protocol, upTo(2).Or(row.policy), o)
				for name, call := range map[string]func(context.Context) error{"unary": pings(unary), "stream": reads(stream)} {
					s.headers = nil
					err := retry.Do(t.Context(), upTo(3), call)
					require.Equal(t, row.calls == 1, retry.IsAmbiguous(err), name)
					require.Equal(t, row.calls, s.requests(), name)
				}
			})
		})
	}
}

func TestAnAnswerThatIsCutIsInDoubt(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		for _, idempotent := range []bool{false, true} {
			s, calls := new(server), 0
			unary, _ := s.over(t, transport(func(r *http.Request) (*http.Response, error) {
				calls++
				_, _ = io.Copy(io.Discard, r.Body)
				return &http.Response{
					StatusCode: http.StatusOK, Header: http.Header{"Content-Type": r.Header["Content-Type"]}, Request: r,
					Body: io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF)),
				}, nil
			}), protocol, upTo(1), retryconnect.Options{Idempotent: func(string) bool { return idempotent }})
			err := retry.Do(t.Context(), upTo(3), pings(unary))
			require.Error(t, err)
			require.Equal(t, map[bool]int{false: 1, true: 3}[idempotent], calls, "%v", err)
		}
	})
}

// An interceptor that fails by itself has not sent the message, unless it has asked for that.
func TestAnErrorOfAnInterceptorBelowIsInDoubtOnlyIfTheMessageMayHaveBeenSent(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		for _, after := range []bool{false, true} {
			below := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
				return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
					if after {
						_, _ = next(ctx, req)
					}
					return nil, errors.New("no token")
				}
			})
			s := new(server)
			unary, _ := s.start(t, protocol, upTo(2), retryconnect.Options{}, connect.WithInterceptors(below))
			_, err := ping(t.Context(), unary)
			require.ErrorContains(t, err, "no token")
			require.Equal(t, after, retry.IsAmbiguous(err))
		}
	})
}

func TestARunAroundACallDoesNotRepeatAnAnswer(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		for _, row := range []struct {
			classify retry.Classifier
			calls    int
		}{{nil, 1}, {retryconnect.OnCode(retry.Retryable, connect.CodeNotFound), 3}} {
			s := fails(connect.CodeNotFound)
			unary, _ := s.start(t, protocol, upTo(2), retryconnect.Options{})
			p := upTo(3)
			p.Classify = row.classify
			err := retry.Do(t.Context(), p, pings(unary))
			require.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
			require.Equal(t, row.calls, s.requests())
		}
	})
}
