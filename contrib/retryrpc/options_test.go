package retryrpc_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryrpc"
	"github.com/retrygo/retry/retryshell"
)

func TestOptionsThatAreRefused(t *testing.T) {
	for _, row := range []struct {
		p    retry.Policy
		o    options
		want string
	}{
		{o: options{RetryCodes: []retryrpc.Code{retryrpc.Aborted, 17}}, want: "retryrpc: Options.RetryCodes[1] Code(17) is not a code"},
		{o: options{RetryCodes: []retryrpc.Code{retryrpc.OK}}, want: "retryrpc: Options.RetryCodes[0] OK is a success"},
		{o: options{RetryCodes: []retryrpc.Code{retryrpc.Canceled}}, want: "retryrpc: Options.RetryCodes[0] CANCELLED means that the call was given up"},
		{o: options{RetryCodes: []retryrpc.Code{retryrpc.FailedPrecondition}},
			want: "retryrpc: Options.RetryCodes[0] FAILED_PRECONDITION must not be repeated until the state has been fixed"},
		{p: retry.Policy{TTL: -1}, want: "retry: Policy.TTL -1ns is negative"},
		{p: retry.Policy{MaxAttempts: 3}, o: options{PolicyFor: func(string) retry.Policy { return retry.Policy{} }},
			want: "retryrpc: Options.PolicyFor func is set together with a policy"},
	} {
		_, err := retryrpc.NewLayer(row.p, row.o, retryrpc.Errors{})
		require.EqualError(t, err, row.want)
		var field *retry.FieldError
		require.ErrorAs(t, err, &field)
	}
	require.NoError(t, options{}.Validate())
	require.Error(t, options{RetryCodes: []retryrpc.Code{0}}.Validate())
}

func TestAPolicyForAMethod(t *testing.T) {
	o := options{
		PolicyFor:  func(method string) retry.Policy { return map[string]retry.Policy{"/s/bad": {TTL: -1}}[method] },
		Idempotent: func(method string) bool { return strings.HasPrefix(method, "/s/get") },
	}
	layer, err := retryrpc.NewLayer(retry.Policy{}, o, retryrpc.Errors{})
	require.NoError(t, err)
	require.True(t, layer.Idempotent("/s/getAll"))
	require.False(t, layer.Idempotent("/s/put"))
	require.Error(t, layer.Begin(t.Context(), &retryrpc.Call{Method: "/s/bad"}))

	good := &retryrpc.Call{Method: "/s/get"}
	require.NoError(t, layer.Begin(t.Context(), good))
	require.Equal(t, t.Context(), good.Context())
	require.Equal(t, 4, good.Policy.MaxAttempts, "that of retry.Inline")
	require.Equal(t, 1, good.Previous(2))
	require.Equal(t, retry.Terminal, good.Policy.Classify(errors.New("of no attempt")))
}

func TestTheNumberOfAnOuterAttemptIsPassedOn(t *testing.T) {
	layer, err := retryrpc.NewLayer(retry.Policy{}, options{PassAttempt: true}, retryrpc.Errors{})
	require.NoError(t, err)
	c := &retryrpc.Call{Method: "/s/m"}
	require.NoError(t, layer.Begin(retryshell.WithRemoteAttempt(t.Context(), 3), c))
	require.Equal(t, 2, c.Previous(1))
	require.Equal(t, 3, c.Previous(4))
}

func TestTheClassOfAFailure(t *testing.T) {
	require.Equal(t, retry.Retryable, retryrpc.Failure{Code: retryrpc.Unavailable}.Class())
	require.Equal(t, retry.Terminal, retryrpc.Failure{Code: retryrpc.Unavailable, Local: true}.Class())
	require.Equal(t, retry.Terminal, retryrpc.Failure{Code: retryrpc.Unavailable, Pushback: []string{"-1"}}.Class())
}

func TestAClassifierGoesBeforeTheTable(t *testing.T) {
	p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: 1}}
	p.Classify = retry.Otherwise(retry.Retryable)
	attempts, err := call(t, t.Context(), p, options{}, false, retryrpc.Failure{Err: errors.New("no"), Code: retryrpc.NotFound})
	require.Error(t, err)
	require.Equal(t, 2, attempts)
}
