package retryotel

import "github.com/retrygo/retry/internal/show"

// maxText is the length in bytes beyond which the text of an error is cut, as that of retryslog is by default. A server can
// answer with megabytes, and a span has the text twice.
const maxText = 1024

// textOf returns what err says, at most maxText bytes of it, and as UTF-8: OTLP has no other strings, and a single bad one is an
// error of the whole export.
func textOf(err error) string { return show.Error(err, maxText, show.UTF8) }
