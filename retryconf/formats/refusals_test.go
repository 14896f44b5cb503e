package formats_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryconf"
)

func TestEveryFormatRefuses(t *testing.T) {
	for _, row := range []struct {
		name string
		document
		says string // in each format
	}{
		{"a number for a duration", documentOf("base: 30"), `such as "30s"`},
		{"a number in a list of durations", documentOf(`delays: ["1m", 30]`), `such as "30s"`},
		{"attempts of 0", documentOf("max_attempts: 0"), `is not a whole number of 1 or more, nor "unlimited"`},
		{"attempts of -1, which is not how to say unlimited", documentOf("max_attempts: -1"), `is not a whole number of 1 or more, nor "unlimited"`},
		{"attempts that are not whole", documentOf("max_attempts: 2.5"), `is not a whole number of 1 or more, nor "unlimited"`},
		{"an unknown key", documentOf(`bass: "30s"`), "bass"},
		{"a field's name in Go for its key", documentOf("MaxAttempts: 5"), "maxattempts"},
		{"a bad mode", documentOf(`mode: "cubic"`), `"cubic" is not one of "exponential", "linear", "fixed" and "list"`},
		{"a mode in capitals", documentOf(`mode: "Linear"`), `"linear" is not one of "exponential", "linear", "fixed" and "list"`},
		{"a bad jitter", documentOf(`jitter: "some"`), `"some" is not one of "none", "full", "equal", "ratio" and "decorrelated"`},
		{"a negative duration", documentOf(`ttl: "-30s"`), `"-30s" is negative`},
		{"a negative delay", documentOf(`delays: ["-1ns"]`), `"-1ns" is negative`},
		{"a duration that overflows", documentOf(`ttl: "3000000h"`), `"3000000h" is not a duration`},
		{"an empty duration", documentOf(`cap: ""`), `"" is not a duration`},
		{"a switch that is neither", documentOf(`retries_enabled: "no"`), `"no" is neither true nor false`},
		{"cap and max at once", documentOf(`cap: "1h"`, `max: "1h"`), "max 1h0m0s is given together with cap, which means the same"},
		{"a policy that is not valid", documentOf(`base: "1m"`, `cap: "1s"`), "cap 1s is below base 1m"},
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
		for _, zero := range []string{"0", "-0", "0.0", "0e0", `"0"`, `"-0"`, `"0.0"`, `"0e0"`, `"0s"`, `"0h0m0s"`, `"-0s"`, `"0ns"`, `""`} {
			for format, read := range documentOf(key + ": " + zero).read() {
				_, err := read()
				require.Error(t, err, "%s of %s %s", format, key, zero)
			}
		}
	}
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
