package retryhedge_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
)

// slowly is Decide as a list of rules, each by itself: the first that applies.
func slowly(p retryhedge.Policy, pr retryhedge.Progress) retryhedge.Decision {
	most := p.MaxCalls
	if most == 0 {
		most = 2
	}
	due := pr.Delay // since the newest call began, for the next one
	if by := pr.Since + pr.Hint; by > due {
		due = by
	}
	var left time.Duration // of the caller's time when the next call would begin
	if due > pr.Since {
		left = pr.Left - (due - pr.Since)
	} else {
		left = pr.Left
	}
	for _, rule := range []struct {
		applies bool
		d       retryhedge.Decision
	}{
		{pr.HasEnded && pr.Ended == retry.Unknown, retryhedge.Decision{Action: retryhedge.End}},
		{pr.HasEnded && pr.Ended == retry.Terminal, retryhedge.Decision{Action: retryhedge.End}},
		{pr.Running == 0, retryhedge.Decision{Action: retryhedge.End}},
		{pr.Calls >= most, retryhedge.Decision{Action: retryhedge.Await}},
		{pr.Gone, retryhedge.Decision{Action: retryhedge.Await}},
		{pr.Refused, retryhedge.Decision{Action: retryhedge.Await}},
		{pr.Left != 0 && left <= pr.Delay, retryhedge.Decision{Action: retryhedge.Await}},
		{pr.Since < due, retryhedge.Decision{Action: retryhedge.Look, Delay: due - pr.Since}},
	} {
		if rule.applies {
			return rule.d
		}
	}
	return retryhedge.Decision{Action: retryhedge.Start}
}

func TestDecideAgreesWithASlowModel(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 1))
	some := func(n int) time.Duration { return time.Duration(r.IntN(n)) * 10 * ms }
	one := func(in int) bool { return r.IntN(in) == 0 }
	seen := map[retryhedge.Action]int{}
	for i := range 1_000_000 {
		p := retryhedge.Policy{Delay: some(6), MaxCalls: r.IntN(5)}
		pr := retryhedge.Progress{
			Calls: 1 + r.IntN(4), Since: some(8), Delay: p.Delay, HasEnded: one(3), Ended: retry.Class(r.IntN(3)),
			Gone: one(8), Refused: one(8),
		}
		pr.Running = r.IntN(pr.Calls + 1)
		if one(3) {
			pr.Hint = some(12)
		}
		if one(2) {
			pr.Left = some(20) - 20*ms
		}
		want := slowly(p, pr)
		if got := p.Decide(pr); got != want {
			require.Equal(t, want, got, "scene %d: %v %+v", i, p, pr)
		}
		if i < 3 {
			t.Logf("%v, %+v: %+v", p, pr, want)
		}
		seen[want.Action]++
	}
	for a := retryhedge.Start; a <= retryhedge.End; a++ {
		require.Greater(t, seen[a], 10_000, a)
	}
}

func FuzzDecide(f *testing.F) {
	f.Add(2, 1, 1, int64(50*ms), int64(50*ms), int64(0), int64(0), uint8(0), false, false, false)
	f.Fuzz(func(t *testing.T, most, calls, running int, since, delay, hold, left int64, class uint8, ended, gone, refused bool) {
		p := retryhedge.Policy{MaxCalls: most}
		pr := retryhedge.Progress{
			Calls: calls, Running: running, Since: time.Duration(since), Delay: time.Duration(delay), HasEnded: ended,
			Ended: retry.Class(class), Hint: time.Duration(hold), Left: time.Duration(left), Gone: gone, Refused: refused,
		}
		d := p.Decide(pr)
		require.Equal(t, d, p.Decide(pr))
		require.Equal(t, d.Action == retryhedge.Look, d.Delay > 0)
		require.False(t, d.Action == retryhedge.Start && (gone || refused || running <= 0))
	})
}
