package retryotel

import (
	"fmt"
	"strings"
)

// maxText is the length in bytes beyond which the text of an error is cut, as that of retryslog is by default. A server can
// answer with megabytes, and a span has the text twice.
const maxText = 1024

// textOf returns the text of err, at most maxText bytes of it.
func textOf(err error) string {
	whole := spoken(err)
	text := valid(whole)
	if len(text) <= maxText {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(text[:maxText], ""), len(whole)) // no half of a character
}

// spoken returns what the Error method of err says, also if it panics.
func spoken(err error) (text string) {
	defer func() {
		if r := recover(); r != nil {
			if text = fmt.Sprint(err); text != "<nil>" { // as fmt prints a nil pointer whose method panics
				text = fmt.Sprintf("!PANIC: %v", r)
			}
		}
	}()
	return err.Error()
}

// valid returns text as UTF-8: OTLP has no other strings, and a single bad one is an error of the whole export.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
