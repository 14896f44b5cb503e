package retryconnect

import (
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/retrygo/retry/retryhttp/hints"
)

// pushbackKey is the trailer with which a gRPC server says when to retry, or not to (gRFC A6, "Pushback").
const pushbackKey = "Grpc-Retry-Pushback-Ms"

// advice is the server's hints that come with an error.
type advice struct {
	given bool          // it says when to retry
	delay time.Duration // the minimum wait
	stop  bool          // no retry
}

// adviceOf reads an error's pushback, RetryInfo and Retry-After. The longest delay applies. A negative RetryInfo is
// ignored: it is undefined, unlike a negative pushback.
func adviceOf(err *connect.Error) advice {
	if err == nil {
		return advice{}
	}
	a := pushback(err.Meta()[pushbackKey])
	for _, detail := range err.Details() {
		if detail.Type() != "google.rpc.RetryInfo" {
			continue
		}
		if delay, ok := retryDelay(detail.Bytes()); ok {
			a.given, a.delay = true, max(a.delay, delay)
		}
	}
	if delay := hints.RetryAfter(err.Meta(), time.Now()); delay > 0 {
		a.given, a.delay = true, max(a.delay, delay)
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

// retryDelay reads a google.rpc.RetryInfo: field 1 is a google.protobuf.Duration. It saves the import of genproto.
func retryDelay(info []byte) (time.Duration, bool) {
	var d durationpb.Duration
	found := false
	for len(info) > 0 {
		number, kind, n := protowire.ConsumeTag(info)
		if n < 0 {
			return 0, false
		}
		info = info[n:]
		if n = protowire.ConsumeFieldValue(number, kind, info); n < 0 {
			return 0, false
		}
		if number == 1 && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(info)
			if (proto.UnmarshalOptions{Merge: true}).Unmarshal(value, &d) != nil {
				return 0, false
			}
			found = true
		}
		info = info[n:]
	}
	return d.AsDuration(), found && d.AsDuration() >= 0
}
