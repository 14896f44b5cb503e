package retryslog

import (
	"errors"

	"github.com/retrygo/retry/internal/show"
)

// textError is an error with the text for the log. The text is built once, so a handler that writes later, or several
// that write the same record, do not call the error's own method.
type textError struct {
	text string
	err  error
}

func (t *textError) Error() string { return t.text }
func (t *textError) Unwrap() error { return t.err }

// bounded returns the text of err on one line, cut to limit bytes and followed by the full length if it is longer.
func bounded(err error, limit int) string { return show.Error(err, limit, show.OneLine) }

// maxName is the length in bytes beyond which a policy's name, which a tenant may have chosen, is cut like an error.
// contrib/retryotel uses the same.
const maxName = 128

func nameOf(policy string) string {
	if len(policy) <= maxName {
		if name := show.OneLine(policy); len(name) <= maxName {
			return name
		}
	}
	return bounded(errors.New(policy), maxName)
}
