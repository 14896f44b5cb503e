package retryconf_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

func TestEveryPolicyThatIsSeenDuringReloadsIsWhole(t *testing.T) {
	var c retryconf.Catalog
	ref := c.Define("x", retry.Policy{Backoff: retry.Backoff{Base: sec, Cap: minute}})
	a := `{"policies":{"x":{"max_attempts":3,"base":"3s","cap":"3m","ttl":"3h"}}}`
	b := `{"policies":{"x":{"max_attempts":5,"delays":["5s","5s"],"cap":"5m","ttl":"5h"}}}`
	whole := []retry.Policy{ref.Policy()}
	for _, document := range []string{a, b} {
		require.NoError(t, load(&c, document))
		whole = append(whole, ref.Policy())
	}
	var stop atomic.Bool
	var readers sync.WaitGroup
	mixed := make(chan retry.Policy, 8)
	for range 8 {
		readers.Go(func() {
			for !stop.Load() {
				if p := ref.Policy(); !equalsOne(p, whole) {
					mixed <- p
					return
				}
			}
		})
	}
	for i := range 500 {
		require.NoError(t, load(&c, []string{a, b, `{}`}[i%3]))
		require.Error(t, load(&c, `{"policies":{"x":{"base":1}}}`))
	}
	stop.Store(true)
	readers.Wait()
	require.Empty(t, mixed)
}

func equalsOne(p retry.Policy, whole []retry.Policy) bool {
	for _, w := range whole {
		if p.String() == w.String() && p.TTL == w.TTL && p.MaxAttempts == w.MaxAttempts && p.Cap == w.Cap && p.Base == w.Base {
			return true
		}
	}
	return false
}
