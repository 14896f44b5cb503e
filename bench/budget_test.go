package bench_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	avast5 "github.com/avast/retry-go/v5"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	failsafebudget "github.com/failsafe-go/failsafe-go/budget"
	"golang.org/x/time/rate"

	"github.com/retrygo/retry"
)

const (
	retryToken = 1_000_000 // of the limits, the unit in which a retry.Budget counts too
	fullBucket = 10 * retryToken
)

// A budget is shared by all goroutines. Each loop panics if the budget does not do what is measured.
func BenchmarkBudgetSuccess(b *testing.B) { shared(b, budgetSuccess()) }
func BenchmarkBudgetRetry(b *testing.B)   { shared(b, budgetRetry()) }
func BenchmarkBudgetRefusal(b *testing.B) { shared(b, budgetRefusal()) }

func budgetSuccess() []contender {
	level := new(atomic.Int64)
	level.Store(fullBucket)
	ours := retry.NewBudget(retry.BudgetConfig{Burst: 10, Initial: 10})
	avast := avast5.NewFixedTokenBucketThrottle(avast5.FixedTokenBucketThrottleConfig{})
	aws := ratelimit.NewTokenRateLimit(500) // the SDK's default
	failsafe := failsafebudget.New().(inFlight)
	return []contender{
		{"bare-load", func(n int) { loads(n, level, fullBucket) }},
		{"retry", func(n int) { oursSuccess(n, ours) }},
		{"avast-v5", func(n int) {
			for range n {
				avast.OnSuccess(0)
			}
		}},
		{"aws-sdk", func(n int) { awsSuccess(n, aws) }},
		{"failsafe-go", func(n int) {
			for range n {
				failsafe.RecordExecution()
				failsafe.ReleaseExecution()
			}
		}},
	}
}

func budgetRetry() []contender {
	level, hand := new(atomic.Int64), new(handBudget)
	level.Store(fullBucket)
	hand.level.Store(fullBucket)
	ours := retry.NewBudget(retry.BudgetConfig{Burst: 10, Initial: 10})
	avast := avast5.NewFixedTokenBucketThrottle(avast5.FixedTokenBucketThrottleConfig{})
	aws := ratelimit.NewTokenRateLimit(500)
	failsafe := failsafebudget.NewBuilder().WithMinConcurrency(100).Build().(inFlight) // more than there are cores
	limiter := rate.NewLimiter(rate.Every(time.Nanosecond), 1_000_000)                 // faster than they are taken
	return []contender{
		{"bare-spend", func(n int) { handSpends(n, hand, true) }},
		{"bare-swaps", func(n int) { swapsTwice(n, level) }},
		{"retry", func(n int) { oursSpends(n, ours, true) }},
		{"avast-v5", func(n int) { avastSpends(n, avast, true) }},
		{"aws-sdk", func(n int) { awsSpends(n, aws, true) }},
		{"failsafe-go", func(n int) { failsafeSpends(n, failsafe, true) }},
		{"x-time-rate", func(n int) { rateSpends(n, limiter, true) }},
	}
}

func budgetRefusal() []contender {
	level, hand := new(atomic.Int64), new(handBudget)
	ours := retry.NewBudget(retry.BudgetConfig{Initial: -1})
	avast := avast5.NewFixedTokenBucketThrottle(avast5.FixedTokenBucketThrottleConfig{MaxCapacity: 1, ThrottleCost: 5})
	aws := ratelimit.NewTokenRateLimit(1)
	failsafe := failsafebudget.NewBuilder().WithMinConcurrency(0).WithMaxRate(0).Build().(inFlight)
	failsafe.TryAcquirePermit() // the one that is always allowed stays under way
	limiter := rate.NewLimiter(0, 1)
	limiter.Allow() // takes the only token
	return []contender{
		{"bare-spend", func(n int) { handSpends(n, hand, false) }},
		{"bare-load", func(n int) { loads(n, level, 0) }},
		{"retry", func(n int) { oursSpends(n, ours, false) }},
		{"avast-v5", func(n int) { avastSpends(n, avast, false) }},
		{"aws-sdk", func(n int) { awsSpends(n, aws, false) }},
		{"failsafe-go", func(n int) { failsafeSpends(n, failsafe, false) }},
		{"x-time-rate", func(n int) { rateSpends(n, limiter, false) }},
	}
}

// must panics if ok is false. It is inlined.
func must(ok bool) {
	if !ok {
		panic("the budget did not do what is measured")
	}
}

//go:noinline
func loads(n int, level *atomic.Int64, want int64) {
	for range n {
		must(level.Load() == want)
	}
}

func oursSuccess(n int, b *retry.Budget) {
	p, ctx, success, at := retry.Policy{Budget: b}, context.Background(), retry.Decision{Status: retry.Succeeded}, time.Now()
	for range n {
		p.Spend(ctx, success, at)
	}
	must(b.Tokens() == 10)
}

func awsSuccess(n int, limiter *ratelimit.TokenRateLimit) {
	for range n {
		_ = limiter.AddTokens(1) // the SDK's NoRetryIncrement; it never fails
	}
	must(limiter.Remaining() == 500)
}

// inFlight is what failsafe-go's retry policy calls of a budget.
type inFlight interface {
	RecordExecution()
	ReleaseExecution()
	TryAcquirePermit() bool
	ReleasePermit()
}

func swapsTwice(n int, level *atomic.Int64) {
	for range n {
		swap(level, -retryToken)
		swap(level, retryToken)
	}
}

// swap is a bare addition by compare-and-swap. It is inlined.
func swap(level *atomic.Int64, amount int64) {
	for {
		if was := level.Load(); level.CompareAndSwap(was, was+amount) {
			return
		}
	}
}

// handBudget is what a Budget does for a retry, written by hand behind the signature of Spend.
type handBudget struct{ level atomic.Int64 }

func (b *handBudget) spend(d retry.Decision, _ time.Time) retry.Decision {
	if b.level.Load() >= retryToken && b.level.Add(-retryToken) >= 0 {
		return d
	}
	return retry.Decision{Status: retry.DeadLettered, Reason: retry.BudgetExhausted, Class: d.Class, Forgiven: d.Forgiven, Hint: d.Hint}
}

// The functions below spend the tokens of n retries and return each, if they are to be allowed.

func handSpends(n int, b *handBudget, allowed bool) {
	retries, at := retry.Decision{Status: retry.WaitingRetry}, time.Now()
	for range n {
		must((b.spend(retries, at).Status == retry.WaitingRetry) == allowed)
		if allowed {
			must(b.level.Add(retryToken) <= fullBucket)
		}
	}
}

func oursSpends(n int, b *retry.Budget, allowed bool) {
	p, ctx, retries, at := retry.Policy{Budget: b}, context.Background(), retry.Decision{Status: retry.WaitingRetry}, time.Now()
	for range n {
		must((p.Spend(ctx, retries, at).Status == retry.WaitingRetry) == allowed)
		if allowed {
			b.Refund()
		}
	}
}

func avastSpends(n int, manager *avast5.FixedTokenBucketThrottleManager, allowed bool) {
	for range n {
		must(manager.AllowRetry(0, nil) == allowed)
		if allowed {
			manager.OnSuccess(1) // gives back what a retry costs
		}
	}
}

func awsSpends(n int, limiter *ratelimit.TokenRateLimit, allowed bool) {
	for range n {
		release, err := limiter.GetToken(serving, 5) // the SDK's RetryCost
		must((err == nil) == allowed)
		if allowed {
			must(release() == nil)
		}
	}
}

func failsafeSpends(n int, b inFlight, allowed bool) {
	for range n {
		must(b.TryAcquirePermit() == allowed)
		if allowed {
			b.ReleasePermit()
		}
	}
}

func rateSpends(n int, limiter *rate.Limiter, allowed bool) {
	for range n {
		must(limiter.Allow() == allowed)
	}
}
