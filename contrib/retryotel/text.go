package retryotel

import (
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
)

// maxText is the length in bytes beyond which the text of an error is cut, as that of retryslog is by default. A server can
// answer with megabytes, and a span has the text twice.
const maxText = 1024

// textOf returns what err says, cut after maxText bytes; "... (5000 bytes)" then follows, with the length of the whole.
func textOf(err error) string {
	whole := spoken(err)
	start := cut(whole)  // before anything copies a huge text
	text := valid(start) // can be longer
	if shown := cut(text); len(shown) < len(text) || len(start) < len(whole) {
		return fmt.Sprintf("%s... (%d bytes)", shown, len(whole))
	}
	return text
}

// spoken returns err's text. An Error method that panics must not end a run that is only looked at.
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

// cut returns the first maxText bytes of s at the most, without half of a character at their end.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for end > maxText-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// valid returns text as UTF-8. OTLP has no other strings: a single bad one is an error of the whole export.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
