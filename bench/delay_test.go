package bench_test

import (
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

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

// shifting has the size of a retry.Backoff and of its fields what the shift needs: a method of such a value that is not
// inlined copies it, which is the least that Backoff.Delay can cost.
type shifting struct {
	first, longest time.Duration
	_              [unsafe.Sizeof(retry.Backoff{}) - 2*unsafe.Sizeof(time.Duration(0))]byte
}

//go:noinline
func (s shifting) delay(attempt int) time.Duration {
	if grown := attempt - 1; grown < 63 && s.first <= s.longest>>grown {
		return s.first << grown
	}
	return s.longest
}

//go:noinline
func (s shifting) jittered(attempt int, u float64) time.Duration {
	d := s.longest
	if grown := attempt - 1; grown < 63 && s.first <= s.longest>>grown {
		d = s.first << grown
	}
	return time.Duration(float64(d) * u)
}

func methodDelay() func(int) {
	s := shifting{first: firstDelay, longest: longestDelay}
	return func(n int) {
		var sum time.Duration
		for i := range n {
			sum += s.delay(i%delaysInTurn + 1)
		}
		delaySum = sum
	}
}

func methodJittered() func(int) {
	s := shifting{first: firstDelay, longest: longestDelay}
	return func(n int) {
		var sum time.Duration
		u := givenU
		for i := range n {
			sum += s.jittered(i%delaysInTurn+1, u)
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
