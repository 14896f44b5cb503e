package retryplan_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// TestFollowingTheAdviceEnds makes the changes of the findings of random policies, one at a time, in the order in which they
// come and in a random one, until there are none or nothing is left to do. No policy comes twice.
//
// It takes 2,000 policies; with RETRYPLAN_FULL=1 it takes 100,000, in 4 minutes or more.
func TestFollowingTheAdviceEnds(t *testing.T) {
	n := trials(2_000, 100_000)
	const seed = 20
	longest := 0
	came := map[string]bool{"invalid": true} // random policies are valid
	for i := range n {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		p, s := randomPolicy(rnd), randomSetting(rnd)
		for _, pick := range []func(int) int{func(int) int { return 0 }, rnd.IntN} {
			codes := followed(t, p, s, pick)
			if i < 3 {
				t.Logf("to be checked by hand: %v, %+v: %v", p, s, codes)
			}
			longest = max(longest, len(codes))
			for _, code := range codes {
				came[code] = true
			}
		}
	}
	require.Len(t, came, len(retryplan.Codes()), "a code that never came: %v", came)
	t.Logf("%d policies, at most %d changes", n, longest)
}

// followed makes the changes of findings, of which pick chooses the next, and returns their codes.
func followed(t *testing.T, p retry.Policy, s retryplan.Setting, pick func(int) int) (codes []string) {
	seen := map[string]bool{}
	first := p
	for {
		state := fmt.Sprintf("%+v %v %v", p.Backoff, p.Budget != nil, p.Wait != nil) +
			fmt.Sprint(p.MaxAttempts, p.AttemptTimeout, p.TTL, p.MaxHint, p.ResetAfter, p.Disabled)
		require.False(t, seen[state], "a circle: %v\n%v\n%+v", codes, first, s)
		seen[state] = true
		found := retryplan.Lint(p, s)
		if len(found) == 0 {
			return codes
		}
		f := found[pick(len(found))]
		codes = append(codes, f.Code)
		requireCleared(t, p, s, f)
		p, _ = changed(p, f.Change)
	}
}

// randomPolicy returns a valid policy whose fields are set as often as not, from nanoseconds to days.
func randomPolicy(rnd *rand.Rand) retry.Policy {
	for {
		p := retry.Policy{
			MaxAttempts:    oneOf(rnd, 0, 0, retry.Unlimited, 1, 2, 3, 4, 5, 8, 30, 60, 5000),
			AttemptTimeout: randomDuration(rnd),
			TTL:            randomDuration(rnd),
			MaxHint:        randomDuration(rnd),
			Disabled:       rnd.IntN(20) == 0,
			Backoff: retry.Backoff{
				Mode:   oneOf(rnd, 0, retry.Exponential, retry.Linear, retry.Fixed),
				Base:   randomDuration(rnd),
				Factor: oneOf(rnd, 0, 0, 1, 1.01, 1.5, 2, 3, 10),
				Cap:    randomDuration(rnd),
				Jitter: retry.JitterMode(rnd.IntN(5)),
			},
		}
		if rnd.IntN(4) == 0 {
			p.Mode, p.Base, p.Factor = 0, 0, 0
			for range 1 + rnd.IntN(6) {
				p.Delays = append(p.Delays, randomDuration(rnd))
			}
		}
		if p.Jitter == retry.RatioJitter {
			p.JitterRatio = oneOf(rnd, 0, 0.1, 0.5, 1)
		}
		if rnd.IntN(3) == 0 {
			p.Budget = retry.NewBudget(retry.BudgetConfig{})
		}
		if rnd.IntN(10) == 0 {
			p.Wait = func(int, error, time.Duration) time.Duration { return time.Second }
		}
		if rnd.IntN(10) == 0 {
			p.ResetAfter = randomDuration(rnd)
		}
		if p.Validate() == nil {
			return p
		}
	}
}

func randomSetting(rnd *rand.Rand) retryplan.Setting {
	median := max(randomDuration(rnd), 1)
	return retryplan.Setting{
		Inline:   rnd.IntN(2) == 0,
		Deadline: randomDuration(rnd),
		Clients:  oneOf(rnd, 0, 0, 1, 20, 1000),
		Duration: oneOf(rnd, retryplan.Dist{}, retryplan.Dist{}, retryplan.Constant(median), retryplan.Exponential(median),
			retryplan.Uniform(median, 3*median), retryplan.LogNormal(median, 10*median)),
	}
}

// randomDuration returns 0, or a duration as people write them; one in 40 lacks its unit.
func randomDuration(rnd *rand.Rand) time.Duration {
	units := []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, time.Hour}
	switch rnd.IntN(40) {
	case 0:
		return time.Duration(1 + rnd.IntN(2000))
	case 1, 2:
		return time.Duration(1+rnd.IntN(100)) * time.Microsecond
	}
	if rnd.IntN(3) == 0 {
		return 0
	}
	return time.Duration(1+rnd.IntN(9)) * oneOf(rnd, units...)
}

func oneOf[T any](rnd *rand.Rand, values ...T) T { return values[rnd.IntN(len(values))] }
