// Command elsewhere reads a price list from three replicas of a service. A retry, a hedge and the rest of a body that broke
// off go to another replica. The replicas are fakes in the same process.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing/iotest"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
	"github.com/retrygo/retry/retryhttp"
)

func main() {
	for _, day := range days {
		if err := day.read(context.Background(), os.Stdout); err != nil {
			log.Fatal(err)
		}
	}
}

// client returns a client of the replicas, whose requests go to the network.
func client(network http.RoundTripper) *http.Client {
	t := &retryhttp.Transport{
		Base:   &retryhttp.Replicas{Base: network, Hosts: []string{"eu.example", "us.example", "ap.example"}},
		Policy: retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 50 * time.Millisecond}},
		Hedge:  &retryhttp.Hedge{Policy: retryhedge.Policy{Delay: 100 * time.Millisecond}},
		Resume: true,
	}
	return t.Client()
}

// day is a time at which some replicas are at fault. Each fault is for one request.
type day struct {
	name   string
	faults map[string][]fault // by host
}

type fault int

const (
	down   fault = iota + 1
	busy         // answers 503
	slow         // answers after 2s
	broken       // breaks off in the middle of the body
)

var days = []day{
	{"All replicas are well", nil},
	{"One is down, one is busy", map[string][]fault{"eu.example": {down}, "us.example": {busy}}},
	{"One is slow", map[string][]fault{"eu.example": {slow}}},
	{"One breaks off", map[string][]fault{"eu.example": {broken, down}}},
}

const prices = "EUR 1.00, USD 1.09, JPY 163, CHF 0.94"

// read reads the price list and writes the requests that it took.
func (d day) read(ctx context.Context, w io.Writer) error {
	fmt.Fprintln(w, d.name+":")
	network := &network{w: w, began: time.Now(), faults: maps.Clone(d.faults)}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://eu.example/prices", nil)
	if err != nil {
		return err
	}
	resp, err := client(network).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	list, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if string(list) != prices {
		return fmt.Errorf("read %q", list)
	}
	return nil
}

// network stands for the connections to the replicas.
type network struct {
	began time.Time

	mu     sync.Mutex // a hedge runs beside a request
	w      io.Writer
	faults map[string][]fault // of the next requests
}

func (n *network) RoundTrip(req *http.Request) (*http.Response, error) {
	began := time.Since(n.began)
	f := n.fault(req.URL.Host)
	if f == slow {
		select {
		case <-time.After(2 * time.Second):
		case <-req.Context().Done():
			n.note(began, req, "canceled")
			return nil, req.Context().Err()
		}
	}
	if f == down {
		n.note(began, req, "connection refused")
		return nil, syscall.ECONNREFUSED
	}
	answer := httptest.NewRecorder()
	if f == busy {
		answer.WriteHeader(http.StatusServiceUnavailable)
	} else {
		answer.Header().Set("ETag", `"monday"`)
		http.ServeContent(answer, req, "", time.Time{}, strings.NewReader(prices))
	}
	resp := answer.Result()
	resp.Request = req
	result := resp.Status
	if f == broken {
		result += ", and breaks off"
		resp.Body = io.NopCloser(io.MultiReader(io.LimitReader(resp.Body, 20), iotest.ErrReader(syscall.ECONNRESET)))
	}
	n.note(began, req, result)
	return resp, nil
}

// fault returns the fault of the next request to the host.
func (n *network) fault(host string) fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	left := n.faults[host]
	if len(left) == 0 {
		return 0
	}
	n.faults[host] = left[1:]
	return left[0]
}

// note writes a line about a request and its result.
func (n *network) note(began time.Duration, req *http.Request, result string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	asked := "all"
	if span := req.Header.Get("Range"); span != "" {
		asked = span
	}
	fmt.Fprintf(n.w, "  %-6v %s  %-9s  %s\n", began.Round(10*time.Millisecond), req.URL.Host, asked, result)
}
