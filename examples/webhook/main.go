// Webhook delivers events to URLs that users have given, and prints for each delivery how it ended. It needs no network:
// the receiver is its own, on the loopback interface.
//
//	go run ./examples/webhook
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
)

// maxAttempts is for one delivery.
const maxAttempts = 3

// idKey is the context key of a delivery's id.
type idKey struct{}

// newClient returns a client that delivers to public addresses and those in allow, and calls outcome with how that ended.
func newClient(outcome func(context.Context, retry.Event), allow ...netip.Prefix) *http.Client {
	transport := &retryhttp.Transport{
		// Refuses the addresses of the network it runs in, after each look-up of a name.
		Base: retryhttp.Guard{Allow: allow}.Transport(),
		Policy: retry.Policy{
			MaxAttempts:    maxAttempts,
			Backoff:        retry.Backoff{Base: 5 * time.Millisecond, Jitter: retry.FullJitter}, // minutes, for a service
			AttemptTimeout: 2 * time.Second,
			TTL:            10 * time.Second, // the event is stale after that
			Observe:        outcome,
		},
		// The delivery's id, so that it is the same key even after a restart between two attempts.
		IdempotencyKey: func(r *http.Request) string { return strconv.Quote(r.Context().Value(idKey{}).(string)) },
		// For each endpoint three retries at once, and one more for ten events that have arrived.
		Budgets:       retry.NewBudgets(retry.BudgetConfig{Initial: 3}, 1000),
		BudgetKey:     func(r *http.Request) string { return r.URL.String() },
		AttemptHeader: retryhttp.AttemptHeader,
	}
	return transport.Client() // follows no redirect: only the user's own URL gets the event
}

// deliver sends one event. Observe gets how that ended; an error is a mistake in the program or in the URL's form.
func deliver(client *http.Client, id, url string) error {
	ctx := context.WithValue(context.Background(), idKey{}, id)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"type": "order.placed"}`))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	var gaveUp *retry.Error
	switch {
	case err == nil:
		_ = resp.Body.Close() // the status is all that counts
		return nil
	case errors.As(err, &gaveUp):
		return nil // without a response; Observe has seen it
	default:
		return err // nothing ran
	}
}

// outcomes returns an observer that writes one line for each delivery.
func outcomes(w io.Writer) func(context.Context, retry.Event) {
	return func(ctx context.Context, e retry.Event) {
		if e.Outcome == nil {
			return // an attempt failed: not the end
		}
		fmt.Fprintf(w, "%v  %v after %d of %d attempts", ctx.Value(idKey{}), e.Decision, e.Outcome.Attempts, maxAttempts)
		var failed *retryhttp.AttemptError
		if errors.As(e.Err, &failed) {
			fmt.Fprintf(w, ": %s", failed.Reason)
			if failed.Unsent {
				fmt.Fprint(w, ", nothing sent")
			}
		}
		fmt.Fprintln(w)
	}
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run makes nine deliveries and writes to w how each ended, then what the receiver did with the one that got through.
func run(w io.Writer) error {
	receiver := &receiver{done: map[string]bool{}}
	server := httptest.NewServer(receiver)
	defer server.Close()
	client := newClient(outcomes(w), netip.MustParsePrefix("127.0.0.1/32")) // the receiver; a service allows none
	defer client.CloseIdleConnections()
	for i, url := range []string{
		server.URL + "/down", // takes two retries of three from the endpoint's budget
		server.URL + "/down", // takes the third
		server.URL + "/down",
		server.URL + "/flaky", // has a budget of its own
		server.URL + "/busy",
		server.URL + "/gone",
		server.URL + "/moved",
		"http://169.254.169.254/",
		"http://10.0.0.1/",
	} {
		fmt.Fprintf(w, "%-23s  ", strings.TrimPrefix(url, server.URL))
		if err := deliver(client, fmt.Sprintf("evt_%d", i+1), url); err != nil {
			return err
		}
	}
	fmt.Fprint(w, receiver.report())
	return nil
}
