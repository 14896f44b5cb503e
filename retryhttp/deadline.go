package retryhttp

import (
	"net/http"
	"strings"
	"time"
)

// EnvoyTimeLeftHeader is the name of the request header in which Envoy sends the time in milliseconds that the whole request
// may take (the router filter's x-envoy-expected-rq-timeout-ms), for Transport.TimeLeftHeaders. Handler obeys it.
const EnvoyTimeLeftHeader = "x-envoy-expected-rq-timeout-ms"

const longestTimeLeft = 24 * time.Hour // the longest that is obeyed, since more is a mistake rather than a limit

// timeLeft returns the time that the client of r has left by its own account. It returns 0 unless that is one plain
// number of milliseconds from 1 to those of a day.
func timeLeft(r *http.Request) time.Duration {
	n := offset(strings.Join(r.Header.Values(EnvoyTimeLeftHeader), ",")) // several are no number
	if n <= 0 || n > longestTimeLeft.Milliseconds() {
		return 0
	}
	return time.Duration(n) * time.Millisecond
}
