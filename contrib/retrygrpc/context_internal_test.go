package retrygrpc

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

func TestACallerOfAStreamReadsUnderNoAttempt(t *testing.T) {
	c := readContext{retry.OneAttempt(retryshell.WithRemoteAttempt(context.Background(), 3)), context.Background()}
	require.Equal(t, 1, retry.AttemptNumber(c))
	require.Zero(t, retryshell.OuterAttemptNumber(c))
	require.False(t, retryshell.IsOneAttempt(c))
}
