package retryconnect_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryconnect"
	"github.com/retrygo/retry/retrytest"
)

// TestWhatATransportCanFailWith fails connections at the byte level: HTTP/1.1, and HTTP/2 for gRPC.
func TestWhatATransportCanFailWith(t *testing.T) {
	for fault, row := range map[retrytest.HTTPFault]struct {
		code   connect.Code
		always bool // repeated, also if not idempotent
	}{
		retrytest.ResetUnread: {connect.CodeCanceled, true},
		retrytest.ResetRead:   {connect.CodeCanceled, true},
		retrytest.Garbage:     {connect.CodeUnavailable, true},
		retrytest.HangHeaders: {connect.CodeDeadlineExceeded, false},
	} {
		for name, protocol := range protocols {
			t.Run(string(fault)+" "+name, func(t *testing.T) {
				for _, more := range [][]connect.ClientOption{nil, {idempotent}} {
					for _, streamed := range []bool{false, true} {
						synctest.Test(t, func(t *testing.T) {
							s := &server{stream: failUntil(1, nil, "a", "b")}
							h := retrytest.NewPipeServer(t, []retrytest.Answer{{Fault: fault}, {Handler: s.handler(), Times: retrytest.Forever}})
							if name == "grpc" {
								h.Transport.Protocols.SetHTTP1(false)
								h.Transport.Protocols.SetUnencryptedHTTP2(true)
							}
							p := upTo(2)
							p.AttemptTimeout = time.Second
							unary, stream := s.over(t, &http.Client{Transport: h}, protocol, p, retryconnect.Options{}, more...)
							want := "pong"
							call := func() (string, error) { return ping(t.Context(), unary) }
							if streamed {
								want = "ab"
								call = func() (string, error) { return read(t.Context(), stream) }
							}
							got, err := call()
							if row.always || more != nil {
								require.NoError(t, err)
								require.Equal(t, want, got)
								return
							}
							require.Equal(t, row.code, connect.CodeOf(err))
							require.ErrorIs(t, err, retry.TerminalError)
							require.Zero(t, s.requests())
						})
					}
				}
			})
		}
	}
}
