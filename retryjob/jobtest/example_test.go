package jobtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
	"github.com/retrygo/retry/retryjob/jobtest"
)

// t stands for the test's own in the examples.
var t = &testing.T{}

func ExampleJobs() {
	synctest.Test(t, func(t *testing.T) {
		jobs := jobtest.NewJobs(t, retryjob.Options{
			Policies: retryjob.FromMap(map[string]retry.Policy{"patient": retry.Patient()}),
			Handlers: map[string]retryjob.Handler{
				"deliver": func(ctx context.Context, job retryjob.Job) error {
					if a, _ := retryjob.AttemptFrom(ctx); a.Number < 3 {
						return errors.New("503 Service Unavailable")
					}
					return nil
				},
			},
		})
		ended := jobs.Run(retryjob.Job{Kind: "deliver", Policy: "patient"})
		fmt.Print(jobtest.Timeline(ended[0].Record))
	})
	// Output:
	// 0s     attempt 1  503 Service Unavailable   wait 5m
	// 5m     attempt 2  503 Service Unavailable   wait 1h
	// 1h5m   attempt 3  ok
	// 1h5m   succeeded after 3 attempts
}
