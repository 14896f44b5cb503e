package retrygrpc

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

func TestACallerOfAStreamReadsUnderNoAttempt(t *testing.T) {
	c := readContext{retry.OneAttempt(retry.RemoteAttempt(context.Background(), 3)), context.Background()}
	require.Equal(t, 1, retry.AttemptNumber(c))
	require.Zero(t, retry.OuterAttempt(c))
	require.False(t, retry.IsOneAttempt(c))
}
