package retryconf

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// UnmarshalYAML reads a YAML mapping as strictly as UnmarshalJSON reads an object: it refuses unknown keys, nulls and
// values of another type, all at once, each with its line. The decoders of gopkg.in/yaml.v2, gopkg.in/yaml.v3,
// go.yaml.in/yaml and goccy/go-yaml call it, and refuse repeated keys themselves.
func (s *Spec) UnmarshalYAML(unmarshal func(any) error) error {
	var values map[string]yamlValue
	if err := unmarshal(&values); err != nil {
		return err
	}
	var object bytes.Buffer
	object.WriteByte('{')
	byLine := func(a, b string) int { return cmp.Or(values[a].line-values[b].line, strings.Compare(a, b)) }
	for i, key := range slices.SortedFunc(maps.Keys(values), byLine) {
		if i > 0 {
			object.WriteByte(',')
		}
		name, _ := json.Marshal(key)
		object.Write(append(name, ':'))
		object.Write(values[key].json())
	}
	object.WriteByte('}')
	parsed, bad := readSpec(object.Bytes(), "")
	for i, err := range bad {
		e := *err.(*FieldError)
		e.Line = values[pathKey.FindString(e.Field)].line
		bad[i] = &e
	}
	if bad != nil {
		return bad
	}
	*s = parsed
	return nil
}

// pathKey matches the first key of a path.
var pathKey = regexp.MustCompile(`^[^.\[]*`)

// yamlValue is any value of a mapping and its line, 0 if the line is unknown.
type yamlValue struct {
	value any
	line  int
}

// yamlLine matches the line in an error of a decoder: "line 3: cannot unmarshal" or "[3:7] cannot unmarshal".
var yamlLine = regexp.MustCompile(`(?:line |\[)(\d+)`)

func (v *yamlValue) UnmarshalYAML(unmarshal func(any) error) error {
	if err := unmarshal(&v.value); err != nil {
		return err
	}
	var impossible chan struct{}
	if err := unmarshal(&impossible); err != nil { // without an import, only its text has the line
		if found := yamlLine.FindStringSubmatch(err.Error()); found != nil {
			v.line, _ = strconv.Atoi(found[1])
		}
	}
	return nil
}

// json returns the value as JSON. It returns {} for a value without a JSON form, such as a mapping with keys that are
// not strings.
func (v yamlValue) json() []byte {
	data, err := json.Marshal(v.value)
	if err != nil {
		return []byte("{}")
	}
	return data
}
