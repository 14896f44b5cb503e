// Package plainjson reads and writes the JSON of one flat object, for packages that do not import encoding/json.
package plainjson

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

var errSyntax = errors.New("is not a JSON object")

// AppendString appends s as a JSON string, with U+FFFD for invalid UTF-8.
func AppendString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ' || r == '\u2028' || r == '\u2029': // which JavaScript takes as line breaks
			b = fmt.Appendf(b, "\\u%04x", r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}

// Number sets n to the JSON number in value, which has to be an integer that n holds.
func Number[T ~int | ~int64](n *T, value []byte) error {
	got, err := strconv.ParseInt(string(value), 10, 64)
	if *n = T(got); int64(*n) != got {
		return strconv.ErrRange
	}
	return err
}

// Object calls set with the name and the JSON of each value of the object in data, until one returns an error. It
// finds the values of every valid object. What it does with other text is not specified, but it does not panic.
func Object(data []byte, set func(name string, value []byte) error) error {
	data = bytes.TrimSpace(data)
	if len(data) < 2 || data[0] != '{' || data[len(data)-1] != '}' {
		return errSyntax
	}
	for rest := data[1 : len(data)-1]; len(bytes.TrimSpace(rest)) > 0; {
		pair := rest[:end(rest, ',')]
		rest = rest[min(len(pair)+1, len(rest)):]
		colon := end(pair, ':')
		name, ok := String(bytes.TrimSpace(pair[:colon]))
		if !ok || colon == len(pair) {
			return errSyntax
		}
		if err := set(name, bytes.TrimSpace(pair[colon+1:])); err != nil {
			return err
		}
	}
	return nil
}

// end returns where the first mark is in data that is neither in a string nor in a nested value, or data's length.
func end(data []byte, mark byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == mark && depth == 0:
			return i
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
	}
	return len(data)
}

// escaped are the characters that the letters after a backslash stand for.
var escaped = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// String returns the text of a JSON string. It reports false if value is none.
func String(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return "", false
	}
	value = value[1 : len(value)-1]
	text := make([]byte, 0, len(value))
	for i := 0; i < len(value); i++ {
		switch {
		case value[i] != '\\':
			text = append(text, value[i])
			continue
		case i+1 == len(value):
			return "", false
		}
		i++
		if c, ok := escaped[value[i]]; ok {
			text = append(text, c)
			continue
		}
		r, ok := unit(value[i:])
		if !ok {
			return "", false
		}
		i += 4
		if utf16.IsSurrogate(r) && i+1 < len(value) && value[i+1] == '\\' {
			if low, ok := unit(value[i+2:]); ok {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					r = pair
					i += 6
				}
			}
		}
		text = utf8.AppendRune(text, r)
	}
	return string(text), true
}

// unit returns the number in "u20ac".
func unit(s []byte) (rune, bool) {
	if len(s) < 5 || s[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(s[1:5]), 16, 16)
	return rune(n), err == nil
}
