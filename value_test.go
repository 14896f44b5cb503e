package retry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

func TestChecked(t *testing.T) {
	errOdd := errors.New("odd")
	even := func(n int) error {
		if n%2 == 1 {
			return retry.After(7*sec, errOdd)
		}
		return nil
	}
	stop := func(int) error { return retry.Permanent(errOdd) }
	for _, row := range []struct {
		name    string
		results []int // a negative one is a failure
		check   func(int) error
		want    int
		err     error // that is found in the error of the run
		elapsed time.Duration
	}{
		{"a result that fails the check is repeated, with the hint of the check", []int{1, 4}, even, 4, nil, 7 * sec},
		{"the last result is returned with the error of the check", []int{1, 3, 5}, even, 5, errOdd, 14 * sec},
		{"a mark of the check counts", []int{1}, stop, 1, retry.TerminalError, 0},
		{"a result with an error is not checked", []int{-1, 4}, even, 4, nil, sec},
		{"no check is none", []int{1}, nil, 1, nil, 0},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			left := row.results
			fn := func(context.Context) (n int, err error) {
				n, left = left[0], left[1:]
				if n < 0 {
					err = errFlaky
				}
				return n, err
			}
			start := time.Now()
			n, err := retry.DoValue(t.Context(), everySecond(3), retry.Checked(fn, row.check))
			require.Equal(t, row.want, n)
			require.ErrorIs(t, err, row.err)
			require.Empty(t, left)
			require.Equal(t, row.elapsed, time.Since(start))
		})
	}
	_, err := retry.DoValue(t.Context(), everySecond(3), retry.Checked(nil, even))
	require.EqualError(t, err, "retry: Do.fn <nil> is not a function")
}

func ExampleChecked() {
	states := []string{"pending", "pending", "shipped"} // the answers of a service, one after the other
	state := func(ctx context.Context) (string, error) {
		return states[retry.AttemptNumber(ctx)-1], nil
	}
	shipped := func(state string) error {
		if state != "shipped" {
			return fmt.Errorf("order is %s", state)
		}
		return nil
	}
	got, err := retry.DoValue(context.Background(), quick, retry.Checked(state, shipped))
	fmt.Println(got, err)
	// Output:
	// shipped <nil>
}
