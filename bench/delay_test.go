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
		of("bare-method", methodDelay),
		of("bare-shift", func() func(int) { return shiftAndMin }),
		of("retry", func() func(int) { return oursDelay(retry.Backoff{}) }),
		of("jpillora", jpilloraDelay(false)),
		of("k8s-wait", k8sDelay(0)),
		of("cenkalti-v5", cenkalti5Delay(0)),
		of("cenkalti-v7", cenkalti7Delay(0)),
		of("avast-v4", avast4Delay(avast4.BackOffDelay)),
		of("avast-v5", avast5Delay(avast5.BackOffDelay)),
		of("codegroove", codegrooveDelay(codegroove.BackOffDelay)),
		of("sethvargo", sethvargoDelay(false)),
	}
}

func delayGiven() []contender {
	return []contender{
		of("bare-method", methodJittered),
		of("bare-shift", func() func(int) { return shiftTimesU }),
		of("retry", oursJittered),
	}
}

func delayDrawn() []contender {
	return []contender{
		of("bare-shift", func() func(int) { return shiftTimesDrawn }),
		of("retry", oursDrawn),
		of("jpillora", jpilloraDelay(true)),
		of("k8s-wait", k8sDelay(1)),
		of("cenkalti-v5", cenkalti5Delay(0.5)),
		of("cenkalti-v7", cenkalti7Delay(0.5)),
		of("avast-v4", avast4Delay(avast4.FullJitterBackoffDelay)),
		of("avast-v5", avast5Delay(avast5.FullJitterBackoffDelay)),
		of("codegroove", codegrooveDelay(codegroove.FullJitterBackoffDelay)),
		of("sethvargo", sethvargoDelay(true)),
		of("aws-sdk", awsDelay),
	}
}

func delayFactor(factor float64) []contender {
	return []contender{
		of("bare-product", func() func(int) { return runningProduct(factor) }),
		of("retry", func() func(int) { return oursDelay(retry.Backoff{Factor: factor}) }),
	}
}

func delayLinear() []contender {
	return []contender{
		of("bare-product", func() func(int) { return productAndMin }),
		of("retry", func() func(int) { return oursDelay(retry.Backoff{Mode: retry.Linear}) }),
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

func methodDelay() func(int) {
	var b byHand
	return func(n int) {
		var sum time.Duration
		for i := range n {
			sum += b.delay(i%delaysInTurn + 1)
		}
		delaySum = sum
	}
}

func methodJittered() func(int) {
	b := byHand{Jitter: retry.FullJitter}
	return func(n int) {
		var sum time.Duration
		u := givenU
		for i := range n {
			sum += b.jittered(i%delaysInTurn+1, u)
		}
		delaySum = sum
	}
}

// shifted returns min(5s·2^grown, 1h). It is inlined.
func shifted(grown int) time.Duration {
	if grown < 63 && firstDelay <= longestDelay>>grown {
		return firstDelay << grown
	}
	return longestDelay
}

func shiftAndMin(n int) {
	var sum time.Duration
	for i := range n {
		sum += shifted(i % delaysInTurn)
	}
	delaySum = sum
}

func shiftTimesU(n int) {
	var sum time.Duration
	u := givenU
	for i := range n {
		sum += time.Duration(float64(shifted(i%delaysInTurn)) * u)
	}
	delaySum = sum
}

func shiftTimesDrawn(n int) {
	var sum time.Duration
	for i := range n {
		sum += time.Duration(float64(shifted(i%delaysInTurn)) * rand.Float64())
	}
	delaySum = sum
}

func runningProduct(factor float64) func(int) {
	return func(n int) {
		var sum time.Duration
		var delay float64
		for i := range n {
			if i%delaysInTurn == 0 {
				delay = float64(firstDelay)
			} else {
				delay = min(delay*factor, float64(longestDelay))
			}
			sum += time.Duration(delay)
		}
		delaySum = sum
	}
}

func productAndMin(n int) {
	var sum time.Duration
	for i := range n {
		sum += min(firstDelay*time.Duration(i%delaysInTurn+1), longestDelay)
	}
	delaySum = sum
}

func oursDelay(b retry.Backoff) func(int) {
	return func(n int) {
		var sum time.Duration
		for i := range n {
			sum += b.Delay(i%delaysInTurn + 1)
		}
		delaySum = sum
	}
}

func oursJittered() func(int) {
	b := retry.Backoff{Jitter: retry.FullJitter}
	return func(n int) {
		var sum time.Duration
		u := givenU
		for i := range n {
			sum += b.Jittered(i%delaysInTurn+1, 0, u)
		}
		delaySum = sum
	}
}

func oursDrawn() func(int) {
	b := retry.Backoff{Jitter: retry.FullJitter}
	return func(n int) {
		var sum time.Duration
		for i := range n {
			sum += b.Jittered(i%delaysInTurn+1, 0, rand.Float64())
		}
		delaySum = sum
	}
}
