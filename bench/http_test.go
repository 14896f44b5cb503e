package bench_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A GET through an http.Client or what takes its place. The request is made once, as making it costs the same for all; a
// PUT is made for each operation, as its body is used up. The response is read to its end. There is no network: a round
// tripper in memory answers at once.
func BenchmarkHTTP200(b *testing.B)        { alone(b, exchange{}.contenders()) }
func BenchmarkHTTP200Body(b *testing.B)    { alone(b, exchange{body: smallBody}.contenders()) }
func BenchmarkHTTP200Timeout(b *testing.B) { alone(b, exchange{timeout: time.Minute}.contenders()) }
func BenchmarkHTTP200BodyTimeout(b *testing.B) {
	alone(b, exchange{timeout: time.Minute, body: smallBody}.contenders())
}
func BenchmarkHTTP200Put(b *testing.B)    { alone(b, exchange{put: true}.contenders()) }
func BenchmarkHTTP503503200(b *testing.B) { alone(b, exchange{failures: 2}.contenders()) }

var smallBody = []byte(strings.Repeat("x", 512))

// exchange is a GET or a PUT and the answers to it: so many 503s, and then a 200.
type exchange struct {
	put      bool          // with a body
	timeout  time.Duration // of an attempt
	body     []byte        // of the 200; empty means http.NoBody
	failures int
}

func (e exchange) contenders() []contender {
	others := []httpClient{{"bare-client", bareHTTP}}
	if e.failures > 0 {
		others = []httpClient{{"bare-run", recordingHTTP}, {"bare-loop", loopHTTP}, {"rehttp-recorded", recordedReHTTP}}
	}
	var all []contender
	for _, c := range append(others, retryingHTTP...) {
		if e.put && c.name == "go-retryablehttp" {
			continue // it takes a body in a request of its own
		}
		all = append(all, contender{c.name, e.loop(c)})
	}
	return all
}

// loop returns what makes n GETs through c, and panics if one does not get its 200 with the attempts that are due. It is
// for one goroutine.
func (e exchange) loop(c httpClient) func(n int) {
	server := &inMemory{body: e.body, failures: e.failures}
	send, req := c.make(server, e.timeout), e.request()
	return func(n int) {
		before := server.hits
		for range n {
			if e.put {
				req = e.request()
			}
			if err := get(send, req, len(e.body)); err != nil {
				panic(err)
			}
		}
		if made, due := server.hits-before, n*(e.failures+1); made != due {
			panic(fmt.Sprintf("%s: %d calls made %d attempts, want %d", c.name, n, made, due))
		}
	}
}

// request returns one whose context can be canceled, as that of every request in a server can.
func (e exchange) request() *http.Request {
	method, body := http.MethodGet, io.Reader(nil)
	if e.put {
		method, body = http.MethodPut, bytes.NewReader(smallBody)
	}
	req, err := http.NewRequestWithContext(serving, method, "http://peer.test/", body)
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
	body     []byte // of the 200; empty means http.NoBody
	failures int    // 503s before each 200
	hits     int    // requests so far
}

func (m *inMemory) RoundTrip(req *http.Request) (*http.Response, error) {
	m.hits++
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body)
		_ = req.Body.Close()
	}
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
