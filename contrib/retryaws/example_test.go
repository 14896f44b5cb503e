package retryaws_test

import (
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryaws"
)

// For all clients of a configuration. The README has a whole program.
func ExampleMiddleware() {
	option, err := retryaws.Middleware(retry.Policy{MaxAttempts: 5, AttemptTimeout: 10 * time.Second, TTL: 30 * time.Second})
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := aws.Config{Region: "eu-central-1"} // elsewhere: config.LoadDefaultConfig(ctx)
	cfg.APIOptions = append(cfg.APIOptions, option)
	fmt.Println(len(cfg.APIOptions))

	_, err = retryaws.Middleware(retry.Policy{TTL: -1})
	fmt.Println(err)
	// Output:
	// 1
	// retry: Policy.TTL -1ns is negative
}
