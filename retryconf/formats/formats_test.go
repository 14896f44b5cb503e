package formats_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

// decodeYAML reads text into v and refuses unknown keys, as a service should read its configuration.
func decodeYAML(text string, v any) error {
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.KnownFields(true)
	return decoder.Decode(v)
}

// decodeTOML reads text into v and refuses unknown keys.
func decodeTOML(text string, v any) error {
	meta, err := toml.Decode(text, v)
	if err != nil {
		return err
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return fmt.Errorf("unknown keys %v", unknown)
	}
	return nil
}

func decodeJSON(text string, v any) error { return json.Unmarshal([]byte(text), v) }

// parseFlags reads a Spec from a program's arguments, with one flag for each key.
func parseFlags(args []string) (s retryconf.Spec, err error) {
	flags := flag.NewFlagSet("service", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&s.Name, "name", "", "label")
	flags.StringVar(&s.Extends, "extends", "", "preset")
	flags.TextVar(&s.MaxAttempts, "max_attempts", s.MaxAttempts, "total number of attempts")
	flags.TextVar(&s.Mode, "mode", s.Mode, "formula")
	flags.TextVar(&s.Base, "base", s.Base, "first delay")
	flags.TextVar(&s.Factor, "factor", s.Factor, "growth per attempt")
	flags.TextVar(&s.Cap, "cap", s.Cap, "longest delay")
	flags.TextVar(&s.Max, "max", s.Max, "longest delay")
	flags.Func("delays", "waits of a list, with commas between them", s.SetDelays)
	flags.TextVar(&s.Jitter, "jitter", s.Jitter, "jitter")
	flags.TextVar(&s.JitterRatio, "jitter_ratio", s.JitterRatio, "half-width of ratio jitter")
	flags.TextVar(&s.AttemptTimeout, "attempt_timeout", s.AttemptTimeout, "longest attempt")
	flags.TextVar(&s.TTL, "ttl", s.TTL, "when the last attempt may start")
	flags.TextVar(&s.MaxHint, "max_hint", s.MaxHint, "longest hint that is obeyed")
	flags.TextVar(&s.ResetAfter, "reset_after", s.ResetAfter, "an attempt that starts attempts anew")
	flags.TextVar(&s.RetriesEnabled, "retries_enabled", s.RetriesEnabled, "whether to retry at all")
	flags.TextVar(&s.Hedge.Delay, "hedge_delay", s.Hedge.Delay, "when a slow call gets another one")
	flags.TextVar(&s.Hedge.MaxCalls, "hedge_max_calls", s.Hedge.MaxCalls, "calls under way at once")
	err = flags.Parse(args)
	return s, err
}

// document is one policy in each format.
type document struct {
	yaml, toml, json string
	environ, flags   []string
}

// documentOf returns the document of the given members of a JSON object, without quotes around the key. A string, a list
// and a number of JSON are written alike in YAML and TOML, and without quotes and brackets in a variable and a flag.
func documentOf(members ...string) (d document) {
	var object []string
	for _, member := range members {
		key, value, _ := strings.Cut(member, ": ")
		object = append(object, fmt.Sprintf("%q: %s", key, value))
		d.toml += key + " = " + value + "\n"
		plain := strings.NewReplacer(`"`, "", "[", "", "]", "").Replace(value)
		d.environ = append(d.environ, "RETRY_"+strings.ToUpper(key)+"="+plain)
		d.flags = append(d.flags, "-"+key+"="+plain)
	}
	d.yaml = strings.Join(members, "\n")
	d.json = "{" + strings.Join(object, ", ") + "}"
	return d
}

// read is the Spec that each format returns for a document, by the format's name.
func (d document) read() map[string]func() (retryconf.Spec, error) {
	decoded := func(decode func(string, any) error, text string) func() (retryconf.Spec, error) {
		return func() (s retryconf.Spec, err error) {
			err = decode(text, &s)
			return s, err
		}
	}
	return map[string]func() (retryconf.Spec, error){
		"yaml":    decoded(decodeYAML, d.yaml),
		"toml":    decoded(decodeTOML, d.toml),
		"json":    decoded(decodeJSON, d.json),
		"environ": func() (retryconf.Spec, error) { return retryconf.FromEnviron("RETRY_", d.environ) },
		"flags":   func() (retryconf.Spec, error) { return parseFlags(d.flags) },
	}
}

// rows are policies with the documents that describe them.
var rows = []struct {
	name string
	document
	want retry.Policy
}{
	{
		name: "the delivery request",
		document: document{
			yaml:    `{"max_attempts": 12, "base": "10s", "factor": 2, "max": "30m"}`, // unchanged: JSON is YAML
			toml:    "max_attempts = 12\nbase = '10s'\nfactor = 2\nmax = '30m'",
			json:    `{"max_attempts": 12, "base": "10s", "factor": 2, "max": "30m"}`,
			environ: []string{"RETRY_MAX_ATTEMPTS=12", "RETRY_BASE=10s", "RETRY_FACTOR=2", "RETRY_MAX=30m"},
			flags:   []string{"-max_attempts=12", "-base=10s", "-factor=2", "-max=30m"},
		},
		want: retry.Policy{MaxAttempts: 12, Backoff: retry.Backoff{Base: 10 * time.Second, Factor: 2, Cap: 30 * time.Minute}},
	},
	{
		name: "every key of a formula",
		document: document{
			yaml: "name: search\nmax_attempts: 5\nmode: exponential\nbase: 20ms\nfactor: 1.5\ncap: 1s\njitter: full\n" +
				"attempt_timeout: 500ms\nttl: 1m\nmax_hint: 10s\nreset_after: 1h\nretries_enabled: true",
			toml: "name = 'search'\nmax_attempts = 5\nmode = 'exponential'\nbase = '20ms'\nfactor = 1.5\ncap = '1s'\n" +
				"jitter = 'full'\nattempt_timeout = '500ms'\nttl = '1m'\nmax_hint = '10s'\nreset_after = '1h'\nretries_enabled = true",
			json: `{"name": "search", "max_attempts": 5, "mode": "exponential", "base": "20ms", "factor": 1.5, "cap": "1s",
				"jitter": "full", "attempt_timeout": "500ms", "ttl": "1m", "max_hint": "10s", "reset_after": "1h", "retries_enabled": true}`,
			environ: []string{"RETRY_NAME=search", "RETRY_MAX_ATTEMPTS=5", "RETRY_MODE=exponential", "RETRY_BASE=20ms",
				"RETRY_FACTOR=1.5", "RETRY_CAP=1s", "RETRY_JITTER=full", "RETRY_ATTEMPT_TIMEOUT=500ms", "RETRY_TTL=1m",
				"RETRY_MAX_HINT=10s", "RETRY_RESET_AFTER=1h", "RETRY_RETRIES_ENABLED=true"},
			flags: []string{"-name=search", "-max_attempts=5", "-mode=exponential", "-base=20ms", "-factor=1.5", "-cap=1s",
				"-jitter=full", "-attempt_timeout=500ms", "-ttl=1m", "-max_hint=10s", "-reset_after=1h", "-retries_enabled=true"},
		},
		want: retry.Policy{
			Name: "search", MaxAttempts: 5,
			Backoff: retry.Backoff{
				Mode: retry.Exponential, Base: 20 * time.Millisecond, Factor: 1.5, Cap: time.Second, Jitter: retry.FullJitter,
			},
			AttemptTimeout: 500 * time.Millisecond, TTL: time.Minute, MaxHint: 10 * time.Second, ResetAfter: time.Hour,
		},
	},
	{
		name: "a list, with a wait of 0s that stays one",
		document: document{
			yaml:    "delays:\n- 0s\n- 1m\n- 1h30m",
			toml:    "delays = ['0s', '1m', '1h30m']",
			json:    `{"delays": ["0s", "1m", "1h30m"]}`,
			environ: []string{"RETRY_DELAYS=0s,1m,1h30m"},
			flags:   []string{"-delays=0s,1m,1h30m"},
		},
		want: retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{0, time.Minute, 90 * time.Minute}}},
	},
	{
		name:     "mode list, said outright",
		document: documentOf(`mode: "list"`, `delays: ["10s", "10s"]`, "max_attempts: 9"),
		want: retry.Policy{MaxAttempts: 9,
			Backoff: retry.Backoff{Mode: retry.List, Delays: []time.Duration{10 * time.Second, 10 * time.Second}}},
	},
	{
		name:     "unlimited attempts of a constant wait",
		document: documentOf(`max_attempts: "unlimited"`, `mode: "constant"`, `base: "1m"`),
		want:     retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Minute}},
	},
	{
		name:     "linear, with ratio jitter",
		document: documentOf(`mode: "linear"`, "factor: 3.0", `jitter: "ratio"`, "jitter_ratio: 0.25"),
		want:     retry.Policy{Backoff: retry.Backoff{Mode: retry.Linear, Factor: 3, Jitter: retry.RatioJitter, JitterRatio: 0.25}},
	},
	{
		name: "a hedge, which is beside the policy",
		document: document{
			yaml:    "base: 1m\nhedge:\n  delay: 50ms\n  max_calls: 3",
			toml:    "base = '1m'\n[hedge]\ndelay = '50ms'\nmax_calls = 3",
			json:    `{"base": "1m", "hedge": {"delay": "50ms", "max_calls": 3}}`,
			environ: []string{"RETRY_BASE=1m", "RETRY_HEDGE_DELAY=50ms", "RETRY_HEDGE_MAX_CALLS=3"},
			flags:   []string{"-base=1m", "-hedge_delay=50ms", "-hedge_max_calls=3"},
		},
		want: retry.Policy{Backoff: retry.Backoff{Base: time.Minute}},
	},
	{
		name:     "durations below a millisecond",
		document: documentOf(`base: "1ns"`, `cap: "0.75ms"`, `attempt_timeout: "250us"`, `max_hint: "1.5µs"`, `jitter: "equal"`),
		want: retry.Policy{
			Backoff:        retry.Backoff{Base: 1, Cap: 750 * time.Microsecond, Jitter: retry.EqualJitter},
			AttemptTimeout: 250 * time.Microsecond, MaxHint: 1500,
		},
	},
	{
		name:     "retries_enabled false, over a preset with decorrelated jitter",
		document: documentOf(`extends: "delivery"`, `jitter: "decorrelated"`, "retries_enabled: false"),
		want:     retry.Policy{Backoff: retry.Backoff{Jitter: retry.DecorrelatedJitter}, Disabled: true},
	},
	{
		name:     "a factor with many decimals",
		document: documentOf("factor: 1.00000001"),
		want:     retry.Policy{Backoff: retry.Backoff{Factor: 1.00000001}},
	},
	{
		name: "jitter none, and nothing else",
		document: document{
			yaml: "jitter: none", toml: "jitter = 'none'", json: `{"jitter": "none"}`,
			environ: []string{"RETRY_JITTER=none", "HOME=/"}, flags: []string{"-jitter=none"},
		},
		want: retry.Policy{},
	},
	{
		name:     "nothing given",
		document: document{yaml: "{}", toml: "", json: "{}", environ: nil, flags: nil},
		want:     retry.Policy{},
	},
}

func TestEveryFormatReadsTheSamePolicy(t *testing.T) {
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			specs := map[string]retryconf.Spec{}
			for format, read := range row.read() {
				s, err := read()
				require.NoError(t, err, format)
				p, err := s.Policy()
				require.NoError(t, err, format)
				require.Equal(t, row.want, p, format)
				specs[format] = s.Or(retryconf.Spec{}) // which reads Max as Cap
			}
			for format, s := range specs {
				require.Equal(t, specs["json"], s, format)
			}
		})
	}
}

func TestASpecIsPartOfAServicesOwnConfiguration(t *testing.T) {
	type config struct {
		Addr  string                    `json:"addr" yaml:"addr" toml:"addr"`
		Retry map[string]retryconf.Spec `json:"retry" yaml:"retry" toml:"retry"`
	}
	want := config{Addr: ":80", Retry: map[string]retryconf.Spec{
		"email":  {MaxAttempts: 6, Base: retryconf.Duration(time.Minute)},
		"search": {RetriesEnabled: retryconf.Off},
	}}
	for format, decode := range map[string]func(any) error{
		"yaml": func(v any) error {
			return decodeYAML("addr: :80\nretry:\n  email:\n    max_attempts: 6\n    base: 1m\n  search:\n    retries_enabled: false", v)
		},
		"toml": func(v any) error {
			return decodeTOML("addr = ':80'\n[retry.email]\nmax_attempts = 6\nbase = '1m'\n[retry.search]\nretries_enabled = false", v)
		},
		"json": func(v any) error {
			return decodeJSON(`{"addr": ":80", "retry": {"email": {"max_attempts": 6, "base": "1m"}, "search": {"retries_enabled": false}}}`, v)
		},
	} {
		var got config
		require.NoError(t, decode(&got), format)
		require.Equal(t, want, got, format)
	}
}

func TestWhatIsWrittenReadsBackTheSame(t *testing.T) {
	for format, pair := range map[string]struct {
		marshal func(any) ([]byte, error)
		decode  func(string, any) error
	}{
		"yaml": {yaml.Marshal, decodeYAML},
		"toml": {toml.Marshal, decodeTOML},
		"json": {json.Marshal, decodeJSON},
	} {
		for _, row := range rows {
			t.Run(format+", "+row.name, func(t *testing.T) {
				want, err := retryconf.FromPolicy(row.want)
				require.NoError(t, err)
				outright := want // with fields that do not change a policy here, but must not be lost
				outright.RetriesEnabled = retryconf.On
				outright.Extends = "standard"
				outright.Hedge = retryconf.Hedge{Share: 0.1, MinDelay: 5, MaxDelay: 7, MaxCalls: 8}
				require.NoError(t, outright.Jitter.UnmarshalText([]byte("none")))
				for _, s := range []retryconf.Spec{want, outright} {
					text, err := pair.marshal(s)
					require.NoError(t, err)
					var back retryconf.Spec
					require.NoError(t, pair.decode(string(text), &back), string(text))
					require.Equal(t, s, back, string(text))
				}
			})
		}
	}
}
