package bench_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cristalhq/hedgedhttp"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/stretchr/testify/require"
	"resty.dev/v3"

	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryhttp"
)

// A GET that is fast, under hedging that is on, and one whose first request never ends, so that its hedge answers.
func BenchmarkHedgeFast(b *testing.B) { alone(b, hedgeContenders(time.Minute)) }
func BenchmarkHedged(b *testing.B)    { alone(b, hedgeContenders(1)) }

// hedging are the clients that make one hedge after a delay.
var hedging = []struct {
	name string
	make func(base http.RoundTripper, delay time.Duration) http.RoundTripper
}{
	{"retryhttp", func(base http.RoundTripper, delay time.Duration) http.RoundTripper {
		return &retryhttp.Transport{Base: base, Hedge: &retryhttp.Hedge{Policy: retryhedge.Policy{Delay: delay}}}
	}},
	{"hedgedhttp", func(base http.RoundTripper, delay time.Duration) http.RoundTripper {
		hedged, err := hedgedhttp.NewRoundTripper(delay, 2, base)
		if err != nil {
			panic(err)
		}
		return hedged
	}},
	{"failsafehttp", func(base http.RoundTripper, delay time.Duration) http.RoundTripper {
		return failsafehttp.NewRoundTripper(base, hedgepolicy.NewWithDelay[*http.Response](delay))
	}},
	{"resty", func(base http.RoundTripper, delay time.Duration) http.RoundTripper {
		hedged := resty.NewHedging().SetDelay(delay).SetMaxRequest(2).SetMaxRequestPerSecond(0)
		hedged.SetTransport(base)
		return hedged
	}},
}

func hedgeContenders(delay time.Duration) []contender {
	slow := delay < time.Second
	all := []contender{{"bare-hedge", hedgeLoop(handHedge{&pairs{slow: slow}, delay})}}
	for _, h := range hedging {
		all = append(all, contender{h.name, hedgeLoop(h.make(&pairs{slow: slow}, delay))})
	}
	return all
}

// handHedge is the least that makes a hedge: a request in the caller's goroutine under a timer, which makes another in its
// own, each with a context that the other's response ends. It has no policy, and takes any failure for the other's end.
type handHedge struct {
	base  http.RoundTripper
	delay time.Duration
}

func (h handHedge) RoundTrip(req *http.Request) (*http.Response, error) {
	var ctx [2]context.Context
	var cancel [2]context.CancelFunc
	for i := range ctx {
		ctx[i], cancel[i] = context.WithCancel(req.Context())
	}
	hedged := make(chan *http.Response, 1)
	timer := time.AfterFunc(h.delay, func() {
		resp, err := h.base.RoundTrip(req.WithContext(ctx[1]))
		if err == nil {
			cancel[0]()
		} else {
			resp = nil
		}
		hedged <- resp
	})
	resp, err := h.base.RoundTrip(req.WithContext(ctx[0]))
	if err == nil {
		cancel[1]()
		resp.Body = &heldBody{resp.Body, cancel[0]}
	}
	if timer.Stop() {
		return resp, err
	}
	switch other := <-hedged; {
	case other == nil:
	case err == nil:
		drain(other)
	default:
		other.Body = &heldBody{other.Body, cancel[1]}
		return other, nil
	}
	return resp, err
}

// heldBody ends the context of its request when it is closed.
type heldBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *heldBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// hedgeLoop returns what makes n GETs through rt, and panics if one does not get its 200.
func hedgeLoop(rt http.RoundTripper) func(n int) {
	send, req := (&http.Client{Transport: rt}).Do, exchange{}.request()
	return func(n int) {
		for range n {
			if err := get(send, req, len(smallBody)); err != nil {
				panic(err)
			}
		}
	}
}

// pairs is a server without a network. If it is slow, the first of each two requests is not answered.
type pairs struct {
	slow bool
	hits atomic.Int64
	open atomic.Int64 // bodies
}

func (p *pairs) RoundTrip(req *http.Request) (*http.Response, error) {
	if p.hits.Add(1)%2 == 1 && p.slow {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	resp := response(req, http.StatusOK, smallBody)
	p.open.Add(1)
	resp.Body = &countedBody{Reader: bytes.NewReader(smallBody), open: &p.open}
	return resp, nil
}

type countedBody struct {
	io.Reader
	open   *atomic.Int64
	closed atomic.Bool
}

func (b *countedBody) Close() error {
	if !b.closed.Swap(true) {
		b.open.Add(-1)
	}
	return nil
}

// TestWhatHedgesLeave makes 10,000 calls that are both answered, and counts what is left of the loser.
func TestWhatHedgesLeave(t *testing.T) {
	for _, h := range hedging {
		t.Run(h.name, func(t *testing.T) {
			server, before := &pairs{}, runtime.NumGoroutine()
			hedgeLoop(h.make(server, 1))(10_000)
			for range 1000 { // for losers on their way
				runtime.Gosched()
			}
			t.Logf("%d requests, %d bodies open, %d goroutines", server.hits.Load(), server.open.Load(), runtime.NumGoroutine()-before)
			if h.name == "retryhttp" {
				for server.open.Load() > 0 || runtime.NumGoroutine() > before {
					runtime.Gosched()
				}
				require.Zero(t, server.open.Load())
			}
		})
	}
}
