package main

import (
	"net/http"

	"github.com/retrygo/retry/retryhttp"
)

// misbehave is the server. It fails in a different way on each path.
func misbehave(w http.ResponseWriter, req *http.Request) {
	switch req.URL.Path {
	case "/steady":
	case "/flaky": // works at the third attempt
		if retryhttp.AttemptFromRequest(req, "") < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	case "/down":
		w.WriteHeader(http.StatusServiceUnavailable)
	case "/stuck": // does not answer until the client has gone
		<-req.Context().Done()
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}
