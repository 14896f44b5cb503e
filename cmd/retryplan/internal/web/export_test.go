package web

// NewHandler is newLimitedHandler, for tests that speak HTTP without a socket or without time for a simulation.
var NewHandler = newLimitedHandler

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
