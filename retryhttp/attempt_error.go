package retryhttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhttp/hints"
)

// AttemptError describes the failure of one attempt. It is the Err of each retry.Attempt in a run's history, and
// errors.As finds it in the error of a client. If the request was not to be repeated, it is marked retry.Permanent. Its
// size does not grow with the response.
type AttemptError struct {
	// Reason is the machine-readable word for the failure, such as "status_503", "conn_refused" or "attempt_timeout".
	// It is never empty.
	Reason Reason
	// StatusCode is the response's status. Zero means that there was no response.
	StatusCode int
	// Header is the response's whole header while Policy.Classify and Transport.Repeat judge the failure. After that it
	// holds the first value, up to 256 bytes, of the fields about whether and when to come back, of Content-Type, of
	// Date and of the request's ID. Nil means that there was no response or that it had no such field.
	Header http.Header
	// Request is the caller's request, or that for the rest of its body. Error, LogValue and JSON show no header, body,
	// query or password of it. Nil means that it is not known.
	Request *http.Request `json:"-"`
	// Unsent is true if no server can have acted on the request, because no connection was obtained for it or an HTTP/2
	// server refused its stream. Such an attempt can be repeated whatever the method is. False means that a server may
	// have acted on it.
	Unsent   bool
	ended    bool           // the response is the last of a run that has given up
	delivery bool           // of a Transport with Delivery
	doubt    bool           // the request was not to be repeated because it may have taken effect
	rest     bool           // the rest of a body was asked for
	outcome  *retry.Outcome // of the run that failed with this response, or nil
	// Veto is the reason for which the request was not to be repeated, whatever the rules make of Reason. It is
	// NotIdempotent, DoNotRetry, BodyNotReplayable or NotResumable, or Reason itself if the request was refused. Empty
	// means that the request could be repeated.
	Veto Reason
	// Err is the error that the transport returned. Nil means that there was a response. An error that is no more than a
	// text from a server or a proxy is cut to its first 1 KiB.
	Err error

	// mark is Err, or the error that base returns, with a hint and the decision not to retry. It is nil without both.
	mark error
}

// CheckResponse returns nil if resp is a success, 2xx or 101, unless it is known to have ended a run that has failed,
// because Accept did not accept it. Otherwise it returns an *AttemptError with the response's Retry-After as its hint
// (see retry.After). A response that forbids a retry is marked retry.Permanent. It is for an fn of retry.Do or the
// handler of a job that sends a request without a Transport, and for the last response of one. Every policy obeys the
// hint and this mark, and ends at an answer such as a 404, unless its Classify is Retryable for that. For a hint other
// than Retry-After, put retry.After around the error.
//
// If a run is not known, CheckResponse judges the request itself. The 503 of a POST without a key is retry.Ambiguous,
// since the server may have done its work, and no run repeats it. Put retry.Transient around the error of work that may
// be done twice, or send a key. An error of the http.Client itself, such as a lost connection, has no such mark without
// a Transport.
//
// CheckResponse knows the run of a Transport that returned resp. The error of a run that has given up names its policy
// and attempts, and matches its Reason, such as retry.AttemptsExhausted. It is not a *retry.Error, but
// OutcomeOf(nil, err) returns the run's outcome, and retry.IsGivenUp reports true. If the run did not repeat a request
// that may have taken effect, retry.IsAmbiguous reports true. The hint of Transport.Hint counts too. A request that was
// not repeated and is in no doubt, such as a POST that was answered 429, may be repeated by the run around it. The run
// is known by the response's body, unless an http.Client.Timeout or a RoundTripper in between has replaced the body, and
// in any case by a context from WithOutcome, such as Handler's.
//
// A nil resp is an error. CheckResponse does not close the body.
func CheckResponse(resp *http.Response) error {
	if resp == nil {
		return &AttemptError{Reason: TransportError, Err: errNoResponse}
	}
	o, _ := OutcomeOf(resp, nil)
	if succeeded(resp.StatusCode) && (o.Status == 0 || o.Status == retry.Succeeded) {
		return nil
	}
	failed := statusError(resp, hints.RetryAfter(resp.Header, time.Now()), &o)
	failed.Header = kept(resp.Header)
	if o.Status == 0 && failed.inDoubtByItself() {
		failed.doubt = true
		failed.Veto = cmp.Or(failed.Veto, NotIdempotent)
	}
	if failed.Veto != "" {
		return failed.forbidden()
	}
	return failed
}

// inDoubtByItself reports whether a Transport would have found the work in doubt. It is for a response that is not
// known to be from one.
func (e *AttemptError) inDoubtByItself() bool {
	if isRepeatable(e.Request) {
		return false
	}
	gaveUp := e.Veto == DoNotRetry || isAnswer(e.StatusCode)
	return saysDoubt(e.Header) || e.Request != nil && !gaveUp && e.mayHaveWorked()
}

// forbidden returns e marked as one that no attempt is to follow, not even one of a run around this one if the request
// may have taken effect and was not repeated for that reason.
func (e *AttemptError) forbidden() *AttemptError {
	mark := retry.Permanent
	if e.doubt {
		mark = retry.Ambiguous
	}
	e.mark = mark(cmp.Or(e.mark, e.Err, e.base()))
	return e
}

// mayHaveWorked reports whether a server may have done the work of a request that failed so.
func (e *AttemptError) mayHaveWorked() bool {
	if e.StatusCode == 0 || saysDoubt(e.Header) {
		return true
	}
	return !nothingDone(e.StatusCode) && !turnedAway(e.Header)
}

// statusError returns the failure that resp stands for, with its whole header. o is the outcome of the run that
// returned resp. It is nil if there was no such run.
func statusError(resp *http.Response, hint time.Duration, o *retry.Outcome) *AttemptError {
	failed := &AttemptError{
		Reason: statusReason(resp.StatusCode), StatusCode: resp.StatusCode, Header: resp.Header, Request: resp.Request,
	}
	if o != nil && o.Status != retry.Succeeded && len(o.History) > 0 {
		run := retry.Policy{}.NewError(context.Background(), *o, o.History[len(o.History)-1].Err)
		hint = max(hint, run.Hint())
		failed.inherit(run)
	}
	if hint > 0 {
		failed.mark = retry.After(hint, failed.base())
	}
	if succeeded(resp.StatusCode) {
		failed.Reason = NotAccepted
	}
	if doNotRetry(resp.Header) {
		failed.Veto = DoNotRetry
	}
	return failed
}

// inherit notes the verdict of the run that ended with e's response. That the run did not repeat its own request does
// not forbid another one. Only doubt does.
func (e *AttemptError) inherit(run *retry.Error) {
	e.ended = run.GivenUp()
	e.outcome = &run.Outcome
	last := attemptError(run.Last)
	if last == nil || run.Reason != retry.TerminalError {
		return
	}
	e.delivery = last.delivery
	e.doubt = last.doubt
	if last.doubt {
		e.Veto = last.Veto
	}
}

// base returns the error that is marked for a response, which has no error of its own. It is the Reason of the run that
// has given up with the response, if there was one.
func (e *AttemptError) base() error {
	if e.ended {
		return e.outcome.Reason
	}
	return errMarked
}

var errMarked = errors.New("the response says whether and when to retry")

// kept returns the fields of h that an AttemptError keeps, or nil if h has no such field. It shares no memory with h.
func kept(h http.Header) http.Header {
	var small http.Header
	for name, values := range h {
		if len(values) > 0 && isKept(name) {
			if small == nil {
				small = http.Header{}
			}
			small[name] = []string{strings.Clone(values[0][:min(len(values[0]), 256)])}
		}
	}
	return small
}

// isKept reports whether an AttemptError keeps a field of a response's header after it has been judged.
func isKept(name string) bool {
	switch name {
	case "Content-Type", "Date", "Finagle-Http-Nonretryable-Nack", "Ratelimit", "Ratelimit-Remaining",
		"Ratelimit-Reset", "Request-Id", "Retry-After", "Retry-After-Ms", inDoubtHeader, "Stripe-Should-Retry", "X-Envoy-Overloaded",
		"X-Ms-Retry-After-Ms", "X-Ratelimit-Remaining", "X-Ratelimit-Reset", "X-Request-Id", "X-Should-Retry":
		return true
	default:
		return false
	}
}

// Error returns "retryhttp: 503 Service Unavailable" for a status, "retryhttp: 200 OK, not accepted" for one that Accept
// has refused, with " (prices: gave up after 4 attempts)" if it ended a
// run of a policy of that name, and "retryhttp: conn_refused: dial tcp ..." for a fault. The reason is left out if Err's
// text begins with its words, as in "retryhttp: attempt timeout". A Veto other than Reason follows: "(not repeated:
// not_idempotent)". Of Err's text it has the first 1 KiB, on one line and without control characters.
func (e *AttemptError) Error() string {
	if e == nil {
		return "<nil>"
	}
	text := string(e.Reason)
	switch {
	case e.Err != nil:
		cause := printable(e.Err.Error(), longestText)
		if !strings.HasPrefix(cause, strings.ReplaceAll(text, "_", " ")) {
			cause = text + ": " + cause
		}
		text = cause
	case e.StatusCode != 0:
		text = statusText(e.StatusCode)
		if e.Reason == NotAccepted {
			text += ", not accepted"
		}
	}
	text = "retryhttp: " + text
	if e.Veto != "" && e.Veto != e.Reason {
		text += fmt.Sprintf(" (not repeated: %s)", e.Veto)
	}
	return text + e.run()
}

// run returns " (prices: gave up after 4 attempts)" for a response that ended a run, and otherwise "". The policy's
// Name is left out if it is empty.
func (e *AttemptError) run() string {
	if !e.ended || e.Veto != "" {
		return ""
	}
	name := ""
	if e.outcome.Policy != "" {
		name = printable(e.outcome.Policy, longestValue) + ": "
	}
	plural := "s"
	if e.outcome.Attempts == 1 {
		plural = ""
	}
	return fmt.Sprintf(" (%sgave up after %d attempt%s)", name, e.outcome.Attempts, plural)
}

// Unwrap returns Err with the decision about it as a mark, such as retry.Permanent. For a response it returns an error
// that carries the response's hint (see retry.After) and the mark. For the last response of a run that has given up, it
// leads to the Reason of the run. It returns nil for any other response.
func (e *AttemptError) Unwrap() error {
	switch {
	case e == nil:
		return nil
	case e.mark != nil:
		return e.mark
	case e.ended:
		return e.base()
	default:
		return e.Err
	}
}

// GivenUp reports whether the server, or a run inside, has given up. That is so if the response forbids a retry
// (DoNotRetry), if it is the last of a run that has retried (see CheckResponse), or if retry.IsGivenUp reports true for
// Err.
func (e *AttemptError) GivenUp() bool {
	return e != nil && (e.Veto == DoNotRetry || e.ended || retry.IsGivenUp(e.Err))
}

// Answer reports whether e is an answer and not a failure. An answer is a status that is not repeated, such as a 404,
// without a Veto. It is neither from a Transport with Delivery nor from a run that has repeated it. A policy without an
// opinion of its own does not repeat an answer (see retry.Classifier).
func (e *AttemptError) Answer() bool {
	return e != nil && e.Err == nil && e.Veto == "" && !e.delivery && !e.ended && isAnswer(e.StatusCode)
}

// Timeout reports whether the attempt failed because it took too long.
func (e *AttemptError) Timeout() bool { return e != nil && isTimeout(e.Err) }

// Temporary is Timeout. It makes e a net.Error. Whether e is repeated does not depend on it.
func (e *AttemptError) Temporary() bool { return e.Timeout() }

// HTTPStatus returns StatusCode.
func (e *AttemptError) HTTPStatus() int {
	if e == nil {
		return 0
	}
	return e.StatusCode
}

// ErrorType returns the status, "503", or Reason if there was no response. It has few values, as OpenTelemetry's
// error.type asks.
func (e *AttemptError) ErrorType() string {
	switch {
	case e == nil:
		return ""
	case e.StatusCode != 0:
		return strconv.Itoa(e.StatusCode)
	default:
		return string(e.Reason)
	}
}

// LogValue returns a group for a log line. It has the method, host and path of Request, and the status or, if there was
// no response, the reason. It leaves out query, fragment, user and password. If the Request has a Pattern, the path is
// the pattern's. Set the Pattern if a path holds a secret, as the URLs of some webhooks do. Each value is one line of
// at most 256 bytes.
func (e *AttemptError) LogValue() slog.Value {
	if e == nil {
		return slog.Value{}
	}
	attrs := make([]slog.Attr, 0, 4)
	if req := e.Request; req != nil {
		attrs = append(attrs, slog.String("method", printable(cmp.Or(req.Method, http.MethodGet), longestValue)))
		path := ""
		if req.URL != nil {
			attrs = append(attrs, slog.String("host", printable(bareHost(req.URL.Host), longestValue)))
			path = req.URL.EscapedPath()
		}
		if i := strings.IndexByte(req.Pattern, '/'); i >= 0 { // "[METHOD ][HOST]/[PATH]"
			path = req.Pattern[i:]
		}
		attrs = append(attrs, slog.String("path", printable(path, longestValue)))
	}
	if e.StatusCode != 0 {
		attrs = append(attrs, slog.Int("status", e.StatusCode))
	} else {
		attrs = append(attrs, slog.String("reason", string(e.Reason)))
	}
	return slog.GroupValue(attrs...)
}

// attemptError returns the outermost AttemptError in err, or nil if err has no such error.
func attemptError(err error) *AttemptError {
	if failed, ok := err.(*AttemptError); ok {
		return failed
	}
	return findAttemptError(err)
}

// findAttemptError is apart from attemptError because its variable is on the heap.
func findAttemptError(err error) *AttemptError {
	var failed *AttemptError
	errors.As(err, &failed)
	return failed
}

// bareHost returns host without the user, path or query that the Host of a URL can have if it was not parsed.
func bareHost(host string) string {
	if i := strings.IndexAny(host, "/?#"); i >= 0 {
		host = host[:i]
	}
	return host[strings.LastIndexByte(host, '@')+1:]
}
