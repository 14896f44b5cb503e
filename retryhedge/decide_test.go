package retryhedge_test

import (
	"fmt"
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

func TestTheTextsOfActions(t *testing.T) {
	for action, want := range map[retryhedge.Action]string{
		0: "Action(?)", retryhedge.Start: "start", retryhedge.Look: "look", retryhedge.Await: "await", retryhedge.End: "end", retryhedge.End + 1: "Action(?)",
	} {
		require.Equal(t, want, action.String())
	}
}
