// Quickstart gives http.Clients a retryhttp.Transport, calls a server that fails in eight ways, and prints the attempts
// of each call. It needs no network, because its server is on the loopback interface.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// policy waits for milliseconds, because the server is near. Base left out means 5s.
var policy = retry.Policy{
	MaxAttempts:    4,
	Backoff:        retry.Backoff{Base: 20 * time.Millisecond, Jitter: retry.FullJitter},
	AttemptTimeout: 500 * time.Millisecond,        // up to the response's headers, since it never cuts a body
	TTL:            30 * time.Second,              // no attempt starts later
	MaxHint:        time.Second,                   // a longer Retry-After ends the run
	Rand:           func() float64 { return 0.5 }, // for the same text on every run, so leave it out of your code
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run makes the eight calls and writes their results to w.
func run(w io.Writer) error {
	server := httptest.NewServer(&unreliable{calls: map[string]int{}})
	defer server.Close()
	fmt.Fprintf(w, "%v\n\n", policy)
	base := retryhttp.NewBase() // http.DefaultTransport keeps using an HTTP/2 connection that has died
	defer base.CloseIdleConnections()
	client := &http.Client{Transport: &retryhttp.Transport{Base: base, Policy: policy}}
	keyed := &http.Client{Transport: &retryhttp.Transport{Base: base, Policy: policy, IdempotencyKey: retryhttp.WorkKey}}
	for _, c := range []struct {
		client                    *http.Client
		method, path, body, title string
	}{
		// First, on a new connection, because net/http itself repeats a GET whose connection was used before, unseen by
		// the Transport.
		{client, "GET", "/reset", "", "resets the connection once"},
		{client, "GET", "/flaky", "", "answers 503 twice, with Retry-After"},
		{client, "GET", "/slow", "", "hangs once"},
		{client, "GET", "/missing", "", "answers 404"},
		{client, "GET", "/down", "", "answers 503 forever"},
		{client, "GET", "/busy", "", "answers 429, with a Retry-After of an hour"},
		{client, "POST", "/orders", "teapot", "places the order, then answers 503"},
		{keyed, "POST", "/orders", "teacup", "the same, with an Idempotency-Key"},
	} {
		fmt.Fprintf(w, "%-4s %-8s  %s\n", c.method, c.path, c.title)
		ctx := retryhttp.WithWork(context.Background(), c.body) // the order, for WorkKey
		req, err := http.NewRequestWithContext(ctx, c.method, server.URL+c.path, strings.NewReader(c.body))
		if err != nil {
			return err
		}
		if err := call(w, c.client, req); err != nil {
			return err
		}
	}
	return nil
}

// call sends req and writes to w each failed attempt, the end of the run, and the answer.
func call(w io.Writer, client *http.Client, req *http.Request) error {
	resp, err := client.Do(req.WithContext(retryhttp.WithOutcome(req.Context())))
	if err != nil {
		return err // there was no response, and errors.As finds the *retry.Error with the Outcome
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	outcome, err := retryhttp.OutcomeOf(resp, err)
	if err != nil {
		return err
	}
	for _, a := range outcome.History {
		next := "give up"
		var failed *retryhttp.AttemptError
		if a.Number < outcome.Attempts {
			next = fmt.Sprintf("wait %v", a.Delay.Round(time.Millisecond))
		} else if errors.As(a.Err, &failed) && failed.Veto != "" {
			next += ": " + string(failed.Veto)
		}
		fmt.Fprintf(w, "  attempt %d  %-15s  %s\n", a.Number, retryhttp.ReasonOf(a.Err), next)
	}
	fmt.Fprintf(w, "  %v\n", outcome)
	fmt.Fprintf(w, "  %s: %s\n\n", resp.Status, strings.TrimSpace(string(body)))
	return nil
}

// unreliable is a server's handler that fails in a different way on each path.
type unreliable struct {
	mu    sync.Mutex
	calls map[string]int // by path and key
}

func (u *unreliable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	switch calls := u.count(r.URL.Path + key); {
	case r.URL.Path == "/reset" && calls == 1:
		if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = conn.(*net.TCPConn).SetLinger(0) // makes Close a reset
			_ = conn.Close()
		}
	case r.URL.Path == "/flaky" && calls <= 2:
		w.Header().Set("Retry-After", "0.05") // some services send fractions, while SetRetryAfter sends whole seconds
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.URL.Path == "/slow" && calls == 1:
		<-r.Context().Done() // until the client hangs up
	case r.URL.Path == "/missing":
		http.NotFound(w, r)
	case r.URL.Path == "/down":
		http.Error(w, "closed", http.StatusServiceUnavailable)
	case r.URL.Path == "/busy":
		retryhttp.SetRetryAfter(w, time.Hour)
		http.Error(w, "come back in an hour", http.StatusTooManyRequests)
	case r.URL.Path == "/orders" && (key == "" || calls == 1):
		http.Error(w, "placed, but the till has crashed", http.StatusServiceUnavailable)
	case r.URL.Path == "/orders":
		item, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s: placed before under this key, not placed again", item)
	default:
		fmt.Fprint(w, "well again")
	}
}

// count counts the calls of one kind and returns their number.
func (u *unreliable) count(kind string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls[kind]++
	return u.calls[kind]
}
