package retryconnect_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryconnect"
	"github.com/retrygo/retry/retryhttp"
)

// The rows of "What an interceptor cannot see" in README.md.

func TestLostTheRetryAfterOfAProxy(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		s := &server{}
		proxy := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.record(r.Header)
			w.Header().Set("Retry-After", "30")
			w.WriteHeader(http.StatusTooManyRequests)
		})
		unary, _ := s.over(t, start(t, proxy), protocol, upTo(3), retryconnect.Options{})
		_, err := ping(t.Context(), unary)
		require.Equal(t, connect.CodeUnavailable, connect.CodeOf(err))
		require.Equal(t, []time.Duration{time.Second, 2 * time.Second}, s.waits(), "and not 30s")
	})
}

func TestLostThatAnAnswerHasBegun(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		s := &server{unary: func(ctx context.Context, _ int, _ *request) (string, error) {
			info, _ := connect.CallInfoForHandlerContext(ctx)
			info.ResponseHeader().Set("Work", "begun")
			return "", connect.NewError(connect.CodeUnavailable, nil)
		}}
		unary, _ := s.start(t, protocol, upTo(2), retryconnect.Options{})
		_, err := ping(t.Context(), unary)
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, 2, s.requests(), "retrygrpc would not repeat it")
	})
}

func TestLostTheOtherLayer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fails(connect.CodeUnavailable)
		plain := start(t, s.handler())
		repeats := &http.Client{Transport: &retryhttp.Transport{Base: plain.Transport, Policy: upTo(3)}}
		get := []connect.ClientOption{connect.WithHTTPGet(), connect.WithIdempotency(connect.IdempotencyNoSideEffects)}
		unary, _ := s.over(t, repeats, get, upTo(3), retryconnect.Options{})
		_, err := ping(t.Context(), unary)
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, 9, s.requests(), "two layers multiply")

		s.headers = nil
		once := upTo(3)
		once.Classify = func(err error) retry.Class {
			if failed, ok := errors.AsType[*retryhttp.AttemptError](err); ok && failed.StatusCode != 0 {
				return retry.Terminal
			}
			return retry.Unknown
		}
		repeats.Transport = &retryhttp.Transport{Base: plain.Transport, Policy: once}
		_, err = ping(t.Context(), unary)
		require.ErrorIs(t, err, retry.AttemptsExhausted)
		require.Equal(t, 3, s.requests(), "a Classify that leaves every status to connect")
	})
}

func TestAConnectionThatIsResetIsRepeated(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	for _, protocol := range protocols {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			h := transport(func(*http.Request) (*http.Response, error) {
				calls++
				return nil, reset
			})
			unary, stream := (&server{}).over(t, h, protocol, upTo(3), retryconnect.Options{})
			_, err := ping(t.Context(), unary)
			require.Equal(t, connect.CodeCanceled, connect.CodeOf(err), "connect takes it for a cancellation")
			require.ErrorIs(t, err, retry.AttemptsExhausted)
			_, err = read(t.Context(), stream)
			require.ErrorIs(t, err, retry.AttemptsExhausted)
			require.Equal(t, 6, calls)
		})
	}
}

// TestAttemptsThatAreCutOffDoNotRace is for the race detector: the transport may still read the header of an attempt
// that its timeout has ended.
func TestAttemptsThatAreCutOffDoNotRace(t *testing.T) {
	s := fails(connect.CodeUnavailable)
	served := httptest.NewUnstartedServer(s.handler())
	served.Config.Protocols = new(http.Protocols)
	served.Config.Protocols.SetUnencryptedHTTP2(true)
	served.Start()
	defer served.Close()
	transport := &http.Transport{Protocols: served.Config.Protocols}
	defer transport.CloseIdleConnections()
	for _, protocol := range protocols {
		for i := range 60 {
			p := retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Delays: []time.Duration{0}}}
			p.AttemptTimeout = 50*time.Microsecond + time.Duration(i)*20*time.Microsecond
			interceptor, err := retryconnect.NewInterceptor(p, retryconnect.Options{})
			require.NoError(t, err)
			options := append([]connect.ClientOption{connect.WithInterceptors(interceptor), idempotent}, protocol...)
			c := connect.NewClient[text, text](&http.Client{Transport: transport}, served.URL+unaryProcedure, options...)
			req := connect.NewRequest(wrapperspb.String("ping"))
			for n := range 20 {
				req.Header().Set("X-"+string(rune('A'+n)), "1")
			}
			_, err = c.CallUnary(t.Context(), req)
			require.Error(t, err)
		}
	}
}
