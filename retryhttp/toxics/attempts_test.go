package toxics_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// attemptTimeout is far above what a request needs over loopback, so that only a toxic reaches it.
const attemptTimeout = time.Second

func TestAnAttemptThatTimesOutIsRepeatedUntilTheLatencyIsGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, hello)
	r.add(t, toxic{kind: "latency", attributes: ms("latency", forever)})
	client, last := r.retrying(
		&retryhttp.Transport{Policy: retry.Policy{AttemptTimeout: attemptTimeout, MaxAttempts: 4}},
		func(attempt int) {
			if attempt == 2 {
				r.mend()
			}
		},
	)

	body, err := r.get(t, client)

	require.NoError(t, err)
	require.Equal(t, "hello", body)
	require.Equal(t, run{
		Decision: retry.Decision{Status: retry.Succeeded},
		Attempts: 3,
		Reasons:  []retryhttp.Reason{retryhttp.AttemptTimeout, retryhttp.AttemptTimeout},
	}, *last)
}

// TestAFaultAfterSendingIsRepeatedIfTheRequestMayBe breaks the first connection once the request is on its way. The
// client cannot know whether the server has acted on it, even if the request was lost.
func TestAFaultAfterSendingIsRepeatedIfTheRequestMayBe(t *testing.T) {
	t.Parallel()
	withKey := http.Header{"Idempotency-Key": {`"8e03978e-40d5-43dd-bc93-6894a57f9324"`}}
	requests := []struct {
		name     string
		method   string
		header   http.Header
		repeated bool
	}{
		{name: "a GET is repeated", method: http.MethodGet, repeated: true},
		{name: "a POST is not repeated", method: http.MethodPost},
		{name: "a POST with a key is repeated", method: http.MethodPost, header: withKey, repeated: true},
	}
	const isLost = true
	timedOut := []retryhttp.Reason{retryhttp.AttemptTimeout}
	closed := []retryhttp.Reason{retryhttp.ConnClosed}
	broken := []retryhttp.Reason{retryhttp.ConnReset, retryhttp.ConnClosed}
	for _, fault := range []struct {
		name    string
		toxic   toxic
		timeout time.Duration      // of an attempt, for a fault that would not end one
		reasons []retryhttp.Reason // any of these
		lost    bool               // the request does not reach the server
	}{
		{"a response that is late", toxic{kind: "latency", attributes: ms("latency", forever)}, attemptTimeout, timedOut, !isLost},
		{"a request that never arrives", toxic{kind: "timeout", stream: "upstream", attributes: ms("timeout", 0)}, attemptTimeout, timedOut, isLost},
		{"a response that never comes", toxic{kind: "timeout", attributes: ms("timeout", 0)}, attemptTimeout, timedOut, !isLost},
		{"a connection that is closed instead of a response", toxic{kind: "timeout", attributes: ms("timeout", attemptTimeout)}, 0, closed, !isLost},
		{"a connection that is reset by the response", toxic{kind: "reset_peer", attributes: ms("timeout", 0)}, 0, broken, !isLost},
		{"a connection that is reset by the request", toxic{kind: "reset_peer", stream: "upstream", attributes: ms("timeout", 0)}, 0, broken, isLost},
		{"a response of no bytes", toxic{kind: "limit_data", attributes: `{"bytes": 0}`}, 0, closed, !isLost},
		{"a response that ends within its status line", toxic{kind: "limit_data", attributes: `{"bytes": 10}`}, 0,
			[]retryhttp.Reason{retryhttp.MalformedResponse}, !isLost},
		{"a response that ends within its headers", toxic{kind: "limit_data", attributes: `{"bytes": 30}`}, 0,
			[]retryhttp.Reason{retryhttp.BodyTruncated}, !isLost},
	} {
		for _, request := range requests {
			t.Run(fault.name+"/"+request.name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, hello)
				r.add(t, fault.toxic)
				client, last := r.retrying(
					&retryhttp.Transport{Policy: retry.Policy{AttemptTimeout: fault.timeout, MaxAttempts: 3}},
					func(int) { r.mend() },
				)

				body, err := r.send(t, client, request.method, "", request.header)

				require.Len(t, last.Reasons, 1)
				require.Subset(t, fault.reasons, last.Reasons)
				hits := 0
				if !fault.lost {
					hits++
				}
				if request.repeated {
					hits++
					require.NoError(t, err)
					require.Equal(t, "hello", body)
					require.Equal(t, 2, last.Attempts)
				} else {
					var failed *retryhttp.AttemptError
					require.ErrorAs(t, err, &failed)
					require.Equal(t, retryhttp.NotIdempotent, failed.Veto)
					require.ErrorIs(t, err, retry.TerminalError)
					require.Equal(t, 1, last.Attempts)
				}
				require.EqualValues(t, hits, r.hits.Load())
			})
		}
	}
}

// TestARefusedConnectionIsRepeatedForAPostToo is not parallel: while the proxy is down no other test may get its port.
func TestARefusedConnectionIsRepeatedForAPostToo(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		t.Run(method, func(t *testing.T) {
			r := newRig(t, hello)
			client, last := r.retrying(
				&retryhttp.Transport{Policy: retry.Policy{MaxAttempts: 4}},
				func(attempt int) {
					if attempt == 2 {
						require.NoError(t, r.proxy.Start())
					}
				},
			)
			r.proxy.Stop()

			body, err := r.send(t, client, method, "payload", nil)

			require.NoError(t, err)
			require.Equal(t, "hello", body)
			require.Equal(t, run{
				Decision: retry.Decision{Status: retry.Succeeded},
				Attempts: 3,
				Reasons:  []retryhttp.Reason{retryhttp.ConnRefused, retryhttp.ConnRefused},
			}, *last)
			require.EqualValues(t, 1, r.hits.Load())
		})
	}
}
