package queues_test

import (
	"cmp"
	"os"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	theirs "k8s.io/client-go/util/retry"

	"github.com/retrygo/retry"
)

// policyOf is the function in the README.
func policyOf(b wait.Backoff) retry.Policy {
	p := retry.Policy{MaxAttempts: b.Steps, Backoff: retry.Backoff{Base: b.Duration, Factor: cmp.Or(b.Factor, 1)}}
	if j := b.Jitter; j > 0 { // up to j more, and never less
		p.Base = time.Duration(float64(b.Duration) * (1 + j/2))
		p.Jitter, p.JitterRatio = retry.RatioJitter, j/(2+j)
	}
	return p
}

func TestThePolicyOfAWaitBackoff(t *testing.T) {
	for name, b := range map[string]wait.Backoff{
		"DefaultRetry": theirs.DefaultRetry, "DefaultBackoff": theirs.DefaultBackoff,
		"without jitter":  {Steps: 5, Duration: time.Second, Factor: 2},
		"without factor":  {Steps: 5, Duration: time.Second, Jitter: 0.5},
		"negative jitter": {Steps: 5, Duration: time.Second, Factor: 2, Jitter: -1},
	} {
		p := policyOf(b)
		require.NoError(t, p.Validate(), name)
		d := float64(b.Duration)
		for n := 1; n < b.Steps; n++ {
			lo, hi := p.Bounds(n)
			require.InEpsilon(t, d, float64(lo), 1e-6, "%s %d", name, n)
			require.InEpsilon(t, d*(1+max(b.Jitter, 0)), float64(hi), 1e-6, "%s %d", name, n)
			d *= cmp.Or(b.Factor, 1)
		}
	}
	page, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	source, err := os.ReadFile("waitbackoff_test.go")
	require.NoError(t, err)
	code := regexp.MustCompile(`(?ms)^func policyOf.*?^}$`).Find(source)
	require.Contains(t, string(page), string(code))
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
