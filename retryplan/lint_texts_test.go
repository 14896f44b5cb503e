package retryplan_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// What a finding says reads well, and contradicts neither itself nor the policy.
func TestFindingsSay(t *testing.T) {
	type P = retry.Policy
	const s, ms, ever = time.Second, time.Millisecond, time.Duration(math.MaxInt64)
	list := func(delays ...time.Duration) retry.Backoff { return retry.Backoff{Delays: delays} }
	for _, row := range []struct {
		code         string
		p            P
		s            retryplan.Setting
		text, change string // the whole, or the beginning if it ends with ...; "" is not compared
	}{
		{code: "no-attempt-timeout", s: retryplan.Setting{Duration: retryplan.LogNormal(20*ms, 200*ms)}, change: "Set AttemptTimeout to 430ms."},
		{code: "timeout-below-duration", p: P{AttemptTimeout: 50 * ms}, s: retryplan.Setting{Duration: retryplan.LogNormal(20*ms, 200*ms)}, change: "Set AttemptTimeout to 430ms."},
		{code: "timeout-below-duration", p: P{AttemptTimeout: s}, s: retryplan.Setting{Duration: retryplan.Uniform(time.Minute, 2*time.Minute)},
			text: "An AttemptTimeout of 1s cuts off 100 % of the attempts of a healthy backend, whose duration is uniform 1m 2m."},
		{code: "cap-never-reached", p: P{MaxAttempts: 4, Backoff: retry.Backoff{Base: 31234567, Cap: time.Hour}}, change: "Set Cap to 130ms, or make the waits grow until they reach it."},
		{code: "decorrelated-without-cap", p: P{Backoff: retry.Backoff{Base: 12345678, Jitter: retry.DecorrelatedJitter}}, change: "Set Cap to 400ms, or to the longest wait that is of use."},
		{code: "no-retry-can-start", p: P{MaxAttempts: 2, TTL: 999 * ms, Backoff: retry.Backoff{Base: 1234567891}}, change: "Set Base to 120ms, or TTL to 1.3s."},
		{code: "invalid", p: P{Backoff: retry.Backoff{Base: time.Hour, Cap: time.Minute}}, text: "Cap 1m is below Base 1h, and Do refuses the policy."},
		{code: "zero-delay", p: P{Backoff: list(0)}, text: "The listed delay is 0: ..."},
		{code: "zero-delay", p: P{Backoff: list(s, 0)}, text: "1 of the 2 listed delays is 0: that retry follows ..."},
		{code: "zero-delay", p: P{Backoff: list(0, 0)}, text: "All 2 listed delays are 0: these retries follow ..."},
		{code: "zero-delay", p: P{Backoff: list(0, s, 0)}, text: "2 of the 3 listed delays are 0: these retries follow ..."},
		{code: "zero-delay", p: P{MaxAttempts: retry.Unlimited, Backoff: list(0)}, text: "The listed delay is 0 and repeats ..."},
		{code: "no-attempt-timeout", p: P{Disabled: true}, text: "An attempt that hangs is waited for without end."},
		{code: "no-attempt-timeout", p: P{MaxAttempts: 1}, s: retryplan.Setting{Deadline: s}, text: "An attempt that hangs uses up all of the deadline of 1s."},
		{code: "no-attempt-timeout", text: "An attempt that hangs is waited for without end, and no retry ever follows it."},
		{code: "list-shorter-than-attempts", p: P{MaxAttempts: 4, Backoff: list(s, s)}, change: "Set MaxAttempts to 3, or list 1 more delay.",
			text: "Delays has 2 waits for the 3 that 4 attempts need, so that the last one, 1s, is used 1 time more."},
		{code: "list-shorter-than-attempts", p: P{MaxAttempts: math.MaxInt32, Backoff: list(s, s)}, change: "Set MaxAttempts to 3, or to retry.Unlimited if the last wait is meant to repeat.",
			text: "Delays has 2 waits for the 2147483646 that 2147483647 attempts need, so that the last one, 1s, is used for all of the others."},
		{code: "no-retry-can-start", s: retryplan.Setting{Duration: retryplan.Constant(ever), Deadline: ever}, change: "Set MaxAttempts to 1.",
			text: "The first retry comes 2562047h47m16.854775807s after the first attempt at the earliest, too late for the deadline of 2562047h47m16.854775807s."},
		{code: "no-retry-can-start", p: P{Backoff: retry.Backoff{Base: 10*s + 4*ms}}, s: retryplan.Setting{Deadline: 10*s + 1*ms},
			text: "The first retry comes 10.004s after the first attempt at the earliest, too late for the deadline of 10.001s."},
		{code: "no-retry-can-start", p: P{TTL: 40 * ms, Backoff: retry.Backoff{Base: 100 * ms, Jitter: retry.FullJitter}},
			text: "The first retry comes 50ms after the first attempt if it waits for the mean, too late for the TTL of 40ms."},
		{code: "timeout-eats-ttl", p: P{MaxAttempts: 4, AttemptTimeout: 20 * s, TTL: 10 * s, Backoff: retry.Backoff{Base: s, Cap: s}}, change: "Set AttemptTimeout to 2.3s.",
			text: "An AttemptTimeout of 20s is above the TTL of 10s, which bounds starts only: no attempt follows one that has hung, although 4 attempts could start, and a run can take 30s."},
		{code: "timeout-eats-ttl", p: P{MaxAttempts: 4, AttemptTimeout: 10 * s, TTL: 10 * s, Backoff: retry.Backoff{Base: s, Cap: s}},
			text: "An AttemptTimeout of 10s within a TTL of 10s leaves room for 1 attempt if all hang; otherwise 4 could start."},
		{code: "list-longer-than-attempts", p: P{MaxAttempts: 2, Backoff: list(s, 2*s, 3*s)}, change: "Set Delays to 1s, or MaxAttempts to 4, which counts the first attempt too."},
		{code: "unread-fields", p: P{MaxAttempts: 1, Backoff: list(s)}, change: "Set Delays to nil, or MaxAttempts to 2 if one retry is meant."},
	} {
		f, ok := findingOf(retryplan.Lint(row.p, row.s), row.code)
		require.True(t, ok, "%s: %v", row.code, row.p)
		for want, got := range map[string]string{row.text: f.Text, row.change: f.Change} {
			if begins, part := strings.CutSuffix(want, "..."); part {
				require.True(t, strings.HasPrefix(got, begins), got)
			} else if want != "" {
				require.Equal(t, want, got)
			}
		}
		requireCleared(t, row.p, row.s, f)
	}
}
