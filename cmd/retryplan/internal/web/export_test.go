package web

import (
	"maps"
	"net/http"
	"time"

	"github.com/retrygo/retry/cmd/retryplan/internal/page"
)

// NewHandler returns a handler, for tests that speak HTTP without a socket or without time for a simulation.
func NewHandler(limit time.Duration) http.Handler { return newHandler(limit).routes() }

// NewServer is the server of Serve.
var NewServer = newServer

// NewBusyHandler returns a handler with as many evaluations under way as there may be, and a function that ends one of
// them.
func NewBusyHandler() (_ http.Handler, end func()) {
	h := newHandler(time.Minute)
	for range cap(h.slots) {
		h.slots <- struct{}{}
	}
	return h.routes(), func() { <-h.slots }
}

// Defaults returns a copy of the opening state.
func Defaults() map[string]string { return maps.Clone(page.Presets[0].State) }

// Presets returns the states of the page's buttons by their labels, each on top of the opening state.
func Presets() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, p := range page.Presets {
		all[p.Label] = Defaults()
		maps.Copy(all[p.Label], p.State)
	}
	return all
}
