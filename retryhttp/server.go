package retryhttp

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// AttemptHeader is the conventional name of the request header that carries the attempt's number: 1 for the first, 2
// for the first retry. Microsoft Graph's clients send the same header with the number of the retry, which is one lower
// (msgraph-sdk-design, middleware/RetryHandler.md).
const AttemptHeader = "Retry-Attempt"

// AttemptFromRequest returns the attempt's number that the client sent in the header of that name; "" means
// AttemptHeader: from 1 to 2147483647. A larger number gives 2147483647 on every platform. It is 1 if the header is
// absent, not a plain decimal number or 0, and if it is repeated with different numbers, since none of them is then
// to be believed more than another.
//
// The number is the client's word: good for logs, metrics and shedding retries first, nothing that must be correct can
// rest on it. An idempotency key says whether a request was served before.
func AttemptFromRequest(r *http.Request, header string) int {
	if header == "" {
		header = AttemptHeader
	}
	values := r.Header.Values(header)
	if len(values) == 0 {
		return 1
	}
	number := attemptNumber(values[0])
	for _, value := range values[1:] {
		if attemptNumber(value) != number {
			return 1
		}
	}
	return number
}

// attemptNumber returns the number in value, 1 for junk.
func attemptNumber(value string) int {
	value = strings.TrimSpace(value)
	if strings.Trim(value, "0123456789") != "" {
		return 1 // ParseInt would accept a sign
	}
	number, _ := strconv.ParseInt(value, 10, 32) // the largest int32 if value is out of range
	return max(1, int(number))
}

// SetRetryAfter asks the client to stay away for d, in the Retry-After header of w: whole seconds, rounded up, so that
// it never comes earlier than d. A d of 0 or below removes the header, since "Retry-After: 0" would ask for an
// immediate retry. It must be called before WriteHeader and sets no status: 503 and 429 are the usual ones.
//
// Clients that fail together come back together, jitter or not, if all get the same time: spread d.
func SetRetryAfter(w http.ResponseWriter, d time.Duration) {
	if d <= 0 {
		w.Header().Del("Retry-After")
		return
	}
	seconds := int64(d / time.Second)
	if d%time.Second > 0 {
		seconds++
	}
	w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
}

// WriteError answers a request whose handler gives up because of err, with 503 Service Unavailable and what the client
// has to know: Retry-After if err has a hint (see retry.After), and X-Should-Retry: false if a retry of the request
// would only repeat in vain what was repeated below, or could do harm. That is so if retry.GivenUp reports it of err,
// if the run ended as retry.TerminalError, and if err is marked retry.Permanent or retry.Ambiguous. A run of one
// attempt, as under retry.OneAttempt, is none of these: its caller holds the retries. Such a run says nothing.
// retry.Transient around err does not take back what a run below has said.
//
// The text of err is not sent. WriteError must be called before WriteHeader. If the handler has called a Transport, err
// is the *url.Error of its client, or that of CheckResponse, which says what it needs; the error of an
// http.Client.Timeout does not (see OutcomeOf).
func WriteError(w http.ResponseWriter, err error) {
	class, hint := retry.Policy{Classify: retry.Otherwise(retry.Retryable)}.Judge(err) // Terminal by a mark alone
	var run *retry.Error
	if errors.As(err, &run) {
		hint = max(hint, run.Hint())
	}
	if hint > 0 {
		SetRetryAfter(w, hint)
	}
	if class == retry.Terminal || retry.GivenUp(err) || errors.Is(err, retry.TerminalError) {
		w.Header().Set("X-Should-Retry", "false")
	}
	http.Error(w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
}

// Handler returns a handler that reads AttemptHeader once and calls next with a context in which ClientAttempt finds
// the number. A first attempt reaches next with the request as it came, at no allocation. A nil next answers each
// request with 500 Internal Server Error: unlike the nil of http.Server it does not mean http.DefaultServeMux, which
// may serve more than was meant to be public.
//
// trust reports whether the client of a request with a number above 1 is believed, for example because its certificate
// is one of our own services. The context is then one of retry.RemoteAttempt: what next calls with it is made once,
// since the client repeats it, and a Transport with an AttemptHeader sends the client's number on. A trusted
// client can switch off our retries. Nil means that no client is trusted.
func Handler(next http.Handler, trust func(*http.Request) bool) http.Handler {
	if next == nil {
		next = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "retryhttp: Handler has no next handler", http.StatusInternalServerError)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if number := AttemptFromRequest(r, AttemptHeader); number > 1 {
			ctx := context.WithValue(r.Context(), clientAttemptKey{}, number)
			if trust != nil && trust(r) {
				ctx = retry.RemoteAttempt(ctx, number)
			}
			r = r.WithContext(ctx)
		}
		next.ServeHTTP(w, r)
	})
}

// ClientAttempt returns the attempt's number that Handler found in the request whose context ctx is or descends from: 1
// on a first attempt and if there was no Handler. AttemptFromRequest says how far to trust it. It is not the number
// of a run of this process, which retry.AttemptNumber returns.
func ClientAttempt(ctx context.Context) int {
	if ctx != nil {
		if number, ok := ctx.Value(clientAttemptKey{}).(int); ok {
			return number
		}
	}
	return 1
}

// clientAttemptKey is the context key of the client's attempt number.
type clientAttemptKey struct{}
