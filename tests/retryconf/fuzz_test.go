package retryconf_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

func FuzzLoad(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"defaults":{"jitter":"full"},"policies":{"search":{"extends":"standard","retries_enabled":true}}}`,
		`{"policies":{"invoice-email":{"extends":"webhook","jitter":"none"},"webhook":{"delays":["1s"],"name":"w"}}}`,
		`{"policies":{"search":{"extends":"webhook"},"webhook":{"extends":"search"}}}`, `{"policies":{"invoice-email":{"jitter":"ratio","jitter_ratio":0.5}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := defined()
		before := c.All()
		if err := load(c, string(data)); err != nil {
			require.NotContains(t, err.Error(), "\n")
			require.NotContains(t, err.Error(), "\r")
			require.Equal(t, before, c.All())
			return
		}
		for _, e := range c.All() {
			require.NoError(t, e.Policy.Validate())
		}
		requireWritesBack(t, c)
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"max_attempts": 12, "base": "10s", "factor": 2, "max": "30m"}`, `{"extends":"standard","jitter":"full"}`,
		`{"delays":["1s","0s"],"name":"n"}`, `{"max_attempts":"unlimited","retries_enabled":false}`, `{"mode":"linear","factor":1.5,"jitter":"ratio","jitter_ratio":1}`,
		`{"base":5,"base":null}`, `[[[[`, `{"attempt_timeout":"1s","ttl":"2s","max_hint":"1h","reset_after":"1m"}`,
	} {
		f.Add([]byte(seed))
	}
	limits := retryconf.Limits{MaxAttempts: 50, MinFactor: 1, MaxFactor: 100, MaxDelay: 3 * hour, MaxTotalWait: 100 * hour}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := retryconf.Parse(data, retryconf.Spec{}, limits)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			require.NotContains(t, err.Error(), "\r")
			require.LessOrEqual(t, len(err.Error()), 500+200*min(len(data), 1000))
			require.Zero(t, s)
			return
		}
		p, err := s.Policy()
		require.NoError(t, err)
		require.NoError(t, p.Validate())
		require.NoError(t, limits.Check(p))
		text, err := json.Marshal(s)
		require.NoError(t, err)
		if len(text) > 64<<10 {
			return
		}
		again, err := retryconf.Parse(text, retryconf.Spec{}, limits)
		require.NoError(t, err)
		require.Equal(t, s, again)
	})
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

func FuzzRoundTrip(f *testing.F) {
	f.Add("", 0, uint8(0), int64(0), 0.0, int64(0), uint8(0), 0.0, int64(0), int64(0), int64(0), int64(0), false, []byte(nil))
	f.Add("n", 12, uint8(1), int64(10*sec), 2.0, int64(30*minute), uint8(3), 0.5, int64(sec), int64(hour), int64(1), int64(2), true, []byte(nil))
	f.Add("l", -1, uint8(4), int64(0), 0.0, int64(hour), uint8(1), 0.0, int64(0), int64(0), int64(0), int64(0), false, []byte{0, 1, 200, 7})
	f.Fuzz(func(t *testing.T, name string, attempts int, mode uint8, base int64, factor float64, most int64, jitter uint8, ratio float64,
		timeout, ttl, hint, reset int64, disabled bool, delays []byte) {
		p := retry.Policy{Name: name, MaxAttempts: attempts, AttemptTimeout: time.Duration(timeout), TTL: time.Duration(ttl),
			MaxHint: time.Duration(hint), ResetAfter: time.Duration(reset), Disabled: disabled,
			Backoff: retry.Backoff{Mode: retry.Mode(mode), Base: time.Duration(base), Factor: factor, Cap: time.Duration(most),
				Jitter: retry.JitterMode(jitter), JitterRatio: ratio}}
		for i, b := range delays[:min(len(delays), 1000)] {
			p.Delays = append(p.Delays, time.Duration(b)*time.Duration(i*i*1_234_567))
		}
		if p.Factor == 0 { // minus zero has a row in TestAPolicyComesBackTheSame
			p.Factor = 0
		}
		if p.JitterRatio == 0 {
			p.JitterRatio = 0
		}
		unprintable := strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
		if p.Validate() != nil || len(name) > 1000 {
			return
		}
		if !utf8.ValidString(name) || unprintable {
			_, err := retryconf.FromPolicy(p)
			require.ErrorContains(t, err, "not printable, or is not UTF-8")
			return
		}
		requireRoundTrip(t, p)
	})
}
