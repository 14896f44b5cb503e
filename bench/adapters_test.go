package bench_test

import (
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"testing"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	_ "modernc.org/sqlite"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc"
	"github.com/retrygo/retry/contrib/retryotel"
	"github.com/retrygo/retry/retryslog"
	"github.com/retrygo/retry/retrysql"
)

func BenchmarkSQLUpdate(b *testing.B)    { alone(b, sqlTx(b, deposit)) }
func BenchmarkSQLEmpty(b *testing.B)     { alone(b, sqlTx(b, "")) }
func BenchmarkGRPCUnary(b *testing.B)    { alone(b, grpcUnary(b, 0)) }
func BenchmarkGRPCRetry(b *testing.B)    { alone(b, grpcUnary(b, 2)) }
func BenchmarkSlogFirstTry(b *testing.B) { alone(b, slogged(0)) }
func BenchmarkSlogRetry(b *testing.B)    { alone(b, slogged(3)) }
func BenchmarkOTelFirstTry(b *testing.B) { alone(b, metered(0)) }
func BenchmarkOTelRetry(b *testing.B)    { alone(b, metered(3)) }

const deposit = "UPDATE account SET balance = balance + 1"

// sqlTx are transactions of one statement, or of none if it is empty.
func sqlTx(tb testing.TB, statement string) []contender {
	bare, ours := openSQLite(tb), openSQLite(tb)
	return []contender{
		{"bare-tx", repeated(func() error {
			defer runtime.Gosched() // a transaction leaves a goroutine, which ends in time to be used again
			tx, err := bare.BeginTx(serving, nil)
			if err != nil {
				return err
			}
			if statement != "" {
				if _, err := tx.ExecContext(serving, statement); err != nil {
					return errors.Join(err, tx.Rollback())
				}
			}
			return tx.Commit()
		})},
		{"retrysql", repeated(func() error {
			defer runtime.Gosched()
			return retrysql.Tx(serving, ours, retry.Policy{}, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				if statement == "" {
					return nil
				}
				_, err := tx.ExecContext(ctx, statement)
				return err
			})
		})},
	}
}

// openSQLite returns a database with one row in a file. Nothing is written to the disk at once, so that its time does
// not hide ours.
func openSQLite(tb testing.TB) *sql.DB {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(tb.TempDir(), "db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(off)")
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, db.Close()) })
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE account (balance INTEGER); INSERT INTO account VALUES (0)")
	require.NoError(tb, err)
	return db
}

// grpcService answers UNAVAILABLE the given number of times before each success.
type grpcService struct {
	testgrpc.UnimplementedTestServiceServer
	failures, calls int
}

func (s *grpcService) UnaryCall(context.Context, *testgrpc.SimpleRequest) (*testgrpc.SimpleResponse, error) {
	if s.calls++; s.calls%(s.failures+1) != 0 {
		return nil, status.Error(codes.Unavailable, "flaky")
	}
	return &testgrpc.SimpleResponse{}, nil
}

// nativeRetry is grpc-go's own retry with the shortest wait that it takes.
const nativeRetry = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 3, "initialBackoff": "0.000000001s",
	"maxBackoff": "0.000000001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// grpcUnary are calls over a connection in memory that fail so many times before they succeed.
func grpcUnary(tb testing.TB, failures int) []contender {
	unary, err := retrygrpc.UnaryClientInterceptor(retry.Policy{MaxAttempts: 3, Backoff: atOnce}, retrygrpc.Options{})
	require.NoError(tb, err)
	over := func(name string, repeats int, options ...grpc.DialOption) contender {
		service := &grpcService{failures: failures}
		client := dial(tb, service, options...)
		request := &testgrpc.SimpleRequest{}
		work := repeated(func() (err error) {
			for range repeats {
				_, err = client.UnaryCall(serving, request)
			}
			return err
		})
		return contender{name, func(n int) {
			before := service.calls
			work(n)
			if service.calls-before != n*(failures+1) {
				panic(name + " made the wrong attempts")
			}
		}}
	}
	return []contender{
		over("bare-calls", failures+1, grpc.WithDisableRetry()),
		over("retrygrpc", 1, grpc.WithDisableRetry(), grpc.WithUnaryInterceptor(unary)),
		over("grpc-go", 1, grpc.WithDefaultServiceConfig(nativeRetry)),
	}
}

func dial(tb testing.TB, service testgrpc.TestServiceServer, more ...grpc.DialOption) testgrpc.TestServiceClient {
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer()
	testgrpc.RegisterTestServiceServer(server, service)
	go func() { _ = server.Serve(listener) }()
	tb.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:///memory", append(more,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))...)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, conn.Close()) })
	return testgrpc.NewTestServiceClient(conn)
}

var named = config{attempts: 8, policy: retry.Policy{Name: "charge", MaxAttempts: 8, Backoff: atOnce}}

// slogged are calls with so many failures that are logged as text, and, as the limit, without a log.
func slogged(failures int) []contender {
	logged := retryslog.Observe(slog.New(slog.NewTextHandler(io.Discard, nil)), retryslog.Options{})
	return failing(named, failures, observed("bare-do", nil), observed("retryslog", logged))
}

// metered are calls with so many failures under OpenTelemetry's SDK: with metrics, with a span for each run as well,
// and, as the limit, with neither.
func metered(failures int) []contender {
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	o := retryotel.Options{MeterProvider: meters, TracerProvider: sdktrace.NewTracerProvider()}
	observe, err := retryotel.Observe(o)
	if err != nil {
		panic(err)
	}
	span := loop{"retryotel-do", func(ctx context.Context, c config, fn attempt) func() error {
		return func() error { return retryotel.Do(ctx, c.policy, o, fn) }
	}}
	return failing(named, failures, observed("bare-do", nil), observed("retryotel", observe), span)
}

func observed(name string, observe func(context.Context, retry.Event)) loop {
	return loop{name, func(ctx context.Context, c config, fn attempt) func() error {
		c.policy.Observe = observe
		return ours.make(ctx, c, fn)
	}}
}
