package formats_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

func TestEveryFormatRefuses(t *testing.T) {
	for _, row := range []struct {
		name string
		document
		says string // in each format
	}{
		{
			name: "a number for a duration",
			document: document{yaml: "base: 30", toml: "base = 30", json: `{"base": 30}`,
				environ: []string{"RETRY_BASE=30"}, flags: []string{"-base=30"}},
			says: `such as "30s"`,
		},
		{
			name: "a number in a list of durations",
			document: document{yaml: "delays: [1m, 30]", toml: "delays = ['1m', 30]", json: `{"delays": ["1m", 30]}`,
				environ: []string{"RETRY_DELAYS=1m,30"}, flags: []string{"-delays=1m,30"}},
			says: `such as "30s"`,
		},
		{
			name: "attempts of 0",
			document: document{yaml: "max_attempts: 0", toml: "max_attempts = 0", json: `{"max_attempts": 0}`,
				environ: []string{"RETRY_MAX_ATTEMPTS=0"}, flags: []string{"-max_attempts=0"}},
			says: `is not a whole number of 1 or more, nor "unlimited"`,
		},
		{
			name: "attempts of -1, which is not how to say unlimited",
			document: document{yaml: "max_attempts: -1", toml: "max_attempts = -1", json: `{"max_attempts": -1}`,
				environ: []string{"RETRY_MAX_ATTEMPTS=-1"}, flags: []string{"-max_attempts=-1"}},
			says: `is not a whole number of 1 or more, nor "unlimited"`,
		},
		{
			name: "attempts that are not whole",
			document: document{yaml: "max_attempts: 2.5", toml: "max_attempts = 2.5", json: `{"max_attempts": 2.5}`,
				environ: []string{"RETRY_MAX_ATTEMPTS=2.5"}, flags: []string{"-max_attempts=2.5"}},
			says: `is not a whole number of 1 or more, nor "unlimited"`,
		},
		{
			name: "an unknown key",
			document: document{yaml: "bass: 30s", toml: "bass = '30s'", json: `{"bass": "30s"}`,
				environ: []string{"RETRY_BASS=30s"}, flags: []string{"-bass=30s"}},
			says: "bass",
		},
		{
			name: "a field's name in Go for its key",
			document: document{yaml: "MaxAttempts: 5", toml: "MaxAttempts = 5", json: `{"MaxAttempts": 5}`,
				environ: []string{"RETRY_MAXATTEMPTS=5"}, flags: []string{"-MaxAttempts=5"}},
			says: "maxattempts",
		},
		{
			name: "a bad mode",
			document: document{yaml: "mode: cubic", toml: "mode = 'cubic'", json: `{"mode": "cubic"}`,
				environ: []string{"RETRY_MODE=cubic"}, flags: []string{"-mode=cubic"}},
			says: `"cubic" is not one of "exponential", "linear", "fixed" and "list"`,
		},
		{
			name: "a mode in capitals",
			document: document{yaml: "mode: Linear", toml: "mode = 'Linear'", json: `{"mode": "Linear"}`,
				environ: []string{"RETRY_MODE=Linear"}, flags: []string{"-mode=Linear"}},
			says: `"linear" is not one of "exponential", "linear", "fixed" and "list"`,
		},
		{
			name: "a bad jitter",
			document: document{yaml: "jitter: some", toml: "jitter = 'some'", json: `{"jitter": "some"}`,
				environ: []string{"RETRY_JITTER=some"}, flags: []string{"-jitter=some"}},
			says: `"some" is not one of "none", "full", "equal", "ratio" and "decorrelated"`,
		},
		{
			name: "a negative duration",
			document: document{yaml: "ttl: -30s", toml: "ttl = '-30s'", json: `{"ttl": "-30s"}`,
				environ: []string{"RETRY_TTL=-30s"}, flags: []string{"-ttl=-30s"}},
			says: `"-30s" is negative`,
		},
		{
			name: "a negative delay",
			document: document{yaml: "delays: [-1ns]", toml: "delays = ['-1ns']", json: `{"delays": ["-1ns"]}`,
				environ: []string{"RETRY_DELAYS=-1ns"}, flags: []string{"-delays=-1ns"}},
			says: `"-1ns" is negative`,
		},
		{
			name: "a duration that overflows",
			document: document{yaml: "ttl: 3000000h", toml: "ttl = '3000000h'", json: `{"ttl": "3000000h"}`,
				environ: []string{"RETRY_TTL=3000000h"}, flags: []string{"-ttl=3000000h"}},
			says: `"3000000h" is not a duration`,
		},
		{
			name: "an empty duration",
			document: document{yaml: "cap: ''", toml: "cap = ''", json: `{"cap": ""}`,
				environ: []string{"RETRY_CAP="}, flags: []string{"-cap="}},
			says: `"" is not a duration`,
		},
		{
			name: "a switch that is neither",
			document: document{yaml: "retries_enabled: no", toml: "retries_enabled = 'no'", json: `{"retries_enabled": "no"}`,
				environ: []string{"RETRY_RETRIES_ENABLED=no"}, flags: []string{"-retries_enabled=no"}},
			says: `"no" is neither true nor false`,
		},
		{
			name: "cap and max at once",
			document: document{yaml: "cap: 1h\nmax: 1h", toml: "cap = '1h'\nmax = '1h'", json: `{"cap": "1h", "max": "1h"}`,
				environ: []string{"RETRY_CAP=1h", "RETRY_MAX=1h"}, flags: []string{"-cap=1h", "-max=1h"}},
			says: "max 1h0m0s is given together with cap, which means the same",
		},
		{
			name: "a policy that is not valid",
			document: document{yaml: "base: 1m\ncap: 1s", toml: "base = '1m'\ncap = '1s'", json: `{"base": "1m", "cap": "1s"}`,
				environ: []string{"RETRY_BASE=1m", "RETRY_CAP=1s"}, flags: []string{"-base=1m", "-cap=1s"}},
			says: "cap 1s is below base 1m",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			for format, read := range row.read() {
				s, err := read()
				if err == nil {
					_, err = s.Policy()
				}
				require.Error(t, err, format)
				require.Contains(t, strings.ToLower(err.Error()), strings.ToLower(row.says), format)
			}
		})
	}
}

func TestAnExplicitZeroNeverBecomesADefault(t *testing.T) {
	numbers := []string{"max_attempts", "factor", "jitter_ratio"}
	durations := []string{"base", "cap", "max", "attempt_timeout", "ttl", "max_hint", "reset_after"}
	words := []string{"mode", "jitter", "retries_enabled"}
	for _, key := range append(append(numbers, durations...), words...) {
		for _, zero := range []string{"0", "-0", "0.0", "0e0", "0s", "0h0m0s", "-0s", "0ns", ""} {
			quoted := `"` + zero + `"`
			documents := []document{{yaml: key + ": " + quoted, toml: key + " = " + quoted, json: `{"` + key + `": ` + quoted + `}`,
				environ: []string{"RETRY_" + strings.ToUpper(key) + "=" + zero}, flags: []string{"-" + key + "=" + zero}}}
			if !strings.HasSuffix(zero, "s") && zero != "" { // also a number
				number := documents[0]
				number.yaml, number.toml, number.json = key+": "+zero, key+" = "+zero, `{"`+key+`": `+zero+`}`
				documents = append(documents, number)
			}
			for _, d := range documents {
				for format, read := range d.read() {
					_, err := read()
					require.Error(t, err, "%s of %s %s", format, key, zero)
				}
			}
		}
	}
}

func TestAnErrorOfAValueIsFoundThroughYAML(t *testing.T) {
	var s retryconf.Spec
	var got *retry.FieldError
	require.ErrorAs(t, decodeYAML("base: 1 minute", &s), &got)
	require.Equal(t, retry.FieldError{Package: "retryconf", Field: "base", Value: `"1 minute"`, Rule: `is not a duration such as "30s" or "1h30m"`, Line: 1}, *got)
}

// A decoder passes UnmarshalText its own view of a value: never a null, a float cut to six decimals, a key in any case.
// A map that it decodes into keeps these distinctions, so that Spec.UnmarshalJSON can refuse them.
func TestThroughAMapAndJSONTheStrictReaderReadsEveryFormat(t *testing.T) {
	strict := func(decode func(string, any) error, text string) (s retryconf.Spec, err error) {
		var object map[string]any
		if err := decode(text, &object); err != nil {
			return s, err
		}
		data, err := json.Marshal(object)
		if err != nil {
			return s, err
		}
		return s, json.Unmarshal(data, &s)
	}
	for _, row := range []struct {
		name   string
		decode func(string, any) error
		text   string
		err    string
	}{
		{"a yaml null", decodeYAML, "base: ~", `retryconf: base null is not a string such as "30s"`},
		{"a yaml key without a value", decodeYAML, "retries_enabled:", `retryconf: retries_enabled null is neither true nor false`},
		{"a yaml null in a list", decodeYAML, "delays: [~, 1m]", `retryconf: delays[0] null is not a string such as "30s"`},
		{"an empty yaml list", decodeYAML, "delays: []", `retryconf: delays [] is not a list of durations such as ["1m", "30m"]`},
		{"an empty toml list", decodeTOML, "delays = []", `retryconf: delays [] is not a list of durations such as ["1m", "30m"]`},
		{"a toml key in another case", decodeTOML, "base = '2s'\nBase = '1s'", `retryconf: Base is not a known key (did you mean "base"?)`},
		{"all that is wrong", decodeYAML, "base: 30\ncap: 40", `retryconf: base 30 is a number (write it as a string with its unit, ` +
			`such as "30s"); cap 40 is a number (write it as a string with its unit, such as "30s")`},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := strict(row.decode, row.text)
			require.EqualError(t, err, row.err)
		})
	}

	got, err := strict(decodeTOML, "factor = 1.00000001\nbase = '1s'")
	require.NoError(t, err)
	require.Equal(t, retryconf.Spec{Factor: 1.00000001, Base: retryconf.Duration(time.Second)}, got)
}
