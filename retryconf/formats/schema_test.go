package formats_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

var keys = []string{"name", "extends", "max_attempts", "mode", "base", "factor", "cap", "max", "delays", "jitter", "jitter_ratio",
	"attempt_timeout", "ttl", "max_hint", "reset_after", "retries_enabled", "hedge", "$schema"}

// values are the values, good and bad, that a key is given.
var values = []string{`null`, `true`, `false`, `""`, `"x"`, `"standard"`, `"unlimited"`, `"5"`, `0`, `1`, `-1`, `5`, `2.5`, `0.2`, `1e3`, `-0`,
	`"30s"`, `"1h30m"`, `"0s"`, `"0h0m0s"`, `"-1s"`, `"+1s"`, `"1.5s"`, `".5s"`, `"1.s"`, `"s"`, `"1 s"`, `"30"`, `"0"`, `"1µs"`, `"1us"`, `"-0s"`,
	`"exponential"`, `"Linear"`, `"fixed"`, `"constant"`, `"list"`, `"none"`, `"full"`, `"ratio"`, `"decorrelated"`,
	`[]`, `["1m"]`, `["0s", "1m"]`, `["1m", 30]`, `["-0s"]`, `["0"]`, `["-1s"]`, `[null]`, `{}`, `{"base": "1s"}`,
	`{"delay": "50ms"}`, `{"delay": 50}`, `{"delay": "0s"}`, `{"Delay": "1s"}`, `{"share": 0.05, "max_delay": "1s"}`, `{"share": 0.6}`, `{"share": 0}`,
	`{"min_delay": "1ms", "max_calls": 8}`, `{"max_calls": 9}`, `{"max_calls": 0}`, `{"max_calls": "unlimited"}`, `{"$schema": "x"}`}

func compiled(t *testing.T, schema []byte) *jsonschema.Schema {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("schema.json", parsed))
	s, err := compiler.Compile("schema.json")
	require.NoError(t, err)
	return s
}

// agrees fails unless the schema accepts the document if and only if the parser does.
func agrees(t *testing.T, s *jsonschema.Schema, document string, parse func(string) error) {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
	require.NoError(t, err, document)
	bySchema, byParser := s.Validate(value), parse(document)
	if (bySchema == nil) != (byParser == nil) {
		t.Fatalf("%s\nthe schema says: %v\nthe parser says: %v", document, bySchema, byParser)
	}
}

// parse reads a policy, and asks what Schema promises of Spec.Policy.
func parse(document string) error {
	var s retryconf.Spec
	if err := json.Unmarshal([]byte(document), &s); err != nil {
		return err
	}
	_, err := retryconf.Spec{Extends: s.Extends, Jitter: retryconf.RatioJitter, JitterRatio: s.JitterRatio,
		Hedge: retryconf.Hedge{Share: cmp.Or(s.Hedge.Share, 0.05), MaxCalls: s.Hedge.MaxCalls}}.Policy()
	return err
}

// leftToParser are documents that the schema accepts and the parser refuses, as Schema documents.
var leftToParser = []string{`{"max_attempts": 5.0}`, `{"max_attempts": 1e3}`, `{"base": "3000000h"}`, `{"base": "0.1ns"}`, `{"factor": 1e999}`}

func TestTheSchemaAcceptsWhatTheParserAccepts(t *testing.T) {
	s := compiled(t, retryconf.Schema())
	for _, key := range append(keys, "bass", "Base", "") {
		for _, value := range values {
			if key == "max_attempts" && value == "1e3" {
				continue // in leftToParser
			}
			agrees(t, s, fmt.Sprintf(`{%q: %s}`, key, value), parse)
		}
	}
	agrees(t, s, `[]`, parse)
	agrees(t, s, `null`, func(document string) error { return new(retryconf.Spec).UnmarshalJSON([]byte(document)) })
	agrees(t, s, `{"cap": "1s", "max": "1s"}`, parse)
	for _, document := range leftToParser {
		require.Error(t, parse(document), document)
	}
}

func TestTheSchemaOfACatalogAcceptsWhatTheCatalogLoads(t *testing.T) {
	s := compiled(t, retryconf.CatalogSchema())
	parse := func(document string) error {
		var c retryconf.Catalog
		c.Define("a", retry.Policy{})
		return c.Load(strings.NewReader(document))
	}
	for _, document := range []string{
		`{}`, `[]`, `{"$schema": "x"}`, `{"$schema": 1}`, `{"defaults": {"$schema": "x"}}`, `{"policies": {"a": {"$schema": "x"}}}`,
		`{"policies": {"a": {"jitter": "ratio", "jitter_ratio": 1.5}}}`, `{"defaults": {}}`, `{"defaults": {"base": "1s"}}`, `{"defaults": {"name": "x"}}`, `{"defaults": {"name": ""}}`,
		`{"defaults": {"extends": "standard"}}`, `{"defaults": null}`, `{"policies": {}}`, `{"policies": null}`, `{"policies": []}`,
		`{"policies": {"a": {}}}`, `{"policies": {"a": {"base": 5}}}`, `{"policies": {"a": null}}`, `{"policies": {"a": {"name": "x"}}}`,
		`{"policy": {}}`, `{"defaults": {"bass": "1s"}}`,
	} {
		agrees(t, s, document, parse)
	}
}

// Random documents of several keys.
func FuzzSchema(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) {
		s := compiled(t, retryconf.Schema())
		rnd := rand.New(rand.NewPCG(seed, 0))
		for range 100 {
			var members []string
			for _, i := range rnd.Perm(len(keys))[:rnd.IntN(5)] {
				value := values[rnd.IntN(len(values))]
				if keys[i] != "max_attempts" || value != "1e3" {
					members = append(members, fmt.Sprintf(`%q: %s`, keys[i], value))
				}
			}
			agrees(t, s, "{"+strings.Join(members, ", ")+"}", parse)
		}
	})
}

func TestYAMLIsAsStrictAsJSON(t *testing.T) {
	for _, row := range []struct{ name, text, err string }{
		{"each fault with its line", "base: 30\ncap: ~\n\nbass: 1s\ndelays: []\nmax_attempts: 5.5",
			`retryconf: line 1: base 30 is a number (write it as a string with its unit, such as "30s"); ` +
				`line 2: cap null is not a string such as "30s"; ` +
				`line 4: bass is not a known key (did you mean "base"?); ` +
				`line 5: delays [] is not a list of durations such as ["1m", "30m"]; ` +
				`line 6: max_attempts 5.5 is not a whole number of 1 or more, nor "unlimited" (leave it out for the default)`},
		{"a list with a fault", "delays:\n- 1m\n- 30", `retryconf: line 2: delays[1] 30 is a number (write it as a string with its unit, such as "30s")`},
		{"faults of a mapping within", "base: 1s\nhedge:\n  delay: 50\n  share: ~\n\n  max_calls: 0x2\n  bass: 1s",
			`retryconf: line 3: hedge.delay 50 is a number (write it as a string with its unit, such as "30s"); ` +
				`line 4: hedge.share null is not a number; ` +
				`line 6: hedge.max_calls "0x2" is not a whole number of 1 or more, nor "unlimited"; ` +
				`line 7: hedge.bass is not a known key`},
		{"a list for a mapping", "hedge: [1]", `retryconf: line 1: hedge [1] is not a JSON object`},
		{"a mapping for a value", "base: {1: 2}", `retryconf: line 1: base {"1":2} is not a string such as "30s"`},
		{"a whole number with a point", "max_attempts: 5.0", "retryconf: line 1: max_attempts 5.0 is not a whole number of 1 or more (write 5)"},
		{"an exponent", "max_attempts: 1e1", "retryconf: line 1: max_attempts 1e1 is not a whole number of 1 or more (write 10)"},
		{"hexadecimal", "max_attempts: 0x10", `retryconf: line 1: max_attempts "0x10" is not a whole number of 1 or more, nor "unlimited"`},
		{"octal", "max_attempts: 010", `retryconf: line 1: max_attempts "010" is not a whole number of 1 or more, nor "unlimited"`},
		{"an underscore", "factor: 1_0.5", `retryconf: line 1: factor "1_0.5" is not a number`},
		{"infinity", "factor: .inf", `retryconf: line 1: factor ".inf" is not a number`},
		{"a list", "- a", `retryconf: line 1: ["a"] is not a mapping`},
		{"a number", "\n5", `retryconf: line 2: 5 is not a mapping`},
		{"a retry in front", "retry_delays: [1s]", `retryconf: line 1: retry_delays is not a known key (did you mean "delays"?)`},
		{"cap and max", "cap: 1s\nmax: 1s", "retryconf: line 2: max 1s is given together with cap, which means the same"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var s retryconf.Spec
			require.EqualError(t, decodeYAML(row.text, &s), row.err)
			require.Zero(t, s)
		})
	}
	var s retryconf.Spec
	require.ErrorContains(t, decodeYAML("base: 1s\nbase: 2s", &s), `"base" already defined at line 1`)
	require.NoError(t, decodeYAML("$schema: policy.json\nbase: 1s", &s))
	require.Equal(t, retryconf.Spec{Base: retryconf.Duration(time.Second)}, s)
}
