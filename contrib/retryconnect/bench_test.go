package retryconnect_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryconnect"
)

// A call without a network, whose first attempts are answered with 503.
func BenchmarkUnary(b *testing.B) {
	policy := retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: 1}}
	for name, failures := range map[string]int{"first try": 0, "one retry": 1} {
		b.Run(name, func(b *testing.B) {
			interceptor, err := retryconnect.NewInterceptor(policy, retryconnect.Options{})
			require.NoError(b, err)
			calls := 0
			client := connect.NewClient[text, text](transport(func(r *http.Request) (*http.Response, error) {
				_, _ = io.Copy(io.Discard, r.Body)
				status := http.StatusOK
				if calls++; calls%(failures+1) != 0 {
					status = http.StatusServiceUnavailable
				}
				return &http.Response{
					StatusCode: status, Header: http.Header{"Content-Type": {"application/proto"}},
					Body: io.NopCloser(bytes.NewReader(nil)), Request: r,
				}, nil
			}), "http://server.test"+unaryProcedure, connect.WithInterceptors(interceptor))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.CallUnary(b.Context(), connect.NewRequest(wrapperspb.String("ping"))); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
