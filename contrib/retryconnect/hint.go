package retryconnect

import (
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/retrygo/retry/retryhttp/hints"
)

// hintOf returns the longer one of an error's RetryInfo and Retry-After, 0 if there is none.
func hintOf(err *connect.Error) time.Duration {
	wait := hints.RetryAfter(err.Meta(), time.Now())
	for _, detail := range err.Details() {
		if detail.Type() == "google.rpc.RetryInfo" {
			wait = max(wait, retryDelay(detail.Bytes()))
		}
	}
	return max(wait, 0)
}

// retryDelay reads a google.rpc.RetryInfo: field 1 is a google.protobuf.Duration. It saves the import of genproto.
func retryDelay(info []byte) time.Duration {
	var d durationpb.Duration
	for len(info) > 0 {
		number, kind, n := protowire.ConsumeTag(info)
		if n < 0 {
			return 0
		}
		info = info[n:]
		if n = protowire.ConsumeFieldValue(number, kind, info); n < 0 {
			return 0
		}
		if number == 1 && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(info)
			if (proto.UnmarshalOptions{Merge: true}).Unmarshal(value, &d) != nil {
				return 0
			}
		}
		info = info[n:]
	}
	return d.AsDuration()
}
