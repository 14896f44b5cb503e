// Package show makes texts for people, such as durations, and errors of bounded length.
package show

import (
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Duration prints d exactly and without the zero units that Duration.String ends with, such as "1h" for "1h0m0s".
func Duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-len("0s")]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-len("0m")]
	}
	return s
}

// Rounded returns d without the digits below a millisecond from 1s on, and below a microsecond from 1ms on.
func Rounded(d time.Duration) time.Duration {
	switch {
	case d >= time.Second:
		return d.Round(time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(time.Microsecond)
	default:
		return d
	}
}

// Error returns err's text as clean makes it, cut after limit bytes at the most. If it is cut, "... (5000 bytes)"
// follows, with the length of the whole. A negative limit means no limit. If the Error method panics, the text is the
// one that log/slog writes for such a value, because an error that is only looked at must not end a run.
func Error(err error, limit int, clean func(string) string) string {
	whole := spoken(err)
	start := cut(whole, limit) // before anything copies a huge text
	text := clean(start)       // can be longer
	if shown := cut(text, limit); len(shown) < len(text) || len(start) < len(whole) {
		return fmt.Sprintf("%s... (%d bytes)", shown, len(whole))
	}
	return text
}

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

// OneLine returns s as one line of valid UTF-8 that is safe in a log and on a terminal. It replaces line breaks by ";
// ", and control and format characters other than a tab by U+FFFD. Line breaks are defined by the Unicode Standard,
// section 5.8.
func OneLine(s string) string {
	lines := strings.FieldsFunc(strings.ToValidUTF8(s, "\uFFFD"), func(r rune) bool {
		return r >= '\n' && r <= '\r' || r == '\u0085' || r == '\u2028' || r == '\u2029'
	})
	return strings.Map(func(r rune) rune {
		if r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.Join(lines, "; "))
}
