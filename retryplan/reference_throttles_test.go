package retryplan_test

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/retrygo/retry/retryplan"
)

// free is the part of a Throttle that most mechanisms leave out: attempts go at once and how they end does not matter.
type free struct{}

func (free) Send(time.Duration, int) (time.Duration, bool) { return 0, true }
func (free) Done(time.Duration, time.Duration, int, bool)  {}
func (free) Retry(time.Duration, int) bool                 { return true }

// requestBucket is a token bucket that every run funds when it begins, whether it will succeed or not.
type requestBucket struct {
	free
	ratio, limit, tokens float64
}

func (b *requestBucket) Send(_ time.Duration, attempt int) (time.Duration, bool) {
	if attempt == 1 {
		b.tokens = min(b.tokens+b.ratio, b.limit)
	}
	return 0, true
}

func (b *requestBucket) Retry(time.Duration, int) bool {
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// brookerBucket is the bucket of Brooker's retry simulation: a requestBucket that needs more than one token, so that a
// full one of 5 pays for 4 retries.
type brookerBucket struct{ requestBucket }

func newBrookerBucket() retryplan.Throttle {
	return &brookerBucket{requestBucket{ratio: 0.1, limit: 5, tokens: 5}}
}

func (b *brookerBucket) Retry(now time.Duration, attempt int) bool {
	return b.tokens > 1 && b.requestBucket.Retry(now, attempt)
}

// failureShare is the breaker of the same simulation: retries are off while failed attempts are more than share of all
// calls ever begun.
type failureShare struct {
	share, calls, failures float64
}

func (f *failureShare) Send(_ time.Duration, attempt int) (time.Duration, bool) {
	if attempt == 1 {
		f.calls++
	}
	return 0, true
}

func (f *failureShare) Done(_, _ time.Duration, _ int, ok bool) {
	if !ok {
		f.failures++
	}
}

func (f *failureShare) Retry(time.Duration, int) bool { return f.failures/f.calls <= f.share }

// grpcThrottle is the retry throttling of gRPC proposal A6, in thousandths of a token: a failure costs one token, a
// success earns ratio, and retries are on while more than half of limit is there.
type grpcThrottle struct {
	free
	ratio, limit, tokens int
}

func (g *grpcThrottle) Done(_, _ time.Duration, _ int, ok bool) {
	if ok {
		g.tokens = min(g.tokens+g.ratio, g.limit)
	} else {
		g.tokens = max(g.tokens-1000, 0)
	}
}

func (g *grpcThrottle) Retry(time.Duration, int) bool { return 2*g.tokens > g.limit }

// awsQuota is the retry quota of the AWS SDKs' standard mode: a retry acquires cost, a success gives the last
// acquisition back, or 1 if there was none, and there are never more than 500.
type awsQuota struct {
	free
	cost, tokens int
}

func (q *awsQuota) Done(_, _ time.Duration, attempt int, ok bool) {
	switch {
	case ok && attempt > 1:
		q.tokens = min(q.tokens+q.cost, 500)
	case ok:
		q.tokens = min(q.tokens+1, 500)
	}
}

func (q *awsQuota) Retry(time.Duration, int) bool {
	if q.tokens < q.cost {
		return false
	}
	q.tokens -= q.cost
	return true
}

// finagleBudget is Finagle's RetryBudget: what was deposited less what was withdrawn in the last ten slices of ttl, and
// a reserve that stands outside of the window.
type finagleBudget struct {
	free
	slice             time.Duration
	deposit, withdraw int
	reserve           int
	at                int64 // the newest slice
	sums              [10]int
}

func newFinagleBudget(ttl time.Duration, minPerSecond int, share float64) *finagleBudget {
	withdraw := int(1000 / share)
	return &finagleBudget{
		slice: ttl / 10, deposit: 1000, withdraw: withdraw, reserve: minPerSecond * int(ttl/time.Second) * withdraw,
	}
}

func (b *finagleBudget) balance(now time.Duration) int {
	for slice := int64(now / b.slice); b.at < slice; {
		b.at++
		b.sums[b.at%10] = 0
	}
	sum := b.reserve
	for _, s := range b.sums {
		sum += s
	}
	return sum / b.withdraw
}

func (b *finagleBudget) Send(now time.Duration, attempt int) (time.Duration, bool) {
	if attempt == 1 {
		b.balance(now)
		b.sums[b.at%10] += b.deposit
	}
	return 0, true
}

func (b *finagleBudget) Retry(now time.Duration, _ int) bool {
	if b.balance(now) < 1 {
		return false
	}
	b.sums[b.at%10] -= b.withdraw
	return true
}

// adaptiveThrottle is client-side throttling as the SRE book gives it: attempts are rejected locally with a probability
// that follows from how many were made, local rejections included, and how many succeeded within a window.
type adaptiveThrottle struct {
	free
	k, most           float64
	slice             time.Duration
	at                int64
	requests, accepts [60]float64
	rnd               *rand.Rand
}

func newAdaptiveThrottle(k float64, window time.Duration, most float64) *adaptiveThrottle {
	return &adaptiveThrottle{k: k, most: most, slice: window / 60, rnd: rand.New(rand.NewPCG(1, 2))}
}

// rejection returns max(0, (requests−k·accepts)/(requests+1)) (SRE book, chapter 21).
func rejection(requests, accepts, k float64) float64 {
	return max(0, (requests-float64(k*accepts))/(requests+1))
}

func (a *adaptiveThrottle) advance(now time.Duration) int64 {
	for slice := int64(now / a.slice); a.at < slice; {
		a.at++
		a.requests[a.at%60], a.accepts[a.at%60] = 0, 0
	}
	return a.at % 60
}

func (a *adaptiveThrottle) Send(now time.Duration, _ int) (time.Duration, bool) {
	i := a.advance(now)
	var requests, accepts float64
	for j := range a.requests {
		requests += a.requests[j]
		accepts += a.accepts[j]
	}
	a.requests[i]++
	return 0, a.rnd.Float64() >= min(rejection(requests, accepts, a.k), a.most)
}

func (a *adaptiveThrottle) Done(now, _ time.Duration, _ int, ok bool) {
	if i := a.advance(now); ok {
		a.accepts[i]++
	}
}

// pollyV2 is the decorrelated jitter V2 of Polly: (f(k−1+U_k) − f(k−2+U_(k−1)))·base/1.4 with f(t) = 2^t·tanh(√(4t)),
// and a limit that is applied to the result only. It needs the u of the retry before, which is kept in the last five
// digits of the delay: delays are multiples of 100µs, plus that u in 100,000ths as nanoseconds.
func pollyV2(base, limit time.Duration) func(int, time.Duration, float64) time.Duration {
	const levels = 100_000
	const grain = levels * time.Nanosecond
	f := func(t float64) float64 { return math.Exp2(t) * math.Tanh(math.Sqrt(4*t)) }
	return func(attempt int, prev time.Duration, u float64) time.Duration {
		level := time.Duration(u * levels)
		before := 0.0
		if attempt > 1 {
			before = f(float64(attempt-2) + float64(prev%grain)/levels)
		}
		d := (f(float64(attempt-1)+float64(level)/levels) - before) * float64(base) / 1.4
		return time.Duration(min(d, float64(limit-grain))).Truncate(grain) + level
	}
}
