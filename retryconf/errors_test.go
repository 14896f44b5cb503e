package retryconf_test

import (
	"encoding"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

var update = flag.Bool("update", false, "write testdata/errors.golden anew")

// TestEveryErrorTextIsShown checks testdata/errors.golden, which lists each input and the text of its error.
func TestEveryErrorTextIsShown(t *testing.T) {
	var b strings.Builder
	show := func(title string, err error) {
		require.Error(t, err, title)
		require.NotContains(t, err.Error(), "\n", title)
		b.WriteString(title + "\n\t" + err.Error() + "\n")
	}
	for _, document := range []string{
		``, `{"base": }`, `[1, 2]`, `{} {}`, `{"base": 30}`, `{"base": "30"}`, `{"base": null}`, `{"base": "0s"}`, `{"base": "-1s"}`, `{"base": "soon"}`,
		`{"base": "` + strings.Repeat("9", 65) + `s"}`, `{"max_attempts": 0}`, `{"max_attempts": "many"}`, `{"factor": 0}`, `{"factor": "2"}`,
		`{"mode": "cubic"}`, `{"mode": 1}`, `{"jitter": "some"}`, `{"jitter_ratio": 2, "jitter": "ratio"}`, `{"jitter_ratio": 0.5}`, `{"retries_enabled": "yes"}`,
		`{"retries_enabled": 1}`, `{"name": 1}`, `{"delays": []}`, `{"delays": [60, "0", "-1s"]}`, `{"extends": "nobody"}`, `{"cap": "1m", "max": "1m"}`,
		`{"base": "1s", "base": "2s"}`, `{"max_atempts": 3}`, `{"timeout": "3s"}`, `{"base": "5s", "cap": "1s"}`, `{"factor": 0.5}`, `{"mode": "list"}`,
		`{"mode": "fixed", "base": "1s", "factor": 2, "delays": ["1s"]}`, `{"mode": "linear", "jitter": "decorrelated"}`, `{"reset_after": "0s"}`,
	} {
		_, err := retryconf.Parse([]byte(document), retryconf.Spec{}, noLimits)
		show("Parse "+document, err)
	}
	_, err := retryconf.Parse(make([]byte, 1<<20), retryconf.Spec{}, noLimits)
	show("Parse of a megabyte", err)
	tight := retryconf.Limits{MaxAttempts: 3, MinFactor: 3, MaxFactor: 4, MaxDelay: sec, MaxTotalWait: sec, MaxTTL: hour, MaxAttemptTimeout: minute}
	for _, document := range []string{`{}`, `{"max_attempts": "unlimited", "factor": 5, "ttl": "2h", "attempt_timeout": "2m", "reset_after": "1m"}`, `{"delays": ["1m"]}`} {
		_, err := retryconf.Parse([]byte(document), retryconf.Spec{}, tight)
		show("Parse with limits "+document, err)
	}
	_, err = retryconf.FromEnviron("RETRY_", []string{"RETRY_BASE=30", "RETRY_BSE=1s", "RETRY_DELAYS="})
	show("FromEnviron RETRY_BASE=30 RETRY_BSE=1s RETRY_DELAYS=", err)
	for _, text := range []struct {
		to   encoding.TextUnmarshaler
		text string
	}{{new(retryconf.Number), "NaN"}, {new(retryconf.Attempts), "-1"}, {new(retryconf.Delay), "0"}, {new(retryconf.Switch), "yes"}} {
		show("UnmarshalText "+text.text, text.to.UnmarshalText([]byte(text.text)))
	}
	_, err = retryconf.Spec{Mode: 9, Base: -1, Cap: -1, Factor: -1, MaxAttempts: -2, AttemptTimeout: -1, TTL: -1, MaxHint: -1, ResetAfter: -1}.Policy()
	show("Spec.Policy of values that no text gives", err)
	_, err = retryconf.FromPolicy(retry.Policy{Name: "\xff", MaxAttempts: -2})
	show("FromPolicy of a bad policy", err)
	_, err = retryconf.FromPolicy(retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{}), Classify: retry.Otherwise(retry.Terminal)})
	show("FromPolicy with code", err)

	for _, document := range []string{
		`{"polices": {}}`, `{"policies": 1}`, `{"defaults": {"name": "n", "extends": "standard"}}`, `{"policies": {"serch": {}, "search": {"factor": "2"}}}`,
		`{"policies": {"search": {"extends": "webhook"}, "webhook": {"extends": "search"}}}`, `{"policies": {"search": {"extends": "nobody"}}}`,
		`{"policies": {"search": {}, "search": {}}}`, `{"policies": {"invoice-email": {"base": "2h"}}}`,
	} {
		show("Load "+document, load(defined(), document))
	}
	show("Load of 2 MiB", load(defined(), strings.Repeat(" ", 2<<20)))
	show("Load of a reader that fails", defined().Load(iotest.ErrReader(errors.New("broken"))))
	show("Load of a circle of two", defined().Load(strings.NewReader(`{"policies":{"search":{"extends":"webhook"},"webhook":{"extends":"search"}}}`)))
	var c retryconf.Catalog
	for _, name := range []string{"a", "a", "", "standard"} {
		c.Define(name, retry.Policy{})
	}
	c.Define("b", retry.Policy{TTL: -1})
	show("Catalog.Err", c.Err())

	const path = "testdata/errors.golden"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	golden, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(golden), b.String())
}

func TestAFieldErrorHasPathValueAndRule(t *testing.T) {
	_, err := retryconf.Parse([]byte(`{"max_attempts": 51}`), retryconf.Spec{}, retryconf.ServiceLimits())
	var field *retry.FieldError
	require.ErrorAs(t, err, &field)
	require.Equal(t, retry.FieldError{Package: "retryconf", Field: "max_attempts", Value: "51", Rule: "is outside 1 to 50"}, *field)
	require.EqualError(t, field, "retryconf: max_attempts 51 is outside 1 to 50")
}

func TestAFaultIsABadFieldLikeThoseOfOtherPackages(t *testing.T) {
	_, parsed := retryconf.Parse([]byte(`{"ttl": 5, "bass": "1s"}`), retryconf.Spec{}, noLimits)
	_, read := retryconf.FromEnviron("R_", []string{"R_TTL=5"})
	var d retryconf.Duration
	for name, row := range map[string]struct {
		err  error
		want retry.FieldError
	}{
		"of a document":  {parsed, retry.FieldError{Package: "retryconf", Field: "ttl", Value: "5", Rule: `is a number (write it as a string with its unit, such as "30s")`}},
		"of a variable":  {read, retry.FieldError{Package: "retryconf", Field: "R_TTL", Value: `"5"`, Rule: `has no unit (write it as a string such as "5s")`}},
		"of a text":      {d.UnmarshalText([]byte("-1s")), retry.FieldError{Package: "retryconf", Value: `"-1s"`, Rule: "is negative"}},
		"of a policy":    {retryconf.ServiceLimits().Check(retry.Policy{MaxAttempts: 51}), retry.FieldError{Package: "retryconf", Field: "max_attempts", Value: "51", Rule: "is outside 1 to 50"}},
		"of a catalog":   {load(defined(), `{"a":1}`), retry.FieldError{Package: "retryconf", Field: "a", Rule: "is not a known key"}},
		"of a list item": {new(retryconf.Spec).SetDelays("1s,2"), retry.FieldError{Package: "retryconf", Field: "delays[1]", Value: `"2"`, Rule: `has no unit (write it as a string such as "2s")`}},
	} {
		t.Run(name, func(t *testing.T) {
			var got *retry.FieldError
			require.ErrorAs(t, row.err, &got)
			require.Equal(t, row.want, *got)
		})
	}
}

// TestAnAnswerNamesAFieldAndShowsValuesAsADocumentHasThem: the faults of a document end up in the body of a 422, where a
// client shows them beside their fields. A text is in quotes in each of them, and a number in none.
func TestAnAnswerNamesAFieldAndShowsValuesAsADocumentHasThem(t *testing.T) {
	limits := retryconf.ServiceLimits()
	limits.MaxTTL = 24 * hour
	for _, row := range []struct{ name, document, field, value, rule string }{
		{"no JSON", `{"base": }`, "document", "", "is not valid JSON: invalid character '}' looking for beginning of value, at byte 8"},
		{"nothing", ``, "document", "", "is not valid JSON: unexpected end"},
		{"another value", `[1, 2]`, "document", "[1, 2]", "is not a JSON object"},
		{"two values", `{} {}`, "document", "", "has data after its closing brace"},
		{"no UTF-8", "{\"name\": \"\xff\"}", "document", "", "is not valid UTF-8"},
		{"a byte order mark", "\ufeff{}", "document", "", "begins with a byte order mark; save it as UTF-8 without one"},
		{"too much", strings.Repeat(" ", 65<<10), "document", "", "is larger than 65536 bytes"},
		{"a duration without a unit", `{"ttl": "90"}`, "ttl", `"90"`, `has no unit (write it as a string such as "90s")`},
		{"a duration above a limit", `{"ttl": "48h"}`, "ttl", `"48h"`, "is above 24h"},
		{"a duration below another", `{"base": "5s", "cap": "1s"}`, "cap", `"1s"`, "is below base 5s"},
		{"a number", `{"max_attempts": 99}`, "max_attempts", "99", "is outside 1 to 50"},
		{"a word", `{"max_attempts": "unlimited", "base": "1s", "cap": "1s"}`, "max_attempts", `"unlimited"`, ""},
		{"a mode", `{"mode": "fixed", "delays": ["1s"], "max_attempts": 2}`, "mode", `"fixed"`, "is set together with delays, which need mode list or none"},
		{"a default", `{"mode": "list"}`, "delays", "[]", "is empty, and mode list needs one delay at least"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := retryconf.Parse([]byte(row.document), retryconf.Spec{TTL: retryconf.Duration(hour), AttemptTimeout: retryconf.Duration(sec)}, limits)
			body, jsonErr := json.Marshal(err)
			require.NoError(t, jsonErr)
			var got []struct{ Field, Value, Rule string }
			require.NoError(t, json.Unmarshal(body, &got), "%s", body)
			require.Len(t, got, 1)
			require.Equal(t, row.field, got[0].Field)
			require.Equal(t, row.value, got[0].Value)
			require.Contains(t, got[0].Rule, row.rule)
		})
	}
	t.Run("a default", func(t *testing.T) {
		_, err := retryconf.Parse([]byte(`{}`), retryconf.Spec{}, retryconf.Limits{MaxTTL: hour})
		var field *retry.FieldError
		require.ErrorAs(t, err, &field)
		require.Equal(t, retry.FieldError{Package: "retryconf", Field: "ttl", Value: `"unlimited"`, Rule: "(the default) is above 1h"}, *field)
	})
}

// TestARefusedDefinitionIsNotDeniedToo: a policy whose definition has a mistake is defined in the code.
func TestARefusedDefinitionIsNotDeniedToo(t *testing.T) {
	var c retryconf.Catalog
	c.Define("search", retry.Policy{TTL: -1})
	c.Define("standard", retry.Policy{})
	err := load(&c, `{"policies": {"search": {}, "standard": {}, "serch": {"extends": "search"}}}`)
	require.EqualError(t, err, `retryconf: policies.search.ttl "-1ns" is negative; policies.serch is not defined in the code; `+
		`policies.standard is the name of a preset`)
}
