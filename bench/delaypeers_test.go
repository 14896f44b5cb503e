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

func jpilloraDelay(n int, jitter bool) {
	b := &jpillora.Backoff{Min: firstDelay, Max: longestDelay, Jitter: jitter}
	inTurn(n, func(i int) time.Duration { return b.ForAttempt(float64(i)) })
}

func k8sDelay(n int, jitter float64) {
	fresh := k8s.Backoff{Duration: firstDelay, Factor: 2, Steps: delaysInTurn, Cap: longestDelay, Jitter: jitter}
	var b k8s.Backoff
	inTurn(n, func(i int) time.Duration {
		if i == 0 {
			b = fresh
		}
		return b.Step()
	})
}

func cenkalti5Delay(n int, spread float64) {
	cenkaltiDelay(n, &cenkalti5.ExponentialBackOff{
		InitialInterval: firstDelay, Multiplier: 2, MaxInterval: longestDelay, RandomizationFactor: spread,
	})
}

func cenkalti7Delay(n int, spread float64) {
	cenkaltiDelay(n, &cenkalti7.ExponentialBackOff{
		InitialInterval: firstDelay, Multiplier: 2, MaxInterval: longestDelay, RandomizationFactor: spread,
	})
}

// cenkaltiDelay calls b through its interface, as its Retry does.
//
//go:noinline
func cenkaltiDelay(n int, b cenkalti7.BackOff) {
	inTurn(n, func(i int) time.Duration {
		if i == 0 {
			b.Reset()
		}
		return b.NextBackOff()
	})
}

func avast4Delay(n int, delay avast4.DelayTypeFunc) {
	var config avast4.Config
	avast4.Delay(firstDelay)(&config)
	avast4.MaxDelay(longestDelay)(&config)
	cappedDelay(n, delay, &config)
}

func avast5Delay(n int, delay avast5.DelayTypeFunc) {
	cappedDelay(n, delay, avast5.DelayContext(avast5.New(avast5.Delay(firstDelay), avast5.MaxDelay(longestDelay))))
}

func codegrooveDelay(n int, delay codegroove.DelayTypeFunc) {
	var config codegroove.Config
	codegroove.Delay(firstDelay)(&config)
	codegroove.MaxDelay(longestDelay)(&config)
	cappedDelay(n, delay, &config)
}

// cappedDelay calls delay as a value, as retry-go's Do does.
//
//go:noinline
func cappedDelay[C any](n int, delay func(uint, error, C) time.Duration, config C) {
	inTurn(n, func(i int) time.Duration { return min(delay(uint(i)+1, nil, config), longestDelay) })
}

func sethvargoDelay(n int, jitter bool) {
	var b sethvargo.Backoff
	inTurn(n, func(i int) time.Duration {
		if i == 0 {
			b = sethvargo.WithCappedDuration(longestDelay, sethvargo.NewExponential(firstDelay))
			if jitter {
				b = sethvargo.WithFullJitter(b)
			}
		}
		delay, _ := b.Next()
		return delay
	})
}

func awsDelay(n int) {
	b := awsretry.NewExponentialJitterBackoff(longestDelay)
	inTurn(n, func(i int) time.Duration {
		delay, err := b.BackoffDelay(i+1, nil)
		if err != nil {
			panic(err)
		}
		return delay
	})
}
