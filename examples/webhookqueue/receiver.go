package main

import (
	"io"
	"net/http"
	"strconv"
	"sync"
)

// receiver is the user's server. It fails in a different way on each path.
type receiver struct {
	held     chan struct{} // closed when /slow keeps a request waiting
	mu       sync.Mutex
	mended   bool           // /down is
	requests map[string]int // by event
	handled  map[string]int
}

func newReceiver() *receiver {
	return &receiver{held: make(chan struct{}), requests: map[string]int{}, handled: map[string]int{}}
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	id, err := strconv.Unquote(req.Header.Get("Idempotency-Key"))
	if err != nil {
		http.Error(w, "no Idempotency-Key", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.requests[id]++
	requests, mended := r.requests[id], r.mended
	r.mu.Unlock()
	switch {
	case req.URL.Path == "/gone":
		w.WriteHeader(http.StatusGone)
	case req.URL.Path == "/flaky" && requests < 3, req.URL.Path == "/down" && !mended:
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		r.handle(id)
	}
	if req.URL.Path == "/slow" && requests == 1 {
		_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, req.Body, 1<<20)) // only then does the server notice that the client has gone
		close(r.held)
		<-req.Context().Done()
	}
}

// handle handles an event, once.
func (r *receiver) handle(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handled[id] == 0 {
		r.handled[id]++
	}
}

// mend ends the fault of /down.
func (r *receiver) mend() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mended = true
}

// count returns the number of requests for an event, and how often it was handled.
func (r *receiver) count(id string) (requests, handled int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests[id], r.handled[id]
}
