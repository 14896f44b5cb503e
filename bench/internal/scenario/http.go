package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retrygo/retry/bench/internal/contest"
)

// checked is why our HTTP client is not the fastest.
const checked = "it reads the clock, for the record, and looks at every byte that could smuggle another request in; Do and the " +
	"allocation of its state are the rest"

// HTTP returns the scenarios of a GET through an http.Client or what takes its place. The request is made once, as
// making it costs the same for all; the response is read to its end.
func HTTP() []contest.Scenario {
	const (
		inMemory = "There is no network: a round tripper in memory answers at once, so that what is left is the clients' own work."
		body     = " The response has 512 bytes."
		loopback = "The server is a net/http one on the loopback interface, over a connection that is kept alive. The response has 512 bytes."
	)
	cheap := []contest.Target{
		{Rule: "as fast as rehttp", Kind: contest.Ratio, Against: "rehttp", Most: 1, Why: checked},
		{Rule: "fewer allocations than rehttp", Kind: contest.Beyond, Against: "rehttp", Most: -1},
		{Rule: "as fast as go-retryablehttp in http.Client", Kind: contest.Ratio, Against: "go-retryablehttp", Most: 1},
		{Rule: "fewer allocations than go-retryablehttp in http.Client", Kind: contest.Beyond, Against: "go-retryablehttp", Most: -1},
		{Rule: "as fast as go-retryablehttp's own client", Kind: contest.Ratio, Against: "go-retryablehttp, own client", Most: 1, Why: checked},
	}
	timed := []contest.Target{
		{Rule: "as fast as http.Client with its Timeout", Kind: contest.Ratio, Against: "http.Client", Most: 1},
	}
	return []contest.Scenario{
		exchange{inMemory: true}.scenario("HTTP 200", inMemory, cheap),
		exchange{inMemory: true, body: smallBody}.scenario("HTTP 200 with a body", inMemory+body, cheap),
		exchange{inMemory: true, attemptTimeout: time.Minute}.scenario("HTTP 200, attempt timeout", inMemory, timed),
		exchange{inMemory: true, attemptTimeout: time.Minute, body: smallBody}.scenario("HTTP 200 with a body, attempt timeout", inMemory+body, timed),
		exchange{inMemory: true, failures: 2}.scenario("HTTP 503, 503, 200", inMemory+" The waits are zero.", nil),
		exchange{body: smallBody}.scenario("HTTP 200 over loopback", loopback, nil),
		exchange{body: smallBody, failures: 2}.scenario("HTTP 503, 503, 200 over loopback", loopback+" The waits are zero.", nil),
	}
}

var smallBody = []byte(strings.Repeat("x", 512))

// exchange is a GET and what it meets: so many 503s, and then a 200.
type exchange struct {
	inMemory       bool // or over loopback, where the body is smallBody
	attemptTimeout time.Duration
	body           []byte // of the 200; empty gives http.NoBody
	failures       int
}

func (e exchange) scenario(name, about string, targets []contest.Target) contest.Scenario {
	limit := bareHTTP
	if e.failures > 0 {
		limit = handHTTP
	}
	s := contest.Scenario{Name: name, About: about, Unit: "ns/op", Targets: targets}
	for _, p := range slices.Concat([]httpPeer{limit}, retryingHTTP) {
		s.Contenders = append(s.Contenders, contest.Contender{
			Name: p.name, Form: p.form, Remark: p.remark,
			New: func() func(int) { return e.loop(p) },
		})
	}
	return s
}

// loop returns what makes n GETs through p, and panics where one does not get its 200 with the attempts that are due.
// It is for one goroutine.
func (e exchange) loop(p httpPeer) func(n int) {
	base, url, hits := e.server()
	send, req := p.client(base, e.attemptTimeout), newGet(url)
	return func(n int) {
		before := hits()
		for range n {
			if err := get(send, req, len(e.body)); err != nil {
				panic(fmt.Sprintf("scenario: %s: %v", p.name, err))
			}
		}
		if made, due := hits()-before, int64(n*(e.failures+1)); made != due {
			panic(fmt.Sprintf("scenario: %s: %d calls made %d attempts, want %d", p.name, n, made, due))
		}
	}
}

// server returns the way to a server that does e, and what tells how many requests it has got.
func (e exchange) server() (base http.RoundTripper, url string, hits func() int64) {
	if e.inMemory {
		m := &inMemory{body: e.body, failures: e.failures}
		return m, "http://peer.test/", func() int64 { return int64(m.hits) }
	}
	l := loopback()
	if e.failures == 0 {
		return l.transport, l.url + "/200", l.hits.Load
	}
	return l.transport, l.url + "/503-503-200", l.hits.Load
}

// newGet returns a GET whose context can be cancelled, as that of every request in a server can.
func newGet(url string) *http.Request {
	req, err := http.NewRequestWithContext(serving, http.MethodGet, url, nil)
	if err != nil {
		panic(err)
	}
	return req
}

// get sends req and reads the response to its end, which must be a 200 with a body of so many bytes.
func get(send sender, req *http.Request, size int) error {
	resp, err := send(req)
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK || n != int64(size) {
		return errors.New("got " + resp.Status)
	}
	return nil
}

// inMemory is a server without a network: it fails the first attempts of each run of requests and then answers 200. It
// is for one goroutine.
type inMemory struct {
	body     []byte // of the 200; empty gives http.NoBody
	failures int    // 503s before each 200
	hits     int    // requests so far
}

func (m *inMemory) RoundTrip(req *http.Request) (*http.Response, error) {
	m.hits++
	if m.hits%(m.failures+1) != 0 {
		return response(req, http.StatusServiceUnavailable, nil), nil
	}
	return response(req, http.StatusOK, m.body), nil
}

var noHeader = http.Header{}

var statusLine = map[int]string{
	http.StatusOK:                 "200 OK",
	http.StatusServiceUnavailable: "503 Service Unavailable",
}

// response returns what http.Transport would. It is new each time, as some clients write to it.
func response(req *http.Request, code int, body []byte) *http.Response {
	resp := &http.Response{
		Status:        statusLine[code],
		StatusCode:    code,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        noHeader,
		Body:          http.NoBody,
		ContentLength: int64(len(body)),
		Request:       req,
	}
	if len(body) > 0 {
		resp.Body = io.NopCloser(bytes.NewReader(body))
	}
	return resp
}

// local is a server on the loopback interface, and the transport to it that all clients share.
type local struct {
	transport *http.Transport
	url       string
	hits      atomic.Int64 // requests so far
	flaky     atomic.Int64 // of them those for 503, 503, 200
}

// loopback returns the server, which is started at the first call and runs to the end of the process.
var loopback = sync.OnceValue(func() *local {
	l := &local{transport: &http.Transport{}}
	l.url = httptest.NewServer(l).URL
	return l
})

func (l *local) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	l.hits.Add(1)
	if req.URL.Path == "/503-503-200" && l.flaky.Add(1)%3 != 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write(smallBody)
}
