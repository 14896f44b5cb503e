package literal

import "regexp"

// Compact returns text with its durations as this command writes them, without the zero units that Duration.String ends
// with: "1h" for "1h0m0s".
func Compact(text string) string {
	text = zeroSeconds.ReplaceAllString(text, "$1")
	return zeroMinutes.ReplaceAllString(text, "$1")
}

// CompactJSON is Compact for the durations of a document and of distributions, and for nothing else: not for names.
func CompactJSON(document string) string {
	return durations.ReplaceAllStringFunc(document, Compact)
}

var (
	zeroSeconds = regexp.MustCompile(`\b((?:\d+h)?\d+m)0s\b`)
	zeroMinutes = regexp.MustCompile(`\b(\d+h)0m\b`)
	// A quote within a JSON string is escaped, so that none of these can be a part of one.
	durations = regexp.MustCompile(`"(?:base|cap|attempt_timeout|ttl|max_hint|reset_after|duration|network|service|think|retry_after)":\s*"[^"\\]*"|"delays":\s*\[[^]]*\]`)
)
