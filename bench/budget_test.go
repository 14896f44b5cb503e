package bench_test

import (
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

	refused  = "a bucket with tokens refused a retry"
	allowed  = "an empty bucket allowed a retry"
	notTaken = "a success changed a full bucket"
)

// A budget is shared by all goroutines. Each loop panics if the budget does not do what is measured.
func BenchmarkBudgetSuccess(b *testing.B) { shared(b, budgetSuccess()) }
func BenchmarkBudgetRetry(b *testing.B)   { shared(b, budgetRetry()) }
func BenchmarkBudgetRefusal(b *testing.B) { shared(b, budgetRefusal()) }

func budgetSuccess() []contender {
	return []contender{
		of("bare-load", loadFull), of("retry", depositIntoFull), of("avast-v5", avast5Success),
		of("aws-sdk", awsSuccess), of("failsafe-go", failsafeSuccess),
	}
}

func budgetRetry() []contender {
	return []contender{
		of("bare-spend", spendAndAdd), of("bare-swaps", swapTwice), of("retry", withdrawAndRefund), of("avast-v5", avast5Retry),
		of("aws-sdk", awsRetry), of("failsafe-go", failsafeRetry), of("x-time-rate", rateRetry),
	}
}

func budgetRefusal() []contender {
	return []contender{
		of("bare-spend", spendFromEmpty), of("bare-load", loadEmpty), of("retry", withdrawFromEmpty), of("avast-v5", avast5Refusal),
		of("aws-sdk", awsRefusal), of("failsafe-go", failsafeRefusal), of("x-time-rate", rateRefusal),
	}
}

// of returns the contender that does what prepare prepares.
func of(name string, prepare func() func(n int)) contender {
	return contender{name, func(testing.TB) func(int) { return prepare() }}
}

func loadFull() func(int) {
	level := new(atomic.Int64)
	level.Store(fullBucket)
	return func(n int) {
		for range n {
			if level.Load() != fullBucket {
				panic(notTaken)
			}
		}
	}
}

func depositIntoFull() func(int) {
	b := retry.NewBudget(retry.BudgetConfig{Burst: 10, Initial: 10})
	success, at := retry.Decision{Status: retry.Succeeded}, time.Now()
	return func(n int) {
		for range n {
			b.Spend(success, at)
		}
		if b.Tokens() != 10 {
			panic(notTaken)
		}
	}
}

func avast5Success() func(int) {
	manager := avast5.NewFixedTokenBucketThrottle(avast5.FixedTokenBucketThrottleConfig{})
	return func(n int) {
		for range n {
			manager.OnSuccess(0)
		}
	}
}

func awsSuccess() func(int) {
	limiter := ratelimit.NewTokenRateLimit(500) // the SDK's default
	return func(n int) {
		for range n {
			_ = limiter.AddTokens(1) // the SDK's NoRetryIncrement; it never fails
		}
		if limiter.Remaining() != 500 {
			panic(notTaken)
		}
	}
}

// inFlight is what failsafe-go's retry policy calls of a budget.
type inFlight interface {
	RecordExecution()
	ReleaseExecution()
	TryAcquirePermit() bool
	ReleasePermit()
}

func failsafeSuccess() func(int) {
	b := failsafebudget.New().(inFlight)
	return func(n int) {
		for range n {
			b.RecordExecution()
			b.ReleaseExecution()
		}
	}
}

func swapTwice() func(int) {
	level := new(atomic.Int64)
	level.Store(fullBucket)
	return func(n int) {
		for range n {
			swap(level, -retryToken)
			swap(level, retryToken)
		}
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
	return retry.Decision{Status: retry.DeadLettered, Reason: retry.BudgetExhausted, Class: d.Class, Since: d.Since, Hint: d.Hint}
}

func (b *handBudget) refund() {
	if b.level.Add(retryToken) > fullBucket {
		panic(notTaken)
	}
}

func spendAndAdd() func(int) {
	b := new(handBudget)
	b.level.Store(fullBucket)
	retries, at := retry.Decision{Status: retry.Waiting}, time.Now()
	return func(n int) {
		for range n {
			if b.spend(retries, at).Status != retry.Waiting {
				panic(refused)
			}
			b.refund()
		}
	}
}

func spendFromEmpty() func(int) {
	b := new(handBudget)
	retries, at := retry.Decision{Status: retry.Waiting}, time.Now()
	return func(n int) {
		for range n {
			if b.spend(retries, at).Status == retry.Waiting {
				panic(allowed)
			}
		}
	}
}

func withdrawAndRefund() func(int) {
	b := retry.NewBudget(retry.BudgetConfig{Burst: 10, Initial: 10})
	retries, at := retry.Decision{Status: retry.Waiting}, time.Now()
	return func(n int) {
		for range n {
			if b.Spend(retries, at).Status != retry.Waiting {
				panic(refused)
			}
			b.Refund()
		}
	}
}

func avast5Retry() func(int) {
	manager := avast5.NewFixedTokenBucketThrottle(avast5.FixedTokenBucketThrottleConfig{})
	return func(n int) {
		for range n {
			if !manager.AllowRetry(0, nil) {
				panic(refused)
			}
			manager.OnSuccess(1) // gives back what a retry costs
		}
	}
}

func awsRetry() func(int) {
	limiter := ratelimit.NewTokenRateLimit(500)
	return func(n int) {
		for range n {
			release, err := limiter.GetToken(serving, 5) // the SDK's RetryCost
			if err != nil || release() != nil {
				panic(refused)
			}
		}
	}
}

func failsafeRetry() func(int) {
	b := failsafebudget.NewBuilder().WithMinConcurrency(100).Build().(inFlight) // more than there are cores
	return func(n int) {
		for range n {
			if !b.TryAcquirePermit() {
				panic(refused)
			}
			b.ReleasePermit()
		}
	}
}

func rateRetry() func(int) {
	limiter := rate.NewLimiter(rate.Every(time.Nanosecond), 1_000_000) // faster than the benchmark takes them
	return func(n int) {
		for range n {
			if !limiter.Allow() {
				panic(refused)
			}
		}
	}
}

func loadEmpty() func(int) {
	level := new(atomic.Int64)
	return func(n int) {
		for range n {
			if level.Load() >= retryToken {
				panic(allowed)
			}
		}
	}
}

func withdrawFromEmpty() func(int) {
	b := retry.NewBudget(retry.BudgetConfig{Initial: -1})
	retries, at := retry.Decision{Status: retry.Waiting}, time.Now()
	return func(n int) {
		for range n {
			if b.Spend(retries, at).Status == retry.Waiting {
				panic(allowed)
			}
		}
	}
}

func avast5Refusal() func(int) {
	manager := avast5.NewFixedTokenBucketThrottle(avast5.FixedTokenBucketThrottleConfig{MaxCapacity: 1, ThrottleCost: 5})
	return func(n int) {
		for range n {
			if manager.AllowRetry(0, nil) {
				panic(allowed)
			}
		}
	}
}

func awsRefusal() func(int) {
	limiter := ratelimit.NewTokenRateLimit(1)
	return func(n int) {
		for range n {
			if _, err := limiter.GetToken(serving, 5); err == nil {
				panic(allowed)
			}
		}
	}
}

func failsafeRefusal() func(int) {
	b := failsafebudget.NewBuilder().WithMinConcurrency(0).WithMaxRate(0).Build().(inFlight)
	b.TryAcquirePermit() // the one that is always allowed stays under way
	return func(n int) {
		for range n {
			if b.TryAcquirePermit() {
				panic(allowed)
			}
		}
	}
}

func rateRefusal() func(int) {
	limiter := rate.NewLimiter(0, 1)
	limiter.Allow() // takes the only token
	return func(n int) {
		for range n {
			if limiter.Allow() {
				panic(allowed)
			}
		}
	}
}
