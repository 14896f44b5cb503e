package scenario

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	avast4 "github.com/avast/retry-go/v4"
	avast5 "github.com/avast/retry-go/v5"
	backoff5 "github.com/cenkalti/backoff/v5"
	backoff7 "github.com/cenkalti/backoff/v7"
	codegroove "github.com/codeGROOVE-dev/retry"
	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	sethvargo "github.com/sethvargo/go-retry"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/bench/internal/contest"
)

const failedAttempts = 1_000_000

// retained is the scenario of what a run keeps that fails on and on.
func retained() contest.Scenario {
	s := contest.Scenario{
		Name: "Retained after 1,000,000 failed attempts",
		About: "One run whose first 1,000,000 attempts fail, each with an error of its own, without waits: the heap that is " +
			"in use in the next attempt, less what was in use before the run.",
		Unit: "B",
	}
	for _, r := range endless {
		s.Contenders = append(s.Contenders, contest.Contender{
			Name: r.name, Form: r.form, Remark: r.remark,
			Sample: func() float64 { return float64(retainedBytes(r, failedAttempts)) },
		})
	}
	return s
}

// run is a way to retry at once. It allows more attempts than the given number of failures.
type run struct {
	name   string
	form   contest.Form
	remark string
	do     func(failures int, fn func() error) error
}

var endless = []run{
	{"hand-written loop", contest.Limit, "It keeps the last error.", endlessByHand},
	{"retry", contest.Ours, "It keeps the last errors, for its history.", endlessOurs},
	{"cenkalti/backoff v5", contest.Fastest, "", endlessCenkalti5},
	{"cenkalti/backoff v7", contest.Fastest, "", endlessCenkalti7},
	{"avast/retry-go v4", contest.Fastest, "LastErrorOnly; it keeps all errors until it returns.", endlessAvast4(avast4.LastErrorOnly(true))},
	{"avast/retry-go v4, usual form", contest.Usual, "It keeps all errors.", endlessAvast4()},
	{"avast/retry-go v5", contest.Fastest, "LastErrorOnly.", endlessAvast5(avast5.LastErrorOnly(true))},
	{"avast/retry-go v5, usual form", contest.Usual, "It keeps all errors.", endlessAvast5()},
	{"codeGROOVE-dev/retry", contest.Fastest, "It keeps the first 1,000 errors.", endlessCodegroove},
	{"sethvargo/go-retry", contest.Fastest, "", endlessSethvargo},
	{"failsafe-go", contest.Fastest, "", endlessFailsafe},
}

// retainedBytes returns how much more heap is in use in the attempt after so many failed ones than before the run. It
// panics where the run is over before.
func retainedBytes(r run, failures int) int64 {
	before, after, failed := heapInUse(), int64(0), 0
	err := r.do(failures, func() error {
		if failed < failures {
			failed++
			return errors.New("attempt failed")
		}
		after = heapInUse()
		return nil
	})
	if err != nil || failed != failures {
		panic(fmt.Sprintf("scenario: %s: the run ended after %d failures with %v", r.name, failed, err))
	}
	return after - before
}

// heapInUse returns the bytes of reachable objects.
func heapInUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func endlessByHand(_ int, fn func() error) error {
	for {
		err := fn()
		if err == nil {
			return nil
		}
	}
}

func endlessOurs(_ int, fn func() error) error {
	p := retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Delays: []time.Duration{0}}}
	return retry.Do(serving, p, func(context.Context) error { return fn() })
}

func endlessCenkalti5(_ int, fn func() error) error {
	_, err := backoff5.Retry(serving, func() (struct{}, error) { return struct{}{}, fn() },
		backoff5.WithBackOff(&backoff5.ZeroBackOff{}), backoff5.WithMaxElapsedTime(0))
	return err
}

func endlessCenkalti7(_ int, fn func() error) error {
	_, err := backoff7.Retry(serving, func() (struct{}, error) { return struct{}{}, fn() },
		backoff7.WithBackOff(&backoff7.ZeroBackOff{}), backoff7.WithMaxElapsedTime(0))
	return err
}

func endlessAvast4(more ...avast4.Option) func(int, func() error) error {
	return func(failures int, fn func() error) error {
		return avast4.Do(fn, append([]avast4.Option{
			avast4.Context(serving), avast4.Attempts(uint(failures) + 1), avast4.Delay(0), avast4.DelayType(avast4.FixedDelay),
		}, more...)...)
	}
}

func endlessAvast5(more ...avast5.Option) func(int, func() error) error {
	return func(failures int, fn func() error) error {
		return avast5.New(append([]avast5.Option{
			avast5.Context(serving), avast5.Attempts(uint(failures) + 1), avast5.Delay(0), avast5.DelayType(avast5.FixedDelay),
		}, more...)...).Do(fn)
	}
}

func endlessCodegroove(failures int, fn func() error) error {
	return codegroove.Do(fn, codegroove.Context(serving), codegroove.Attempts(uint(failures)+1),
		codegroove.Delay(0), codegroove.DelayType(codegroove.FixedDelay))
}

func endlessSethvargo(_ int, fn func() error) error {
	atOnce := sethvargo.BackoffFunc(func() (time.Duration, bool) { return 0, false })
	return sethvargo.Do(serving, atOnce, func(context.Context) error { return sethvargo.RetryableError(fn()) })
}

func endlessFailsafe(_ int, fn func() error) error {
	return failsafe.With(retrypolicy.NewBuilder[any]().WithMaxAttempts(-1).Build()).WithContext(serving).Run(fn)
}
