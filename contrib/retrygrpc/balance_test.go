package retrygrpc_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	testgrpc "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/retrygo/retry/contrib/retrygrpc"
)

// backends serves f under so many addresses, and returns them with a resolver.
func backends(t *testing.T, f func(ctx context.Context, backend int) error, number int) (*manual.Resolver, []resolver.Address) {
	var state resolver.State
	for backend := range number {
		_, at := listen(t, "", serverOf(func(ctx context.Context) error { return f(ctx, backend) }))
		state.Addresses = append(state.Addresses, resolver.Address{Addr: at})
	}
	found := manual.NewBuilderWithScheme("backends")
	found.InitialState(state)
	return found, state.Addresses
}

func TestARetryBetweenTwoBackends(t *testing.T) {
	const calls = 400
	for _, row := range []struct {
		balancer string
		callers  int
		least    int64 // retries that reach the other backend
		most     int64
	}{
		{"pick_first", 1, 0, 0},
		{"round_robin", 1, calls, calls},
		{"round_robin", 8, 1, calls}, // the turns of the callers mix
	} {
		t.Run(fmt.Sprint(row.balancer, " ", row.callers), func(t *testing.T) {
			var firsts sync.Map // the backend of each call's first attempt
			var moved, retries atomic.Int64
			found, _ := backends(t, func(ctx context.Context, backend int) error {
				id := metadata.ValueFromIncomingContext(ctx, "id")[0]
				if retrygrpc.ClientAttempt(ctx) == 1 {
					firsts.Store(id, backend)
					return status.Error(codes.Unavailable, "busy")
				}
				retries.Add(1)
				if first, _ := firsts.Load(id); first != backend {
					moved.Add(1)
				}
				return nil
			}, 2)
			opts, err := retrygrpc.DialOptions(upTo(2), retrygrpc.Options{})
			require.NoError(t, err)
			conn, err := grpc.NewClient("backends:///", append(opts, grpc.WithResolvers(found), quickConnect,
				grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"`+row.balancer+`": {}}]}`))...)
			require.NoError(t, err)
			defer conn.Close()
			client := testgrpc.NewTestServiceClient(conn)
			for seen := map[string]bool{}; len(seen) < 2 && row.balancer == "round_robin"; { // until both are connected
				var from peer.Peer
				_, err := client.EmptyCall(bounded(t), &testgrpc.Empty{}, grpc.WaitForReady(true), grpc.Peer(&from))
				require.Equal(t, codes.Unimplemented, status.Code(err))
				seen[from.Addr.String()] = true
			}
			var next atomic.Int64
			var all sync.WaitGroup
			for range row.callers {
				all.Go(func() {
					for n := next.Add(1); n <= calls; n = next.Add(1) {
						ctx := metadata.AppendToOutgoingContext(bounded(t), "id", fmt.Sprint(n))
						if _, err := client.UnaryCall(ctx, &testgrpc.SimpleRequest{}, grpc.WaitForReady(true)); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			t.Logf("%d of %d retries reached the other backend", moved.Load(), retries.Load())
			require.Equal(t, int64(calls), retries.Load())
			require.LessOrEqual(t, row.least, moved.Load())
			require.LessOrEqual(t, moved.Load(), row.most)
		})
	}
}

const ownRetries = `{"methodConfig": [{"name": [{}], "retryPolicy": {"maxAttempts": 5, "initialBackoff": "0.001s",
	"maxBackoff": "0.001s", "backoffMultiplier": 1, "retryableStatusCodes": ["UNAVAILABLE"]}}]}`

// Name resolution brings a retryPolicy and takes it back all the time. With DialOptions no call makes more attempts.
func TestAServiceConfigThatComesAndGoes(t *testing.T) {
	var attempts sync.Map // of each call
	found, at := backends(t, func(ctx context.Context, _ int) error {
		count, _ := attempts.LoadOrStore(metadata.ValueFromIncomingContext(ctx, "id")[0], new(atomic.Int64))
		count.(*atomic.Int64).Add(1)
		return status.Error(codes.Unavailable, "busy")
	}, 1)
	opts, err := retrygrpc.DialOptions(upTo(3), retrygrpc.Options{})
	require.NoError(t, err)
	conn, err := grpc.NewClient("backends:///", append(opts, grpc.WithResolvers(found), quickConnect,
		grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	defer conn.Close()
	client := testgrpc.NewTestServiceClient(conn)
	ready(t, client)

	const calls = 100
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range calls {
			_ = ask(metadata.AppendToOutgoingContext(bounded(t), "id", fmt.Sprint(n)), client, n%2 == 0)
		}
	}()
	for flip := 0; !over(done); flip++ {
		state := resolver.State{Addresses: at}
		if flip%2 == 0 {
			state.ServiceConfig = found.CC().ParseServiceConfig(ownRetries)
		}
		found.UpdateState(state)
		runtime.Gosched()
	}
	for n := range calls {
		count, _ := attempts.Load(fmt.Sprint(n))
		require.Equal(t, int64(3), count.(*atomic.Int64).Load())
	}
}

func over(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
