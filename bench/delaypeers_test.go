package bench_test

import (
	"time"

	avast4 "github.com/avast/retry-go/v4"
	avast5 "github.com/avast/retry-go/v5"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	cenkalti5 "github.com/cenkalti/backoff/v5"
	cenkalti7 "github.com/cenkalti/backoff/v7"
	codegroove "github.com/codeGROOVE-dev/retry"
	jpillora "github.com/jpillora/backoff"
	sethvargo "github.com/sethvargo/go-retry"
	k8s "k8s.io/apimachinery/pkg/util/wait"
)

func jpilloraDelay(jitter bool) func() func(int) {
	return func() func(int) {
		b := &jpillora.Backoff{Min: firstDelay, Max: longestDelay, Jitter: jitter}
		return func(n int) {
			var sum time.Duration
			for i := range n {
				sum += b.ForAttempt(float64(i % delaysInTurn))
			}
			delaySum = sum
		}
	}
}

func k8sDelay(jitter float64) func() func(int) {
	return func() func(int) {
		fresh := k8s.Backoff{Duration: firstDelay, Factor: 2, Steps: delaysInTurn, Cap: longestDelay, Jitter: jitter}
		return func(n int) {
			var sum time.Duration
			var b k8s.Backoff
			for i := range n {
				if i%delaysInTurn == 0 {
					b = fresh
				}
				sum += b.Step()
			}
			delaySum = sum
		}
	}
}

func cenkalti5Delay(spread float64) func() func(int) {
	return func() func(int) {
		return cenkaltiDelay(&cenkalti5.ExponentialBackOff{InitialInterval: firstDelay, Multiplier: 2, MaxInterval: longestDelay, RandomizationFactor: spread})
	}
}

func cenkalti7Delay(spread float64) func() func(int) {
	return func() func(int) {
		return cenkaltiDelay(&cenkalti7.ExponentialBackOff{InitialInterval: firstDelay, Multiplier: 2, MaxInterval: longestDelay, RandomizationFactor: spread})
	}
}

// cenkaltiDelay calls b through its interface, as its Retry does.
func cenkaltiDelay(b cenkalti7.BackOff) func(int) {
	return func(n int) {
		var sum time.Duration
		for i := range n {
			if i%delaysInTurn == 0 {
				b.Reset()
			}
			sum += b.NextBackOff()
		}
		delaySum = sum
	}
}

func avast4Delay(delay avast4.DelayTypeFunc) func() func(int) {
	var config avast4.Config
	avast4.Delay(firstDelay)(&config)
	avast4.MaxDelay(longestDelay)(&config)
	return cappedDelay(delay, &config)
}

func avast5Delay(delay avast5.DelayTypeFunc) func() func(int) {
	return cappedDelay(delay, avast5.DelayContext(avast5.New(avast5.Delay(firstDelay), avast5.MaxDelay(longestDelay))))
}

func codegrooveDelay(delay codegroove.DelayTypeFunc) func() func(int) {
	var config codegroove.Config
	codegroove.Delay(firstDelay)(&config)
	codegroove.MaxDelay(longestDelay)(&config)
	return cappedDelay(delay, &config)
}

// cappedDelay calls delay as a value, as retry-go's Do does.
func cappedDelay[C any](delay func(uint, error, C) time.Duration, config C) func() func(int) {
	return func() func(int) {
		return func(n int) {
			var sum time.Duration
			for i := range n {
				sum += min(delay(uint(i%delaysInTurn)+1, nil, config), longestDelay)
			}
			delaySum = sum
		}
	}
}

func sethvargoDelay(jitter bool) func() func(int) {
	fresh := func() sethvargo.Backoff {
		b := sethvargo.WithCappedDuration(longestDelay, sethvargo.NewExponential(firstDelay))
		if jitter {
			b = sethvargo.WithFullJitter(b)
		}
		return b
	}
	return func() func(int) {
		return func(n int) {
			var sum time.Duration
			var b sethvargo.Backoff
			for i := range n {
				if i%delaysInTurn == 0 {
					b = fresh()
				}
				delay, _ := b.Next()
				sum += delay
			}
			delaySum = sum
		}
	}
}

func awsDelay() func(int) {
	b := awsretry.NewExponentialJitterBackoff(longestDelay)
	return func(n int) {
		var sum time.Duration
		for i := range n {
			delay, err := b.BackoffDelay(i%delaysInTurn+1, nil)
			if err != nil {
				panic(err)
			}
			sum += delay
		}
		delaySum = sum
	}
}
