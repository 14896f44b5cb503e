package retryhttp_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryhttp/hints"
)

// quickly is a policy for examples, which have no time to wait.
var quickly = retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: time.Millisecond}}

// A transportFunc is a RoundTripper. As the Base of a Transport it sees every attempt.
type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A signature that holds for a short time, as that of AWS (Signature Version 4), is made again for every attempt, below
// the Transport.
func ExampleTransport_signEveryAttempt() {
	sign := func(req *http.Request) string {
		mac := hmac.New(sha256.New, []byte("secret"))
		fmt.Fprintf(mac, "%s\n%s\n%s", req.Method, req.URL.RequestURI(), req.Header.Get("X-Date"))
		return fmt.Sprintf("%x", mac.Sum(nil))
	}
	seen := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen[r.Header.Get("Authorization")] = r.Header.Get("Authorization") == sign(r)
		if len(seen) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()

	signed := transportFunc(func(req *http.Request) (*http.Response, error) {
		req = req.Clone(req.Context()) // a RoundTripper must not change what it gets
		req.Header.Set("X-Date", time.Now().UTC().Format(time.RFC3339Nano))
		req.Header.Set("Authorization", sign(req))
		return http.DefaultTransport.RoundTrip(req)
	})
	client := &http.Client{Transport: &retryhttp.Transport{Policy: quickly, Base: signed}}
	resp, err := client.Get(server.URL + "/bucket?list")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status, len(seen), "signatures")
	for _, valid := range seen {
		fmt.Println(valid)
	}
	// Output:
	// 200 OK 3 signatures
	// true
	// true
	// true
}

// A 401 means that nothing was done. A Transport for it alone, as the Base of the one for everything else, repeats any
// request once, with a new token and its body.
func ExampleTransport_refreshToken() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token-2" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()

	var mu sync.Mutex
	generation := 1 // use golang.org/x/oauth2 for a real one
	authorized := transportFunc(func(req *http.Request) (*http.Response, error) {
		mu.Lock()
		token := fmt.Sprintf("token-%d", generation)
		mu.Unlock()
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err == nil && resp.StatusCode == http.StatusUnauthorized {
			mu.Lock()
			if token == fmt.Sprintf("token-%d", generation) { // no other request has refreshed it
				generation++
			}
			mu.Unlock()
		}
		return resp, err
	})
	once := &retryhttp.Transport{Base: authorized, Repeat: func(*retryhttp.AttemptError) bool { return true }, Policy: retry.Policy{
		MaxAttempts: 2,
		Backoff:     retry.Backoff{Mode: retry.Fixed, Base: 1}, // at once
		Classify:    retry.FirstOf(retryhttp.OnStatus(retry.Retryable, http.StatusUnauthorized), retry.Otherwise(retry.Terminal)),
	}}
	client := &http.Client{Transport: &retryhttp.Transport{Policy: quickly, Base: once}}
	resp, err := client.Post(server.URL, "text/plain", strings.NewReader("order 7"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.Status, string(body))
	// Output: 200 OK order 7
}

// A breaker for each host: below the Transport it counts, and as its policy's Gate it keeps attempts away, which cost nothing
// then. Package examples/gates does the same with gobreaker and failsafe-go.
func ExampleTransport_breaker() {
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer down.Close()
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()

	type breaker struct {
		failures int
		open     time.Time // until then
	}
	var mu sync.Mutex
	breakers := map[string]breaker{}
	t := &retryhttp.Transport{
		PolicyFor: func(req *http.Request) retry.Policy {
			return retry.Policy{MaxAttempts: 9, Backoff: retry.Backoff{Base: time.Millisecond, Cap: time.Millisecond}, TTL: 10 * time.Second,
				Gate: func(context.Context) time.Duration {
					mu.Lock()
					defer mu.Unlock()
					return time.Until(breakers[req.URL.Host].open)
				}}
		},
		Base: transportFunc(func(req *http.Request) (*http.Response, error) {
			resp, err := http.DefaultTransport.RoundTrip(req)
			mu.Lock()
			defer mu.Unlock()
			b := breakers[req.URL.Host]
			if b.failures++; err == nil && resp.StatusCode < 500 {
				b = breaker{}
			}
			if b.failures >= 3 {
				b.open = time.Now().Add(time.Minute)
			}
			breakers[req.URL.Host] = b
			return resp, err
		}),
	}
	client := &http.Client{Transport: t}
	for range 2 {
		resp, err := client.Get(down.URL) // its second call makes no attempt
		if err == nil {
			resp.Body.Close()
		}
		fmt.Println(err != nil, breakers[strings.TrimPrefix(down.URL, "http://")].failures)
	}
	resp, err := client.Get(up.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output:
	// true 3
	// true 3
	// 200 OK
}

// One Retry-After holds for all calls to a host: Hint learns of it, and Gate makes them wait.
func ExampleTransport_sharedRetryAfter() {
	var mu sync.Mutex
	var opens time.Time
	early := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case opens.IsZero():
			opens = time.Now().Add(50 * time.Millisecond)
			w.Header().Set("Retry-After", "0.05")
			w.WriteHeader(http.StatusTooManyRequests)
		case time.Now().Before(opens):
			early++
		}
	}))
	defer server.Close()

	var away sync.Map // host to time.Time
	client := (&retryhttp.Transport{
		PolicyFor: func(req *http.Request) retry.Policy {
			p := quickly
			p.Gate = func(context.Context) time.Duration {
				until, _ := away.LoadOrStore(req.URL.Host, time.Time{})
				return time.Until(until.(time.Time))
			}
			return p
		},
		Hint: func(resp *http.Response) time.Duration {
			now := time.Now()
			away.Store(resp.Request.URL.Host, now.Add(hints.RetryAfter(resp.Header, now)))
			return 0 // Retry-After is obeyed anyway
		},
	}).Client()
	// The first call does not wait for a retry; the others wait because of its answer.
	first, _ := http.NewRequestWithContext(retry.OneAttempt(context.Background()), http.MethodGet, server.URL, nil)
	var calls sync.WaitGroup
	if resp, err := client.Do(first); err == nil {
		fmt.Println(resp.Status)
		resp.Body.Close()
	}
	for range 5 {
		calls.Go(func() {
			if resp, err := client.Get(server.URL); err == nil {
				resp.Body.Close()
			}
		})
	}
	calls.Wait()
	fmt.Println(early, "requests came early")
	// Output:
	// 429 Too Many Requests
	// 0 requests came early
}

// Observe is called before each wait, with what is to follow: the place for what has to be done before a retry.
func ExampleTransport_beforeRetry() {
	server := unstable()
	defer server.Close()

	p := quickly
	p.Observe = func(_ context.Context, e retry.Event) {
		if e.Decision.Status == retry.WaitingRetry {
			fmt.Println("before attempt", e.Attempt.Number+1, "because of", retryhttp.ReasonOf(e.Attempt.Err))
		}
	}
	resp, err := retryhttp.NewClient(p).Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output:
	// before attempt 2 because of status_503
	// before attempt 3 because of status_503
	// 200 OK
}

// A server that answers 200 and says in the body that it is busy: Accept reads the start of the body and puts it back.
func ExampleTransport_bodyPredicate() {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls < 3 {
			fmt.Fprint(w, `{"status": "busy"}`)
			return
		}
		fmt.Fprint(w, `{"status": "done", "sum": 28}`)
	}))
	defer server.Close()

	client := (&retryhttp.Transport{
		Policy:       quickly,
		StallTimeout: 10 * time.Second, // AttemptTimeout does not cover a body
		Accept: func(resp *http.Response) bool {
			start, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
			resp.Body = struct {
				io.Reader
				io.Closer
			}{io.MultiReader(bytes.NewReader(start), resp.Body), resp.Body}
			return resp.StatusCode == http.StatusOK && !bytes.Contains(start, []byte(`"busy"`))
		},
	}).Client()
	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(string(body))
	// Output: {"status": "done", "sum": 28}
}

func ExampleNewBase() {
	client := &http.Client{Transport: &retryhttp.Transport{
		Base:   retryhttp.NewBase(),
		Policy: retry.Policy{AttemptTimeout: 10 * time.Second, TTL: time.Minute},
	}}
	base := client.Transport.(*retryhttp.Transport).Base.(*http.Transport)
	fmt.Println(base.HTTP2.SendPingTimeout, base.HTTP2.PingTimeout, base.MaxResponseHeaderBytes>>10, "KiB")
	// Output: 5s 5s 256 KiB
}

// sender sends each attempt by a client of its own, so that a cookie of a failed answer is in the retry.
type sender struct{ *http.Client }

func (s sender) RoundTrip(req *http.Request) (*http.Response, error) {
	return s.Do(req.Clone(req.Context()))
}

func ExampleTransport_cookies() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cookies := r.Cookies(); len(cookies) > 0 {
			fmt.Fprint(w, cookies)
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "seat", Value: "7"})
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()

	jar, _ := cookiejar.New(nil) // never fails
	inner := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	client := &http.Client{Transport: &retryhttp.Transport{Base: sender{inner}, Policy: quickly}}
	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Printf("%s %v\n", body, err)
	// Output: [seat=7] <nil>
}

// Each attempt goes to another host of the service.
func ExampleReplicas() {
	serve := func(status int) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		return server.Listener.Addr().String()
	}
	down, up := serve(http.StatusBadGateway), serve(http.StatusOK)

	client := (&retryhttp.Transport{Policy: quickly, Base: &retryhttp.Replicas{Hosts: []string{down, up}}}).Client()
	resp, err := client.Get("http://" + down + "/search")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.Status)
	// Output: 200 OK
}

// A stream that begins with an error is asked for again.
func ExampleFirstEvent() {
	calls := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if calls++; calls == 1 {
			fmt.Fprint(w, "event: error\ndata: overloaded\n\n")
			return
		}
		fmt.Fprint(w, "data: Hello\n\n")
	}))
	defer server.Close()

	client := (&retryhttp.Transport{Policy: quickly, Accept: retryhttp.FirstEvent(func(event []byte) bool {
		return !strings.HasPrefix(string(event), "event: error")
	})}).Client()
	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	stream, err := io.ReadAll(resp.Body)
	fmt.Printf("%q %v\n", stream, err)
	// Output: "data: Hello\n\n" <nil>
}
