package retry_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// Doubt that is under Transient in one place and not in another is doubt.
func TestDoubtThatIsFoundTwice(t *testing.T) {
	lost := retry.Ambiguous(errFlaky)
	again := retry.Transient(lost)
	var hints error = lost
	for range 12 {
		hints = both{retry.After(sec, hints)}
	}
	for _, row := range []struct {
		name string
		err  error
		want bool
	}{
		{"in a list, under Transient first", multi{again, lost}, true},
		{"in a list, under Transient last", multi{lost, again}, true},
		{"in a list, under Transient only", multi{again, again}, false},
		{"in a join with an As, under Transient first", errors.Join(opaque{io.EOF}, again, lost), true},
		{"in one element of a list, under Transient first", multi{errors.Join(again, lost), io.EOF}, true},
		{"in one element of a list, under Transient only", multi{errors.Join(again, again), io.EOF}, false},
		{"in a list, in a nested run under Transient first", multi{retry.Transient(runOf(lost)), runOf(lost)}, true},
		{"in a list, in a timeout under Transient first",
			multi{retry.Transient(retryshell.MarkTimeout(retry.Ambiguous(context.Canceled))), lost}, true},
		{"in a list under Transient, and beside it", errors.Join(retry.Transient(multi{io.EOF, lost}), multi{io.EOF, lost}), true},
		{"behind more hints than are looked at", hints, true},
		{"behind more hints than are looked at, in an opaque error", opaque{hints}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, retry.IsAmbiguous(row.err))
			calls := 0
			_ = retry.Do(t.Context(), atOnce, func(context.Context) error {
				calls++
				return row.err
			})
			require.Equal(t, row.want, calls == 1, "it is not repeated")
		})
	}
}
