package retryconf_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

func TestFromEnvironReadsEveryKey(t *testing.T) {
	s, err := retryconf.FromEnviron("RETRY_", []string{
		"PATH=/bin", "=C:=C:\\", "RETRY_NAME=a=b", "RETRY_EXTENDS=standard", "RETRY_MAX_ATTEMPTS=unlimited", "RETRY_MODE=constant", "RETRY_BASE=10s",
		"RETRY_FACTOR=2.5", "RETRY_CAP=1m", "RETRY_MAX=2m", "RETRY_DELAYS=1m, 30m", "RETRY_JITTER=none", "RETRY_JITTER_RATIO=0.5",
		"RETRY_ATTEMPT_TIMEOUT=3s", "RETRY_TTL=1h", "RETRY_MAX_HINT=2h", "RETRY_RESET_AFTER=3h", "RETRY_RETRIES_ENABLED=false", "OTHER_RETRY_BASE=bad",
	})
	require.NoError(t, err)
	require.Equal(t, retryconf.Spec{Name: "a=b", Extends: "standard", MaxAttempts: retry.Unlimited, Mode: 3, Base: seconds(10), Factor: 2.5,
		Cap: seconds(60), Max: seconds(120), Delays: []retryconf.Delay{retryconf.Delay(minute), retryconf.Delay(30 * minute)}, Jitter: retryconf.NoJitter,
		JitterRatio: 0.5, AttemptTimeout: seconds(3), TTL: seconds(3600), MaxHint: seconds(7200), ResetAfter: seconds(10800), RetriesEnabled: retryconf.Off}, s)
}

func TestFromEnvironRefusesAllThatIsWrong(t *testing.T) {
	for _, row := range []struct {
		name    string
		environ []string
		want    string
	}{
		{"a number for a duration", []string{"R_BASE=10"}, `R_BASE "10" has no unit (write it as a string such as "10s")`},
		{"an empty value", []string{"R_BASE="}, `R_BASE "" is not a duration such as "30s" or "1h30m"`},
		{"an empty list", []string{"R_DELAYS="}, `R_DELAYS "" is not a duration such as "30s" or "1h30m"`},
		{"an explicit 0", []string{"R_MAX_ATTEMPTS=0"}, `R_MAX_ATTEMPTS "0" is not a whole number of 1 or more, nor "unlimited" (leave it out for the default)`},
		{"an unknown variable", []string{"R_BSE=1s"}, `R_BSE is not a known key (did you mean "BASE"?)`},
		{"the prefix alone", []string{"R_=1"}, "R_ is not a known key"},
		{"a variable without a value", []string{"R_TTL"}, `R_TTL "" is not a duration such as "30s" or "1h30m"`},
		{"two at once", []string{"R_TTL=x", "R_MODE=y"}, `R_TTL "x" is not a duration such as "30s" or "1h30m"; R_MODE "y" is not one of "exponential", "linear", "fixed" and "list"`},
		{"a name with a line break", []string{"R_A\nB=1"}, `"R_A\nB" is not a known key`},
	} {
		t.Run(row.name+" is refused", func(t *testing.T) {
			_, err := retryconf.FromEnviron("R_", row.environ)
			require.EqualError(t, err, "retryconf: "+row.want)
			requireFields(t, err)
		})
	}
}

func TestFromEnvironBoundsWhatItShows(t *testing.T) {
	_, err := retryconf.FromEnviron("R_", []string{"R_" + strings.Repeat("A", 1<<20) + "=1"})
	require.Error(t, err)
	require.Less(t, len(err.Error()), 200)
}

func TestFromEnvironWithoutVariablesIsTheZeroSpec(t *testing.T) {
	s, err := retryconf.FromEnviron("RETRY_", nil)
	require.NoError(t, err)
	require.Zero(t, s)
}
