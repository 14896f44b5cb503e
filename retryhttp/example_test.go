package retryhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryhttp/ssrf"
)

// unstable answers each path 503 twice, and then 200 with what it was sent.
func unstable() *httptest.Server {
	calls := map[string]int{}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls[r.URL.Path]++; calls[r.URL.Path] <= 2 {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %q, attempt %d", r.Method, body, retryhttp.AttemptFromRequest(r, ""))
	}))
}

func Example() {
	server := unstable()
	defer server.Close()

	client := &http.Client{Transport: &retryhttp.Transport{Base: retryhttp.NewBase(), Policy: retry.Policy{
		MaxAttempts:    4,
		Backoff:        retry.Backoff{Base: 50 * time.Millisecond, Cap: time.Second, Jitter: retry.FullJitter},
		AttemptTimeout: 2 * time.Second, // up to the headers
		TTL:            10 * time.Second,
	}}}
	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}

func ExampleTransport() {
	server := unstable()
	defer server.Close()

	// A client that may repeat its POSTs: each has a key, by which the server knows it again.
	client := &http.Client{Transport: &retryhttp.Transport{
		Policy:         retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: time.Millisecond}},
		IdempotencyKey: retryhttp.RandomKey,
		AttemptHeader:  retryhttp.AttemptHeader,
	}}
	resp, err := client.Post(server.URL, "text/plain", strings.NewReader("order 7"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(string(body), err)
	// Output: POST "order 7", attempt 3 <nil>
}

func ExampleTransport_classify() {
	// Stop at what is permanent, but wait for a lock to be free.
	policy := retry.Policy{Classify: retry.FirstOf(
		retry.StopIf(func(err error) bool {
			var failed *retryhttp.AttemptError
			return errors.As(err, &failed) && failed.Header.Get("X-Error-Code") == "quota_spent"
		}),
		retryhttp.OnStatus(retry.Retryable, http.StatusConflict, http.StatusLocked),
		retryhttp.ClassifyStrict,
	)}
	for _, status := range []int{http.StatusConflict, http.StatusNotImplemented, http.StatusBadGateway} {
		err := &retryhttp.AttemptError{StatusCode: status}
		fmt.Println(status, policy.Decide(retry.Progress{Attempt: 1}, err, 0))
	}
	// Output:
	// 409 waiting_retry 5s
	// 501 dead_letter (terminal_error)
	// 502 waiting_retry 5s
}

func ExampleTransport_delivery() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()

	for _, delivery := range []bool{false, true} {
		t := &retryhttp.Transport{Delivery: delivery, Policy: retry.Policy{
			Observe: func(_ context.Context, e retry.Event) {
				if e.Outcome != nil {
					fmt.Println(e.Decision)
				}
			},
		}}
		resp, err := t.Client().Get(server.URL)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(resp.Status)
		_ = resp.Body.Close()
	}
	// Output:
	// succeeded
	// 404 Not Found
	// dead_letter (terminal_error)
	// 404 Not Found
}

func ExampleTransport_repeat() {
	server := unstable()
	defer server.Close()

	t := &retryhttp.Transport{
		Policy: retry.Policy{Backoff: retry.Backoff{Base: time.Millisecond}},
		// A 503 of this server means that it has not looked at the order.
		Repeat: func(failed *retryhttp.AttemptError) bool {
			return failed.Request.URL.Path == "/orders" && failed.StatusCode == http.StatusServiceUnavailable
		},
	}
	for _, path := range []string{"/orders", "/payments"} {
		resp, err := t.Client().Post(server.URL+path, "text/plain", strings.NewReader("7"))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(path, resp.Status)
		_ = resp.Body.Close()
	}
	// Output:
	// /orders 200 OK
	// /payments 503 Service Unavailable
}

func ExampleTransport_policyFor() {
	server := unstable()
	defer server.Close()

	t := &retryhttp.Transport{PolicyFor: func(r *http.Request) retry.Policy {
		p := retry.Policy{Backoff: retry.Backoff{Base: time.Millisecond}}
		if strings.HasPrefix(r.URL.Path, "/suggest") {
			p.MaxAttempts = 2 // not worth more
		}
		return p
	}}
	for _, path := range []string{"/orders", "/suggest"} {
		resp, err := t.Client().Get(server.URL + path)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(path, resp.Status)
		_ = resp.Body.Close()
	}
	// Output:
	// /orders 200 OK
	// /suggest 503 Service Unavailable
}

func ExampleTransport_Validate() {
	t := retryhttp.Transport{BufferBody: -1, Policy: retry.Policy{TTL: -time.Second}}
	fmt.Println(t.Validate())
	// Output: retry: Policy.TTL -1s is negative; retryhttp: Transport.BufferBody -1 is negative
}

func ExampleNewClient() {
	server := unstable()
	defer server.Close()

	client := retryhttp.NewClient(retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Millisecond}})
	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}

// A client for deliveries to other people's URLs goes neither to addresses of its own network nor where it is redirected.
func ExampleTransport_Client() {
	t := &retryhttp.Transport{Base: ssrf.Guard{}.Transport(), Delivery: true}
	_, err := t.Client().Get("http://127.0.0.1/admin")
	fmt.Println(errors.Is(err, ssrf.ErrBlocked), errors.Is(err, retry.TerminalError))
	// Output: true true
}

func ExampleOutcomeOf() {
	server := unstable()
	defer server.Close()

	client := retryhttp.NewClient(retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: time.Millisecond}})
	req, err := http.NewRequestWithContext(retryhttp.WithOutcome(context.Background()), http.MethodGet, server.URL, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := client.Do(req)
	if err == nil {
		defer resp.Body.Close()
	}
	outcome, err := retryhttp.OutcomeOf(resp, err)
	if err != nil {
		fmt.Println(err) // there is no record
		return
	}
	fmt.Println(outcome.Status, outcome.Reason)
	for _, attempt := range outcome.History {
		fmt.Println(attempt.Number, retryhttp.ReasonOf(attempt.Err), attempt.Delay)
	}
	// Output:
	// dead_letter attempts_exhausted
	// 1 status_503 1ms
	// 2 status_503 0s
}

func ExampleWorkKey() {
	charge := func(ctx context.Context) string {
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "https://bank.example/charges", nil)
		return retryhttp.WorkKey(req) // what a Transport with IdempotencyKey: retryhttp.WorkKey sends
	}
	ctx := retryhttp.WithWork(context.Background(), "order 7")
	fmt.Println(charge(ctx))
	fmt.Printf("%q", charge(context.Background()))
	// Output:
	// "d144b0fd-050a-8e5f-bfcd-9d1c20eea1d9"
	// ""
}

func ExampleRandomKey() {
	key := retryhttp.RandomKey(nil)
	fmt.Println(len(key), key[0] == '"')
	// Output: 38 true
}

func ExampleAttemptError() {
	client := retryhttp.NewClient(retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: time.Millisecond}})
	_, err := client.Get("http://127.0.0.1:1/") // nothing listens there
	var failed *retryhttp.AttemptError
	if errors.As(err, &failed) {
		fmt.Println(failed.Reason, failed.Unsent)
	}
	// Output: conn_refused true
}

func ExampleAttemptError_LogValue() {
	req, _ := http.NewRequest(http.MethodGet, "https://alice:secret@example.com/orders/7?token=secret", nil)
	req.Pattern = "/orders/{id}"
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	log.Warn("slow", "request", &retryhttp.AttemptError{Request: req, Reason: retryhttp.AttemptTimeout})
	// Output: level=WARN msg=slow request.method=GET request.host=example.com request.path=/orders/{id} request.reason=attempt_timeout
}

func ExampleAttemptError_ErrorType() {
	fmt.Println((&retryhttp.AttemptError{Reason: "status_503", StatusCode: 503}).ErrorType())
	fmt.Println((&retryhttp.AttemptError{Reason: retryhttp.ConnRefused}).ErrorType())
	// Output:
	// 503
	// conn_refused
}

func ExampleAttemptError_HTTPStatus() {
	err := fmt.Errorf("deliver: %w", &retryhttp.AttemptError{Reason: "status_503", StatusCode: 503})
	var status interface{ HTTPStatus() int } // no import of this package
	if errors.As(err, &status) {
		fmt.Println(status.HTTPStatus())
	}
	// Output: 503
}

func ExampleCheckResponse() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		retryhttp.SetRetryAfter(w, 30*time.Second)
		http.Error(w, "busy", http.StatusServiceUnavailable)
	}))
	defer server.Close()

	// The handler of a job, or fn of a retry.Do of one's own.
	deliver := func() error {
		req, err := http.NewRequest(http.MethodPost, server.URL, strings.NewReader("order 7"))
		if err != nil {
			return err
		}
		req.Header.Set("Idempotency-Key", `"delivery-7"`) // so it may be repeated
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		return retryhttp.CheckResponse(resp)
	}
	err := deliver()
	fmt.Println(err)
	p := retry.Policy{Classify: retryhttp.Classify}
	fmt.Println(p.Decide(retry.Progress{Attempt: 1}, err, 0))
	// Output:
	// retryhttp: 503 Service Unavailable
	// waiting_retry 30s
}

func Example_invalidRequest() {
	req, _ := http.NewRequest(http.MethodGet, "https://example.com/", nil)
	req.Header.Set("Authorization", "Bearer secret\n") // read from a file, with its last line break
	_, err := new(retryhttp.Transport).RoundTrip(req)
	var failed *retryhttp.AttemptError
	if errors.As(err, &failed) {
		fmt.Println(failed)
	}
	// Output: retryhttp: invalid_request: Request.Header["Authorization"] has the byte 0x0a at 13
}

func Example_errBodyStalled() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "half of ")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done() // nothing more comes
	}))
	defer server.Close()

	client := (&retryhttp.Transport{StallTimeout: 50 * time.Millisecond}).Client()
	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Printf("%q %v\n", body, errors.Is(err, retryhttp.ErrBodyStalled))
	// Output: "half of " true
}
