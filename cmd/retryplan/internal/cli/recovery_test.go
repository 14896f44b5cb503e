package cli_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
)

// TestRecovery lists what is reported of a fleet after its triggers: in words, in JSON and by the guard.
func TestRecovery(t *testing.T) {
	const storm = `policy.json --attempt-timeout 1s --rate 70 --workers 1 --service 10ms --fail-on severe --duration 1m `
	for _, row := range []struct {
		line string
		want string // after the word recovery
		json string
		exit int
	}{
		{`--attempts 4 --base 100ms --jitter full --rate 1 --service 10ms --trigger "outage 1ms at 60s" --duration 4m --fail-on severe`, "0s after the trigger's end", "true", cli.Done},
		{storm + `--trigger "stall 5s at 20s"`, "never in the 35s after the trigger's end", "false", cli.Failed},
		{storm + `--trigger "stall 21s at 20s"`, "not known: the last retries of what the trigger hit come later; give --duration 1m6s", "null", cli.Done},
		{storm + `--trigger "stall 5s at 2m"`, "not known: the last retries of what the trigger hit come later; give --duration 2m30s", "null", cli.Done},
		{storm + `--trigger "stall 2s at 1s" --trigger "stall 2562047h at 2562047h"`, "not known: the trigger has no end", "null", cli.Done},
		{storm, "", "null", cli.Done},
		// Well for 20 s, and dead for good once the retries after 1m come: 1m 30m 3h.
		{`preset:standard --attempt-timeout 1s --rate 70 --workers 1 --service 10ms --trigger "stall 10s at 60s" --duration 10m --fail-on severe`, "never in the 8m50s after the trigger's end", "false", cli.Failed},
		{`preset:standard --attempt-timeout 1s --rate 70 --workers 1 --service 10ms --trigger "stall 10s at 60s" --duration 2m --fail-on severe`, "not known: the last retries of what the trigger hit come later; give --duration 3h32m34s", "null", cli.Done},
		// Without --duration the simulation is long enough.
		{`--attempts 2 --base 5m --rate 1 --trigger "outage 1s at 60s" --fail-on severe`, "2s after the trigger's end", "true", cli.Done},
	} {
		got := run(t, "simulate "+row.line)
		require.Equal(t, row.exit, got.Exit, got.Err)
		if row.want == "" {
			require.NotContains(t, got.Out, "\nrecovery ")
		} else {
			require.Regexp(t, "\nrecovery +"+row.want+"\n", unwrapped(got.Out))
		}
		got = run(t, "simulate --json "+row.line)
		require.Equal(t, row.exit, got.Exit, got.Err)
		var all struct {
			Policies []struct {
				Result struct{ Recovered json.RawMessage }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(got.Out), &all))
		require.Equal(t, row.json, string(all.Policies[0].Result.Recovered), row.line)
	}
}
