package retryrpc

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// late is a context whose deadline has passed and whose timer has not fired yet.
type late struct{ context.Context }

func (late) Deadline() (time.Time, bool) { return time.Now().Add(-time.Nanosecond), true }

func TestTheClockDecidesIfATimerIsLate(t *testing.T) {
	alive := context.Background()
	soon, cancel := context.WithTimeout(alive, time.Hour)
	defer cancel()
	for _, row := range []struct {
		name            string
		code            Code
		caller, attempt context.Context
		want            Origin
	}{
		{"the caller's deadline", DeadlineExceeded, late{alive}, late{alive}, Caller},
		{"the attempt's deadline", DeadlineExceeded, alive, late{alive}, AttemptTimeout},
		{"the attempt's deadline before the caller's", DeadlineExceeded, soon, late{alive}, AttemptTimeout},
		{"a deadline of the server", DeadlineExceeded, soon, soon, Remote},
		{"a cancellation by the server", Canceled, alive, late{alive}, Remote},
		{"a failure that is no timeout", Unavailable, late{alive}, late{alive}, Remote},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, (&Call{ctx: row.caller}).origin(row.code, row.attempt))
		})
	}
}
