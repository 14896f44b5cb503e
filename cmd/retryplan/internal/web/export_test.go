package web

import (
	"maps"

	"github.com/retrygo/retry/cmd/retryplan/internal/page"
)

// NewHandler returns a handler, for tests that speak HTTP without a socket or without time for a simulation.
var NewHandler = newHandler

// NewServer is the server of Serve.
var NewServer = newServer

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
