// Webhook delivers events of several tenants to URLs supplied by users, and prints the result of each attempt and each
// delivery. It needs no network: its receiver is on the loopback interface.
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
	"github.com/retrygo/retry/retryhttp/ssrf"
)

// delivery is an event being delivered.
type delivery struct {
	id, tenant, url string
}

// deliveryKey is the context key of the delivery that a request belongs to.
type deliveryKey struct{}

func deliveryOf(ctx context.Context) delivery { return ctx.Value(deliveryKey{}).(delivery) }

// service delivers events.
type service struct {
	client *http.Client
	w      io.Writer // gets a line for each attempt and delivery
}

// newService returns a service that delivers to public addresses and those in allow.
func newService(w io.Writer, allow ...netip.Prefix) (*service, error) {
	s := &service{w: w}
	policy := retry.Policy{
		MaxAttempts:    3,
		Backoff:        retry.Backoff{Base: 5 * time.Millisecond, Jitter: retry.FullJitter}, // minutes, for a service
		AttemptTimeout: 2 * time.Second,
		TTL:            10 * time.Second, // the event is stale after that
		Observe:        s.observe,
	}
	// For each tenant and endpoint three retries at once, and one more for ten events that have arrived: a tenant
	// cannot spend the retries of another one with the same endpoint.
	budgets := retry.NewBudgets(retry.BudgetConfig{Initial: 3}, 1000)
	transport := &retryhttp.Transport{
		// Refuses the addresses of the network it runs in, after each lookup of a name.
		Base: ssrf.Guard{Allow: allow}.Transport(),
		PolicyFor: func(r *http.Request) retry.Policy {
			d, p := deliveryOf(r.Context()), policy
			p.Budget = budgets.For(d.tenant + " " + d.url)
			return p
		},
		Delivery: true, // only a 2xx means that the event has arrived
		// The delivery's id, so the key stays the same even after a restart between two attempts.
		IdempotencyKey: func(r *http.Request) string { return strconv.Quote(deliveryOf(r.Context()).id) },
		AttemptHeader:  retryhttp.AttemptHeader,
	}
	s.client = transport.Client() // follows no redirect: only the user's own URL gets the event
	return s, errors.Join(policy.Validate(), transport.Validate())
}

// deliver sends one event. A user's URL, whatever it is, cannot end other deliveries.
func (s *service) deliver(d delivery) {
	fmt.Fprintf(s.w, "%s for %s to %q\n", d.id, d.tenant, d.url)
	ctx := context.WithValue(context.Background(), deliveryKey{}, d)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url, strings.NewReader(`{"type": "order.placed"}`))
	if err != nil {
		fmt.Fprintf(s.w, "  refused: %s, nothing sent\n", retryhttp.ReasonOf(err))
		return
	}
	resp, err := s.client.Do(req)
	var ended *retry.Error
	switch {
	case err == nil:
		_ = resp.Body.Close() // only the status matters, and observe has seen it
	case !errors.As(err, &ended): // observe has not seen it
		fmt.Fprintf(s.w, "  refused: %s, nothing sent\n", retryhttp.ReasonOf(err))
	}
}

// observe writes the result of an attempt or a delivery.
func (s *service) observe(_ context.Context, e retry.Event) {
	if e.Outcome != nil {
		fmt.Fprintf(s.w, "  %v\n", e.Outcome)
		return
	}
	fmt.Fprintf(s.w, "  attempt %d after %v: %s", e.Attempt.Number, e.Elapsed.Round(time.Microsecond), retryhttp.ReasonOf(e.Attempt.Err))
	var failed *retryhttp.AttemptError
	if errors.As(e.Attempt.Err, &failed) && failed.Unsent {
		fmt.Fprint(s.w, ", nothing sent")
	}
	if e.Decision.Status == retry.Waiting {
		fmt.Fprintf(s.w, ", wait %v", e.Decision.Delay.Round(time.Microsecond))
	}
	fmt.Fprintln(s.w)
}

func main() {
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// run makes ten deliveries and writes to w the result of each, then the actions of the receiver on the one that got
// through.
func run(w io.Writer) error {
	receiver := &receiver{done: map[string]bool{}}
	server := httptest.NewServer(receiver)
	defer server.Close()
	s, err := newService(w, netip.MustParsePrefix("127.0.0.1/32")) // the receiver; a service allows none
	if err != nil {
		return err
	}
	defer s.client.CloseIdleConnections()
	for i, d := range []delivery{
		{tenant: "acme", url: server.URL + "/down"}, // takes two retries of three from the tenant's budget for the endpoint
		{tenant: "acme", url: server.URL + "/down"}, // takes the third
		{tenant: "globex", url: server.URL + "/down"},
		{tenant: "acme", url: server.URL + "/flaky"},
		{tenant: "acme", url: server.URL + "/busy"},
		{tenant: "acme", url: server.URL + "/gone"},
		{tenant: "acme", url: server.URL + "/moved"},
		{tenant: "mallory", url: server.URL + "/\r\nX-Admin: yes"},
		{tenant: "mallory", url: "http://169.254.169.254/"},
		{tenant: "mallory", url: "http://10.0.0.1/"},
	} {
		d.id = fmt.Sprintf("evt_%d", i+1)
		s.deliver(d)
	}
	fmt.Fprint(w, receiver.report())
	return nil
}
