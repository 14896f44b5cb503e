package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryconnect"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retrysql"
)

// twice is the policy of each layer.
var twice = retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: ms}}

// protocols start a service whose handler does the work, and return a client of it. No call may be made twice.
var protocols = map[string]func(t *testing.T, p retry.Policy, work func(context.Context) error) (call func(context.Context) error){
	"HTTP":    overHTTP,
	"gRPC":    overGRPC,
	"Connect": overConnect,
}

func overHTTP(t *testing.T, p retry.Policy, work func(context.Context) error) func(context.Context) error {
	base := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if err := work(r.Context()); err != nil {
			retryhttp.WriteError(w, err)
		}
	})
	client := (&retryhttp.Transport{Base: base, Policy: p}).Client()
	return func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://service.example/", strings.NewReader("order"))
		require.NoError(t, err)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		return retryhttp.CheckResponse(resp)
	}
}

// service is a gRPC service with a method that every gRPC module has.
type service struct {
	grpc_health_v1.UnimplementedHealthServer
	work func(context.Context) error
}

func (s service) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return &grpc_health_v1.HealthCheckResponse{}, s.work(ctx)
}

func overGRPC(t *testing.T, p retry.Policy, work func(context.Context) error) func(context.Context) error {
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(retrygrpc.UnaryServerInterceptor(nil)))
	grpc_health_v1.RegisterHealthServer(server, service{work: work})
	listener := bufconn.Listen(1 << 16)
	go func() { _ = server.Serve(listener) }()
	opts, err := retrygrpc.DialOptions(p, retrygrpc.Options{})
	require.NoError(t, err)
	conn, err := grpc.NewClient("passthrough:///service", append(opts,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
	})
	client := grpc_health_v1.NewHealthClient(conn)
	return func(ctx context.Context) error {
		_, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{})
		return err
	}
}

func overConnect(t *testing.T, p retry.Policy, work func(context.Context) error) func(context.Context) error {
	const procedure = "/service/Work"
	base := listen(t, connect.NewUnaryHandler(procedure,
		func(ctx context.Context, _ *connect.Request[emptypb.Empty]) (*connect.Response[emptypb.Empty], error) {
			return connect.NewResponse(&emptypb.Empty{}), work(ctx)
		}, connect.WithInterceptors(retryconnect.NewHandlerInterceptor(nil))).ServeHTTP)
	retries, err := retryconnect.NewInterceptor(p, retryconnect.Options{})
	require.NoError(t, err)
	client := connect.NewClient[emptypb.Empty, emptypb.Empty](&http.Client{Transport: base}, "http://service.example"+procedure,
		connect.WithInterceptors(retries))
	return func(ctx context.Context) error {
		_, err := client.CallUnary(ctx, connect.NewRequest(&emptypb.Empty{}))
		return err
	}
}

// listen serves handler in memory and returns a transport to it.
func listen(t *testing.T, handler http.HandlerFunc) http.RoundTripper {
	c := new(chain)
	t.Cleanup(c.close)
	return c.serveHTTP(handler)
}

// broken is a database that refuses connections, or whose answer to COMMIT is lost.
type broken struct {
	refused, lost error
	connections   *int
}

func (b broken) Connect(context.Context) (driver.Conn, error) {
	*b.connections++
	return b, b.refused
}
func (b broken) Driver() driver.Driver               { return nil }
func (b broken) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (b broken) Begin() (driver.Tx, error)           { return b, nil }
func (b broken) Commit() error                       { return b.lost }
func (b broken) Rollback() error                     { return nil }
func (b broken) Close() error                        { return nil }

// Whatever protocols are between a user and a database: if the answer to a COMMIT was lost, each layer knows that the
// work may have been done, and no layer repeats it. If the database refused the work, each layer knows that those
// below have given up, and none is in doubt.
func TestDoubtPassesThroughAChainOfProtocols(t *testing.T) {
	orders := [][]string{
		{"HTTP", "gRPC", "Connect"}, {"HTTP", "Connect", "gRPC"}, {"gRPC", "HTTP", "Connect"},
		{"gRPC", "Connect", "HTTP"}, {"Connect", "HTTP", "gRPC"}, {"Connect", "gRPC", "HTTP"},
	}
	for _, row := range []struct {
		name  string
		db    broken
		doubt bool
	}{
		{"the answer to a COMMIT is lost", broken{lost: io.ErrUnexpectedEOF}, true},
		{"the database refuses connections", broken{refused: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, false},
	} {
		for _, order := range orders {
			t.Run(row.name+", under "+strings.Join(order, " > "), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					connections := 0
					row.db.connections = &connections
					db := sql.OpenDB(row.db)
					defer db.Close()
					call := func(ctx context.Context) error {
						return retrysql.Tx(ctx, db, twice, nil, func(context.Context, *retrysql.Txn) error { return nil })
					}
					var failed []error // of each layer, SQL first
					for i := range order {
						below := call
						call = protocols[order[len(order)-1-i]](t, twice, func(ctx context.Context) error {
							err := below(ctx)
							failed = append(failed, err)
							return err
						})
					}
					err := retry.Do(t.Context(), twice, call)
					failed = append(failed, err)
					if row.doubt {
						require.Equal(t, 1, connections)
						require.Len(t, failed, 4, "each layer has made one call")
					}
					for i, err := range failed {
						require.Equal(t, row.doubt, retry.IsAmbiguous(err), "layer %d above SQL: %v", i, err)
						require.True(t, row.doubt || retry.IsGivenUp(err), "layer %d above SQL: %v", i, err)
					}
				})
			})
		}
	}
}
