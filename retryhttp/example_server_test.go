package retryhttp_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/retrygo/retry/retryhttp"
	"github.com/retrygo/retry/retryshell"
)

func ExampleSetRetryAfter() {
	overloaded := func(w http.ResponseWriter, r *http.Request) {
		retryhttp.SetRetryAfter(w, 1500*time.Millisecond)
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	w := httptest.NewRecorder()
	overloaded(w, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(w.Code, w.Header().Get("Retry-After"))
	// Output: 503 2
}

func ExampleAttemptFromRequest() {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	fmt.Println(retryhttp.AttemptFromRequest(r, ""))

	r.Header.Set(retryhttp.AttemptHeader, "3")
	fmt.Println(retryhttp.AttemptFromRequest(r, ""))
	fmt.Println(retryhttp.AttemptFromRequest(r, "X-Attempt"))
	// Output:
	// 1
	// 3
	// 1
}

func ExampleHandler() {
	orders := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if attempt := retryhttp.AttemptFromRequest(r, ""); attempt > 1 {
			fmt.Println("retry: attempt", attempt)
		}
	})
	handler := retryhttp.Handler(orders, retryhttp.HandlerOptions{})

	r := httptest.NewRequest(http.MethodPost, "/orders", nil)
	handler.ServeHTTP(httptest.NewRecorder(), r)
	r.Header.Set(retryhttp.AttemptHeader, "2")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	// Output: retry: attempt 2
}

// A retry of one of our own services is not repeated again below: the client repeats it.
func ExampleHandler_trust() {
	orders := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("attempt", retryshell.OuterAttemptNumber(r.Context()), "of the client; one attempt:", retryshell.IsOneAttempt(r.Context()))
	})
	ours := func(r *http.Request) bool { return r.TLS != nil && len(r.TLS.VerifiedChains) > 0 }
	handler := retryhttp.Handler(orders, retryhttp.HandlerOptions{Trust: ours})

	r := httptest.NewRequest(http.MethodGet, "/orders", nil)
	r.Header.Set(retryhttp.AttemptHeader, "2")
	handler.ServeHTTP(httptest.NewRecorder(), r)
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}
	handler.ServeHTTP(httptest.NewRecorder(), r)
	// Output:
	// attempt 0 of the client; one attempt: false
	// attempt 2 of the client; one attempt: true
}
