// Quickstart calls a server that fails in five ways, each call through retry.Do, and prints the events and their times.
// It needs no network: its server is on the loopback interface.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/retrygo/retry"
)

// policy waits for milliseconds, because the server is near. Without Base the first wait would be 5s, and without Cap
// the bound 1h.
var policy = retry.Policy{
	MaxAttempts:    4,
	Backoff:        retry.Backoff{Base: 20 * time.Millisecond, Cap: time.Second, Jitter: retry.FullJitter},
	AttemptTimeout: time.Second,
}

// get returns the status of the answer to url, which it asks as often as p allows. If it gives up it returns an
// *retry.Error with the reason.
func get(ctx context.Context, p retry.Policy, url string) (string, error) {
	return retry.DoValue(ctx, p, func(ctx context.Context) (string, error) {
		return fetch(ctx, url)
	})
}

// fetch makes one attempt. The request takes ctx, which is how AttemptTimeout reaches it. Like a retryhttp.Transport, it
// returns an error only if another attempt may get a better answer: a 404 is an answer.
func fetch(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", retry.Permanent(err) // a bad URL stays one
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err // retryable, like every error without a mark
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil { // read to its end, so that the connection is used again
		return "", err
	}
	switch code := resp.StatusCode; {
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return "", errors.New(resp.Status)
	default:
		return resp.Status, nil
	}
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run makes the five calls and writes their timelines to w.
func run(w io.Writer) error {
	server := httptest.NewServer(unreliable())
	defer server.Close()
	// Our end of a connection is an address without a server, and no server can listen there while the connection is
	// open.
	caller, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		return err
	}
	defer caller.Close()

	schedule, waits, _ := strings.Cut(policy.String(), ": ")
	fmt.Fprintf(w, "policy  %s\nwaits   at most %s\n", schedule, waits)

	p := policy // a policy is a value: this copy is ours
	p.Observe = timeline(w)
	p.Rand = rand.New(rand.NewPCG(1, 1)).Float64 // for the same text on every run; leave Rand out of your code
	for _, call := range []struct{ title, url string }{
		{"/flaky    answers 503 twice, then 200", server.URL + "/flaky"},
		{"/slow     hangs once, then answers", server.URL + "/slow"},
		{"/missing  answers 404", server.URL + "/missing"},
		{"/down     answers 503 forever", server.URL + "/down"},
		{"/gone     has no server that listens", "http://" + caller.LocalAddr().String() + "/gone"},
	} {
		fmt.Fprintf(w, "\nGET %s\n", call.title)
		var gaveUp *retry.Error // the timeline ends with its Outcome
		answer, err := get(context.Background(), p, call.url)
		switch {
		case err == nil:
			fmt.Fprintf(w, "  answer     %s\n", answer)
		case !errors.As(err, &gaveUp):
			return err // the policy was refused, and fn was not called
		}
	}
	return nil
}

// timeline returns an observer that writes one line for each failed attempt and one for the end of the run.
func timeline(w io.Writer) func(context.Context, retry.Event) {
	return func(_ context.Context, e retry.Event) {
		d := e.Decision
		switch {
		case d.Status == retry.Waiting:
			fmt.Fprintf(w, "  attempt %d  %-23s  wait %v\n", e.Attempt.Number, what(e.Attempt.Err), d.Delay.Round(time.Millisecond))
		case e.Outcome == nil:
			fmt.Fprintf(w, "  attempt %d  %-23s  give up\n", e.Attempt.Number, what(e.Attempt.Err))
		default:
			// The time is measured and marked so; everything else is the same on every run.
			elapsed := e.Outcome.Elapsed.Round(100 * time.Microsecond)
			fmt.Fprintf(w, "  %v after %d of %d attempts, ≈%v\n", d, e.Outcome.Attempts, policy.MaxAttempts, elapsed)
		}
	}
}

// what describes in a few words why an attempt failed, the same on every system.
func what(err error) string {
	var network *net.OpError
	switch {
	case errors.Is(err, retry.ErrAttemptTimeout):
		return "no answer in time"
	case errors.As(err, &network) && network.Op == "dial":
		return "cannot connect"
	default:
		return err.Error()
	}
}

// unreliable returns a server's handler that fails in a different way on each path.
func unreliable() http.Handler {
	var flaky, slow atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("/flaky", func(w http.ResponseWriter, _ *http.Request) {
		if flaky.Add(1) <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) {
		if slow.Add(1) == 1 {
			<-r.Context().Done() // until the client hangs up
		}
	})
	mux.HandleFunc("/down", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	mux.Handle("/missing", http.NotFoundHandler())
	return mux
}
