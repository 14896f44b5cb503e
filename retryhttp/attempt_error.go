package retryhttp

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/retrygo/retry"
)

// AttemptError is why one attempt failed: the Err of each retry.Attempt in a run's history. Find it with errors.As.
type AttemptError struct {
	// Reason is the machine-readable word for the failure: "status_503", "conn_refused", "attempt_timeout".
	Reason Reason
	// StatusCode is the response's status. Zero means that there was no response.
	StatusCode int
	// Header is the response's header. Nil means that there was no response.
	Header http.Header
	// Unsent reports that no server can have acted on the request: no connection was obtained for it, or an HTTP/2
	// server refused its stream. Such an attempt can be repeated whatever the method is. Zero means that one may have.
	Unsent bool
	// Veto says why the request was not to be repeated, whatever the rules say of Reason: NotIdempotent,
	// BodyConsumed, BodyInUse, or Reason itself if the request was refused. Empty means that it could be.
	Veto Reason
	// Err is what the transport returned. Nil means that there was a response.
	Err error

	transport *Transport  // whose policy judges; nil outside a Transport
	judged    retry.Class // what that said; Unknown before it was asked
}

// Error returns "retryhttp: 503 Service Unavailable" for a status and "retryhttp: conn_refused: dial tcp ..." for a
// fault, without the reason if Err's text begins with the same words, as in "retryhttp: attempt timeout", and with
// "(not repeated: not_idempotent)" if there is a veto beside the reason.
func (e *AttemptError) Error() string {
	if e == nil {
		return "<nil>"
	}
	text := string(e.Reason)
	switch {
	case e.Err != nil:
		cause := e.Err.Error()
		if !strings.HasPrefix(cause, strings.ReplaceAll(text, "_", " ")) {
			cause = text + ": " + cause
		}
		text = cause
	case e.StatusCode != 0:
		text = statusText(e.StatusCode)
	}
	text = "retryhttp: " + text
	if e.Veto != "" && e.Veto != e.Reason {
		text += fmt.Sprintf(" (not repeated: %s)", e.Veto)
	}
	return text
}

// Unwrap returns Err.
func (e *AttemptError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// Timeout reports whether the attempt failed because it took too long.
func (e *AttemptError) Timeout() bool { return e != nil && isTimeout(e.Err) }

// class returns what the policy that the attempt was made under says, which is asked once, or otherwise Classify.
func (e *AttemptError) class() retry.Class {
	if e.judged == retry.Unknown {
		e.judged = retry.FirstOf(e.transport.Policy.Classify, Classify)(e)
	}
	return e.judged
}

// attemptError returns the outermost AttemptError in err, nil if there is none.
func attemptError(err error) *AttemptError {
	if failed, ok := err.(*AttemptError); ok {
		return failed
	}
	return findAttemptError(err)
}

// findAttemptError is for what attemptError does not see at once. Its variable is on the heap.
func findAttemptError(err error) *AttemptError {
	var failed *AttemptError
	errors.As(err, &failed)
	return failed
}

// worthRepeating reports whether marks and rules call for another attempt.
func (e *AttemptError) worthRepeating() bool {
	class, _ := retry.Policy{Classify: classOf}.Judge(e)
	return class == retry.Retryable
}

func statusText(code int) string {
	if text := http.StatusText(code); text != "" {
		return strconv.Itoa(code) + " " + text
	}
	return "status " + strconv.Itoa(code)
}
