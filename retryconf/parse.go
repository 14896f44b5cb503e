package retryconf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// A policy from outside fits in far less than 64 KiB, and a catalog of a thousand policies in 1 MiB; what is
	// larger is refused unread.
	maxPolicyBytes   = 64 << 10
	maxDocumentBytes = 1 << 20
	// A hundred faults are enough to mend at once.
	maxFaults = 100
)

// Parse reads a policy from a JSON object that an outsider gave, and refuses it unless it is valid and within limits.
// The error names everything that is wrong at once, up to a hundred faults, each with its key, its value and what is
// allowed; FieldErrors lists them. Data above 64 KiB is refused unread. Extends can name a preset.
func Parse(data []byte, limits Limits) (Spec, error) {
	if len(data) > maxPolicyBytes {
		return Spec{}, tooLarge(maxPolicyBytes)
	}
	s, bad := readSpec(data, "")
	p, faults := s.policy("")
	all := bad
	for _, err := range append(faults, limits.check(p)...) {
		if !bad.names(err.(*FieldError).Path) { // what could not be read has no value to judge
			all = append(all, err)
		}
	}
	if all != nil {
		return Spec{}, all
	}
	return s, nil
}

func tooLarge(most int) error {
	return &FieldError{Rule: fmt.Sprintf("the document is larger than the %d bytes that are read", most)}
}

// UnmarshalJSON reads a JSON object strictly: see Spec.
func (s *Spec) UnmarshalJSON(data []byte) error {
	parsed, bad := readSpec(data, "")
	if bad != nil {
		return bad
	}
	*s = parsed
	return nil
}

// readSpec reads the Spec that stands at path.
func readSpec(data []byte, path string) (Spec, fieldErrors) {
	var s Spec
	fields := s.fields()
	keys := map[string]any{}
	for _, f := range fields {
		keys[f.key] = f.to
	}
	bad := readObject(data, path, func(key string, value json.RawMessage) fieldErrors {
		var bad fieldErrors
		to, known := keys[key]
		if !known {
			bad.add(under(path, key), "", unknownKey(key, fields))
		} else if list, ok := to.(*[]Delay); ok {
			*list, bad = readDelays(value, under(path, key))
		} else if err := readValue(to, value); err != nil {
			bad.at(under(path, key), err)
		}
		return bad
	})
	if s.Cap != 0 && s.Max != 0 {
		bad.add(under(path, "max"), s.Max.String(), maxBesideCap)
	}
	return s.oneCap(), bad
}

// readObject calls read for each key of a JSON object that stands at path. It refuses what is no object, a key that is
// given twice, and what follows the object; it stops at a fault of syntax.
func readObject(data []byte, path string, read func(key string, value json.RawMessage) fieldErrors) (bad fieldErrors) {
	if !utf8.Valid(data) {
		bad.add(path, "", "the document is not valid UTF-8")
		return bad
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	opening, err := decoder.Token()
	if err == nil && opening != json.Delim('{') {
		bad.add(path, shownJSON(data), "is not a JSON object")
		return bad
	}
	seen := map[string]bool{}
	for err == nil && decoder.More() && len(bad) < maxFaults {
		var key json.Token
		if key, err = decoder.Token(); err != nil {
			break
		}
		var value json.RawMessage
		if err = decoder.Decode(&value); err != nil {
			break
		}
		name := key.(string) // the decoder lets no other token stand for a key
		if seen[name] {
			bad.add(under(path, name), "", "is given twice")
			continue
		}
		seen[name] = true
		bad = append(bad, read(name, value)...)
	}
	if len(bad) >= maxFaults {
		bad.add(path, "", "there are more faults than are listed")
		return bad
	}
	if err == nil {
		_, err = decoder.Token() // the closing brace
	}
	if err == nil {
		if _, end := decoder.Token(); end != io.EOF {
			bad.add(path, "", "the document goes on after its closing brace")
		}
	}
	if err != nil {
		bad.add(path, "", "the document is not valid JSON: "+syntax(err))
	}
	return bad
}

// syntax says in one line what encoding/json found.
func syntax(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "it ends too early"
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	var at *json.SyntaxError
	if errors.As(err, &at) {
		return fmt.Sprintf("%s, at byte %d", text, at.Offset)
	}
	return text
}

// readValue sets a field from a JSON value of the type that the field is written as.
func readValue(to any, value json.RawMessage) error {
	name, ok := to.(*string)
	if !ok {
		return to.(json.Unmarshaler).UnmarshalJSON(value)
	}
	text, isString := jsonString(value)
	if !isString {
		return &FieldError{Value: shownJSON(value), Rule: "is not a string"}
	}
	*name = text
	return nil
}

// readDelays reads a JSON array of durations that stands at path.
func readDelays(value json.RawMessage, path string) (delays []Delay, bad fieldErrors) {
	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil || len(list) == 0 {
		bad.add(path, shownJSON(value), `is not a list of durations such as ["1m", "30m"]`)
		return nil, bad
	}
	delays = make([]Delay, len(list))
	for i, value := range list {
		if err := delays[i].UnmarshalJSON(value); err != nil {
			bad.at(fmt.Sprintf("%s[%d]", path, i), err)
		}
		if len(bad) >= maxFaults {
			break
		}
	}
	return delays, bad
}

// shownJSON returns a JSON value for an error, on one line and shortened.
func shownJSON(value []byte) string {
	return shortened(strings.Join(strings.Fields(string(value)), " "))
}

// shortened returns s where it is short and prints as it is, else it in quotes, cut.
func shortened(s string) string {
	if len(s) > shownText || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return quoted(s)
	}
	return s
}

// unknownKey says that a key is none, and which one may be meant.
func unknownKey(key string, fields []field) string {
	rule := "is not a known key"
	nearest, least := "", min(3, max(len(key), 1)) // two slips of the finger at most, and not every letter
	for _, f := range fields {
		if d := distance(strings.ToLower(key), strings.ToLower(f.key)); d < least {
			nearest, least = f.key, d
		}
	}
	if nearest != "" {
		rule += fmt.Sprintf("; did you mean %q?", nearest)
	}
	return rule
}

// distance returns how many letters must be put in, left out or changed to make b of a (Levenshtein's distance), and a
// large number where the lengths alone say that it is above 2.
func distance(a, b string) int {
	if len(a) > len(b)+2 || len(b) > len(a)+2 {
		return len(a) + len(b)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
