package retryconf_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

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
