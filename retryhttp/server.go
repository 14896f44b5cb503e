package retryhttp

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// AttemptHeader is the conventional name of the request header that carries the attempt's number, 1 for the first, 2
// for the first retry. Microsoft Graph's clients send the same header with the number of the retry, which is one lower
// (msgraph-sdk-design, middleware/RetryHandler.md).
const AttemptHeader = "Retry-Attempt"

// AttemptFromRequest returns the attempt's number that the client sent in the header of that name, from 1 to
// 2147483647, which also stands for larger ones. An empty name means AttemptHeader. The number is 1 if the header is
// absent, not a plain decimal number or 0, and if it is repeated with different numbers.
//
// The number is the client's word. It is good enough for logs, metrics and shedding retries first. To find out whether
// a request was served before, use an idempotency key.
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

// SetRetryAfter asks the client to stay away for d, in the Retry-After header of w, in whole seconds, rounded up. A d
// of 0 or below removes the header, since "Retry-After: 0" would ask for an immediate retry. It must be called before
// WriteHeader and sets no status. Spread d, because clients that fail together come back together if all get the same
// time.
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

// WriteError answers a request whose handler gives up because of err. If err has an *AttemptError with an answer from
// below, the statuses 400, 403, 404, 409, 410, 412, 413, 415, 416, 422, 423, 428 and 451 are passed on. Any other 3xx
// or 4xx that is not repeated, such as a 401, is about this service's own request, so the status is 502 Bad Gateway.
// For a failure it is 503 Service Unavailable.
//
// Retry-After is set if err has a hint (see retry.After). X-Should-Retry: false is set with a 502, and if a retry of
// the request would repeat in vain the work that was repeated below, or could do harm. That is so if retry.IsGivenUp
// reports true for err, or if err is marked retry.Ambiguous. If err is not an answer, it is also so if the run ended as
// retry.TerminalError or err is marked retry.Permanent. After a run of one attempt, as under retry.OneAttempt, the
// header is not set, because the caller of that run holds the retries. retry.Transient around err does not take back
// the verdict of a run below.
//
// Retry-In-Doubt: true is set beside it if err is marked retry.Ambiguous, because the work may have been done. A
// Transport, or CheckResponse, that sees it after a request that is not safe to repeat reports doubt as well.
// X-Should-Retry: false alone means only that this service has given up.
//
// The text of err is not sent. WriteError must be called before WriteHeader. If the handler has called a Transport, err
// is the *url.Error of its client or the error of CheckResponse, which both hold the run. The error of an
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
	status := http.StatusServiceUnavailable
	isFinal := retry.IsGivenUp(err) || retry.IsAmbiguous(err)
	switch failed := attemptError(err); {
	case failed == nil || statusClass(failed.StatusCode) != retry.Terminal: // a failure
		isFinal = isFinal || class == retry.Terminal || errors.Is(err, retry.TerminalError)
	case failed.delivery || !slices.Contains(passedOn, failed.StatusCode):
		status = http.StatusBadGateway
		isFinal = true
	default:
		status = failed.StatusCode
	}
	if isFinal {
		w.Header().Set("X-Should-Retry", "false")
	}
	if retry.IsAmbiguous(err) {
		w.Header().Set(inDoubtHeader, "true")
	}
	http.Error(w, http.StatusText(status), status)
}

// passedOn are the statuses of answers that are about the content of a request. Other answers are about the credentials
// or the form of the request that this service has made.
var passedOn = []int{400, 403, 404, 409, 410, 412, 413, 415, 416, 422, 423, 428, 451}

// HandlerOptions are the options of Handler. The zero HandlerOptions trust no client.
type HandlerOptions struct {
	// Trust reports whether the client of a request with a number above 1 in AttemptHeader, or a time in
	// EnvoyTimeLeftHeader, is believed, for example because its certificate is one of our own services. A trusted client
	// can switch off our retries. Nil means that no client is trusted.
	Trust func(*http.Request) bool
	// AttemptHeader is the name of the header with the number of the client's attempt, that of the clients' Transports.
	// Empty means the constant AttemptHeader.
	AttemptHeader string
}

// Handler returns a handler that calls next with a context of WithOutcome, so that CheckResponse and OutcomeOf know
// how each request ended that next makes under it. A nil next answers each request with 500 Internal Server Error.
// Unlike the nil of http.Server it does not mean http.DefaultServeMux, which may serve more than was meant to be
// public.
//
// If the client is trusted and its number is above 1, the context is one of retryshell.WithRemoteAttempt. A run that
// next makes under it has one attempt, since the client repeats the work, and a Transport with an AttemptHeader sends
// the client's number on. If a trusted client sends a time, a single number of milliseconds from 1 to a day's, the
// context's deadline is not later than that.
func Handler(next http.Handler, o HandlerOptions) http.Handler {
	if next == nil {
		next = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "retryhttp: Handler has no next handler", http.StatusInternalServerError)
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := WithOutcome(r.Context())
		number, left := AttemptFromRequest(r, o.AttemptHeader), timeLeft(r)
		if (number > 1 || left > 0) && o.Trust != nil && o.Trust(r) {
			ctx = retryshell.WithRemoteAttempt(ctx, number)
			if left > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, left)
				defer cancel()
			}
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}
