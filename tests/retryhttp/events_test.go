package retryhttp_test

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryhttp"
)

func FuzzFirstEvent(f *testing.F) {
	for _, s := range []string{"data: 1\n\n", "event: a\r\ndata: 1\r\n\r\n", ": ping\r\r", "\ufeff\n\ndata\r"} {
		f.Add(s, uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream string, chunk uint8) {
		events := func(r io.Reader) (got string, rest []byte) {
			resp := answer(nil, 200, "Content-Type", "text/event-stream")
			resp.Body = io.NopCloser(r)
			got = "none"
			accepted := retryhttp.FirstEvent(func(event []byte) bool { got = string(event); return true })(resp)
			require.Equal(t, accepted, got != "none")
			rest, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			return got, rest
		}
		whole, body := events(strings.NewReader(stream))
		require.Equal(t, stream, string(body))
		inParts, body := events(&chunks{strings.NewReader(stream), int(chunk) + 1})
		require.Equal(t, stream, string(body))
		require.Equal(t, whole, inParts)
		if whole != "none" {
			require.Contains(t, stream, whole)
		}
	})
}

type chunks struct {
	r io.Reader
	n int
}

func (c *chunks) Read(p []byte) (int, error) { return c.r.Read(p[:min(len(p), c.n)]) }
