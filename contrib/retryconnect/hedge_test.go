package retryconnect_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryconnect"
	"github.com/retrygo/retry/retryhedge"
)

// hedges is the interceptor of hedges as an option of a client.
func hedges(t *testing.T, h retryhedge.Policy, o retryconnect.Options) connect.ClientOption {
	t.Helper()
	interceptor, err := retryconnect.NewHedgeInterceptor(h, o)
	require.NoError(t, err)
	return connect.WithInterceptors(interceptor)
}

func TestHedges(t *testing.T) {
	const ms = time.Millisecond
	type timed struct {
		after    time.Duration
		code     connect.Code // 0 for an answer
		pushback string
	}
	for _, row := range []struct {
		name    string
		answers []timed
		change  func(*retryhedge.Policy, *retryconnect.Options)
		unsafe  bool // the procedure is not declared idempotent
		waits   []time.Duration
		took    time.Duration
		won     string // "" for an error
	}{
		{name: "a fast call has no hedge", answers: []timed{{after: 10 * ms}}, took: 10 * ms, won: "1"},
		{name: "the hedge of a slow one wins", answers: []timed{{after: time.Second}, {after: 10 * ms}},
			waits: []time.Duration{50 * ms}, took: 60 * ms, won: "2"},
		{name: "the first wins after all", answers: []timed{{after: 70 * ms}, {after: time.Second}},
			waits: []time.Duration{50 * ms}, took: 70 * ms, won: "1"},
		{name: "an answer ends both", answers: []timed{{after: time.Second}, {10 * ms, connect.CodeNotFound, ""}},
			waits: []time.Duration{50 * ms}, took: 60 * ms},
		{name: "unavailable waits for the other", answers: []timed{{after: 200 * ms}, {10 * ms, connect.CodeUnavailable, ""}},
			waits: []time.Duration{50 * ms}, took: 200 * ms, won: "1"},
		{name: "a negative pushback ends both", answers: []timed{{after: 200 * ms}, {10 * ms, connect.CodeUnavailable, "-1"}},
			waits: []time.Duration{50 * ms}, took: 60 * ms},
		{name: "a pushback delays the next hedge",
			answers: []timed{{after: time.Second}, {10 * ms, connect.CodeUnavailable, "300"}, {after: 10 * ms}},
			change:  func(h *retryhedge.Policy, _ *retryconnect.Options) { h.MaxCalls = 3 },
			waits:   []time.Duration{50 * ms, 310 * ms}, took: 370 * ms, won: "3"},
		{name: "an attempt whose calls both fail is repeated",
			answers: []timed{{100 * ms, connect.CodeUnavailable, ""}, {10 * ms, connect.CodeUnavailable, ""}, {after: 10 * ms}},
			waits:   []time.Duration{50 * ms, 1050 * ms}, took: 1110 * ms, won: "3"},
		{name: "a procedure that is not idempotent has no hedge", answers: []timed{{after: time.Second}}, unsafe: true, took: time.Second, won: "1"},
		{name: "a procedure that Options declare idempotent has a hedge", answers: []timed{{after: time.Second}, {after: 10 * ms}}, unsafe: true,
			change: func(_ *retryhedge.Policy, o *retryconnect.Options) { o.Idempotent = func(string) bool { return true } },
			waits:  []time.Duration{50 * ms}, took: 60 * ms, won: "2"},
	} {
		t.Run(row.name, func(t *testing.T) {
			inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
				s := &server{unary: func(ctx context.Context, n int, _ *request) (string, error) {
					answer := row.answers[n-1]
					select {
					case <-time.After(answer.after):
					case <-ctx.Done():
						return "", ctx.Err()
					}
					if answer.code == 0 {
						return strconv.Itoa(n), nil
					}
					err := connect.NewError(answer.code, errors.New("no"))
					if answer.pushback != "" {
						err.Meta().Set("Grpc-Retry-Pushback-Ms", answer.pushback)
					}
					return "", err
				}}
				h, o := retryhedge.Policy{Delay: 50 * ms}, retryconnect.Options{}
				if row.change != nil {
					row.change(&h, &o)
				}
				more := []connect.ClientOption{hedges(t, h, o)}
				if !row.unsafe {
					more = append(more, idempotent)
				}
				unary, _ := s.start(t, protocol, upTo(2), retryconnect.Options{}, more...)
				began := time.Now()
				answer, err := ping(t.Context(), unary)
				require.Equal(t, row.took, time.Since(began))
				require.Equal(t, row.won, answer)
				require.Equal(t, row.won == "", err != nil)
				synctest.Wait()
				require.Equal(t, row.waits, s.waits())
				for i, header := range s.headers {
					require.Equal(t, s.at[i] > time.Second, header.Get("Grpc-Previous-Rpc-Attempts") == "1", i)
				}
			})
		})
	}
	_, err := retryconnect.NewHedgeInterceptor(retryhedge.Policy{Delay: -1}, retryconnect.Options{RetryCodes: []connect.Code{0}})
	var bad retry.FieldErrors
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad, 2)
}

// The interceptor of retries does not know that the procedure is idempotent, which only the hedges declare.
func TestAHedgedCallThatWasSentIsInDoubt(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		s := fails(connect.CodeInternal)
		o := retryconnect.Options{Idempotent: func(string) bool { return true }}
		unary, _ := s.start(t, protocol, upTo(2), retryconnect.Options{}, hedges(t, retryhedge.Policy{Delay: time.Second}, o))
		_, err := ping(t.Context(), unary)
		require.Equal(t, connect.CodeInternal, connect.CodeOf(err))
		require.True(t, retry.IsAmbiguous(err))
	})
}

// numbered answers each request with its number, also in a header, after the delays.
func numbered(delays ...time.Duration) *server {
	return &server{unary: func(ctx context.Context, n int, _ *request) (string, error) {
		select {
		case <-time.After(delays[n-1]):
		case <-ctx.Done():
		}
		info, _ := connect.CallInfoForHandlerContext(ctx)
		info.ResponseHeader().Set("Call", strconv.Itoa(n))
		return strconv.Itoa(n), nil
	}}
}

// connect writes into a CallInfo the header of whichever call it sends last, which is not always the one that wins.
func TestACallWithACallInfoIsNotHedged(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		s := numbered(time.Second, 0)
		unary, _ := s.start(t, protocol, upTo(2), retryconnect.Options{}, idempotent,
			hedges(t, retryhedge.Policy{Delay: 50 * time.Millisecond}, retryconnect.Options{}))
		ctx, info := connect.NewClientContext(t.Context())
		answer, err := ping(ctx, unary)
		require.NoError(t, err)
		require.Equal(t, 1, s.requests())
		require.Equal(t, answer, info.ResponseHeader().Get("Call"))
	})
}

// The response that wins has its own header.
func TestHeaderAndMessageOfAHedgedCallAreOfOneCall(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		s := numbered(time.Second, 10*time.Millisecond)
		unary, _ := s.start(t, protocol, upTo(2), retryconnect.Options{}, idempotent,
			hedges(t, retryhedge.Policy{Delay: 50 * time.Millisecond}, retryconnect.Options{}))
		resp, err := unary.CallUnary(t.Context(), connect.NewRequest(wrapperspb.String("ping")))
		require.NoError(t, err)
		require.Equal(t, "2", resp.Msg.GetValue())
		require.Equal(t, "2", resp.Header().Get("Call"))
		require.Equal(t, 2, s.requests())
	})
}

// Of two interceptors of hedges in one client the inner one makes none: there are two calls, not four.
func TestOneLayerHedges(t *testing.T) {
	inEach(t, func(t *testing.T, protocol []connect.ClientOption) {
		s := answers(func(ctx context.Context) error {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
			}
			return nil
		})
		once := hedges(t, retryhedge.Policy{Delay: time.Second}, retryconnect.Options{})
		unary, _ := s.start(t, protocol, upTo(1), retryconnect.Options{}, idempotent, once, once)
		_, err := ping(t.Context(), unary)
		require.NoError(t, err)
		require.Equal(t, 2, s.requests())
	})
}
