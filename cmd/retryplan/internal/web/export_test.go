package web

import (
	"net/http"
	"testing"
	"time"

	"github.com/retrygo/retry"
)

// NewHandler returns a handler, for tests that speak HTTP without a socket or without time for a simulation.
func NewHandler(p retry.Policy, limit time.Duration) (http.Handler, error) {
	h, err := newHandler(p, limit)
	if err != nil {
		return nil, err
	}
	return h.routes(), nil
}

// NewBusyHandler returns a handler with as many evaluations under way as there may be, and what ends one of them.
func NewBusyHandler(t *testing.T) (_ http.Handler, end func()) {
	h, err := newHandler(retry.Policy{}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for range cap(h.slots) {
		h.slots <- struct{}{}
	}
	return h.routes(), func() { <-h.slots }
}

// Defaults returns a copy of the opening state.
func Defaults() map[string]string {
	s := map[string]string{}
	for key, text := range defaults {
		s[key] = text
	}
	return s
}

// Presets returns the states of the page's buttons by their labels, each on top of the opening state.
func Presets() map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, p := range presets() {
		all[p.Label] = Defaults()
		for key, text := range p.State {
			all[p.Label][key] = text
		}
	}
	return all
}
