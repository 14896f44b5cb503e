package scenario

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRunsOutlastTheirFailures shows that each run makes the attempt after the failures, in which the heap is measured,
// and ends with it. retainedBytes itself panics where it does not.
func TestRunsOutlastTheirFailures(t *testing.T) {
	for _, r := range endless {
		t.Run(r.name, func(t *testing.T) {
			calls := 0
			require.NoError(t, r.do(100, func() error {
				if calls++; calls <= 100 {
					return errors.New("attempt failed")
				}
				return nil
			}))
			require.Equal(t, 101, calls)
			retainedBytes(r, 100)
		})
	}
}

// TestRetainedBytesSeesWhatIsKept shows that the errors that a run keeps are counted, and those that it drops are not.
func TestRetainedBytesSeesWhatIsKept(t *testing.T) {
	const failures, bytesPerError = 20_000, 16 // an errorString
	var all []error
	hoarder := run{name: "hoarder", do: func(_ int, fn func() error) error {
		for {
			err := fn()
			if err == nil {
				return nil
			}
			all = append(all, err)
		}
	}}
	require.Greater(t, retainedBytes(hoarder, failures), int64(failures*bytesPerError))
	require.Len(t, all, failures)
	require.Less(t, retainedBytes(endless[0], failures), int64(failures*bytesPerError))
}
