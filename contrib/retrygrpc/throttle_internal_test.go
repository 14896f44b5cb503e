package retrygrpc

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThrottleForgetsTargetsThatAreFull(t *testing.T) {
	throttle, err := NewThrottle(2, 2)
	require.NoError(t, err)
	for i := range mostTargets {
		require.False(t, throttle.fail(strconv.Itoa(i)))
	}
	require.Equal(t, 2.0, throttle.Tokens("new"))
	require.False(t, throttle.fail("new"))
	require.Equal(t, 1.0, throttle.Tokens("newer"), "beyond the bound targets share")
	require.Len(t, throttle.targets, mostTargets)
	throttle.succeed("0")
	require.Equal(t, 2.0, throttle.Tokens("newest"), "a full one has made room")
	require.Len(t, throttle.targets, mostTargets)
	require.NotContains(t, throttle.targets, "0")
	require.Equal(t, 1.0, throttle.Tokens("1"), "others are kept")
}

func TestTexts(t *testing.T) {
	require.Equal(t, []string{"", "remote", "attempt_timeout", "caller", "Origin(9)"},
		[]string{Origin(0).String(), Remote.String(), AttemptTimeout.String(), Caller.String(), Origin(9).String()})
	require.Equal(t, []string{"", "pushback", "answer_begun"}, []string{Veto(0).String(), Pushback.String(), AnswerBegun.String()})
	var none *AttemptError
	require.Equal(t, "<nil>", none.Error())
	require.NoError(t, none.Unwrap())
	require.Nil(t, none.GRPCStatus())
	require.False(t, none.Timeout())
}
