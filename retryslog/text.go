package retryslog

import (
	"errors"
	"strings"

	"github.com/retrygo/retry/internal/show"
)

// textError is an error with the text that the log gets. The text is made once, so that a handler that writes later, or
// several that write the same record, do not call the error's own method.
type textError struct {
	text string
	err  error
}

func (t *textError) Error() string { return t.text }
func (t *textError) Unwrap() error { return t.err }

// bounded returns the text of err on one line, of at most limit bytes and the length of what was cut.
func bounded(err error, limit int) string { return show.Error(err, limit, oneLine) }

// maxName is the length in bytes beyond which the name of a policy, which a tenant may have given, is cut like an error.
// contrib/retryotel has the same.
const maxName = 128

// nameOf returns the name of a policy as records have it.
func nameOf(policy string) string {
	if len(policy) <= maxName {
		if name := oneLine(policy); len(name) <= maxName {
			return name
		}
	}
	return bounded(errors.New(policy), maxName)
}

// breaks are the ends of lines that Unicode knows: LF, VT, FF, CR, NEL, LS and PS (UAX 14, classes BK, CR, LF and NL).
const breaks = "\n\v\f\r\u0085\u2028\u2029"

// oneLine puts "; " for each line break, as the errors of package retry do, and U+FFFD for what is not UTF-8, so that a
// record is the same whatever a handler would make of it.
func oneLine(s string) string {
	s = show.UTF8(s)
	if !strings.ContainsAny(s, breaks) {
		return s
	}
	return strings.NewReplacer("\r\n", "; ", "\n", "; ", "\v", "; ", "\f", "; ", "\r", "; ",
		"\u0085", "; ", "\u2028", "; ", "\u2029", "; ").Replace(s)
}
