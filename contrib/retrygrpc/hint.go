package retrygrpc

import (
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/metadata"
)

// pushbackKey is the trailer by which a server says when to come back, or not to (gRFC A6, "Pushback").
const pushbackKey = "grpc-retry-pushback-ms"

// advice is what a server says of retries along with its status.
type advice struct {
	given bool          // it says when
	delay time.Duration // at least so long
	stop  bool          // not at all
}

// adviceOf reads the pushback of a trailer and the RetryInfo among the details of a status. The longer delay wins. A
// negative RetryInfo says nothing: it has no meaning of its own, as a negative pushback has.
func adviceOf(trailer metadata.MD, details []any) advice {
	a := pushback(trailer.Get(pushbackKey))
	for _, detail := range details {
		info, ok := detail.(*errdetails.RetryInfo)
		if !ok || info.GetRetryDelay() == nil {
			continue
		}
		if delay := info.GetRetryDelay().AsDuration(); delay >= 0 {
			a.given = true
			a.delay = max(a.delay, delay)
		}
	}
	return a
}

// pushback reads the values of the trailer: one, of the whole milliseconds to wait, or else no retry.
func pushback(values []string) advice {
	if len(values) == 0 {
		return advice{}
	}
	ms, err := strconv.ParseInt(values[0], 10, 32) // gRFC A6: a signed 32-bit integer
	if len(values) > 1 || err != nil || ms < 0 {
		return advice{stop: true}
	}
	return advice{given: true, delay: time.Duration(ms) * time.Millisecond}
}
