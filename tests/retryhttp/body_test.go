package retryhttp_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retrytest"
)

func TestBufferedBodyHasItsLength(t *testing.T) {
	for _, row := range []struct {
		name   string
		tr     retryhttp.Transport
		body   string
		change func(*http.Request)
		want   int64 // what the server reads in Content-Length, -1 for none
	}{
		{"of a buffered stream", retryhttp.Transport{BufferBody: 10}, "1234567", nil, 7},
		{"of one as long as the buffer", retryhttp.Transport{BufferBody: 7}, "1234567", nil, 7},
		{"of one that says that its length is unknown", retryhttp.Transport{BufferBody: 10}, "1234567", func(r *http.Request) { r.ContentLength = -1 }, 7},
		{"of an empty one", retryhttp.Transport{BufferBody: 10}, "", nil, 0},
		{"not without a buffer", retryhttp.Transport{}, "1234567", nil, -1},
		{"not with a trailer, which only chunks can have", retryhttp.Transport{BufferBody: 10}, "1234567", func(r *http.Request) {
			r.Trailer = http.Header{"X-Sum": {"28"}}
		}, -1},
		{"not if the caller asks for chunks", retryhttp.Transport{BufferBody: 10}, "1234567", func(r *http.Request) {
			r.TransferEncoding = []string{"chunked"}
		}, -1},
	} {
		inBubble(t, row.name, func(t *testing.T) {
			var lengths []int64
			var trailer string
			base := retrytest.NewPipeServer(t, []retrytest.Answer{{Times: 2, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				lengths = append(lengths, r.ContentLength)
				body, err := io.ReadAll(r.Body)
				if err != nil || string(body) != row.body {
					w.WriteHeader(http.StatusBadRequest)
					return
				}
				trailer = r.Trailer.Get("X-Sum")
				w.WriteHeader([]int{503, 200}[len(lengths)-1])
			})}})
			row.tr.Base, row.tr.Policy = base, atOnce
			req := put(t.Context(), strings.NewReader(row.body))
			if row.tr.BufferBody < int64(len(row.body)) {
				req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(row.body)), nil }
			}
			if row.change != nil {
				row.change(req)
			}
			before := req.ContentLength
			_, resp, err := run(t, &row.tr, req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, 200, resp.StatusCode)
			require.Equal(t, []int64{row.want, row.want}, lengths)
			require.Equal(t, req.Trailer.Get("X-Sum"), trailer)
			require.Equal(t, before, req.ContentLength, "the caller's request is not changed")
		})
	}
}
