package drivers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// run is a run of Tx or Do in the form that the tests compare.
type run struct {
	Status   retry.Status
	Attempts int
	Failures []failure
}

// failure is an attempt that failed.
type failure struct {
	Phase  retrysql.Phase
	Reason retrysql.Reason
	Code   string
}

// observed returns a policy that retries without waits, and a pointer to its last run. afterFailure is called with the
// number of each failed attempt before the next one; nil means nothing.
func observed(maxAttempts int, afterFailure func(attempt int)) (retry.Policy, *run) {
	last := new(run)
	return retry.Policy{
		MaxAttempts: maxAttempts,
		Backoff:     retry.Backoff{Delays: []time.Duration{0}},
		Observe: func(_ context.Context, e retry.Event) {
			switch {
			case e.Outcome != nil:
				last.Status, last.Attempts = e.Outcome.Status, e.Outcome.Attempts
			default:
				last.Failures = append(last.Failures, failureOf(e.Attempt.Err))
				if afterFailure != nil {
					afterFailure(e.Attempt.Number)
				}
			}
		},
	}, last
}

func failureOf(err error) failure {
	failed, ok := asType[*retrysql.AttemptError](err)
	if !ok {
		return failure{}
	}
	return failure{failed.Phase, failed.Reason, failed.Code}
}

// tally counts the failed attempts of many runs by phase, reason and code.
type tally struct {
	mu       sync.Mutex
	runs     int
	attempts int
	failures map[failure]int
}

// counted returns p with a tally of its runs.
func counted(p retry.Policy) (retry.Policy, *tally) {
	count := &tally{failures: map[failure]int{}}
	p.Observe = func(_ context.Context, e retry.Event) {
		count.mu.Lock()
		defer count.mu.Unlock()
		if e.Outcome != nil {
			count.runs++
			count.attempts += e.Outcome.Attempts
			return
		}
		count.failures[failureOf(e.Attempt.Err)]++
	}
	return p, count
}

// of returns the number of failures that match.
func (c *tally) of(match func(failure) bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for f, times := range c.failures {
		if match(f) {
			n += times
		}
	}
	return n
}

// String returns one line: "400 runs of 431 attempts; statement busy_snapshot 517: 31".
func (c *tally) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	parts := []string{fmt.Sprintf("%d runs of %d attempts", c.runs, c.attempts)}
	var kinds []string
	for f, times := range c.failures {
		kinds = append(kinds, fmt.Sprintf("%v %s: %d", f.Phase, strings.TrimSpace(string(f.Reason)+" "+f.Code), times))
	}
	slices.Sort(kinds)
	return strings.Join(append(parts, kinds...), "; ")
}

// asType is errors.As, returning what it finds.
func asType[E error](err error) (E, bool) {
	var found E
	ok := errors.As(err, &found)
	return found, ok
}
