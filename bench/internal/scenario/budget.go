package scenario

import (
	"sync/atomic"
	"time"

	avast5 "github.com/avast/retry-go/v5"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	failsafebudget "github.com/failsafe-go/failsafe-go/budget"
	"golang.org/x/time/rate"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/bench/internal/contest"
)

const (
	retryToken = 1_000_000 // of the limits, the unit in which a retry.Budget counts too
	fullBucket = 10 * retryToken

	refused  = "scenario: a bucket with tokens refused a retry"
	allowed  = "scenario: an empty bucket allowed a retry"
	notTaken = "scenario: a success changed a full bucket"
)

// Budget returns the scenarios of a budget that all goroutines share. Each loop panics where the budget does not do
// what is measured.
func Budget() []contest.Scenario {
	return []contest.Scenario{successPath(), retryPath(), refusalPath()}
}

func successPath() contest.Scenario {
	return contest.Scenario{
		Name:  "Budget, success",
		About: "A first attempt succeeds and the bucket is full. golang.org/x/time/rate takes no notice of successes.",
		Unit:  "ns/op",
		Cores: []int{1, 2, 4},
		Contenders: []contest.Contender{
			{Name: "atomic load", Form: contest.Limit, New: loadFull},
			{Name: "retry", Form: contest.Ours, New: depositIntoFull},
			{Name: "avast/retry-go v5", Form: contest.Fastest, New: avast5Success},
			{Name: "aws-sdk-go-v2", Form: contest.Fastest, New: awsSuccess},
			{Name: "failsafe-go", Form: contest.Fastest, New: failsafeSuccess, Remark: "Its budget counts calls under way, at the beginning and the end of each."},
		},
		Targets: []contest.Target{
			{Rule: "successes scale with the cores", Kind: contest.Scaling, Most: 3.3, Why: asTheLimit},
			{Rule: "a success allocates nothing", Kind: contest.Allocs, Most: 0},
		},
	}
}

func retryPath() contest.Scenario {
	return contest.Scenario{
		Name:  "Budget, retry",
		About: "The token of a retry is taken and given back. golang.org/x/time/rate gives it back by time.",
		Unit:  "ns/op",
		Cores: []int{1, 2, 4},
		Contenders: []contest.Contender{
			{Name: "atomic compare-and-swap, twice", Form: contest.Limit, New: swapTwice},
			{Name: "retry", Form: contest.Ours, New: withdrawAndRefund},
			{Name: "avast/retry-go v5", Form: contest.Fastest, New: avast5Retry},
			{Name: "aws-sdk-go-v2", Form: contest.Fastest, New: awsRetry},
			{Name: "failsafe-go", Form: contest.Fastest, New: failsafeRetry},
			{Name: "golang.org/x/time/rate", Form: contest.Fastest, New: rateRetry, Remark: "It reads the clock."},
		},
		Targets: []contest.Target{{Rule: "a retry allocates nothing", Kind: contest.Allocs, Most: 0}},
	}
}

func refusalPath() contest.Scenario {
	return contest.Scenario{
		Name:  "Budget, refusal",
		About: "A retry is refused, because the bucket is empty.",
		Unit:  "ns/op",
		Cores: []int{1, 2, 4},
		Contenders: []contest.Contender{
			{Name: "atomic load", Form: contest.Limit, New: loadEmpty},
			{Name: "retry", Form: contest.Ours, New: withdrawFromEmpty},
			{Name: "avast/retry-go v5", Form: contest.Fastest, New: avast5Refusal},
			{Name: "aws-sdk-go-v2", Form: contest.Fastest, New: awsRefusal},
			{Name: "failsafe-go", Form: contest.Fastest, New: failsafeRefusal},
			{Name: "golang.org/x/time/rate", Form: contest.Fastest, New: rateRefusal, Remark: "It reads the clock."},
		},
		Targets: []contest.Target{
			{Rule: "refusals scale with the cores", Kind: contest.Scaling, Most: 3.3, Why: asTheLimit},
			{Rule: "a refusal allocates nothing", Kind: contest.Allocs, Most: 0},
		},
	}
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
	at := time.Now()
	return func(n int) {
		for range n {
			b.Spend(retry.Decision{Status: retry.Succeeded}, at)
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

func withdrawAndRefund() func(int) {
	b := retry.NewBudget(retry.BudgetConfig{Burst: 10, Initial: 10})
	at := time.Now()
	return func(n int) {
		for range n {
			if b.Spend(retry.Decision{Status: retry.Waiting}, at).Status != retry.Waiting {
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
	limiter := rate.NewLimiter(rate.Every(time.Nanosecond), 1_000_000) // faster than anybody takes
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
	at := time.Now()
	return func(n int) {
		for range n {
			if b.Spend(retry.Decision{Status: retry.Waiting}, at).Status == retry.Waiting {
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
