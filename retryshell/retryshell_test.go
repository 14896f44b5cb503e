package retryshell_test

import (
	"testing"

	"github.com/retrygo/retry/retryshell"
	"github.com/stretchr/testify/require"
)

func TestAFirstAttemptElsewhereIsNotARetry(t *testing.T) {
	for _, number := range []int{-1, 0, 1} {
		require.Equal(t, t.Context(), retryshell.WithRemoteAttempt(t.Context(), number))
	}
}
