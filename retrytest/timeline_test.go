package retrytest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrytest"
)

// lines returns its arguments as lines.
func lines(text ...string) string { return strings.Join(text, "\n") + "\n" }

func TestTimeline(t *testing.T) {
	fixed := retry.Backoff{Mode: retry.Fixed, Base: time.Minute}
	tcp := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 41234}
	broken := &net.OpError{Op: "write", Net: "tcp", Source: tcp, Addr: tcp, Err: os.NewSyscallError("write", syscall.EPIPE)}
	for _, row := range []struct {
		name   string
		policy retry.Policy
		steps  []retrytest.Step
		want   string
	}{
		{"a success at once, of the only policy", retry.Policy{Name: "orders"}, []retrytest.Step{{}}, lines(
			"0s   attempt 1  ok",
			"0s   succeeded after 1 attempt",
		)},
		{"exhaustion", retry.Policy{MaxAttempts: 2, Backoff: fixed}, []retrytest.Step{{Err: errDown}, {Err: errDown, Takes: 90 * time.Minute}}, lines(
			"0s      attempt 1  down   wait 1m",
			"1h31m   attempt 2  down   took 1h30m",
			"1h31m   dead_letter (attempts_exhausted) after 2 attempts",
		)},
		{"ten attempts, and no wait", retry.Policy{MaxAttempts: 10, Backoff: retry.Backoff{Delays: []time.Duration{0}}}, []retrytest.Step{{Err: errDown, Times: 9}, {}}, lines(
			"0s   attempt 1   down   wait 0s",
			"0s   attempt 2   down   wait 0s",
			"0s   attempt 3   down   wait 0s",
			"0s   attempt 4   down   wait 0s",
			"0s   attempt 5   down   wait 0s",
			"0s   attempt 6   down   wait 0s",
			"0s   attempt 7   down   wait 0s",
			"0s   attempt 8   down   wait 0s",
			"0s   attempt 9   down   wait 0s",
			"0s   attempt 10  ok",
			"0s   succeeded after 10 attempts",
		)},
		{"texts of errors", retry.Policy{Backoff: fixed}, []retrytest.Step{
			{Err: errors.New("retryhttp: 503 Service Unavailable")},
			{Err: fmt.Errorf("get: %w", broken)},
			{Err: fmt.Errorf("get: %w", syscall.ECONNRESET)},
			{Err: syscall.ECONNREFUSED},
			{Err: errors.New("größer\nals 1")},
			{},
		}, lines(
			"0s   attempt 1  503 Service Unavailable   wait 1m",
			"1m   attempt 2  get: write: broken pipe   wait 1m",
			"2m   attempt 3  connection reset          wait 1m",
			"3m   attempt 4  connection refused        wait 1m",
			"4m   attempt 5  größer; als 1             wait 1m",
			"5m   attempt 6  ok",
			"5m   succeeded after 6 attempts",
		)},
	} {
		bubble(t, row.name, func(t *testing.T) {
			var runs retrytest.Timeline
			row.policy.Observe = runs.Observe
			_ = retry.Do(t.Context(), row.policy, retrytest.Script(t, row.steps))
			require.Equal(t, row.want, runs.String())
		})
	}
	bubble(t, "several runs, one of which its caller cancels before it begins", func(t *testing.T) {
		var runs retrytest.Timeline
		p := retry.Policy{Observe: runs.Observe}
		require.NoError(t, retry.Do(t.Context(), p, retrytest.Errors(t, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.Error(t, retry.Do(ctx, p, retrytest.Errors(t)))
		require.Equal(t, lines(
			"0s   attempt 1  ok",
			"0s   succeeded after 1 attempt",
			"0s   canceled (caller_canceled) after 0 attempts",
		), runs.String())
	})
	t.Run("runs of policies with different names are told apart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var runs retrytest.Timeline
			outer := retry.Policy{Name: "outer", MaxAttempts: 2, Backoff: retry.Backoff{Base: time.Second}, Observe: runs.Observe}
			inner := retry.Policy{Name: "inner", MaxAttempts: 1, Observe: runs.Observe}
			_ = retry.Do(t.Context(), outer, func(ctx context.Context) error {
				_ = retry.Do(ctx, inner, func(context.Context) error { return errors.New("down") })
				return errors.New("no order")
			})
			require.Equal(t, lines(
				"0s   inner: attempt 1  down",
				"0s   inner: dead_letter (attempts_exhausted) after 1 attempt",
				"0s   outer: attempt 1  no order   wait 1s",
				"0s   inner: attempt 1  down",
				"0s   inner: dead_letter (attempts_exhausted) after 1 attempt",
				"1s   outer: attempt 2  no order",
				"1s   outer: dead_letter (attempts_exhausted) after 2 attempts",
			), runs.String())
		})
	})
	t.Run("the zero Timeline is empty", func(t *testing.T) { require.Empty(t, new(retrytest.Timeline).String()) })
}

func TestSchedule(t *testing.T) {
	p := retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: time.Second, Jitter: retry.FullJitter}}
	unlimited := p
	unlimited.MaxAttempts = retry.Unlimited
	for _, row := range []struct {
		name   string
		policy retry.Policy
		waits  []time.Duration
		want   string
	}{
		{"as it is", p, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, ""},
		{"disabled", retry.Policy{Disabled: true}, nil, ""},
		{"the beginning of an endless one", unlimited, []time.Duration{time.Second, 2 * time.Second}, ""},
		{"another wait", p, []time.Duration{time.Second, time.Minute, 4 * time.Second}, "\n" +
			"              want      got\n" +
			"  wait 1       1s        1s\n" +
			"  wait 2       1m        2s   <--\n" +
			"  wait 3       4s        4s",
		},
		{"a wait too few", p, []time.Duration{time.Second, 2 * time.Second}, "\n" +
			"              want      got\n" +
			"  wait 1       1s        1s\n" +
			"  wait 2       2s        2s\n" +
			"  wait 3       none      4s   <--",
		},
		{"a wait too many", p, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 0}, "\n" +
			"              want      got\n" +
			"  wait 1       1s        1s\n" +
			"  wait 2       2s        2s\n" +
			"  wait 3       4s        4s\n" +
			"  wait 4       0s        none   <--",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			var r recorder
			retrytest.CheckSchedule(&r, row.policy, row.waits...)
			if row.want == "" {
				require.Empty(t, r.messages)
				return
			}
			require.Len(t, r.messages, 1)
			require.Equal(t, "retrytest: the schedule of "+row.policy.String()+" differs:"+row.want, r.messages[0])
		})
	}
	for _, refused := range []retry.Policy{
		{Backoff: retry.Backoff{Base: time.Minute, Cap: time.Second}}, {TTL: -1}, {Backoff: retry.Backoff{Factor: 0.5}},
	} {
		var r recorder
		retrytest.CheckSchedule(&r, refused, 5*time.Second)
		require.Equal(t, []string{"retrytest: no schedule: " + refused.Validate().Error()}, r.messages)
	}
}

// TestCheckComparesWithoutColumns: each row is a text that is expected, and what the check says of it.
func TestCheckComparesWithoutColumns(t *testing.T) {
	var runs retrytest.Timeline
	p := retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{0}}, MaxAttempts: 2, Observe: runs.Observe}
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, retry.Do(t.Context(), p, retrytest.Script(t, []retrytest.Step{{Err: errDown}, {}})))
	})
	const whole = "\nThe whole:\n0s   attempt 1  down   wait 0s\n0s   attempt 2  ok\n0s   succeeded after 2 attempts\n"
	for _, row := range []struct {
		name  string
		lines []string
		want  []string
	}{
		{"lines", []string{"0s attempt 1 down wait 0s", "0s attempt 2 ok", "0s succeeded after 2 attempts"}, nil},
		{"one text, with other columns", []string{"\n\t0s  attempt 1  down  wait 0s\n\t0s  attempt 2    ok\n\n\t0s succeeded after 2 attempts\n"}, nil},
		{"the text itself", []string{runs.String()}, nil},
		{"another line", []string{"0s attempt 1 down wait 0s", "0s attempt 2 down", "0s succeeded after 2 attempts"},
			[]string{"retrytest: line 2 of the timeline differs:\n  want 0s attempt 2 down\n  got  0s attempt 2 ok" + whole}},
		{"a line too few", []string{"0s attempt 1 down wait 0s", "0s attempt 2 ok"},
			[]string{"retrytest: line 3 of the timeline differs:\n  want nothing\n  got  0s succeeded after 2 attempts" + whole}},
		{"a line too many", []string{runs.String(), "1s attempt 1 ok"},
			[]string{"retrytest: line 4 of the timeline differs:\n  want 1s attempt 1 ok\n  got  nothing" + whole}},
		{"blanks that are missing", []string{"0s attempt1 down wait 0s", "0s attempt 2 ok", "0s succeeded after 2 attempts"},
			[]string{"retrytest: line 1 of the timeline differs:\n  want 0s attempt1 down wait 0s\n  got  0s attempt 1 down wait 0s" + whole}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var r recorder
			runs.Check(&r, row.lines...)
			require.Equal(t, row.want, r.messages)
		})
	}
	(&retrytest.Timeline{}).Check(t)
}
