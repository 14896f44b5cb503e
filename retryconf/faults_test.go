package retryconf_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert/yaml"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

func ExampleParse_faults() {
	_, err := retryconf.Parse([]byte(`{"base": 30, "factor": 0}`), retryconf.Spec{}, retryconf.ServiceLimits())
	var bad retry.FieldErrors
	errors.As(err, &bad)
	for _, err := range bad {
		e := err.(*retry.FieldError)
		fmt.Printf("%s: %s\n", e.Field, e.Rule)
	}
	// Output:
	// base: is a number (write it as a string with its unit, such as "30s")
	// factor: is not a number above 0 (leave it out for the default)
}

func ExampleParse_base() {
	base := retryconf.Spec{Base: retryconf.Duration(30 * time.Second), TTL: retryconf.Duration(24 * time.Hour)}
	limits := retryconf.ServiceLimits()
	limits.MaxTTL = 48 * time.Hour
	spec, err := retryconf.Parse([]byte(`{"max_attempts": 3}`), base, limits) // the base has the TTL that limits require
	fmt.Println(spec.MaxAttempts, err)

	_, err = retryconf.Parse([]byte(`{"max_attempts": 99, "cap": "10s", "jiter": "full"}`), base, limits)
	answer, _ := json.MarshalIndent(err, "", "  ")
	fmt.Println(string(answer))
	// Output:
	// 3 <nil>
	// [
	//   {
	//     "field": "jiter",
	//     "rule": "is not a known key (did you mean \"jitter\"?)"
	//   },
	//   {
	//     "field": "cap",
	//     "value": "\"10s\"",
	//     "rule": "is below base 30s"
	//   },
	//   {
	//     "field": "max_attempts",
	//     "value": "99",
	//     "rule": "is outside 1 to 50"
	//   }
	// ]
}

// faultsOf returns the faults that an error of retryconf names.
func faultsOf(err error) (all []*retry.FieldError) {
	var bad retry.FieldErrors
	errors.As(err, &bad)
	for _, err := range bad {
		all = append(all, err.(*retry.FieldError))
	}
	return all
}

func TestNoMoreThanAHundredFaultsAreListed(t *testing.T) {
	faulty := func(n int, value string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"key%03d":%s`, i, value)
		}
		return "{" + b.String()[1:] + "}"
	}
	for name, read := range map[string]func(n int) error{
		"Parse": func(n int) error {
			_, err := retryconf.Parse([]byte(faulty(n, "1")), retryconf.Spec{}, retryconf.Limits{})
			return err
		},
		"Parse of a list": func(n int) error {
			_, err := retryconf.Parse([]byte(`{"delays":[`+strings.Repeat("1,", n-1)+`1]}`), retryconf.Spec{}, retryconf.Limits{})
			return err
		},
		"json.Unmarshal":           func(n int) error { return json.Unmarshal([]byte(faulty(n, "1")), new(retryconf.Spec)) },
		"yaml.Unmarshal":           func(n int) error { return yaml.Unmarshal([]byte(faulty(n, "1")), new(retryconf.Spec)) },
		"Load":                     func(n int) error { return load(defined(), faulty(n, "1")) },
		"Load of unknown policies": func(n int) error { return load(defined(), `{"policies":`+faulty(n, "{}")+`}`) },
	} {
		t.Run(name, func(t *testing.T) {
			require.Len(t, faultsOf(read(100)), 100)
			for _, n := range []int{101, 5000} {
				faults := faultsOf(read(n))
				require.Len(t, faults, 101)
				for i, fault := range faults {
					require.Equal(t, i == 100, strings.HasSuffix(fault.Rule, "has more faults than are listed"), i)
				}
			}
			err := read(5000)
			require.Less(t, len(err.Error()), 200_000)
		})
	}
}

func TestAKeyThatIsGivenOftenIsOneFault(t *testing.T) {
	faults := faultsOf(load(defined(), `{"policies":{`+strings.Repeat(`"webhook":{},`, 130)+`"bad":5}}`))
	require.Len(t, faults, 3)
	require.Equal(t, []string{"policies.bad", "policies.bad", "policies.webhook"}, []string{faults[0].Field, faults[1].Field, faults[2].Field})
	require.Equal(t, "is given twice", faults[2].Rule)
}

func TestALongCircleIsShownInPart(t *testing.T) {
	var c retryconf.Catalog
	var entries []string
	const n = 1000
	for i := range n {
		c.Define(fmt.Sprintf("p%03d", i), retry.Policy{})
		entries = append(entries, fmt.Sprintf(`"p%03d":{"extends":"p%03d"}`, i, (i+1)%n))
	}
	err := c.Load(strings.NewReader(`{"policies":{` + strings.Join(entries, ",") + `}}`))
	require.Len(t, faultsOf(err), 1, "the circle is one fault")
	require.Less(t, len(err.Error()), 5000)
	require.Contains(t, err.Error(), `policies.p999.extends "p000" is a cycle: p000 → p001 → p002 →`)
	require.True(t, strings.HasSuffix(err.Error(), "→ p998 → p999 → p000"))
}

func TestAPresetOverADefinitionIsWrittenBack(t *testing.T) {
	for _, preset := range []string{"standard", "delivery"} {
		t.Run(preset, func(t *testing.T) {
			var c retryconf.Catalog
			ref := c.Define("b", retry.Policy{MaxAttempts: 12,
				Backoff: retry.Backoff{Base: sec, Factor: 3, Cap: minute, Jitter: retry.RatioJitter, JitterRatio: 0.5}})
			require.NoError(t, load(&c, `{"defaults":{"cap":"3s"},"policies":{"b":{"extends":"`+preset+`"}}}`))
			require.Zero(t, ref.Policy().Cap)
			requireWritesBack(t, &c)
		})
	}
}

func TestADocumentIsJudgedTogetherWithItsBase(t *testing.T) {
	base := retryconf.Spec{Name: "webhook", Base: seconds(30), Cap: retryconf.Duration(hour), AttemptTimeout: seconds(10), TTL: retryconf.Duration(hour)}
	limits := retryconf.Limits{MaxAttempts: 50, MaxDelay: hour, MaxTTL: hour, MaxAttemptTimeout: minute}
	for _, row := range []struct {
		name, document string
		base           retryconf.Spec
		want           string // empty means accepted
	}{
		{"the base has what limits require", `{"max_attempts": 3}`, base, ""},
		{"nothing given is the base", `{}`, base, ""},
		{"a cap below the base's base", `{"cap": "1s"}`, base, `retryconf: cap "1s" is below base 30s`},
		{"a preset replaces the base's schedule", `{"extends": "cautious"}`, base, `retryconf: delays "12h" is the longest wait, above the 1h allowed`},
		{"a fault of the base is one too", `{"max_attempts": 3}`, retryconf.Spec{TTL: base.TTL}, `retryconf: attempt_timeout "unlimited" (the default) is above 1m`},
		{"what cannot be read is reported once, beside the limits", `{"ttl": 5, "attempt_timeout": "2m"}`, base,
			`retryconf: ttl 5 is a number (write it as a string with its unit, such as "30s"); attempt_timeout "2m" is above 1m`},
		{"the base does not stand in for what cannot be read", `{"base": "3", "cap": "2s"}`, base,
			`retryconf: base "3" has no unit (write it as a string such as "3s")`},
		{"the base does not stand in for a preset that cannot be read", `{"extends": 7}`, retryconf.Spec{MaxAttempts: 99, TTL: base.TTL, AttemptTimeout: base.AttemptTimeout},
			"retryconf: extends 7 is not a string"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s, err := retryconf.Parse([]byte(row.document), row.base, limits)
			if row.want != "" {
				require.EqualError(t, err, row.want)
				require.Zero(t, s)
				return
			}
			require.NoError(t, err)
			alone, err := retryconf.Parse([]byte(row.document), retryconf.Spec{}, retryconf.Limits{})
			require.NoError(t, err)
			require.Equal(t, alone, s, "without what is the base's")
		})
	}
}

func TestAFaultInJSONHasWhatIsKnownOfIt(t *testing.T) {
	for want, e := range map[string]retry.FieldError{
		`{"field":"base","value":"30","rule":"is a number","line":4}`: {Field: "base", Value: "30", Rule: "is a number", Line: 4},
		`{"field":"bass","rule":"is not a known key"}`:                {Field: "bass", Rule: "is not a known key"},
		`{"rule":"the document is not valid UTF-8"}`:                  {Rule: "the document is not valid UTF-8"},
	} {
		text, err := json.Marshal(e)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
		var back retry.FieldError
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, e, back)
	}
}

func TestAnUnknownPresetHidesNothingAndInventsNothing(t *testing.T) {
	limits := retryconf.Limits{MaxAttempts: 50, MaxTTL: hour}
	_, err := retryconf.Parse([]byte(`{"extends": "foo", "max_attempts": 51, "ttl": "30m"}`), retryconf.Spec{}, limits)
	require.EqualError(t, err, `retryconf: extends "foo" is not a preset: "inline", "aggressive", "standard", "patient", "cautious" and "delivery"; `+
		`max_attempts 51 is outside 1 to 50`)
	var c retryconf.Catalog
	c.Define("a", retry.Policy{})
	require.Len(t, faultsOf(c.Load(strings.NewReader(`{"defaults":{"extends":"a"}}`))), 1)
}

func TestADefinitionIsTheCatalogsOwn(t *testing.T) {
	var c retryconf.Catalog
	delays := []time.Duration{sec}
	ref := c.Define("a", retry.Policy{Backoff: retry.Backoff{Delays: delays}})
	delays[0] = hour
	require.Equal(t, sec, ref.Policy().Delays[0])
}

func TestWhatIsNoValueIsRefused(t *testing.T) {
	_, err := retryconf.Spec{Name: "\xff", Jitter: "Full", RetriesEnabled: 9}.Policy()
	require.EqualError(t, err, `retryconf: name "\xff" has characters that are not printable, or is not UTF-8; `+
		`jitter "Full" is not one of none, full, equal, ratio and decorrelated; retries_enabled 9 is neither true nor false`)
	text, err := json.Marshal(retryconf.Switch(9))
	require.NoError(t, err)
	require.Equal(t, "null", string(text))
}

func TestNumberIsReadFromWhatTOMLGives(t *testing.T) {
	for given, want := range map[any]retryconf.Number{1.00000001: 1.00000001, int64(3): 3, "2.5": 2.5} {
		var n retryconf.Number
		require.NoError(t, n.UnmarshalTOML(given))
		require.Equal(t, want, n)
	}
	var n retryconf.Number
	require.EqualError(t, n.UnmarshalTOML(true), `retryconf: "true" is not a number above 0 (leave it out for the default)`)
}
