package retryjob

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// Cause returns a text that the attempt shares with others that failed in the same way. It is its Code or, without one, the
// Fingerprint of its Err, up to 100 characters. It is empty for an attempt without an error.
func (a *Attempt) Cause() string {
	if a.Code != "" {
		return middleOut(a.Code, longestCause)
	}
	return middleOut(Fingerprint(a.Err), longestCause)
}

// Cause returns the Attempt.Cause of the last attempt of a job that is DeadLettered, Expired or FailedNoRetries, and ""
// for any other job.
func (r *Record) Cause() string {
	if !r.Status.Replayable() || len(r.History) == 0 {
		return ""
	}
	return r.History[len(r.History)-1].Cause()
}

// longestCause is the length of a cause in characters, so that databases can index it.
const longestCause = 100

// varying matches the parts of an error's text that differ between two errors of the same kind.
var varying = regexp.MustCompile(strings.Join([]string{
	`"[^"\n]*"`, "`[^`\n]*`", `\B'[^'\n]*'`, // quoted
	`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+[^\s"'<>:;,.]`, // URLs
	`[\w.+-]+@[\w.-]+\w`, // mail addresses
	`\[[0-9A-Fa-f:.%\w]*:[0-9A-Fa-f:.%\w]*\](?::\d+)?`,         // IPv6
	`\b[\w-]+(?:\.[\w-]+)*:\d+\b`,                              // host:port
	`\b(?:\d{1,3}\.){3}\d{1,3}\b`,                              // IPv4
	`\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b`, // UUIDs
	`\b0x[0-9A-Fa-f]+\b`,
	`\b[A-Fa-f]*\d[0-9A-Fa-f]{7,}\b`, `\b[0-9A-Fa-f]{7,}\d[A-Fa-f]*\b`, // hexadecimal
	`\d+(?:[.,:]\d+)*`,
	`=[^\s&;,"'<>]+`, `\b[Bb]earer\s+\S+`, // which can be secrets too
}, "|"))

// Fingerprint returns the text of an error with "#" in place of the parts that differ between two errors of the same
// kind: numbers, hexadecimal numbers, quoted parts, URLs, addresses and the values of parameters. White space is one
// space.
func Fingerprint(text string) string {
	return varying.ReplaceAllStringFunc(strings.Join(strings.Fields(text), " "), func(part string) string {
		if part[0] == '=' {
			return "=#"
		}
		return "#"
	})
}

// middleOut returns s, or its beginning and its end if it has more than the given number of characters. Go puts the
// first cause of an error at the end.
func middleOut(s string, most int) string {
	n := utf8.RuneCountInString(s)
	if n <= most {
		return s
	}
	runes := []rune(s)
	head := most / 3
	return string(runes[:head]) + "…" + string(runes[n-(most-head-1):])
}
