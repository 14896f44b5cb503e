package retry_test

import (
	"context"
	"errors"
	"math"
	"time"

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

// runOf is the error of a nested run that ended with last.
func runOf(last error) error {
	return &retry.Error{Outcome: retry.Outcome{Status: retry.DeadLettered, Reason: retry.AttemptsExhausted, Attempts: 2}, Last: last}
}

func failing(context.Context) error { return errFlaky }

// succeed is the cheapest fn there is, so that what is measured is the library.
//
//go:noinline
func succeed(context.Context) error { return nil }

// atOnce retries without waiting, five attempts in all.
var atOnce = retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Delays: []time.Duration{0}}}
