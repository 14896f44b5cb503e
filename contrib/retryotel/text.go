package retryotel

import (
	"fmt"
	"strings"
)

// maxText is the length in bytes beyond which the text of an error is cut, as in retryslog by default. A server can
// answer with megabytes, and a span has the text twice.
const maxText = 1024

// maxName is the length in bytes beyond which a policy's name, which a tenant may have chosen, is cut. Package
// retryslog uses the same. It also bounds the text that an error returns as its type.
const maxName = 128

// textOf returns the text of err, at most maxText bytes of it.
func textOf(err error) string { return bounded(spoken(err), maxText) }

// nameOf returns the name of a policy, at most maxName bytes of it.
func nameOf(policy string) string { return bounded(policy, maxName) }

// bounded returns whole as UTF-8, cut after limit bytes and followed by its full length.
func bounded(whole string, limit int) string {
	text := valid(whole)
	if len(text) <= limit {
		return text
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(text[:limit], ""), len(whole)) // not half of a character
}

// spoken returns the text of err, even if its Error method panics.
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

// valid returns text as UTF-8: OTLP has no other strings, and a single invalid one fails the whole export.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
