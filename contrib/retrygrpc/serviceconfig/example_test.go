package serviceconfig_test

import (
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrygrpc/serviceconfig"
)

func ExampleOf() {
	policy := retry.Policy{
		MaxAttempts: 4,
		Backoff:     retry.Backoff{Base: 50 * time.Millisecond, Cap: time.Second, Jitter: retry.FullJitter},
		TTL:         10 * time.Second,
	}
	config, lost, err := serviceconfig.Of(policy, serviceconfig.Options{
		Methods: []string{"/shop.Orders/Get", "/shop.Catalog/"},
		Timeout: 12 * time.Second,
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(config)
	for _, line := range lost {
		fmt.Println("lost:", line)
	}
	client, err := grpc.NewClient("dns:///orders.internal", grpc.WithDefaultServiceConfig(config),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	defer client.Close()

	// Output:
	// {"methodConfig":[{"name":[{"service":"shop.Orders","method":"Get"},{"service":"shop.Catalog"}],"timeout":"12s","retryPolicy":{"maxAttempts":4,"initialBackoff":"0.05s","maxBackoff":"1s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]}
	// lost: Policy.Jitter full: each wait is spread evenly by ±20 %
	// lost: Policy.TTL 10s: an attempt starts at any time before the deadline of the call
}
