package retryslog

import (
	"strings"

	"github.com/retrygo/retry/internal/show"
)

// textError is an error with the text that the log gets. The text is made once: a handler that writes later, or several that
// write the same record, ask the error itself no more.
type textError struct {
	text string
	err  error
}

func (t *textError) Error() string { return t.text }
func (t *textError) Unwrap() error { return t.err }

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
