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

// The text of a finding reads well, and contradicts neither itself nor the policy.
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
		{code: "no-attempt-timeout", s: retryplan.Setting{Duration: retryplan.LogNormal(20*ms, 200*ms)}, change: "Set AttemptTimeout to 860ms."},
		{code: "timeout-below-duration", p: P{AttemptTimeout: 50 * ms}, s: retryplan.Setting{Duration: retryplan.LogNormal(20*ms, 200*ms)}, change: "Set AttemptTimeout to 860ms."},
		{code: "timeout-below-duration", p: P{AttemptTimeout: s}, s: retryplan.Setting{Duration: retryplan.Uniform(time.Minute, 2*time.Minute)},
			text: "An AttemptTimeout of 1s cuts off 100 % of the attempts of a healthy backend, whose duration is uniform 1m0s 2m0s."},
		{code: "no-retry-can-start", p: P{MaxAttempts: 2, TTL: 999 * ms, Backoff: retry.Backoff{Base: 1234567891}}, change: "Set Base to 15ms and Cap to 120ms, or TTL to 1.3s."},
		{code: "invalid", p: P{Backoff: retry.Backoff{Base: time.Hour, Cap: time.Minute}}, text: "Cap 1m is below Base 1h, and Do refuses the policy."},
		{code: "zero-delay", p: P{Backoff: list(0, s, 0)}, change: "Set Delays[0] to 100ms and Delays[2] to 100ms.",
			text: "Of 3 listed delays 2 are 0: these retries follow at once, and those of all clients together."},
		{code: "zero-delay", p: P{MaxAttempts: retry.Unlimited, Backoff: list(0)}, text: "The last listed delay is 0 and repeats ..."},
		{code: "no-attempt-timeout", text: "Nothing ends an attempt that hangs."},
		{code: "no-attempt-timeout", p: P{MaxAttempts: 1}, s: retryplan.Setting{Deadline: s}, text: "An attempt that hangs uses up the deadline of 1s."},
		{code: "no-jitter", p: P{Backoff: retry.Backoff{Jitter: retry.RatioJitter}}, change: "Set JitterRatio to 0.5.",
			text: "A JitterRatio of 0.2 spreads the waits little: all clients that failed together return within 2s of each other, 6s after attempt 1; full jitter would spread them evenly."},
		{code: "no-retry-can-start", s: retryplan.Setting{Duration: retryplan.Constant(ever), Deadline: ever}, change: "Set MaxAttempts to 1.",
			text: "No retry can start: it would come 2562047h47m16.854775807s after the first attempt began, too late for the deadline of 2562047h47m16.854775807s."},
		{code: "no-retry-can-start", p: P{Backoff: retry.Backoff{Base: 10*s + 4*ms}}, s: retryplan.Setting{Deadline: 10*s + 1*ms},
			text: "No retry can start: it would come 10.1s after the first attempt began, too late for the deadline of 10.001s."},
		{code: "no-retry-can-start", p: P{TTL: 40 * ms, Backoff: retry.Backoff{Base: 100 * ms, Jitter: retry.FullJitter}},
			text: "A retry can start only if its wait is shorter than the mean: it would come 50ms after the first attempt began, too late for the TTL of 40ms."},
		{code: "unreachable-attempts", p: P{MaxAttempts: 4, AttemptTimeout: 10 * s, TTL: 30 * s, Backoff: list(100 * ms)}, change: "Set AttemptTimeout to 7.4s.",
			text: "If attempts hang until the AttemptTimeout of 10s, only 3 of 4 can start: attempt 4 would come 30.3s after the first one began, too late for the TTL of 30s."},
		{code: "unreachable-attempts", p: P{MaxAttempts: 4, AttemptTimeout: 10 * s, Backoff: list(100 * ms)}, s: retryplan.Setting{Deadline: 30 * s, Duration: retryplan.Constant(4 * s)},
			change: "Set MaxAttempts to 3."},
		{code: "list-longer-than-attempts", p: P{MaxAttempts: 2, Backoff: list(s, 2*s, 3*s)}, change: "Set Delays to Delays[:1], or MaxAttempts to 4, which counts the first attempt too."},
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
