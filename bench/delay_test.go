package bench_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	avast4 "github.com/avast/retry-go/v4"
	avast5 "github.com/avast/retry-go/v5"
	codegroove "github.com/codeGROOVE-dev/retry"

	"github.com/retrygo/retry"
)

const (
	delaysInTurn = 64 // attempts 1 to 64, and again from 1
	// The delay of the shift is below this for the first ten attempts. Both are retry's defaults.
	firstDelay   = 5 * time.Second
	longestDelay = time.Hour
)

// delaySum keeps the sum of the delays, so that the compiler does not drop them and a test can check them.
var delaySum time.Duration

// inTurn adds the delays after attempts 1 to 64 in turn, n of them; i is the number of the attempt less one. It is
// inlined together with delay, so that delay costs no call.
func inTurn(n int, delay func(i int) time.Duration) {
	var sum time.Duration
	for i := range n {
		sum += delay(i % delaysInTurn)
	}
	delaySum = sum
}

// givenU is the number in [0,1) of the jittered delays that take one. It is a variable so that the compiler does not
// compute with it.
var givenU = 0.3

func BenchmarkDelay(b *testing.B)          { alone(b, delay()) }
func BenchmarkDelayGiven(b *testing.B)     { alone(b, delayGiven()) }
func BenchmarkDelayDrawn(b *testing.B)     { alone(b, delayDrawn()) }
func BenchmarkDelayFactor3(b *testing.B)   { alone(b, delayFactor(3)) }
func BenchmarkDelayFactor1_5(b *testing.B) { alone(b, delayFactor(1.5)) }
func BenchmarkDelayLinear(b *testing.B)    { alone(b, delayLinear()) }

func delay() []contender {
	return []contender{
		{"bare-method", func(n int) { methodDelay(n, byHand{}) }},
		{"bare-shift", func(n int) { inTurn(n, shifted) }},
		{"retry", func(n int) { oursDelay(n, retry.Backoff{}) }},
		{"jpillora", func(n int) { jpilloraDelay(n, false) }},
		{"k8s-wait", func(n int) { k8sDelay(n, 0) }},
		{"cenkalti-v5", func(n int) { cenkalti5Delay(n, 0) }},
		{"cenkalti-v7", func(n int) { cenkalti7Delay(n, 0) }},
		{"avast-v4", func(n int) { avast4Delay(n, avast4.BackOffDelay) }},
		{"avast-v5", func(n int) { avast5Delay(n, avast5.BackOffDelay) }},
		{"codegroove", func(n int) { codegrooveDelay(n, codegroove.BackOffDelay) }},
		{"sethvargo", func(n int) { sethvargoDelay(n, false) }},
	}
}

func delayGiven() []contender {
	return []contender{{"bare-method", methodJittered}, {"bare-shift", shiftTimesU}, {"retry", oursJittered}}
}

func delayDrawn() []contender {
	return []contender{
		{"bare-shift", shiftTimesDrawn},
		{"retry", oursDrawn},
		{"jpillora", func(n int) { jpilloraDelay(n, true) }},
		{"k8s-wait", func(n int) { k8sDelay(n, 1) }},
		{"cenkalti-v5", func(n int) { cenkalti5Delay(n, 0.5) }},
		{"cenkalti-v7", func(n int) { cenkalti7Delay(n, 0.5) }},
		{"avast-v4", func(n int) { avast4Delay(n, avast4.FullJitterBackoffDelay) }},
		{"avast-v5", func(n int) { avast5Delay(n, avast5.FullJitterBackoffDelay) }},
		{"codegroove", func(n int) { codegrooveDelay(n, codegroove.FullJitterBackoffDelay) }},
		{"sethvargo", func(n int) { sethvargoDelay(n, true) }},
		{"aws-sdk", awsDelay},
	}
}

func delayFactor(factor float64) []contender {
	return []contender{
		{"bare-product", func(n int) { runningProduct(n, factor) }},
		{"retry", func(n int) { oursDelay(n, retry.Backoff{Factor: factor}) }},
	}
}

func delayLinear() []contender {
	return []contender{
		{"bare-product", productAndMin},
		{"retry", func(n int) { oursDelay(n, retry.Backoff{Mode: retry.Linear}) }},
	}
}

// byHand is a Backoff with the four formulas written by hand: without a check for overflow beyond the cap's, without
// factors that are not whole, and not inlined, so that the value is copied.
type byHand retry.Backoff

//go:noinline
func (b byHand) delay(attempt int) time.Duration {
	grown := max(attempt, 1) - 1
	base, limit := b.Base, b.Cap
	if base <= 0 {
		base = firstDelay
	}
	if limit <= 0 {
		limit = longestDelay
	}
	switch b.Mode {
	case retry.List:
		return min(b.Delays[min(grown, len(b.Delays)-1)], limit)
	case retry.Fixed:
		return min(base, limit)
	case retry.Linear:
		return min(base*time.Duration(1+grown), limit)
	}
	if b.Factor != 0 && b.Factor != 2 {
		return min(time.Duration(float64(base)*math.Pow(b.Factor, float64(grown))), limit)
	}
	if base <= limit>>uint(grown) {
		return base << uint(grown)
	}
	return limit
}

//go:noinline
func (b byHand) jittered(attempt int, u float64) time.Duration {
	if b.Jitter != retry.FullJitter {
		panic("a jitter other than full")
	}
	delay := b.delay(attempt)
	if !(u > 0) {
		return 0
	}
	return time.Duration(float64(delay) * min(u, 1-0x1p-53))
}

// methodDelay and oursDelay are not inlined, so that the compiler does not compute with b.
//
//go:noinline
func methodDelay(n int, b byHand) {
	inTurn(n, func(i int) time.Duration { return b.delay(i + 1) })
}

func methodJittered(n int) {
	b, u := byHand{Jitter: retry.FullJitter}, givenU
	inTurn(n, func(i int) time.Duration { return b.jittered(i+1, u) })
}

// shifted returns min(5s·2^grown, 1h). It is inlined.
func shifted(grown int) time.Duration {
	if grown < 63 && firstDelay <= longestDelay>>grown {
		return firstDelay << grown
	}
	return longestDelay
}

func shiftTimesU(n int) {
	u := givenU
	inTurn(n, func(i int) time.Duration { return time.Duration(float64(shifted(i)) * u) })
}

func shiftTimesDrawn(n int) {
	inTurn(n, func(i int) time.Duration { return time.Duration(float64(shifted(i)) * rand.Float64()) })
}

func runningProduct(n int, factor float64) {
	var delay float64
	inTurn(n, func(i int) time.Duration {
		if i == 0 {
			delay = float64(firstDelay)
		} else {
			delay = min(delay*factor, float64(longestDelay))
		}
		return time.Duration(delay)
	})
}

func productAndMin(n int) {
	inTurn(n, func(i int) time.Duration { return min(firstDelay*time.Duration(i+1), longestDelay) })
}

//go:noinline
func oursDelay(n int, b retry.Backoff) {
	inTurn(n, func(i int) time.Duration { return b.Delay(i + 1) })
}

func oursJittered(n int) {
	b, u := retry.Backoff{Jitter: retry.FullJitter}, givenU
	inTurn(n, func(i int) time.Duration { return b.Jittered(i+1, 0, u) })
}

func oursDrawn(n int) {
	b := retry.Backoff{Jitter: retry.FullJitter}
	inTurn(n, func(i int) time.Duration { return b.Jittered(i+1, 0, rand.Float64()) })
}
