package retry

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNextAttemptNeverTurnsNegative(t *testing.T) {
	require.Equal(t, 2, next(1))
	require.Equal(t, math.MaxInt, next(math.MaxInt-1))
	require.Equal(t, math.MaxInt, next(math.MaxInt))
}
