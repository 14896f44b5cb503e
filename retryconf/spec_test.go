package retryconf_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

var noLimits = retryconf.Limits{MaxName: -1}

func policyOf(t testing.TB, document string) retry.Policy {
	t.Helper()
	s, err := retryconf.Parse([]byte(document), retryconf.Spec{}, noLimits)
	require.NoError(t, err)
	p, err := s.Policy()
	require.NoError(t, err)
	return p
}

func TestASpecIsThePolicyItDescribes(t *testing.T) {
	for _, row := range []struct {
		name, document string
		want           retry.Policy
	}{
		{"nothing is the zero policy", `{}`, retry.Policy{}},
		{"constant is fixed", `{"mode": "constant"}`, retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed}}},
		{"unlimited is said so", `{"max_attempts": "unlimited"}`, retry.Policy{MaxAttempts: retry.Unlimited}},
		{"a delay may be 0", `{"delays": ["0s", "1m"]}`, retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{0, minute}}}},
		{"max is cap", `{"max": "1m"}`, retry.Policy{Backoff: retry.Backoff{Cap: minute}}},
		{"jitter none means no jitter", `{"jitter": "none"}`, retry.Policy{}},
		{"retries enabled is the default", `{"retries_enabled": true}`, retry.Policy{}},
		{"retries can be disabled", `{"retries_enabled": false}`, retry.Policy{Disabled: true}},
		{"a preset gives what is not given", `{"extends": "standard", "max_attempts": 3}`,
			retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Delays: []time.Duration{minute, 30 * minute, 3 * hour}}}},
		{"a base takes the place of a preset's delays", `{"extends": "standard", "base": "1s"}`, retry.Policy{Backoff: retry.Backoff{Base: sec}}},
		{"inline is a whole", `{"extends": "inline"}`, retry.Policy{MaxAttempts: 4, MaxHint: 10 * sec,
			Backoff: retry.Backoff{Base: 50 * time.Millisecond, Cap: sec, Jitter: retry.FullJitter}}},
		{"a timeout may be above the TTL, which bounds starts", `{"attempt_timeout": "2m", "ttl": "1m"}`, retry.Policy{AttemptTimeout: 2 * minute, TTL: minute}},
		{"every field arrives", `{"name": "n", "max_attempts": 5, "mode": "linear", "base": "2s", "factor": 0.5, "cap": "9s",
			"jitter": "ratio", "jitter_ratio": 0.3, "attempt_timeout": "4s", "ttl": "1h", "max_hint": "2h", "reset_after": "3h", "retries_enabled": false}`,
			retry.Policy{Name: "n", MaxAttempts: 5, AttemptTimeout: 4 * sec, TTL: hour, MaxHint: 2 * hour, ResetAfter: 3 * hour, Disabled: true,
				Backoff: retry.Backoff{Mode: retry.Linear, Base: 2 * sec, Factor: 0.5, Cap: 9 * sec, Jitter: retry.RatioJitter, JitterRatio: 0.3}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, policyOf(t, row.document))
			var s retryconf.Spec
			require.NoError(t, json.Unmarshal([]byte(row.document), &s))
			p, err := s.Policy()
			require.NoError(t, err)
			require.Equal(t, row.want, p)
		})
	}
}

func TestPresetsAreThePublishedSchedules(t *testing.T) {
	for name, want := range map[string]retry.Policy{
		"aggressive": retry.Aggressive(), "standard": retry.Standard(), "patient": retry.Patient(), "cautious": retry.Cautious(),
		"inline": retry.Inline(), "delivery": {},
	} {
		t.Run(name+" has its schedule", func(t *testing.T) {
			want.Name = "" // a label is not inherited
			require.Equal(t, want.String(), policyOf(t, `{"extends": "`+name+`"}`).String())
		})
	}
}

func TestFromPolicyListsEveryPartThatIsCode(t *testing.T) {
	s, err := retryconf.FromPolicy(retry.Policy{
		Name: "all", MaxAttempts: 3, Classify: retry.Otherwise(retry.Terminal), Budget: retry.NewBudget(retry.BudgetConfig{}),
		Gate: func(context.Context) time.Duration { return 0 }, Observe: func(context.Context, retry.Event) {}, Rand: func() float64 { return 0 },
		Wait: func(int, error, time.Duration) time.Duration { return 0 }, Pay: func(context.Context, retry.Decision) bool { return true },
	})
	require.EqualError(t, err, "retryconf: Classify, Wait, Budget, Pay, Gate, Observe, Rand cannot be expressed as data")
	var code *retryconf.NotDataError
	require.ErrorAs(t, err, &code)
	require.Equal(t, []string{"Classify", "Wait", "Budget", "Pay", "Gate", "Observe", "Rand"}, code.Fields)
	require.Equal(t, retryconf.Spec{Name: "all", MaxAttempts: 3}, s, "the rest is still given")
}

func TestEveryFieldOfAPolicyIsDataOrCode(t *testing.T) {
	values := map[reflect.Kind]any{reflect.String: "n", reflect.Bool: true, reflect.Int: 1, reflect.Int64: hour}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[retry.Policy]()) {
		if len(field.Index) > 1 || field.Anonymous { // the fields of a Backoff depend on each other: FuzzRoundTrip has them
			continue
		}
		t.Run(field.Name, func(t *testing.T) {
			var p retry.Policy
			to := reflect.ValueOf(&p).Elem().FieldByIndex(field.Index)
			switch field.Type.Kind() {
			case reflect.Func:
				to.Set(reflect.MakeFunc(field.Type, nil))
			case reflect.Pointer:
				to.Set(reflect.ValueOf(retry.NewBudget(retry.BudgetConfig{})))
			default:
				to.Set(reflect.ValueOf(values[field.Type.Kind()]))
				requireRoundTrip(t, p)
				return
			}
			_, err := retryconf.FromPolicy(p)
			require.Equal(t, &retryconf.NotDataError{Fields: []string{field.Name}}, err)
		})
	}
}

func TestFromPolicyRefusesWhatDoesNotValidate(t *testing.T) {
	s, err := retryconf.FromPolicy(retry.Policy{Name: "\xff", MaxAttempts: -2, TTL: -1})
	require.EqualError(t, err, `retryconf: max_attempts -2 is below -1, which is unlimited; ttl -1ns is negative; name "\xff" has characters that are not printable, or is not UTF-8`)
	require.Zero(t, s)
}

// TestOrIsThatOfAPolicy has the formulas.
func TestOrTakesWhatIsNotGiven(t *testing.T) {
	full, none := retryconf.FullJitter, retryconf.NoJitter
	for _, row := range []struct {
		name              string
		s, defaults, want retryconf.Spec
	}{
		{"mode list takes delays", retryconf.Spec{Mode: 4}, retryconf.Spec{Delays: []retryconf.Delay{0}, MaxAttempts: 4}, retryconf.Spec{Delays: []retryconf.Delay{0}, MaxAttempts: 4}},
		{"jitter none stands", retryconf.Spec{Jitter: none}, retryconf.Spec{Jitter: full}, retryconf.Spec{Jitter: none}},
		{"on stands", retryconf.Spec{RetriesEnabled: retryconf.On}, retryconf.Spec{RetriesEnabled: retryconf.Off}, retryconf.Spec{RetriesEnabled: retryconf.On}},
		{"max stands against cap", retryconf.Spec{Max: 1}, retryconf.Spec{Cap: 2}, retryconf.Spec{Cap: 1}},
		{"the defaults' max is their cap", retryconf.Spec{}, retryconf.Spec{Max: 2}, retryconf.Spec{Cap: 2}},
		{"a preset comes before the defaults, as a whole", retryconf.Spec{Extends: "aggressive"},
			retryconf.Spec{Name: "n", Base: seconds(1), Cap: seconds(2), MaxAttempts: 9, Jitter: full, TTL: 1, Extends: "standard"},
			retryconf.Spec{Name: "n", Delays: []retryconf.Delay{retryconf.Delay(10 * sec), retryconf.Delay(minute), retryconf.Delay(5 * minute)}, Jitter: full, TTL: 1}},
		{"the rest comes along", retryconf.Spec{}, retryconf.Spec{Name: "n", Extends: "e", AttemptTimeout: 1, TTL: 2, MaxHint: 3, ResetAfter: 4}, retryconf.Spec{Name: "n", Extends: "e", AttemptTimeout: 1, TTL: 2, MaxHint: 3, ResetAfter: 4}},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, row.s.Or(row.defaults)) })
	}
}

func TestOrIsThatOfAPolicy(t *testing.T) {
	var policies []retry.Policy
	for _, b := range []retry.Backoff{
		{}, {Base: sec}, {Factor: 3}, {Cap: hour}, {Base: 2 * sec, Factor: 1.5}, {Mode: retry.Exponential}, {Mode: retry.Linear}, {Mode: retry.Linear, Factor: 0.5},
		{Mode: retry.Fixed, Base: minute}, {Delays: []time.Duration{sec}}, {Mode: retry.List, Delays: []time.Duration{0, minute}}, {Jitter: retry.FullJitter},
		{Jitter: retry.RatioJitter}, {Jitter: retry.RatioJitter, JitterRatio: 0.5},
	} {
		policies = append(policies, retry.Policy{Backoff: b}, retry.Policy{Name: "n", MaxAttempts: 3, ResetAfter: sec, Disabled: true, Backoff: b})
	}
	for _, p := range policies {
		for _, q := range policies {
			s, err := retryconf.FromPolicy(p)
			require.NoError(t, err)
			defaults, err := retryconf.FromPolicy(q)
			require.NoError(t, err)
			merged, err := s.Or(defaults).Policy()
			want := p.Or(q)
			require.Equal(t, want.Validate() == nil, err == nil)
			if err == nil {
				require.Equal(t, want, merged, "%+v or %+v", p, q)
			}
		}
	}
}

func TestPolicyNamesEveryBadField(t *testing.T) {
	for _, row := range []struct {
		spec retryconf.Spec
		want string
	}{
		{retryconf.Spec{Base: seconds(5), Cap: seconds(1), MaxAttempts: -2}, `cap 1s is below base 5s; max_attempts -2 is below -1, which is unlimited`},
		{retryconf.Spec{Cap: seconds(2), Max: seconds(1)}, `max 1s is given together with cap, which means the same`},
		{retryconf.Spec{Extends: "standart"}, `extends "standart" is not a preset: "inline", "aggressive", "standard", "patient", "cautious" and "delivery"`},
		{retryconf.Spec{Mode: 9}, "mode 9 is not one of exponential, linear, fixed and list"},
		{retryconf.Spec{Jitter: "Full"}, `jitter "Full" is not one of none, full, equal, ratio and decorrelated`},
		{retryconf.Spec{RetriesEnabled: 9}, "retries_enabled 9 is neither true nor false"},
		{retryconf.Spec{Mode: 4}, "delays [] is empty, and mode list needs one delay at least"},
		{retryconf.Spec{Delays: []retryconf.Delay{1, -1}, Mode: 3}, `mode fixed is set together with delays, which need mode list or none; delays[1] -1ns is negative`},
		{retryconf.Spec{Factor: 0.5}, "factor 0.5 is below 1, which exponential needs"},
		{retryconf.Spec{Factor: retryconf.Number(math.NaN())}, `factor NaN is not a finite number`},
		{retryconf.Spec{JitterRatio: 0.5}, "jitter_ratio 0.5 is set without ratio jitter"},
		{retryconf.Spec{Jitter: retryconf.RatioJitter, JitterRatio: 2}, "jitter_ratio 2 is outside (0,1]"},
		{retryconf.Spec{Jitter: retryconf.DecorrelatedJitter, Mode: 2}, `jitter decorrelated goes with exponential only, not with linear`},
		{retryconf.Spec{ResetAfter: -1}, `reset_after -1ns is negative`},
	} {
		t.Run("it says "+row.want, func(t *testing.T) {
			p, err := row.spec.Policy()
			require.EqualError(t, err, "retryconf: "+row.want)
			require.Zero(t, p)
		})
	}
}

func TestSetDelaysKeepsTheListIfOneIsBad(t *testing.T) {
	s := retryconf.Spec{Delays: []retryconf.Delay{1}}
	for text, want := range map[string]string{
		"":       `delays[0] "" is not a duration such as "30s" or "1h30m"`,
		"1m,,2m": `delays[1] "" is not a duration such as "30s" or "1h30m"`,
		"1m,5":   `delays[1] "5" has no unit (write it as a string such as "5s")`,
		"1m;2m":  `delays[0] "1m;2m" is not a duration such as "30s" or "1h30m"`,
	} {
		t.Run(fmt.Sprintf("%q is refused", text), func(t *testing.T) {
			require.EqualError(t, s.SetDelays(text), "retryconf: "+want)
			require.Equal(t, []retryconf.Delay{1}, s.Delays)
		})
	}
	require.NoError(t, s.SetDelays(" 1s , 2s"))
	require.Equal(t, []retryconf.Delay{retryconf.Delay(sec), retryconf.Delay(2 * sec)}, s.Delays)
}

func TestAPolicyComesBackTheSame(t *testing.T) {
	for _, row := range []struct {
		name   string
		policy retry.Policy
	}{
		{"the zero policy", retry.Policy{}},
		{"a preset", retry.Cautious()},
		{"the largest values", retry.Policy{MaxAttempts: math.MaxInt, TTL: math.MaxInt64, MaxHint: math.MaxInt64, ResetAfter: math.MaxInt64,
			Backoff: retry.Backoff{Factor: math.MaxFloat64, Base: math.MaxInt64, Cap: math.MaxInt64}}},
		{"the smallest values", retry.Policy{MaxAttempts: 1, Backoff: retry.Backoff{Mode: retry.Linear, Base: 1, Cap: 1, Factor: math.SmallestNonzeroFloat64}}},
		{"a factor of minus zero", retry.Policy{Backoff: retry.Backoff{Factor: math.Copysign(0, -1)}}},
		{"a jitter ratio of minus zero", retry.Policy{Backoff: retry.Backoff{JitterRatio: math.Copysign(0, -1)}}},
		{"a name that JSON escapes", retry.Policy{Name: "a\"\\<b>"}},
		{"a disabled policy", retry.Policy{Disabled: true}},
	} {
		t.Run(row.name+" comes back", func(t *testing.T) {
			require.NoError(t, row.policy.Validate())
			requireRoundTrip(t, row.policy)
		})
	}
}

func requireRoundTrip(t *testing.T, p retry.Policy) {
	t.Helper()
	s, err := retryconf.FromPolicy(p)
	require.NoError(t, err)
	text, err := json.Marshal(s)
	require.NoError(t, err)

	parsed, err := retryconf.Parse(text, retryconf.Spec{}, noLimits)
	require.NoError(t, err, "%s", text)
	back, err := parsed.Policy()
	require.NoError(t, err, "%s", text)
	require.Equal(t, p, back, "%s", text)

	fromEnv, err := retryconf.FromEnviron("X_", environOf(t, text))
	require.NoError(t, err, "%s", text)
	require.Equal(t, parsed, fromEnv)
}

// environOf returns a JSON object as environment variables with the prefix X_.
func environOf(t *testing.T, text []byte) (environ []string) {
	var object map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &object))
	for key, value := range object {
		text := string(value)
		var list []string
		if json.Unmarshal(value, &list) == nil {
			text = strings.Join(list, ",")
		} else if value[0] == '"' {
			require.NoError(t, json.Unmarshal(value, &text))
		}
		environ = append(environ, "X_"+strings.ToUpper(key)+"="+text)
	}
	return environ
}
