package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/retrygo/retry/retryhttp"
)

// receiver is the user's server. It fails in a different way on each path.
type receiver struct {
	mu   sync.Mutex
	done map[string]bool // by key
	log  strings.Builder
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch req.URL.Path {
	case "/down":
		w.WriteHeader(http.StatusServiceUnavailable)
	case "/busy":
		retryhttp.SetRetryAfter(w, time.Minute) // more than the TTL
		w.WriteHeader(http.StatusServiceUnavailable)
	case "/gone":
		w.WriteHeader(http.StatusGone)
	case "/moved":
		http.Redirect(w, req, "http://169.254.169.254/", http.StatusTemporaryRedirect)
	case "/flaky":
		attempt := retryhttp.AttemptFromRequest(req, "")
		r.handle(req.Header.Get("Idempotency-Key"), attempt)
		if attempt < 3 {
			w.WriteHeader(http.StatusServiceUnavailable) // for any reason, although the event was handled
		}
	}
}

// handle handles an event, once.
func (r *receiver) handle(key string, attempt int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what := "handled"
	if r.done[key] {
		what = "known, not handled again"
	}
	r.done[key] = true
	fmt.Fprintf(&r.log, "receiver: %s in attempt %d: %s\n", key, attempt, what)
}

// report returns the receiver's actions, a line for each attempt.
func (r *receiver) report() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}
