package retryconf_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

func TestParseRefusesWhatIsNoSpec(t *testing.T) {
	for _, row := range []struct {
		document, want string
	}{
		{``, `document is not valid JSON: unexpected end`},
		{`{"base": "1s"`, `document is not valid JSON: unexpected end`},
		{`{"base"}`, `document is not valid JSON: expected colon after object key, at byte 7`},
		{`{"base": 1s}`, `base 1 is a number (write it as a string with its unit, such as "30s"); document is not valid JSON: invalid character 's' after object key:value pair, at byte 10`},
		{`null`, `document null is not a JSON object`},
		{`[]`, `document [] is not a JSON object`},
		{`"a"`, `document "a" is not a JSON object`},
		{`{} {}`, `document has data after its closing brace`},
		{`{}x`, `document has data after its closing brace`},
		{`{"base": 30}`, `base 30 is a number (write it as a string with its unit, such as "30s")`},
		{`{"ttl": 0}`, `ttl 0 is a number (write it as a string with its unit, such as "30s")`},
		{`{"base": null}`, `base null is not a string such as "30s"`},
		{`{"base": ["1s"]}`, `base ["1s"] is not a string such as "30s"`},
		{`{"base": "0s"}`, `base "0s" is not above 0 (leave it out for the default)`},
		{`{"max_attempts": 0}`, `max_attempts 0 is not a whole number of 1 or more, nor "unlimited" (leave it out for the default)`},
		{`{"max_attempts": "5"}`, `max_attempts "5" is not a whole number of 1 or more, nor "unlimited"`},
		{`{"max_attempts": 1.0}`, `max_attempts 1.0 is not a whole number of 1 or more (write 1)`},
		{`{"max_attempts": null}`, `max_attempts null is not a whole number of 1 or more, nor "unlimited"`},
		{`{"factor": "2"}`, `factor "2" is not a number`},
		{`{"factor": 0}`, `factor 0 is not a number above 0 (leave it out for the default)`},
		{`{"factor": 1e400}`, `factor 1e400 is too large`},
		{`{"jitter_ratio": 0}`, `jitter_ratio 0 is not a number above 0 (leave it out for the default)`},
		{`{"retries_enabled": "true"}`, `retries_enabled "true" is neither true nor false`},
		{`{"retries_enabled": null}`, `retries_enabled null is neither true nor false`},
		{`{"retries_enabled": 0}`, `retries_enabled 0 is neither true nor false`},
		{`{"name": 5}`, `name 5 is not a string`},
		{`{"mode": 1}`, `mode 1 is not a string`},
		{`{"mode": ""}`, `mode "" is not one of "exponential", "linear", "fixed" and "list"`},
		{`{"delays": "1m"}`, `delays "1m" is not a list of durations such as ["1m", "30m"]`},
		{`{"delays": []}`, `delays [] is not a list of durations such as ["1m", "30m"]`},
		{`{"delays": null}`, `delays null is not a list of durations such as ["1m", "30m"]`},
		{`{"delays": [60, "1m", "-1s"]}`, `delays[0] 60 is a number (write it as a string with its unit, such as "30s"); delays[2] "-1s" is negative`},
		{`{"cap": "1m", "max": "1m"}`, `max "1m0s" is given together with cap, which means the same`},
		{`{"base": "1s", "b\u0061se": "2s"}`, "base is given twice"},
		{`{"max_atempts": 3}`, `max_atempts is not a known key (did you mean "max_attempts"?)`},
		{`{"maxAttempts": 3}`, `maxAttempts is not a known key (did you mean "max_attempts"?)`},
		{`{"max_attemps_": 3}`, `max_attemps_ is not a known key (did you mean "max_attempts"?)`},
		{`{"max_attem": 3}`, `max_attem is not a known key`},
		{`{"xxbase": "1s"}`, `xxbase is not a known key (did you mean "base"?)`},
		{`{"max_attemp": 3}`, `max_attemp is not a known key (did you mean "max_attempts"?)`},
		{`{"yyy_attempts": 3}`, `yyy_attempts is not a known key`},
		{`{"BASE": "1s"}`, `BASE is not a known key (did you mean "base"?)`},
		{`{"timeout": "3s"}`, `timeout is not a known key`},
		{`{"base": 5, "x": 1, "factor": "2"}`, `base 5 is a number (write it as a string with its unit, such as "30s"); x is not a known key; factor "2" is not a number`},
		{`{"name": "` + "\xff" + `"}`, `document is not valid UTF-8`},
	} {
		t.Run(row.document+" is refused", func(t *testing.T) {
			s, err := retryconf.Parse([]byte(row.document), retryconf.Spec{}, noLimits)
			require.EqualError(t, err, "retryconf: "+row.want)
			require.Zero(t, s)
			requireFields(t, err)
		})
	}
}

func TestUnmarshalJSONIsAsStrict(t *testing.T) {
	s := retryconf.Spec{Base: 1}
	require.EqualError(t, json.Unmarshal([]byte(`{"base": 30, "cap": "0s"}`), &s),
		`retryconf: base 30 is a number (write it as a string with its unit, such as "30s"); cap "0s" is not above 0 (leave it out for the default)`)
	require.Equal(t, retryconf.Spec{Base: 1}, s)
	require.EqualError(t, json.Unmarshal([]byte(`null`), &s), `retryconf: null is not a JSON object`)
	require.NoError(t, json.Unmarshal([]byte(`{"ttl": "1m"}`), &s))
	require.Equal(t, retryconf.Spec{TTL: seconds(60)}, s, "what was there is forgotten")
}

// requireFields asserts that every error in err is a FieldError.
func requireFields(t *testing.T, err error) {
	t.Helper()
	var one *retry.FieldError
	require.ErrorAs(t, err, &one)
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range all.Unwrap() {
			require.True(t, errors.As(err, &one))
		}
	}
}

// lineBreaks are all characters that end a line in Unicode (UAX 14, classes BK, CR, LF and NL).
const lineBreaks = "\n\v\f\r\u0085\u2028\u2029"

func TestHostileInputIsRefusedInAFewWords(t *testing.T) {
	repeated := func(n int, f func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(f(i))
		}
		return b.String()
	}
	same := func(s string) func(int) string { return func(int) string { return s } }
	for _, row := range []struct {
		name, document string
	}{
		{"megabytes", strings.Repeat(" ", 50<<20)},
		{"a hundred thousand brackets", strings.Repeat("[", 100_000)},
		{"fifty thousand brackets in a value", `{"base":` + strings.Repeat("[", 50_000)},
		{"fifty thousand objects in a value", `{"base":` + strings.Repeat(`{"a":`, 10_000)},
		{"closed brackets in a value", `{"base":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + "}"},
		{"a huge exponent", `{"factor": 1e999999999999}`},
		{"a long exponent", `{"factor": 1e` + strings.Repeat("9", 60_000) + `}`},
		{"a long number", `{"max_attempts": ` + strings.Repeat("9", 60_000) + `}`},
		{"a million delays", `{"delays": [` + repeated(1_000_000, same(`"1s",`)) + `"1s"]}`},
		{"ten thousand bad delays", `{"delays": [` + repeated(10_000, same(`1,`)) + `1]}`},
		{"duplicate keys by the thousand", `{"base":"1s"` + repeated(4_000, same(`,"base":"1s"`)) + `}`},
		{"unknown keys by the thousand", `{"x":1` + repeated(5_000, func(i int) string { return fmt.Sprintf(`,"x%d":1`, i) }) + `}`},
		{"a hundred thousand unknown keys", `{"x":1` + repeated(100_000, func(i int) string { return fmt.Sprintf(`,"x%d":1`, i) }) + `}`},
		{"a very long key", `{"` + strings.Repeat("k", 60_000) + `":1}`},
		{"a very long string", `{"base":"` + strings.Repeat("s", 60_000) + `"}`},
		{"a key of line breaks", `{"a\nb\r\u000b":1}`},
		{"a key with a line separator", `{"a\u2028b":1}`},
		{"a key with a next line", `{"a\u0085b":1}`},
		{"a value with a line separator", "{\"base\":{\"a\u2028b\":1}}"},
		{"a key that is not UTF-8", "{\"\xff\":1}"},
		{"a value that is not UTF-8", "{\"base\":[\"\xff\"]}"},
		{"a text that is not UTF-8", "{\"base\":\"\xff\"}"},
	} {
		t.Run(row.name+" is refused", func(t *testing.T) {
			_, err := retryconf.Parse([]byte(row.document), retryconf.Spec{}, noLimits)
			require.Error(t, err)
			text := err.Error()
			require.False(t, strings.ContainsAny(text, lineBreaks), "%.200q", text)
			require.True(t, utf8.ValidString(text), "%.200q", text)
			require.Less(t, len(text), 200_000)
		})
	}
}

func TestNoDataIsNoValue(t *testing.T) {
	for _, to := range []json.Unmarshaler{new(retryconf.Duration), new(retryconf.Delay), new(retryconf.Attempts), new(retryconf.Number),
		new(retryconf.Mode), new(retryconf.Jitter), new(retryconf.Switch), new(retryconf.Spec)} {
		require.Error(t, to.UnmarshalJSON(nil), "%T", to)
	}
}

func TestParseRefusesDataByItsSizeUnread(t *testing.T) {
	data := []byte(strings.Repeat("[", 64<<10+1))
	_, err := retryconf.Parse(data, retryconf.Spec{}, noLimits)
	require.EqualError(t, err, `retryconf: document is larger than 65536 bytes`)
	data = make([]byte, 50<<20)
	require.Less(t, testing.AllocsPerRun(10, func() { _, err = retryconf.Parse(data, retryconf.Spec{}, noLimits) }), 10.0)
}
