package retryhttp_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retrytest"
)

// hedgeAfter is a policy that hedges after 50ms.
var hedgeAfter = retryhedge.Policy{Delay: 50 * time.Millisecond}

// A hedge that has lost can still be under way in the next attempt. Only the race detector sees what is wrong then.
func TestALoserThatOutlivesItsAttempt(t *testing.T) {
	inBubble(t, "shares nothing with the next one", func(t *testing.T) {
		var made atomic.Int32
		tr := &retryhttp.Transport{Policy: three, Hedge: &retryhttp.Hedge{Policy: hedgeAfter},
			Base: roundTripper(func(req *http.Request) (*http.Response, error) {
				_, _ = io.Copy(io.Discard, req.Body)
				switch made.Add(1) {
				case 1:
					time.Sleep(60 * time.Millisecond)
					return nil, errFault
				case 2:
					time.Sleep(1065 * time.Millisecond) // the next attempt begins after 1060ms
					return nil, req.Context().Err()
				default:
					return answer(req, 200), nil
				}
			})}
		tr.Policy.AttemptTimeout = time.Second
		tr.Hedge.Policy.Classify = retry.Otherwise(retry.Terminal)
		req := request(t.Context(), http.MethodPut, io.MultiReader(strings.NewReader("order")))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(io.MultiReader(strings.NewReader("order"))), nil }
		resp, err := tr.RoundTrip(req)
		require.NoError(t, err)
		require.Equal(t, 200, resp.StatusCode)
		time.Sleep(time.Second)
		require.EqualValues(t, 3, made.Load())
	})
}

// The loser is canceled before the winner's body is read, slowly, over real connections.
func TestTheWinnersBodyIsWhole(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 512<<10/16)
	for _, h2 := range []bool{false, true} {
		t.Run("HTTP/2 "+strconv.FormatBool(h2), func(t *testing.T) {
			var requests atomic.Int32
			lost := make(chan struct{}, 1)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if requests.Add(1) == 1 {
					<-r.Context().Done()
					lost <- struct{}{}
					return
				}
				for part := range len(content) / 4096 {
					_, _ = w.Write(content[part*4096:][:4096])
					w.(http.Flusher).Flush()
				}
			}))
			server.EnableHTTP2 = h2
			server.StartTLS()
			defer server.Close()
			tr := &retryhttp.Transport{Base: server.Client().Transport, Hedge: &retryhttp.Hedge{Policy: retryhedge.Policy{Delay: time.Millisecond}}}
			resp, err := (&http.Client{Transport: tr}).Get(server.URL)
			require.NoError(t, err)
			<-lost
			got, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.True(t, bytes.Equal(content, got))
			require.NoError(t, resp.Body.Close())
			require.Equal(t, h2, resp.ProtoMajor == 2)
		})
	}
}

// A connection or a goroutine that is left would make the bubble panic, and the server notices a body that is not closed.
func TestHedgesLeakNothing(t *testing.T) {
	for name, h2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		var both chan struct{}
		together := []retrytest.Answer{{Times: retrytest.Forever, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select { // a request and its hedge are answered at once
			case both <- struct{}{}:
			case <-both:
			case <-r.Context().Done():
			}
			_, _ = io.WriteString(w, "some text")
		})}}
		socketBubble(t, name, h2, together, func(t *testing.T, base *retrytest.Server) {
			both = make(chan struct{})
			tr := &retryhttp.Transport{Base: base, Hedge: &retryhttp.Hedge{Policy: hedgeAfter}}
			for range 100 {
				resp, err := tr.RoundTrip(get(t.Context()))
				require.NoError(t, err)
				require.Equal(t, "some text", socketRead(t, resp))
			}
			require.Equal(t, 200, len(base.Requests()))
		})
	}
}
