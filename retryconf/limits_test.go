package retryconf_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

func TestEachLimitRefusesWithWhatIsAllowed(t *testing.T) {
	type limits = retryconf.Limits
	for _, row := range []struct {
		name, document string
		limits         limits
		want           string
	}{
		{"attempts above", `{"max_attempts": 51}`, retryconf.ServiceLimits(), "max_attempts 51 is outside 1 to 50"},
		{"attempts by default", `{}`, limits{MaxAttempts: 7}, "max_attempts 8 (the default) is outside 1 to 7"},
		{"attempts of a list by default", `{"delays": ["1s", "1s"]}`, limits{MaxAttempts: 2}, "max_attempts 3 (the default) is outside 1 to 2"},
		{"attempts of a preset", `{"extends": "cautious"}`, limits{MaxAttempts: 5}, "max_attempts 6 (the default) is outside 1 to 5"},
		{"unlimited attempts", `{"max_attempts": "unlimited"}`, retryconf.ServiceLimits(), `max_attempts "unlimited" is outside 1 to 50`},
		{"a factor above", `{"factor": 100.5}`, retryconf.ServiceLimits(), "factor 100.5 is outside 1 to 100"},
		{"a factor below", `{"mode": "linear", "factor": 0.5}`, retryconf.ServiceLimits(), "factor 0.5 is outside 1 to 100"},
		{"a factor by default", `{}`, limits{MaxFactor: 1.5}, "factor 2 (the default) is outside 0 to 1.5"},
		{"a linear factor by default", `{"mode": "linear"}`, limits{MinFactor: 2}, "factor 1 (the default) is outside 2 to +Inf"},
		{"a wait by the default cap", `{"base": "20m"}`, limits{MaxDelay: 30 * minute}, `cap "1h" is the longest wait, above the 30m allowed`},
		{"a wait that a base makes", `{"base": "2h", "mode": "fixed"}`, limits{MaxDelay: hour}, `base "2h" is the longest wait, above the 1h allowed`},
		{"a wait of a list", `{"delays": ["1s", "2h", "1s"]}`, limits{MaxDelay: hour}, `delays "2h" is the longest wait, above the 1h allowed`},
		{"a wait with jitter", `{"base": "50m", "mode": "fixed", "cap": "2h", "jitter": "ratio", "jitter_ratio": 0.5}`, limits{MaxDelay: hour},
			`cap "1h15m" is the longest wait, above the 1h allowed`},
		{"a wait of unlimited attempts", `{"max_attempts": "unlimited", "cap": "2h"}`, limits{MaxDelay: hour}, `cap "2h" is the longest wait, above the 1h allowed`},
		{"waits in all", `{}`, limits{MaxTotalWait: 10 * minute}, "max_attempts 8 (the default) makes waits of up to 10m35s in all, above the 10m allowed"},
		{"waits of unlimited attempts", `{"max_attempts": "unlimited"}`, limits{MaxTotalWait: hour},
			`max_attempts "unlimited" makes endless waits, above the 1h allowed`},
		{"a name above", `{"name": "` + strings.Repeat("n", 51) + `"}`, limits{MaxName: 50}, `name "` + strings.Repeat("n", 40) + `"... has 51 bytes, above the 50 allowed`},
		{"a name that is just shown whole", `{"name": "` + strings.Repeat("n", 40) + `"}`, limits{MaxName: 1}, `name "` + strings.Repeat("n", 40) + `" has 40 bytes, above the 1 allowed`},
		{"a name above the default", `{"name": "` + strings.Repeat("n", 60_000) + `"}`, limits{}, `name "` + strings.Repeat("n", 40) + `"... has 60000 bytes, above the 128 allowed`},
		{"a short name above, with an escape sequence", `{"name": "\u001b[1m"}`, limits{MaxName: 3}, `name "\x1b[1m" has characters that are not printable, or is not UTF-8`},
		{"a name that ends a log line", `{"name": "a\nb"}`, limits{}, `name "a\nb" has characters that are not printable, or is not UTF-8`},
		{"a name that is displayed backwards", `{"name": "a\u202eb"}`, limits{}, `name "a\u202eb" has characters that are not printable, or is not UTF-8`},
		{"unlimited attempts, once", `{"max_attempts": "unlimited"}`, limits{MaxAttempts: 50, MaxTotalWait: hour},
			`max_attempts "unlimited" is outside 1 to 50 and makes endless waits, above the 1h allowed`},
		{"a TTL above", `{"ttl": "2h"}`, limits{MaxTTL: hour}, `ttl "2h" is above 1h`},
		{"no TTL", `{}`, limits{MaxTTL: hour}, `ttl "unlimited" (the default) is above 1h`},
		{"an attempt timeout above", `{"attempt_timeout": "2m"}`, limits{MaxAttemptTimeout: minute}, `attempt_timeout "2m" is above 1m`},
		{"no attempt timeout", `{}`, limits{MaxAttemptTimeout: minute}, `attempt_timeout "unlimited" (the default) is above 1m`},
		{"a hint above", `{"max_hint": "2000000h"}`, limits{MaxHint: minute}, `max_hint "2000000h" is above 1m`},
		{"a hint by default", `{}`, limits{MaxHint: minute}, `max_hint "1h" (the default) is above 1m`},
		{"a reset of attempts that are limited", `{"reset_after": "1ns"}`, retryconf.ServiceLimits(), `reset_after "1ns" allows any number of attempts, and attempts are limited`},
		{"a reset of waits that are limited", `{"reset_after": "1h"}`, limits{MaxTotalWait: hour}, `reset_after "1h" allows any number of attempts, and attempts are limited`},
		{"what is above a limit of 1ns", `{"ttl": "1s", "attempt_timeout": "1s"}`, limits{MaxDelay: 1, MaxTotalWait: 1, MaxHint: 1, MaxTTL: 1, MaxAttemptTimeout: 1},
			`max_attempts 8 (the default) makes waits of up to 10m35s in all, above the 1ns allowed; cap "5m20s" is the longest wait, above the 1ns allowed; ` +
				`max_hint "1h" (the default) is above 1ns; ttl "1s" is above 1ns; attempt_timeout "1s" is above 1ns`},
		{"two attempts and a reset above one attempt", `{"max_attempts": 2, "reset_after": "1ns"}`, limits{MaxAttempts: 1},
			`max_attempts 2 is outside 1 to 1; reset_after "1ns" allows any number of attempts, and attempts are limited`},
		{"a reset above a wait of 1ns", `{"delays": ["0s"], "reset_after": "1ns"}`, limits{MaxTotalWait: 1},
			`reset_after "1ns" allows any number of attempts, and attempts are limited`},
		{"every violation at once", `{"max_attempts": 1000, "factor": 1000, "attempt_timeout": "1h"}`,
			limits{MaxAttempts: 50, MinFactor: 1, MaxFactor: 100, MaxDelay: minute, MaxTotalWait: hour, MaxTTL: hour, MaxAttemptTimeout: minute},
			"max_attempts 1000 is outside 1 to 50 and makes waits of up to 998h0m5s in all, above the 1h allowed; " +
				`factor 1000 is outside 1 to 100; cap "1h" is the longest wait, above the 1m allowed; ttl "unlimited" (the default) is above 1h; ` +
				`attempt_timeout "1h" is above 1m`},
		{"a bad field beside a violation", `{"max_attempts": 1000, "ttl": 5}`, retryconf.ServiceLimits(),
			`ttl 5 is a number (write it as a string with its unit, such as "30s"); max_attempts 1000 is outside 1 to 50`},
		{"a conflict beside a violation", `{"max_attempts": 1000, "base": "5s", "cap": "1s"}`, retryconf.ServiceLimits(),
			`cap "1s" is below base 5s; max_attempts 1000 is outside 1 to 50`},
	} {
		t.Run(row.name+" is refused", func(t *testing.T) {
			s, err := retryconf.Parse([]byte(row.document), retryconf.Spec{}, row.limits)
			require.EqualError(t, err, "retryconf: "+row.want)
			require.Zero(t, s)
			requireFields(t, err)
		})
	}
}

func TestWhatIsAtALimitIsAllowed(t *testing.T) {
	type limits = retryconf.Limits
	for _, row := range []struct {
		name, document string
		limits         limits
	}{
		{"nothing is bounded by no limits", `{"max_attempts": "unlimited", "factor": 1e300, "cap": "2000000h"}`, limits{}},
		{"the most attempts", `{"max_attempts": 50}`, retryconf.ServiceLimits()},
		{"the longest name", `{"name": "abc"}`, limits{MaxName: 3}},
		{"the longest name by default", `{"name": "` + strings.Repeat("n", 128) + `"}`, limits{}},
		{"64 KiB", "{}" + strings.Repeat(" ", 64<<10-2), limits{}},
		{"a duration of 64 bytes", `{"base": "` + strings.Repeat("0", 62) + `1s"}`, limits{}},
		{"a factor of 64 bytes", `{"factor": 2.` + strings.Repeat("0", 62) + `}`, limits{}},
		{"a name without a limit", `{"name": "` + strings.Repeat("n", 60_000) + `"}`, limits{MaxName: -1}},
		{"one attempt", `{"max_attempts": 1}`, limits{MaxAttempts: 1, MaxDelay: 1, MaxTotalWait: 1}},
		{"the least and the most factor", `{"factor": 1}`, retryconf.ServiceLimits()},
		{"the most factor", `{"factor": 100}`, retryconf.ServiceLimits()},
		{"a fixed mode has no factor", `{"mode": "fixed", "factor": 1000}`, retryconf.ServiceLimits()},
		{"a list has no factor", `{"extends": "standard"}`, limits{MaxFactor: 0.1}},
		{"the delivery request", `{"max_attempts": 12, "base": "10s", "factor": 2, "max": "30m"}`, limits{MaxAttempts: 12, MaxFactor: 2, MaxDelay: 30 * minute, MaxTotalWait: 2*hour + 12*minute + 30*sec}},
		{"a delay that is never waited for", `{"max_attempts": 2, "delays": ["1s", "9h"]}`, limits{MaxDelay: sec}},
		{"a cap that the attempts never reach", `{"max_attempts": 3}`, limits{MaxDelay: 10 * sec}},
		{"a disabled policy waits for nothing", `{"retries_enabled": false, "base": "9h"}`, limits{MaxDelay: sec, MaxTotalWait: sec, MaxAttempts: 1}},
		{"a reset where attempts are not limited", `{"reset_after": "1s"}`, limits{MaxDelay: hour, MaxHint: hour}},
		{"a reset without a retry", `{"reset_after": "1s", "retries_enabled": false}`, retryconf.ServiceLimits()},
		{"times at their limits", `{"ttl": "1h", "attempt_timeout": "1m", "max_hint": "1m"}`, limits{MaxTTL: hour, MaxAttemptTimeout: minute, MaxHint: minute}},
	} {
		t.Run(row.name+" is allowed", func(t *testing.T) {
			_, err := retryconf.Parse([]byte(row.document), retryconf.Spec{}, row.limits)
			require.NoError(t, err)
		})
	}
}

func TestLimitsDoNotValidateThePolicyItself(t *testing.T) {
	require.NoError(t, retryconf.ServiceLimits().Check(retry.Policy{TTL: -1}))
	require.Equal(t, retryconf.Limits{MaxAttempts: 50, MinFactor: 1, MaxFactor: 100, MaxHedgeCalls: 1}, retryconf.ServiceLimits())
}

// A document that cannot be read has only one fault: its other fields are unknown.
func TestADocumentThatCannotBeReadHasOneFault(t *testing.T) {
	for _, text := range []string{``, `[]`, `{"max_attempts": 4`, `"patient"`, "\xff"} {
		_, err := retryconf.Parse([]byte(text), retryconf.Spec{}, retryconf.Limits{MaxTTL: 1, MaxAttemptTimeout: 1, MaxAttempts: 1})
		require.Len(t, faultsOf(err), 1, text)
	}
}
