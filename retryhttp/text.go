package retryhttp

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

const (
	longestText  = 1 << 10 // of an error, several lines of a log
	longestValue = 256     // of an attribute
	longestName  = 100     // of a field or its value in a requestError
)

// printable returns s, shortened, as one line that is safe in a log and on a terminal.
func printable(s string, limit int) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		default:
			return unicode.ReplacementChar
		}
	}, strings.ReplaceAll(shortened(s, limit), "\n", "; "))
}

// plain is the type of an error that is only a text.
var plain = reflect.TypeOf(errors.New(""))

// bounded returns err, or the beginning of its text if a peer has made that long. That is so for a response that is not
// HTTP, and for a proxy's answer to CONNECT, whose error is only its status text.
func bounded(err error, reason Reason) error {
	if reason != MalformedResponse && reflect.TypeOf(err) != plain {
		return err
	}
	if text := err.Error(); len(text) > longestText {
		return errors.New(printable(text, longestText))
	}
	return err
}

// shortened returns s, or its beginning and "..." in limit bytes.
func shortened(s string, limit int) string {
	const cut = "..."
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-len(cut)], "") + cut
}

func statusText(code int) string {
	if text := http.StatusText(code); text != "" {
		return strconv.Itoa(code) + " " + text
	}
	return "status " + strconv.Itoa(code)
}
