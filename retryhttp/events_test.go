package retryhttp_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryhttp"
)

// events returns a base that answers 200 with one stream after the other, and repeats the last.
func events(streams ...io.Reader) roundTripper {
	n := 0
	return func(req *http.Request) (*http.Response, error) {
		resp := answer(req, 200, "Content-Type", "text/event-stream; charset=utf-8", "Retry-After", "7")
		resp.Body = io.NopCloser(streams[min(n, len(streams)-1)])
		n++
		return resp, nil
	}
}

func noError(event []byte) bool { return !bytes.HasPrefix(event, []byte("event: error")) }

func TestTheFirstEventOfAStream(t *testing.T) {
	long := "data: " + strings.Repeat("x", 70<<10)
	for _, row := range []struct {
		name   string
		stream string
		event  string // what ok gets
	}{
		{"one line", "data: 1\n\ndata: 2\n\n", "data: 1"},
		{"two lines", "event: error\ndata: {}\n\nrest", "event: error\ndata: {}"},
		{"lines that end with CR LF", "event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", "event: a\r\ndata: 1"},
		{"lines that end with CR", "event: a\rdata: 1\r\rdata: 2", "event: a\rdata: 1"},
		{"a comment alone is none", ": ping\n\n:\n\ndata: 1\n\n", "data: 1"},
		{"a comment within it stays", ": x\ndata: 1\n\n", ": x\ndata: 1"},
		{"empty lines before it", "\n\r\n\rdata: 1\n\n", "data: 1"},
		{"a byte order mark before it", "\ufeffdata: 1\n\n", "data: 1"},
		{"one of more than 64 KiB", long, long[:64<<10]},
	} {
		for name, reader := range map[string]func(io.Reader) io.Reader{
			"whole": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "with EOF": iotest.DataErrReader,
		} {
			t.Run(row.name+", "+name, func(t *testing.T) {
				var got []string
				tr := &retryhttp.Transport{Base: events(reader(strings.NewReader(row.stream))), Policy: atOnce, Accept: retryhttp.FirstEvent(func(event []byte) bool {
					got = append(got, string(event))
					return true
				})}
				body, resp, err := fetched(t, tr, get(t.Context()))
				require.NoError(t, err)
				require.Equal(t, 200, resp.StatusCode)
				require.Len(t, got, 1)
				if len(row.stream) > 64<<10 { // up to the end of the last Read
					require.True(t, strings.HasPrefix(got[0], row.event))
					require.Less(t, len(got[0]), 66<<10+1)
				} else {
					require.Equal(t, row.event, got[0])
				}
				require.Equal(t, row.stream, string(body), "the caller reads it again")
			})
		}
	}
}

func TestAStreamThatBeginsWithAnErrorIsRepeated(t *testing.T) {
	failure := func() io.Reader { return strings.NewReader("event: error\ndata: overloaded\n\n") }
	for name, stream := range map[string]string{
		"begins with an error": "event: error\ndata: overloaded\n\n", "is empty": "", "is of pings": ": ping\n\n",
		"ends within its first event": "event: token\ndata: 1\n",
	} {
		inBubble(t, "one that "+name+", after the wait that it asks for", func(t *testing.T) {
			tr := &retryhttp.Transport{Base: events(strings.NewReader(stream), strings.NewReader("data: 1\n\n")),
				Policy: three, Accept: retryhttp.FirstEvent(noError)}
			began := time.Now()
			o, resp, err := run(t, tr, get(t.Context()))
			require.NoError(t, err)
			require.Equal(t, []string{"not_accepted"}, reasons(o))
			require.Equal(t, 7*time.Second, time.Since(began))
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, "data: 1\n\n", string(body))
		})
	}
	t.Run("the last stream is the caller's to read", func(t *testing.T) {
		tr := &retryhttp.Transport{Base: events(failure()), Policy: once, Accept: retryhttp.FirstEvent(noError)}
		body, resp, err := fetched(t, tr, get(t.Context()))
		require.NoError(t, err)
		require.Equal(t, "event: error\ndata: overloaded\n\n", string(body))
		require.EqualError(t, retryhttp.CheckResponse(resp), "retryhttp: 200 OK, not accepted")
	})
	t.Run("as is one that breaks off before its first event", func(t *testing.T) {
		broken := io.MultiReader(strings.NewReader("data: 1\n"), iotest.ErrReader(reset))
		tr := &retryhttp.Transport{Base: events(broken), Policy: once, Accept: retryhttp.FirstEvent(nil)}
		body, resp, err := fetched(t, tr, get(t.Context()))
		require.Equal(t, reset, err, "the caller reads what there was, and the error")
		require.Equal(t, "data: 1\n", string(body))
		require.Error(t, retryhttp.CheckResponse(resp))
	})
	t.Run("a POST without a key is in doubt", func(t *testing.T) {
		tr := &retryhttp.Transport{Base: events(failure()), Policy: three, Accept: retryhttp.FirstEvent(noError)}
		o, resp, err := run(t, tr, request(t.Context(), http.MethodPost, nil))
		require.NoError(t, err)
		require.Equal(t, []string{"not_accepted/not_idempotent"}, reasons(o))
		require.True(t, retry.IsAmbiguous(retryhttp.CheckResponse(resp)))
	})
}

func TestOtherResponsesAreJudgedByTheirStatus(t *testing.T) {
	accept := retryhttp.FirstEvent(func([]byte) bool { return false })
	require.True(t, accept(answer(nil, 200, "Content-Type", "application/json")))
	require.True(t, accept(answer(nil, 204)))
	require.False(t, accept(answer(nil, 503, "Content-Type", "text/event-stream")))
	require.True(t, accept(&http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}}))
}

// AttemptTimeout ends the wait for an event, and then no longer the stream.
func TestTheAttemptTimeoutCoversTheFirstEvent(t *testing.T) {
	limited := three
	limited.AttemptTimeout = 2 * time.Second
	late := func(req *http.Request, wait time.Duration, text string) *http.Response {
		resp := answer(req, 200, "Content-Type", "text/event-stream")
		r, w := io.Pipe()
		go func() {
			select {
			case <-time.After(wait):
				_, _ = io.WriteString(w, text)
				<-time.After(wait)
				_ = w.Close()
			case <-req.Context().Done():
				_ = w.CloseWithError(req.Context().Err())
			}
		}()
		resp.Body = r
		return resp
	}
	for name, hedge := range map[string]*retryhttp.Hedge{
		"of one request": nil, "with hedges": {Policy: retryhedge.Policy{Delay: 1900 * time.Millisecond}},
	} {
		inBubble(t, name, func(t *testing.T) {
			n := 0
			tr := &retryhttp.Transport{Policy: limited, Hedge: hedge, Accept: retryhttp.FirstEvent(noError), Base: roundTripper(func(req *http.Request) (*http.Response, error) {
				if n++; n == 1 {
					return late(req, time.Hour, ""), nil
				}
				return late(req, 1500*time.Millisecond, "data: 1\n\n"), nil
			})}
			began := time.Now()
			o, resp, err := run(t, tr, get(t.Context()))
			require.NoError(t, err)
			require.Equal(t, []string{"attempt_timeout"}, reasons(o))
			require.Equal(t, 4500*time.Millisecond, time.Since(began))
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, "data: 1\n\n", string(body))
			require.Equal(t, 6*time.Second, time.Since(began))
		})
	}
}
