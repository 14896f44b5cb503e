package retryhedge_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
)

const ms = time.Millisecond

func TestDecide(t *testing.T) {
	var (
		start = retryhedge.Decision{Action: retryhedge.Start}
		await = retryhedge.Decision{Action: retryhedge.Await}
		end   = retryhedge.Decision{Action: retryhedge.End}
	)
	look := func(d time.Duration) retryhedge.Decision {
		return retryhedge.Decision{Action: retryhedge.Look, Delay: d}
	}
	one := retryhedge.Progress{Calls: 1, Running: 1, Delay: 50 * ms}
	with := func(change func(*retryhedge.Progress)) retryhedge.Progress {
		pr := one
		change(&pr)
		return pr
	}
	for _, row := range []struct {
		name string
		max  int
		pr   retryhedge.Progress
		want retryhedge.Decision
	}{
		{"the call has just begun", 0, one, look(50 * ms)},
		{"a nanosecond before the delay", 0, with(func(pr *retryhedge.Progress) { pr.Since = 50*ms - 1 }), look(1)},
		{"at the delay", 0, with(func(pr *retryhedge.Progress) { pr.Since = 50 * ms }), start},
		{"two calls are the most by default", 0, with(func(pr *retryhedge.Progress) { pr.Calls, pr.Running, pr.Since = 2, 2, 60*ms }), await},
		{"a third call, of three", 3, with(func(pr *retryhedge.Progress) { pr.Calls, pr.Running, pr.Since = 2, 2, 60*ms }), start},
		{"one call is the most", 1, with(func(pr *retryhedge.Progress) { pr.Since = 60 * ms }), await},
		{"the caller has gone", 0, with(func(pr *retryhedge.Progress) { pr.Since, pr.Gone = 60*ms, true }), await},
		{"the budget has refused", 0, with(func(pr *retryhedge.Progress) { pr.Since, pr.Refused = 60*ms, true }), await},
		{"the delay is left", 0, with(func(pr *retryhedge.Progress) { pr.Since, pr.Left = 50*ms, 50*ms }), await},
		{"a nanosecond more than the delay is left", 0, with(func(pr *retryhedge.Progress) { pr.Since, pr.Left = 50*ms, 50*ms+1 }), start},
		{"too little would be left after the wait", 0, with(func(pr *retryhedge.Progress) { pr.Left = 100 * ms }), await},
		{"enough would be left after the wait", 0, with(func(pr *retryhedge.Progress) { pr.Left = 100*ms + 1 }), look(50 * ms)},
		{"the deadline has passed", 0, with(func(pr *retryhedge.Progress) { pr.Since, pr.Left = 60*ms, -1 }), await},
		{"a server asks for more than the delay", 0, with(func(pr *retryhedge.Progress) { pr.Since, pr.Hint = 50*ms, 200*ms }), look(200 * ms)},
		{"a server asks for less", 0, with(func(pr *retryhedge.Progress) { pr.Hint = 20 * ms }), look(50 * ms)},
		{"a call succeeded", 0, with(func(pr *retryhedge.Progress) { pr.HasEnded = true }), end},
		{"a call has a terminal error", 0, with(func(pr *retryhedge.Progress) { pr.HasEnded, pr.Ended = true, retry.Terminal }), end},
		{"a call has failed, and one is under way", 2, with(func(pr *retryhedge.Progress) {
			pr.HasEnded, pr.Ended, pr.Calls = true, retry.Retryable, 2
		}), await},
		{"the last call has failed", 2, with(func(pr *retryhedge.Progress) {
			pr.HasEnded, pr.Ended, pr.Calls, pr.Running = true, retry.Retryable, 2, 0
		}), end},
		{"the first has failed before its delay", 2, with(func(pr *retryhedge.Progress) {
			pr.HasEnded, pr.Ended, pr.Running = true, retry.Retryable, 0
		}), end},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := retryhedge.Policy{Delay: 50 * ms, MaxCalls: row.max}
			require.Equal(t, row.want, p.Decide(row.pr))
		})
	}
}

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

func ExamplePolicy_Decide() {
	p := retryhedge.Policy{Delay: 50 * time.Millisecond}
	pr := retryhedge.Progress{Calls: 1, Running: 1, Since: 20 * time.Millisecond, Delay: p.Delay}
	d := p.Decide(pr)
	fmt.Println(d.Action, d.Delay)
	pr.Since = 50 * time.Millisecond
	fmt.Println(p.Decide(pr).Action)
	// Output:
	// look 30ms
	// start
}
