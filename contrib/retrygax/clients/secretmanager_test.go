package clients_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	secretmanager "cloud.google.com/go/secretmanager/apiv1"
	"cloud.google.com/go/secretmanager/apiv1/secretmanagerpb"
	"github.com/googleapis/gax-go/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygax"
)

// secrets is a server whose AccessSecretVersion is a function.
type secrets struct {
	secretmanagerpb.UnimplementedSecretManagerServiceServer
	access func(ctx context.Context, call int64) error
	calls  atomic.Int64
}

func (s *secrets) AccessSecretVersion(ctx context.Context, _ *secretmanagerpb.AccessSecretVersionRequest) (*secretmanagerpb.AccessSecretVersionResponse, error) {
	return &secretmanagerpb.AccessSecretVersionResponse{}, s.access(ctx, s.calls.Add(1))
}

// accessed calls the server once with the client of Secret Manager, whose call options change can set.
func (s *secrets) accessed(t *testing.T, change func(*[]gax.CallOption)) error {
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	secretmanagerpb.RegisterSecretManagerServiceServer(server, s)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	conn, err := grpc.NewClient("passthrough:///test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	require.NoError(t, err)
	client, err := secretmanager.NewClient(t.Context(), option.WithGRPCConn(conn))
	require.NoError(t, err)
	defer client.Close()
	change(&client.CallOptions.AccessSecretVersion)
	_, err = client.AccessSecretVersion(t.Context(), &secretmanagerpb.AccessSecretVersionRequest{Name: "projects/p/secrets/s/versions/1"})
	return err
}

func hangs(ctx context.Context, _ int64) error { <-ctx.Done(); return ctx.Err() }

func TestTheClientKeepsItsTimeout(t *testing.T) {
	withOption, lost, err := retrygax.Option(retry.Policy{})
	require.NoError(t, err)
	require.Equal(t, []string{
		"Policy.Classify is not set: RESOURCE_EXHAUSTED without a hint ends the call, even if the client's own settings repeat it",
	}, lost)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := (&secrets{access: hangs}).accessed(t, func(o *[]gax.CallOption) { *o = append(*o, withOption) })
		require.Equal(t, codes.DeadlineExceeded, status.Code(err))
		require.Equal(t, time.Minute, time.Since(began))
	})
	t.Run("the option alone would remove the timeout", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			err := (&secrets{access: func(context.Context, int64) error {
				<-time.After(24 * time.Hour)
				return nil
			}}).accessed(t, func(o *[]gax.CallOption) { *o = []gax.CallOption{withOption} })
			require.NoError(t, err)
			require.Equal(t, 24*time.Hour, time.Since(began))
		})
	})
}

func TestThePolicyReplacesTheClientsRetries(t *testing.T) {
	for name, row := range map[string]struct {
		err   error
		calls int64
		took  time.Duration
	}{
		"UNAVAILABLE": {err: status.Error(codes.Unavailable, "no"), calls: 3, took: 300 * time.Millisecond},
		"RESOURCE_EXHAUSTED without a hint, which is lost": {err: status.Error(codes.ResourceExhausted, "no"), calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				withOption, _, err := retrygax.Option(retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 100 * time.Millisecond}})
				require.NoError(t, err)
				s := &secrets{access: func(context.Context, int64) error { return row.err }}
				began := time.Now()
				err = s.accessed(t, func(o *[]gax.CallOption) { *o = append(*o, withOption) })
				require.Equal(t, status.Code(row.err), status.Code(err))
				require.Equal(t, row.calls, s.calls.Load())
				require.Equal(t, row.took, time.Since(began))

				s = &secrets{access: func(_ context.Context, call int64) error {
					if call == 1 {
						return row.err
					}
					return nil
				}}
				require.NoError(t, s.accessed(t, func(*[]gax.CallOption) {}), "the client's own settings repeat both")
				require.Equal(t, int64(2), s.calls.Load())
			})
		})
	}
}
