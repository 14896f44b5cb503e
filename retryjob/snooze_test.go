package retryjob_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

func TestWhichErrorsPutAJobOff(t *testing.T) {
	off := retryjob.Snooze(7 * sec)
	putOff := retryjob.Next{Status: retryjob.Pending, Due: epoch.Add(8 * sec), Deferred: true}
	failed := retryjob.Next{Status: retryjob.WaitingRetry, Due: epoch.Add(3 * sec)}
	inDoubt := retryjob.Next{Status: retryjob.DeadLettered, Reason: retry.TerminalError}
	for _, row := range []struct {
		name    string
		handler func() error
		want    retryjob.Next
		lastErr string
	}{
		{"Snooze does", func() error { return off }, putOff, ""},
		{"a wrapped one does", func() error { return fmt.Errorf("not ready: %w", off) }, putOff, ""},
		{"one beside another error does", func() error { return errors.Join(errFlaky, off) }, putOff, ""},
		{"a panic with one is a failure", func() error { panic(fmt.Errorf("not ready: %w", off)) }, failed, "retryjob: the handler panicked: not ready: retryjob: put off for 7s"},
		{"a panic beside one is a failure", func() error { return errors.Join(off, &retryjob.PanicError{Value: "no"}) }, failed, "retryjob: put off for 7s\nretryjob: the handler panicked: no"},
		{"one beside doubt ends in doubt", func() error { return errors.Join(off, retry.Ambiguous(errFlaky)) }, inDoubt, "retryjob: put off for 7s\n" + errFlaky.Error()},
		{"one that is marked as doubt ends in doubt", func() error { return retry.Ambiguous(off) }, inDoubt, "retryjob: put off for 7s"},
		{"doubt that wraps one ends in doubt", func() error { return retry.Ambiguous(fmt.Errorf("commit: %w", off)) }, inDoubt, "commit: retryjob: put off for 7s"},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newTrial(t, evenly(2, 2*sec))
			require.Equal(t, row.want, x.step(1, func(context.Context) error {
				x.c.pass(sec)
				return row.handler()
			}))
			require.Equal(t, row.lastErr, x.r.LastErr())
			require.Equal(t, row.want.Status == retryjob.DeadLettered, x.r.Last().Ambiguous)
			if row.want.Deferred {
				require.Equal(t, []int{1, 0}, []int{x.r.PutOff, x.r.Attempts})
			} else {
				require.Equal(t, []int{0, 1}, []int{x.r.PutOff, x.r.Attempts})
			}
		})
	}
}
