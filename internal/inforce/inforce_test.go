package inforce_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/internal/inforce"
)

// TestTheCoreDecidesSo asks the core what it does with each policy.
func TestTheCoreDecidesSo(t *testing.T) {
	busy := errors.New("busy")
	for name, p := range map[string]retry.Policy{
		"the zero policy":          {},
		"a set policy":             {MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Exponential, Base: time.Second, Factor: 1.5, Cap: time.Minute}, MaxHint: time.Minute},
		"a list":                   retry.Cautious(),
		"a list of more attempts":  {MaxAttempts: 9, Backoff: retry.Backoff{Delays: []time.Duration{time.Second}}},
		"a base above the cap":     {Backoff: retry.Backoff{Base: 2 * time.Hour}},
		"a cap below the base":     {Backoff: retry.Backoff{Cap: time.Second}},
		"no limit":                 {MaxAttempts: retry.Unlimited},
		"disabled":                 {Disabled: true, MaxAttempts: 5},
		"disabled without a limit": {Disabled: true, MaxAttempts: retry.Unlimited},
		"fixed":                    {Backoff: retry.Backoff{Mode: retry.Fixed}},
		"linear":                   {Backoff: retry.Backoff{Mode: retry.Linear, Base: time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			waiting := func(attempt int, err error) bool {
				return p.Decide(retry.Progress{Attempt: attempt}, err, 0).Status == retry.Waiting
			}
			if n := inforce.Attempts(&p); n < math.MaxInt {
				require.False(t, waiting(n, busy))
				require.True(t, n == 1 || waiting(n-1, busy))
			} else {
				require.True(t, waiting(math.MaxInt-1, busy))
			}
			if p.Disabled {
				return
			}
			require.True(t, waiting(1, retry.After(inforce.MaxHint(&p), busy)))
			require.False(t, waiting(1, retry.After(inforce.MaxHint(&p)+1, busy)))

			same := p.Backoff
			same.Mode = inforce.Mode(&p.Backoff)
			if same.Mode == retry.Exponential {
				same.Factor = inforce.Factor(&p.Backoff)
			}
			if same.Mode != retry.List {
				same.Cap = inforce.Cap(&p.Backoff)
			}
			require.NoError(t, same.Validate())
			for _, attempt := range []int{1, 2, 3, 10, 1000} {
				require.Equal(t, p.Delay(attempt), same.Delay(attempt))
			}
		})
	}
}
