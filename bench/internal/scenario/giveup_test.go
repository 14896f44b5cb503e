package scenario

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/bench/internal/peer"
)

func TestGiveUpOfOursHasTheHistoryOfAllAttempts(t *testing.T) {
	err := peer.Ours.New(context.Background(), giveUpConfig, func(context.Context) error { return errFlaky })()
	var failed *retry.Error
	require.ErrorAs(t, err, &failed)
	require.Len(t, failed.History, 10)
	require.Equal(t, retry.AttemptsExhausted, failed.Reason)
}
