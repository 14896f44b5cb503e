package retryconf

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/retrygo/retry"
)

// UnmarshalYAML reads a YAML mapping as strictly as UnmarshalJSON reads an object. It refuses unknown keys, nulls,
// values of another type, and numbers that JSON does not write (0x10, 1_000, .inf), all at once, each with its line.
// The decoders of gopkg.in/yaml.v2, gopkg.in/yaml.v3, go.yaml.in/yaml and goccy/go-yaml call it. Some decisions are
// theirs. They refuse a repeated key, and then name no other fault. Their Unmarshal reads only the first of several
// documents, and does not call UnmarshalYAML for an empty document, which leaves the Spec unchanged.
func (s *Spec) UnmarshalYAML(unmarshal func(any) error) error {
	values, err := yamlMapping(unmarshal)
	if err != nil {
		if v := yamlOf(unmarshal); v.value != nil && !isMapping(v.value) {
			return retry.FieldErrors{&retry.FieldError{Package: "retryconf", Value: shownJSON(v.json()), Rule: "is not a mapping", Line: v.line}}
		}
		return err
	}
	parsed, bad := readSpec(yamlValue{fields: values}.json(), "")
	bad = atMost(bad)
	for i, err := range bad {
		e := *err.(*retry.FieldError)
		key, rest, _ := strings.Cut(e.Field, ".")
		found := values[pathKey.FindString(key)]
		e.Line = cmp.Or(found.fields[rest].line, found.line)
		bad[i] = &e
	}
	if bad != nil {
		return bad
	}
	*s = parsed
	return nil
}

// yamlMapping returns the values of the mapping that a decoder is at.
func yamlMapping(unmarshal func(any) error) (map[string]yamlValue, error) {
	var values map[string]yamlValue
	if err := unmarshal(&values); err != nil {
		return nil, err
	}
	keys := map[yamlKey]any{}
	_ = unmarshal(&keys)
	for key := range keys {
		if values[key.name].line == 0 { // a null, for which decoders call UnmarshalYAML of the key only
			values[key.name] = yamlValue{line: key.line}
		}
	}
	return values, nil
}

func isMapping(value any) bool { return reflect.TypeOf(value).Kind() == reflect.Map }

var pathKey = regexp.MustCompile(`^[^.\[]*`)

// yamlValue is any value and its line, 0 if the line is unknown.
type yamlValue struct {
	value  any
	fields map[string]yamlValue // of a mapping
	line   int
}

// yamlLine matches the line in an error of a decoder, such as "line 3: cannot unmarshal" or "[3:7] cannot unmarshal".
var yamlLine = regexp.MustCompile(`(?:line |\[)(\d+)`)

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

// yamlOf returns the value that a decoder is at. A number is as it is written, or a string if JSON has no such number.
func yamlOf(unmarshal func(any) error) (v yamlValue) {
	_ = unmarshal(&v.value)
	switch v.value.(type) {
	case int, int64, uint64, float64:
		var text string
		if unmarshal(&text) == nil && jsonNumber.MatchString(text) {
			v.value = json.RawMessage(text)
		} else {
			v.value = text
		}
	default:
		if v.value != nil && isMapping(v.value) {
			v.fields, _ = yamlMapping(unmarshal)
		}
	}
	var impossible chan struct{}
	if err := unmarshal(&impossible); err != nil { // without an import, only its text has the line
		if found := yamlLine.FindStringSubmatch(err.Error()); found != nil {
			v.line, _ = strconv.Atoi(found[1])
		}
	}
	return v
}

func (v *yamlValue) UnmarshalYAML(unmarshal func(any) error) error {
	*v = yamlOf(unmarshal)
	return nil
}

type yamlKey struct {
	name string
	line int
}

func (k *yamlKey) UnmarshalYAML(unmarshal func(any) error) error {
	k.line = yamlOf(unmarshal).line
	return unmarshal(&k.name)
}

// json returns the value as JSON. It returns {} for a value without a JSON form, such as a mapping with keys that are
// not strings.
func (v yamlValue) json() []byte {
	if v.fields != nil {
		var object bytes.Buffer
		separator := byte('{')
		byLine := func(a, b string) int { return cmp.Or(v.fields[a].line-v.fields[b].line, strings.Compare(a, b)) }
		for _, key := range slices.SortedFunc(maps.Keys(v.fields), byLine) {
			name, _ := json.Marshal(key)
			object.WriteByte(separator)
			object.Write(append(name, ':'))
			object.Write(v.fields[key].json())
			separator = ','
		}
		if len(v.fields) > 0 {
			return append(object.Bytes(), '}')
		}
		return []byte("{}")
	}
	data, err := json.Marshal(v.value)
	if err != nil {
		return []byte("{}")
	}
	return data
}
