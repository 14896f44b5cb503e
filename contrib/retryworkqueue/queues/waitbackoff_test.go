package queues_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	theirs "k8s.io/client-go/util/retry"

	"github.com/retrygo/retry"
)

// The README's formula, in its own words.
func TestThePolicyOfAWaitBackoff(t *testing.T) {
	for name, b := range map[string]wait.Backoff{"DefaultRetry": theirs.DefaultRetry, "DefaultBackoff": theirs.DefaultBackoff} {
		j := b.Jitter
		p := retry.Policy{MaxAttempts: b.Steps, Backoff: retry.Backoff{Base: time.Duration(float64(b.Duration) * (1 + j/2)),
			Factor: b.Factor, Jitter: retry.RatioJitter, JitterRatio: j / (2 + j)}}
		require.NoError(t, p.Validate())
		d := float64(b.Duration)
		for n := 1; n < b.Steps; n++ {
			lo, hi := p.Bounds(n)
			require.InEpsilon(t, d, float64(lo), 1e-6, "%s %d", name, n)
			require.InEpsilon(t, d*(1+j), float64(hi), 1e-6, "%s %d", name, n)
			d *= b.Factor
		}
	}
}

func TestTheCapOfAWaitBackoffEndsTheRunAfterAUselessSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var at []time.Duration
		b := wait.Backoff{Steps: 10, Duration: time.Second, Factor: 2, Cap: 5 * time.Second}
		require.True(t, wait.Interrupted(wait.ExponentialBackoff(b, func() (bool, error) {
			at = append(at, time.Since(began))
			return false, nil
		})))
		require.Equal(t, []time.Duration{0, time.Second, 3 * time.Second}, at)
		require.Equal(t, 7*time.Second, time.Since(began))
	})
}
