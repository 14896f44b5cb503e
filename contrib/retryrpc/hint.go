package retryrpc

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/retrygo/retry"
)

// The metadata that gRPC and Connect write in their own case. The first two are of gRFC A6.
const (
	PushbackKey = "grpc-retry-pushback-ms"     // in trailers, when to retry or not to
	AttemptsKey = "grpc-previous-rpc-attempts" // in the headers of retries, the number of attempts before this one
	InDoubtKey  = "retry-in-doubt"             // in trailers, "true" if the work may have taken effect, like the header of retryhttp
)

// ParsePushback reads the values of PushbackKey. A single value is the number of milliseconds to wait. Any other
// form forbids a retry.
func ParsePushback(values []string) (wait time.Duration, forbidden bool) {
	if len(values) == 0 {
		return 0, false
	}
	ms, err := strconv.ParseInt(values[0], 10, 32) // a signed 32-bit integer, by gRFC A6
	if len(values) > 1 || err != nil || ms < 0 {
		return 0, true
	}
	return time.Duration(ms) * time.Millisecond, false
}

// ParseAttempt reads the values of AttemptsKey and returns the number of the client's attempt, 1 for a first attempt
// and for invalid values. The client can send any number.
func ParseAttempt(values []string) int {
	if len(values) != 1 {
		return 1
	}
	previous, err := strconv.ParseUint(values[0], 10, 32)
	if err != nil {
		return 1
	}
	return int(min(previous, math.MaxInt32-1)) + 1
}

// MetadataFor returns the metadata that a server adds to the trailers of a call whose handler returns err. It can be nil.
//
// PushbackKey is "-1", which forbids a retry, if a retry would only repeat retries that have already failed below, or
// could do harm, which is so if retry.IsGivenUp reports true for err and if it is in doubt. The same goes for an error that is marked
// retry.Permanent or whose run ended as retry.TerminalError, unless it is the answer of a service below. A run of one
// attempt, as under retry.OneAttempt, does not count, since its caller retries. For any other error with a hint (see
// retry.After) it is the hint in milliseconds.
//
// InDoubtKey is "true" if retry.IsAmbiguous reports true for err.
func MetadataFor(err error) map[string]string {
	if err == nil {
		return nil
	}
	inDoubt := retry.IsAmbiguous(err)
	if inDoubt || givenUp(err) {
		forbids := map[string]string{PushbackKey: "-1"}
		if inDoubt {
			forbids[InDoubtKey] = "true"
		}
		return forbids
	}
	_, hint := retry.Policy{}.Judge(err)
	if run := (*retry.Error)(nil); errors.As(err, &run) {
		hint = max(hint, run.Hint())
	}
	if hint <= 0 {
		return nil
	}
	ms := min((hint-1)/time.Millisecond+1, math.MaxInt32) // rounded up, so a retry does not come earlier
	return map[string]string{PushbackKey: strconv.FormatInt(int64(ms), 10)}
}

// givenUp reports whether a retry of the call is of no use.
func givenUp(err error) bool {
	if retry.IsGivenUp(err) {
		return true
	}
	var below interface{ Answer() bool }
	if errors.As(err, &below) && below.Answer() {
		return false
	}
	class, _ := retry.Policy{Classify: retry.Otherwise(retry.Retryable)}.Judge(err) // Terminal only because of a mark
	return class == retry.Terminal || errors.Is(err, retry.TerminalError)
}

// ForClient returns the code and the text with which a server reports a failed run to its client, without the name of the
// policy, the number of attempts and the text of the error inside. The code is DeadlineExceeded or Canceled if err
// matches that error of package context, and otherwise Unavailable. ok is false if there is no *retry.Error in err and
// no layer below has given up (see retry.IsGivenUp). The server itself converts such an err. An adapter prefers a
// status of its library inside err.
func ForClient(err error) (code Code, text string, ok bool) {
	switch {
	case !errors.As(err, new(*retry.Error)) && !retry.IsGivenUp(err):
		return 0, "", false
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded, context.DeadlineExceeded.Error(), true
	case errors.Is(err, context.Canceled):
		return Canceled, context.Canceled.Error(), true
	default:
		return Unavailable, "the service is unavailable", true
	}
}
