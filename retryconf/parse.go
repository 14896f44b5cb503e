package retryconf

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/retrygo/retry"
)

const (
	// A policy from an untrusted party fits in far less than 64 KiB, and a catalog of a thousand policies in 1 MiB.
	// Larger input is refused without parsing.
	maxPolicyBytes   = 64 << 10
	maxDocumentBytes = 1 << 20
	// A hundred faults are enough to correct at once.
	maxFaults  = 100
	moreFaults = theDocument + "has more faults than are listed"

	theDocument = "the document " // begins the rule of a fault that is not in one field
)

// Parse reads a policy from an untrusted JSON object that is laid over base, and refuses it unless s.Or(base) is valid
// and within limits, where s is the policy of data. It returns s alone, to be stored and laid over the base of a later
// time. Extends can name a preset. The zero Limits limit only the length of the name.
//
// The error is retry.FieldErrors with every fault, up to a hundred, each with the key, the value and the rule. A fault of
// base that s does not replace is one, unless a value of data could not be read. Data above 64 KiB is refused without parsing.
func Parse(data []byte, base Spec, limits Limits) (Spec, error) {
	if len(data) > maxPolicyBytes {
		return Spec{}, tooLarge(maxPolicyBytes)
	}
	s, bad := readSpec(data, "")
	unread := map[string]bool{} // the keys whose values could not be read, with "" for all
	for _, err := range bad {
		unread[pathKey.FindString(pathOf(err))] = true
	}
	merged := s.Or(base).faults(limits)
	own := merged
	if slices.ContainsFunc(s.fields(), func(f field) bool { return unread[f.key] }) {
		own = s.faults(limits) // base does not stand in for a value that could not be read
	}
	for _, err := range merged {
		if !unread[""] && !unread[pathKey.FindString(pathOf(err))] && hasPath(own, pathOf(err)) {
			bad.Append(err)
		}
	}
	if bad != nil {
		return Spec{}, ofDocument(atMost(bad))
	}
	return s, nil
}

// faults returns the faults of the policy of s within limits. Limits do not apply to a field that is wrong by itself.
func (s Spec) faults(limits Limits) retry.FieldErrors {
	p, bad := s.policy("", retry.Policy{})
	wrong := bad
	for _, err := range append(limits.check(p), limits.checkHedge(s.Hedge)...) {
		if !hasPath(wrong, pathOf(err)) {
			bad.Append(err)
		}
	}
	return bad
}

func hasPath(bad retry.FieldErrors, path string) bool {
	return slices.ContainsFunc(bad, func(err error) bool { return pathOf(err) == path })
}

func tooLarge(most int) error {
	return retry.FieldErrors{fault("document", "", fmt.Sprintf("is larger than %d bytes", most))}
}

// UnmarshalJSON reads a JSON object strictly (see Spec).
func (s *Spec) UnmarshalJSON(data []byte) error {
	parsed, bad := readSpec(data, "")
	if bad != nil {
		return atMost(bad)
	}
	*s = parsed
	return nil
}

// schemaKey names the schema of a document for editors. It is accepted at the top and not kept.
const schemaKey = "$schema"

func readSpec(data []byte, path string) (Spec, retry.FieldErrors) {
	var s Spec
	bad := readFields(s.fields(), data, path)
	if s.Cap != 0 && s.Max != 0 {
		add(&bad, under(path, "max"), s.Max.String(), maxBesideCap)
	}
	return s.oneCap(), bad
}

func readFields(fields []field, data []byte, path string) retry.FieldErrors {
	keys := map[string]any{}
	for _, f := range fields {
		keys[f.key] = f.to
	}
	return readObject(data, path, func(key string, value json.RawMessage) (bad retry.FieldErrors) {
		to, known := keys[key]
		if key == schemaKey && path == "" {
			bad = readSchemaKey(value)
		} else if !known {
			add(&bad, under(path, key), "", unknownKey(key, fields))
		} else if list, ok := to.(*[]Delay); ok {
			*list, bad = readDelays(value, under(path, key))
		} else if h, ok := to.(*Hedge); ok {
			if bad = readFields(h.fields(), value, under(path, key)); bad != nil {
				*h = Hedge{} // half a hedge has faults of its own
			}
		} else if err := readValue(to, value); err != nil {
			bad.Append(at(under(path, key), err))
		}
		return bad
	})
}

func readSchemaKey(value json.RawMessage) (bad retry.FieldErrors) {
	if _, isString := jsonString(value); !isString {
		add(&bad, schemaKey, shownJSON(value), "is not a string")
	}
	return bad
}

// readObject calls read for each key of the JSON object at path. It refuses any other value, a repeated key and data
// after the object. It stops at a syntax error.
func readObject(data []byte, path string, read func(key string, value json.RawMessage) retry.FieldErrors) (bad retry.FieldErrors) {
	if !utf8.Valid(data) {
		add(&bad, path, "", theDocument+"is not valid UTF-8")
		return bad
	}
	if bytes.HasPrefix(data, []byte("\ufeff")) {
		add(&bad, path, "", theDocument+"begins with a byte order mark; save it as UTF-8 without one")
		return bad
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	opening, err := decoder.Token()
	if err == nil && opening != json.Delim('{') {
		add(&bad, path, shownJSON(data), "is not a JSON object")
		return bad
	}
	seen := map[string]int{}
	for err == nil && decoder.More() && len(bad) <= maxFaults {
		var key json.Token
		if key, err = decoder.Token(); err != nil {
			break
		}
		var value json.RawMessage
		if err = decoder.Decode(&value); err != nil {
			break
		}
		name := key.(string) // the decoder allows only a string as a key
		seen[name]++
		switch seen[name] {
		case 1:
			bad = append(bad, read(name, value)...)
		case 2:
			add(&bad, under(path, name), "", "is given twice")
		}
	}
	if len(bad) > maxFaults {
		return bad // without the rest, which nobody would list
	}
	if err == nil {
		_, err = decoder.Token() // the closing brace
	}
	if err == nil {
		if _, end := decoder.Token(); end != io.EOF {
			add(&bad, path, "", theDocument+"has data after its closing brace")
		}
	}
	if err != nil {
		add(&bad, path, "", theDocument+"is not valid JSON: "+syntax(err))
	}
	return bad
}

// syntax returns the text of an error of encoding/json on one line.
func syntax(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "unexpected end"
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	var at *json.SyntaxError
	if errors.As(err, &at) {
		return fmt.Sprintf("%s, at byte %d", text, at.Offset)
	}
	return text
}

func readValue(to any, value json.RawMessage) error {
	name, ok := to.(*string)
	if !ok {
		return to.(json.Unmarshaler).UnmarshalJSON(value)
	}
	text, isString := jsonString(value)
	if !isString {
		return fault("", shownJSON(value), "is not a string")
	}
	*name = text
	return nil
}

func readDelays(value json.RawMessage, path string) (delays []Delay, bad retry.FieldErrors) {
	var list []json.RawMessage
	if err := json.Unmarshal(value, &list); err != nil || len(list) == 0 {
		add(&bad, path, shownJSON(value), `is not a list of durations such as ["1m", "30m"]`)
		return nil, bad
	}
	delays = make([]Delay, len(list))
	for i, value := range list {
		if err := delays[i].UnmarshalJSON(value); err != nil {
			bad.Append(at(fmt.Sprintf("%s[%d]", path, i), err))
		}
		if len(bad) > maxFaults {
			break
		}
	}
	return delays, bad
}

// shownJSON returns a JSON value as errors show it, on one line and shortened.
func shownJSON(value []byte) string {
	return shortened(strings.Join(strings.Fields(string(value)), " "))
}

// shortened returns s if it is short and printable, otherwise quoted(s).
func shortened(s string) string {
	if len(s) > shownText || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return quoted(s)
	}
	return s
}

// unknownKey returns the rule for an unknown key, with a suggestion if another key is similar.
func unknownKey(key string, fields []field) string {
	rule := "is not a known key"
	nearest, least := "", min(3, max(len(key), 1)) // at most two typing errors, and not every letter
	for _, f := range fields {
		d := distance(strings.ToLower(key), strings.ToLower(f.key))
		if strings.HasSuffix(strings.ToLower(key), "_"+strings.ToLower(f.key)) {
			d = 0 // retry_delays
		}
		if d < least {
			nearest, least = f.key, d
		}
	}
	if nearest != "" {
		rule += fmt.Sprintf(" (did you mean %q?)", nearest)
	}
	return rule
}

// distance returns the number of letters to insert, delete or change to turn a into b (the Levenshtein distance), or a
// large number if the lengths alone put it above 2.
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
