// Command results fetches reports from a service that makes them in the background, so that an answer without an error is
// not always a result. The service is a fake in the same process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

func main() {
	for _, call := range calls {
		if err := call.show(context.Background(), os.Stdout); err != nil {
			log.Fatal(err)
		}
	}
}

// report is the answer of the service.
type report struct{ State, Text string }

var (
	errReset  = errors.New("connection reset")
	errBusy   = errors.New("busy")
	errQueued = errors.New("queued")
)

// ready is the check of a report, whose error is the error of the attempt.
func ready(r report) error {
	switch r.State {
	case "queued":
		return errQueued
	case "failed":
		return retry.Permanent(errors.New("the report failed"))
	default:
		return nil
	}
}

// wait is at once after a reset, and stops at the third failure if that is an errBusy.
func wait(attempt int, err error, computed time.Duration) time.Duration {
	switch {
	case errors.Is(err, errReset):
		return 0
	case errors.Is(err, errBusy) && attempt >= 3:
		return retry.Stop
	default:
		return computed
	}
}

var policy = retry.Policy{
	MaxAttempts: 6,
	Backoff:     retry.Backoff{Base: 100 * time.Millisecond},
	Wait:        wait,
}

// call is a call of the service and the results of its attempts.
type call struct {
	name    string
	results []any // a report or an error
}

var calls = []call{
	{"hourly", []any{report{"queued", ""}, report{"queued", ""}, report{"done", "12 orders"}}},
	{"daily", []any{errReset, errReset, report{"done", "288 orders"}}},
	{"weekly", []any{errBusy, report{"queued", ""}, report{"queued", ""}, report{"done", "2016 orders"}}},
	{"monthly", []any{errBusy, errBusy, errBusy, report{"done", "8640 orders"}}},
	{"yearly", []any{report{"queued", ""}, report{"failed", ""}, report{"done", ""}}},
}

// show makes the call and writes a line about it.
func (c call) show(ctx context.Context, w io.Writer) error {
	var attempts []string
	p := policy
	p.Observe = func(_ context.Context, e retry.Event) {
		switch {
		case e.Final():
		case e.Decision.Status == retry.WaitingRetry:
			attempts = append(attempts, fmt.Sprintf("%v, wait %v", e.Attempt.Err, e.Decision.Delay))
		default:
			attempts = append(attempts, fmt.Sprintf("%v, %v", e.Attempt.Err, e.Decision.Reason))
		}
	}
	fetch := func(context.Context) (report, error) {
		next := c.results[0]
		c.results = c.results[1:]
		if err, failed := next.(error); failed {
			return report{}, err
		}
		return next.(report), nil
	}
	r, err := retry.DoValue(ctx, p, retry.Checked(fetch, ready))
	var failed *retry.Error
	if err != nil && !errors.As(err, &failed) {
		return err
	}
	if err == nil {
		attempts = append(attempts, r.State+", "+r.Text)
	}
	_, err = fmt.Fprintf(w, "%-8s %s\n", c.name, strings.Join(attempts, "; "))
	return err
}
