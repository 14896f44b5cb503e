package retryslog

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// told is an error with the text that the log gets. The text is made once: a handler that writes later, or several that
// write the same record, ask the error itself no more.
type told struct {
	text string
	err  error
}

func (t *told) Error() string { return t.text }
func (t *told) Unwrap() error { return t.err }

// text returns err's text as one line, cut after limit bytes at the most; a negative limit is none.
func text(err error, limit int) string {
	whole := spoken(err)
	start := cut(whole, limit) // before anything copies a huge text
	line := oneLine(start)     // can be longer
	if shown := cut(line, limit); len(shown) < len(line) || len(start) < len(whole) {
		return fmt.Sprintf("%s... (%d bytes)", shown, len(whole))
	}
	return line
}

// spoken returns what err says. An Error method that panics must not end a run that a log only looks at: the text is then
// the one that slog's handlers write for such a value.
func spoken(err error) (s string) {
	defer func() {
		if r := recover(); r != nil {
			if v := reflect.ValueOf(err); v.Kind() == reflect.Pointer && v.IsNil() {
				s = "<nil>"
			} else {
				s = fmt.Sprintf("!PANIC: %v", r)
			}
		}
	}()
	return err.Error()
}

// cut returns the first limit bytes of s at the most, without half of a character at their end.
func cut(s string, limit int) string {
	if limit < 0 || len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && limit-end < utf8.UTFMax-1 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// breaks are the ends of lines that Unicode knows: LF, VT, FF, CR, NEL, LS and PS (UAX 14, classes BK, CR, LF and NL).
const breaks = "\n\v\f\r\u0085\u2028\u2029"

// oneLine puts "; " for each line break, as the errors of package retry do, and U+FFFD for what is not UTF-8, so that a
// record is the same whatever a handler would make of it.
func oneLine(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.ContainsAny(s, breaks) {
		return s
	}
	return strings.NewReplacer("\r\n", "; ", "\n", "; ", "\v", "; ", "\f", "; ", "\r", "; ",
		"\u0085", "; ", "\u2028", "; ", "\u2029", "; ").Replace(s)
}
