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
	from := func(values ...int) func(context.Context) (int, error) {
		return func(context.Context) (int, error) {
			n := values[0]
			values = values[1:]
			if n < 0 {
				return n, errFlaky
			}
			return n, nil
		}
	}
	p := everySecond(3)
	inBubble(t, "a result that fails the check is repeated, with the hint of the check", func(t *testing.T) {
		start := time.Now()
		n, err := retry.DoValue(t.Context(), p, retry.Checked(from(1, 4), even))
		require.NoError(t, err)
		require.Equal(t, 4, n)
		require.Equal(t, 7*sec, time.Since(start))
	})
	inBubble(t, "the last result is returned with the error of the check", func(t *testing.T) {
		n, err := retry.DoValue(t.Context(), p, retry.Checked(from(1, 3, 5), even))
		require.Equal(t, 5, n)
		requireEnd(t, err, exhausted, 3)
		require.ErrorIs(t, err, errOdd)
	})
	inBubble(t, "a mark of the check counts", func(t *testing.T) {
		stop := func(int) error { return retry.Permanent(errOdd) }
		n, err := retry.DoValue(t.Context(), p, retry.Checked(from(1), stop))
		require.Equal(t, 1, n)
		requireEnd(t, err, terminal, 1)
	})
	inBubble(t, "a result with an error is not checked", func(t *testing.T) {
		asked := func(n int) error {
			require.GreaterOrEqual(t, n, 0)
			return nil
		}
		n, err := retry.DoValue(t.Context(), p, retry.Checked(from(-1, 3), asked))
		require.NoError(t, err)
		require.Equal(t, 3, n)
	})
	inBubble(t, "no check is none, and no function is refused", func(t *testing.T) {
		n, err := retry.DoValue(t.Context(), p, retry.Checked(from(1), nil))
		require.NoError(t, err)
		require.Equal(t, 1, n)
		_, err = retry.DoValue(t.Context(), p, retry.Checked(nil, even))
		require.EqualError(t, err, "retry: Do.fn <nil> is not a function")
	})
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
