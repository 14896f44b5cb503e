package main

import (
	"context"
	"net/http"
	"time"

	azpolicy "github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	azruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// azure sends a request by the pipeline of Azure's clients, which has no hook for its waits: retryhttp repeats below it.
func azure(ctx context.Context, delay func(attempt int) time.Duration, note func() (last bool)) error {
	server := busy(note)
	defer server.Close()

	options := azpolicy.ClientOptions{
		Transport: &http.Client{Transport: &retryhttp.Transport{Policy: waiting(delay)}},
		Retry:     azpolicy.RetryOptions{MaxRetries: -1}, // 0 is 3
	}
	pipeline := azruntime.NewPipeline("everywhere", "v1", azruntime.PipelineOptions{}, &options)
	req, err := azruntime.NewRequest(ctx, http.MethodGet, server.URL)
	if err != nil {
		return err
	}
	resp, err := pipeline.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// waiting is the policy, whose waits are recorded.
func waiting(delay func(attempt int) time.Duration) retry.Policy {
	p := policy
	p.Wait = func(attempt int, _ error, _ time.Duration) time.Duration { return delay(attempt) }
	return p
}
