package scenario

import (
	"math/rand/v2"
	"time"

	avast4 "github.com/avast/retry-go/v4"
	avast5 "github.com/avast/retry-go/v5"
	codegroove "github.com/codeGROOVE-dev/retry"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/bench/internal/contest"
)

const (
	delaysInTurn = 64 // attempts 1 to 64, and again from 1
	// The delay of the shift is below this for the first ten attempts. Both are retry's defaults.
	firstDelay   = 5 * time.Second
	longestDelay = time.Hour
)

// delaySum is where the delays go, so that no compiler drops them and a test can check them: those of the last run.
var delaySum time.Duration

// givenU is the number in [0,1) of the jittered delays that take one. It is a variable so that no compiler computes
// with it.
var givenU = 0.3

// byValue is why our delay math does not come near its limit.
const byValue = "Delay and Jittered are methods of a value of 72 B, and too large to be inlined: the copy and the call take that " +
	"long by themselves"

// DelayMath returns the scenarios of computing how long to wait, without waiting.
func DelayMath() []contest.Scenario {
	const inTurn = "The limit goes on from the delay before; retry computes each by itself."
	return []contest.Scenario{
		doublingDelay(), jitteredDelay(), drawnDelay(),
		oursBeside("Delay, factor 3", inTurn, "running product and min", runningProduct(3), retry.Backoff{Factor: 3}),
		oursBeside("Delay, factor 1.5", inTurn, "running product and min", runningProduct(1.5), retry.Backoff{Factor: 1.5}),
		oursBeside("Delay, linear", "5s, 10s, 15s, ... up to 1h.", "product and min", productAndMin, retry.Backoff{Mode: retry.Linear}),
	}
}

func doublingDelay() contest.Scenario {
	const state = "It has state, which is reset every 64 delays."
	const capped = "The cap is taken here, as its Do does."
	return contest.Scenario{
		Name: "Delay, factor 2",
		About: "The delays after attempts 1 to 64 in turn: 5s, 10s, 20s, ... up to 1h, without jitter. " +
			"failsafe-go has no function for a delay, and eapache/go-resiliency a table.",
		Unit: "ns/op",
		Contenders: []contest.Contender{
			{Name: "shift and min", Form: contest.Limit, New: func() func(int) { return shiftAndMin }},
			{Name: "retry", Form: contest.Ours, New: func() func(int) { return oursDelay(retry.Backoff{}) }},
			{Name: "jpillora/backoff", Form: contest.Fastest, New: jpilloraDelay(false)},
			{Name: "k8s.io/apimachinery wait", Form: contest.Fastest, New: k8sDelay(0), Remark: state},
			{Name: "cenkalti/backoff v5", Form: contest.Fastest, New: cenkalti5Delay(0), Remark: state + " It draws a number that it does not use."},
			{Name: "cenkalti/backoff v7", Form: contest.Fastest, New: cenkalti7Delay(0), Remark: state + " It draws a number that it does not use."},
			{Name: "avast/retry-go v4", Form: contest.Fastest, New: avast4Delay(avast4.BackOffDelay), Remark: capped},
			{Name: "avast/retry-go v5", Form: contest.Fastest, New: avast5Delay(avast5.BackOffDelay), Remark: capped},
			{Name: "codeGROOVE-dev/retry", Form: contest.Fastest, New: codegrooveDelay(codegroove.BackOffDelay), Remark: capped},
			{Name: "sethvargo/go-retry", Form: contest.Fastest, New: sethvargoDelay(false), Remark: "It has state, which is made anew every 64 delays."},
		},
		Targets: []contest.Target{{Rule: "a delay takes at most 2 ns", Kind: contest.Value, Most: 2, Why: byValue}},
	}
}

func jitteredDelay() contest.Scenario {
	return contest.Scenario{
		Name: "Delay, factor 2, full jitter of a given number",
		About: "The same delays times a number in [0,1) that the caller has. No peer takes the number as an argument: " +
			"they are compared where it is drawn.",
		Unit: "ns/op",
		Contenders: []contest.Contender{
			{Name: "shift and min, times u", Form: contest.Limit, New: func() func(int) { return shiftTimesU }},
			{Name: "retry", Form: contest.Ours, New: oursJittered},
		},
		Targets: []contest.Target{{Rule: "a jittered delay takes at most 5 ns", Kind: contest.Value, Most: 5, Why: byValue}},
	}
}

func drawnDelay() contest.Scenario {
	const ahead = "Full jitter, one doubling ahead"
	return contest.Scenario{
		Name: "Delay, factor 2, jitter drawn",
		About: "The same delays with the number drawn from math/rand/v2 for each, or from where a peer draws it. " +
			"Full jitter where a peer has it, else the jitter that it has.",
		Unit: "ns/op",
		Contenders: []contest.Contender{
			{Name: "shift and min, times rand.Float64", Form: contest.Limit, New: func() func(int) { return shiftTimesDrawn }},
			{Name: "retry", Form: contest.Ours, New: oursDrawn},
			{Name: "jpillora/backoff", Form: contest.Fastest, New: jpilloraDelay(true), Remark: "From the first delay up to the attempt's; math/rand."},
			{Name: "k8s.io/apimachinery wait", Form: contest.Fastest, New: k8sDelay(1), Remark: "From the attempt's delay up to twice that."},
			{Name: "cenkalti/backoff v5", Form: contest.Fastest, New: cenkalti5Delay(0.5), Remark: "Half the delay up or down, its default."},
			{Name: "cenkalti/backoff v7", Form: contest.Fastest, New: cenkalti7Delay(0.5), Remark: "Half the delay up or down, its default."},
			{Name: "avast/retry-go v4", Form: contest.Fastest, New: avast4Delay(avast4.FullJitterBackoffDelay), Remark: ahead + "; math/rand."},
			{Name: "avast/retry-go v5", Form: contest.Fastest, New: avast5Delay(avast5.FullJitterBackoffDelay), Remark: ahead + "; math/rand."},
			{Name: "codeGROOVE-dev/retry", Form: contest.Fastest, New: codegrooveDelay(codegroove.FullJitterBackoffDelay), Remark: ahead + "."},
			{Name: "sethvargo/go-retry", Form: contest.Fastest, New: sethvargoDelay(true), Remark: "Full jitter. It has state, which is made anew every 64 delays."},
			{Name: "aws-sdk-go-v2", Form: contest.Fastest, New: awsDelay, Remark: "Full jitter of 2s, 4s, ...; crypto/rand. From the 12th attempt on it is always 1h, and no number is drawn."},
		},
	}
}

// oursBeside is a scenario of a formula that is not a shift.
func oursBeside(name, about, limit string, loop func(int), b retry.Backoff) contest.Scenario {
	return contest.Scenario{
		Name:  name,
		About: "The delays after attempts 1 to 64 in turn, without jitter. " + about,
		Unit:  "ns/op",
		Contenders: []contest.Contender{
			{Name: limit, Form: contest.Limit, New: func() func(int) { return loop }},
			{Name: "retry", Form: contest.Ours, New: func() func(int) { return oursDelay(b) }},
		},
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
