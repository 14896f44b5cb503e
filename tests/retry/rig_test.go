package retry_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

const (
	ms       = time.Millisecond
	sec      = time.Second
	minute   = time.Minute
	hour     = time.Hour
	longest  = time.Duration(math.MaxInt64)
	almost1  = 1 - 0x1p-53 // the largest u below 1
	maxTries = math.MaxInt
)

func unlimited(b retry.Backoff) retry.Policy {
	return retry.Policy{MaxAttempts: retry.Unlimited, Backoff: b}
}

var errOutage = errors.New("outage")

// anyTime is the now of a budget without Trickle, which does not read it.
var anyTime time.Time

// noWait retries without a wait. It needs MaxAttempts: as a List it would make two attempts.
var noWait = retry.Backoff{Delays: []time.Duration{0}}

// takeAll withdraws until there is no token and returns how many there were.
func takeAll(b *retry.Budget) int {
	for n := 0; ; n++ {
		if !take(b, anyTime) {
			return n
		}
	}
}

// take takes the token for one retry and reports whether there was one.
func take(b *retry.Budget, now time.Time) bool {
	return spendOn(b, retry.Decision{Status: retry.WaitingRetry}, now).Status == retry.WaitingRetry
}

// fund adds what one success is worth.
func fund(b *retry.Budget) { spendOn(b, retry.Decision{Status: retry.Succeeded}, time.Time{}) }

// spendOn is Policy.Spend of a policy that has a budget and nothing else.
func spendOn(b *retry.Budget, d retry.Decision, now time.Time) retry.Decision {
	return retry.Policy{Budget: b}.Spend(context.Background(), d, now)
}

// reasonsOf is the whole vocabulary: which reasons go with which status.
var reasonsOf = map[retry.Status][]retry.Reason{
	retry.Succeeded:       {0},
	retry.WaitingRetry:    {0},
	retry.DeadLettered:    {retry.TerminalError, retry.AttemptsExhausted, retry.BudgetExhausted},
	retry.Expired:         {retry.TTLElapsed, retry.DeadlinePassed, retry.DeadlineTooNear, retry.HintTooLong},
	retry.FailedNoRetries: {retry.RetriesDisabled},
	retry.Canceled:        {retry.CallerCanceled},
}

var errFlaky = errors.New("flaky")

// requireEnd requires that err is an *Error with the given ending and number of attempts, and returns it.
func requireEnd(t *testing.T, err error, want retry.Decision, attempts int) *retry.Error {
	t.Helper()
	var failed *retry.Error
	require.ErrorAs(t, err, &failed)
	require.Same(t, failed, err, "the *Error itself, not wrapped")
	require.Equal(t, ending(want), retry.Decision{Status: failed.Status, Reason: failed.Reason})
	require.Equal(t, attempts, failed.Attempts)
	require.ErrorIs(t, err, failed.Reason)
	return failed
}

// runOf is the error of a nested run that ended with last.
func runOf(last error) error {
	return &retry.Error{Outcome: retry.Outcome{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted, Attempts: 2}, Last: last}
}

func failing(context.Context) error { return errFlaky }

// statusOf returns the status that goes with a reason.
func statusOf(reason retry.Reason) retry.Status {
	for status, reasons := range reasonsOf {
		for _, r := range reasons {
			if r == reason {
				return status
			}
		}
	}
	return 0
}

// failsWith returns an fn whose n-th attempt gives the n-th of errs, and whose further attempts give the last.
func failsWith(errs ...error) func(context.Context) error {
	return func(ctx context.Context) error {
		return errs[min(retry.AttemptNumber(ctx), len(errs))-1]
	}
}

// Decisions, short enough for a row: of an attempt whose error was retryable, and of one whose error was terminal.
var (
	succeeded = retry.Decision{Status: retry.Succeeded}
	exhausted = retry.Decision{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted, Class: retry.Retryable}
)

// ending is what a decision without an error has of d, and what an Outcome keeps.
func ending(d retry.Decision) retry.Decision {
	return retry.Decision{Status: d.Status, Reason: d.Reason}
}

func since(n int, d retry.Decision) retry.Decision { d.Forgiven = n; return d }

// succeed is the cheapest fn there is, so that what is measured is the library.
//
//go:noinline
func succeed(context.Context) error { return nil }

func depositTimes(b *retry.Budget, n int) {
	for range n {
		fund(b)
	}
}

// atOnce retries without waiting, five attempts in all.
var atOnce = retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Delays: []time.Duration{0}}}
