package retrygrpc

import (
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/metadata"
)

// pushbackKey is the trailer with which a server says when to retry, or not to (gRFC A6, "Pushback").
const pushbackKey = "grpc-retry-pushback-ms"

// advice is the server's hints that come with a status.
type advice struct {
	given bool          // it says when to retry
	delay time.Duration // the minimum wait
	stop  bool          // no retry
}

// adviceOf reads the pushback of a trailer and the RetryInfo in the details of a status. The longer delay applies. A
// negative RetryInfo is ignored: it is undefined, unlike a negative pushback.
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

// pushback reads the values of the trailer: a single value is the number of milliseconds to wait, anything else forbids
// a retry.
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
