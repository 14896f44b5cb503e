package retrygrpc_test

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/retryhedge"
)

// grpc-go says of OnFinish that it is called once, at the end of a call, with its status: so it is with attempts, too.
func TestOnFinishIsCalledOnceAtTheEndOfACall(t *testing.T) {
	notFound := status.Error(codes.NotFound, "no")
	canceled := func(t *testing.T) context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		return ctx
	}
	for name, row := range map[string]struct {
		answers []error // of the attempts; the last one repeats
		hangs   bool
		policy  retry.Policy
		options retrygrpc.Options
		caller  func(*testing.T) context.Context
		unread  bool // a stream that is not received from
		code    codes.Code
	}{
		"a success":                     {answers: []error{nil}},
		"a success after two retries":   {answers: []error{unavailable, unavailable, nil}},
		"an answer":                     {answers: []error{notFound}, code: codes.NotFound},
		"attempts that are used up":     {answers: []error{unavailable}, code: codes.Unavailable},
		"attempts that time out":        {hangs: true, policy: retry.Policy{AttemptTimeout: time.Second}, code: codes.DeadlineExceeded},
		"a caller who leaves":           {hangs: true, caller: canceled, code: codes.Canceled},
		"a caller who leaves in a wait": {answers: []error{unavailable}, policy: retry.Policy{Backoff: retry.Backoff{Base: time.Minute}}, caller: canceled, code: codes.Canceled},
		"a caller who does not read":    {answers: []error{nil}, caller: canceled, unread: true, code: codes.Canceled},
		"a caller who does not read what a gate defers": {
			answers: []error{nil}, policy: retry.Policy{Gate: func(context.Context) time.Duration { return 0 }},
			caller: canceled, unread: true, code: codes.Canceled,
		},
		"a policy that is refused": {
			answers: []error{nil}, options: retrygrpc.Options{PolicyFor: func(string) retry.Policy { return retry.Policy{TTL: -1} }},
			code: codes.Internal,
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, stream := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					if row.unread && !stream {
						return
					}
					attempts := 0
					service := serverOf(func(ctx context.Context) error {
						attempts++
						if row.hangs {
							return hangs(ctx)
						}
						return row.answers[min(attempts, len(row.answers))-1]
					})
					p := row.policy.Or(upTo(3))
					if row.options.PolicyFor != nil {
						p = retry.Policy{}
					}
					client := serve(t, service, p, row.options)
					ctx := t.Context()
					if row.caller != nil {
						ctx = row.caller(t)
					}
					var ended []codes.Code
					opts := []grpc.CallOption{grpc.WaitForReady(true), grpc.OnFinish(func(err error) { ended = append(ended, status.Code(err)) })}
					if row.unread {
						_, _ = client.StreamingOutputCall(ctx, &testgrpc.StreamingOutputCallRequest{}, opts...)
						<-ctx.Done()
					} else {
						require.Equal(t, row.code, status.Code(ask(ctx, client, stream, opts...)))
					}
					synctest.Wait()
					require.Equal(t, []codes.Code{row.code}, ended, "of a stream: %t", stream)
				})
			}
		})
	}
	t.Run("a stream whose channel is closed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			service := &scripted{output: func(_ int, s testgrpc.TestService_StreamingOutputCallServer) error {
				_ = s.Send(&testgrpc.StreamingOutputCallResponse{})
				return hangs(s.Context())
			}}
			opts, err := retrygrpc.DialOptions(upTo(3), retrygrpc.Options{})
			require.NoError(t, err)
			conn := channelTo(t, service, opts...)
			var ended []codes.Code
			s, err := testgrpc.NewTestServiceClient(conn).StreamingOutputCall(t.Context(), &testgrpc.StreamingOutputCallRequest{},
				grpc.WaitForReady(true), grpc.OnFinish(func(err error) { ended = append(ended, status.Code(err)) }))
			require.NoError(t, err)
			_, err = s.Recv()
			require.NoError(t, err)
			require.NoError(t, conn.Close())
			synctest.Wait()
			require.Equal(t, []codes.Code{codes.Canceled}, ended)
			_, err = s.Recv()
			require.NotEqual(t, io.EOF, err)
			require.Len(t, ended, 1)
		})
	})
	t.Run("a call with hedges", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hedges, err := retrygrpc.HedgeUnaryClientInterceptor(retryhedge.Policy{Delay: time.Second}, retrygrpc.Options{Idempotent: always})
			require.NoError(t, err)
			service := serverOf(func(ctx context.Context) error {
				select {
				case <-time.After(3 * time.Second):
				case <-ctx.Done():
				}
				return nil
			})
			client := serve(t, service, upTo(3), retrygrpc.Options{}, grpc.WithChainUnaryInterceptor(hedges))
			ended := 0
			_, err = client.UnaryCall(t.Context(), &testgrpc.SimpleRequest{}, grpc.WaitForReady(true), grpc.OnFinish(func(error) { ended++ }))
			require.NoError(t, err)
			synctest.Wait()
			require.Equal(t, 1, ended)
			require.EqualValues(t, 2, service.calls.Load())
		})
	})
}
