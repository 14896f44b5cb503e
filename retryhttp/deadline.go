package retryhttp

import (
	"net/http"
	"strings"
	"time"
)

// EnvoyTimeLeft is the name of the request header in which Envoy says, in milliseconds, how long the whole
// request may take (the router filter's x-envoy-expected-rq-timeout-ms), for Transport.TimeLeft. Handler obeys it.
const EnvoyTimeLeft = "x-envoy-expected-rq-timeout-ms"

const longestTimeLeft = 24 * time.Hour // that is obeyed: more is a mistake rather than a limit

// timeLeft returns how much time the client of r says that it has left, 0 if it does not say so in one plain number
// of milliseconds from 1 to a day's.
func timeLeft(r *http.Request) time.Duration {
	n := offset(strings.Join(r.Header.Values(EnvoyTimeLeft), ",")) // several are no number
	if n <= 0 || n > longestTimeLeft.Milliseconds() {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}
