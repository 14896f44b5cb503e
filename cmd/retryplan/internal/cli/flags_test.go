package cli_test

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
)

// TestFlagsChangeAPolicy lists the fields of a policy that each flag replaces.
func TestFlagsChangeAPolicy(t *testing.T) {
	for _, row := range []struct{ name, line, want string }{
		{"a flag alone", "show policy.json --attempts 3", "checkout: 3 attempts, exponential 100ms ×2, cap 10s, full jitter, attempt timeout 2s: 100ms 200ms (0s to 300ms in all)"},
		{"a base keeps the factor", "show search@policies.json --base 10ms", "search: 4 attempts, exponential 10ms ×3, cap 1s, full jitter, attempt timeout 10s: 10ms 30ms 90ms (0s to 130ms in all)"},
		{"a base makes a list exponential, of as many attempts", "show preset:standard --base 1s", "standard: 4 attempts, exponential 1s ×2, cap 1h: 1s 2s 4s (7s in all)"},
		{"a mode makes a list another", "show preset:standard --mode fixed", "standard: 4 attempts, fixed 5s: 5s 5s 5s (15s in all)"},
		{"delays make a list, of its own attempts", "show policy.json --delays 1s,2s --jitter none", "checkout: 3 attempts, list, cap 10s, attempt timeout 2s: 1s 2s (3s in all)"},
		{"another mode has its own factor", "show search@policies.json --mode linear --jitter none", "search: 4 attempts, linear 20ms +20ms, cap 1s, attempt timeout 10s: 20ms 40ms 60ms (120ms in all)"},
		{"the same mode changes nothing", "show search@policies.json --mode exponential", "search: 4 attempts, exponential 20ms ×3, cap 1s, full jitter, attempt timeout 10s: 20ms 60ms 180ms (0s to 260ms in all)"},
		{"the mode of a list changes nothing", "show preset:standard --mode list", "standard: 4 attempts, list: 1m 30m 3h (3h31m in all)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := run(t, row.line)
			require.Equal(t, cli.Done, got.Exit, got.Err)
			require.Equal(t, row.want, headline(got.Out))
		})
	}
}

// flagLine finds the flags that help lists.
var flagLine = regexp.MustCompile(`(?m)^ +(?:-h, )?--([a-z0-9-]+)`)

// values are two values of a flag, and the other flags that both are given with.
type values struct{ first, second, with string }

// TestEveryFlagChangesTheOutput holds that two values of each flag of each command give two outputs.
func TestEveryFlagChangesTheOutput(t *testing.T) {
	join := func(all ...map[string]values) map[string]values {
		joined := map[string]values{}
		for _, m := range all {
			maps.Copy(joined, m)
		}
		return joined
	}
	titled := map[string]values{ // all of it is in the line above the figures
		"attempts": {"3", "4", ""}, "mode": {"fixed", "linear", ""}, "base": {"300ms", "400ms", ""}, "factor": {"3", "4", ""}, "cap": {"150ms", "120ms", ""},
		"delays": {"1s", "2s", ""}, "jitter": {"equal", "full", ""}, "jitter-ratio": {"0.3", "0.4", "--jitter ratio"}, "attempt-timeout": {"2s", "3s", ""},
		"ttl": {"1m", "2m", ""}, "max-hint": {"7s", "8s", ""}, "reset-after": {"50m", "60m", ""},
	}
	setting := map[string]values{
		"inline": {"true", "false", "--base 1m"}, "deadline": {"250ms", "1h", ""}, "clients": {"5000", "2", "--jitter none"}, "duration": {"10ms", "900ms", "--attempt-timeout 500ms"},
	}
	measured := map[string]values{"from": {"price@metrics.txt", "search@metrics.txt", "--over 30s"}, "over": {"30s", "300s", "--from price@metrics.txt"}}
	const back, lost = "--rate 7 --capacity 10 --attempt-timeout 1s --attempts 4 --seeds 2", "--rate 7 --capacity 10 --attempt-timeout 1s --attempts 4 --cap 1h --seeds 2"
	fleet := map[string]values{
		"rate": {"1", "9", ""}, "capacity": {"10", "1000", ""}, "workers": {"1", "200", ""}, "trigger": {"none", "stall 20s", ""}, "failure-rate": {"0", "0.95", "--trigger none"},
		"budget": {"true", "false", ""}, "budget-ratio": {"0.1", "1", "--failure-rate 0.5 --trigger none"}, "budget-burst": {"10", "100000", ""},
		"budget-trickle": {"1h", "10ms", ""}, "shared": {"true", "false", "--budget-burst 1000 --clients 1000"},
		"hedge-delay": {"100ms", "10s", "--attempts 2 --rate 4"}, "hedge-share": {"0.01", "0.5", "--attempts 2 --rate 4.8 --base 10ms"},
		"clients": {"1", "5000", "--budget-burst 100"}, "deadline": {"1h", "2s", "--rate 4"}, "duration": {"10ms", "10s", ""},
		"seeds": {"2", "3", ""}, "seed": {"1", "200", `--trigger "stall 1s" --seeds 12`}, "limit": {"1ns", "1h", ""},
	}
	for _, row := range []struct {
		command, line string
		flags         map[string]values
	}{
		{"show", "--attempts 4", join(titled, setting, measured, map[string]values{"failure": {"0.3", "0.4", ""}, "fail-on": {"none", "note", ""}})},
		{"lint", "policy.json " + lost, join(fleet, measured, map[string]values{
			"attempts": {"5", "6", ""}, "mode": {"fixed", "exponential", "--base 200ms --ttl 500ms"}, "base": {"1s", "2s", "--jitter none"}, "factor": {"1", "4", "--base 200ms --ttl 500ms"},
			"cap": {"200ms", "1h", "--base 200ms --ttl 500ms"}, "delays": {"1s", "2s", "--jitter none"}, "jitter": {"none", "full", ""}, "jitter-ratio": {"0.1", "0.2", "--jitter ratio"},
			"attempt-timeout": {"5ms", "6ms", "--duration 10ms"}, "ttl": {"2ms", "3ms", ""}, "max-hint": {"20s", "2m", "--inline"}, "reset-after": {"1ns", "2ns", ""},
			"inline": {"true", "false", "--base 1m"}, "ignore": {"no-budget", "fleet-lost", ""}, "format": {"text", "github", ""}, "fail-on": {"none", "note", ""},
		})},
		{"simulate", "policy.json " + lost, join(titled, fleet, measured, map[string]values{
			"inline": {"true", "false", "--base 1m"}, "band": {"true", "false", "--rate 2 --capacity 3 --seeds 1"}, "fail-on": {"none", "note", ""},
		})},
		{"chain", lost + " --layers 2 --seeds 1", join(fleet, map[string]values{
			"attempts": {"3", "4", ""}, "mode": {"fixed", "exponential", "--base 100ms --ttl 400ms"}, "base": {"10ms", "1s", "--ttl 2s"}, "factor": {"1", "4", "--base 100ms --ttl 400ms"},
			"cap": {"50ms", "1s", "--base 50ms --ttl 200ms"}, "delays": {"10ms", "1s", "--ttl 2s"}, "jitter": {"none", "full", "--base 1s --ttl 4s"}, "jitter-ratio": {"0.1", "1", "--jitter ratio --base 1s --ttl 4s"},
			"attempt-timeout": {"1s", "2s", ""}, "ttl": {"10ms", "1h", ""},
			"layers": {"2", "3", ""}, "timeouts": {"3s,1s", "4s,1s", ""}, "pass-on": {"true", "false", ""}, "do-not-retry": {"true", "false", ""}, "trust-requests": {"true", "false", ""}, "trigger-at": {"1", "2", "--attempts 2 --rate 2 --base 10ms"},
			"failure": {"0.1", "0.2", ""}, "fail-on": {"none", "note", ""}, "budget-ratio": {"0.1", "1", "--failure 0.5"},
		})},
		{"compare", "policy.json preset:aggressive " + back, join(titled, fleet, measured, map[string]values{
			"failure": {"0.3", "0.4", ""}, "fail-on": {"none", "note", ""},
		})},
		{"serve", "", map[string]values{"addr": {"127.0.0.1:0", "127.0.0.2:0", ""}}},
	} {
		t.Run(row.command, func(t *testing.T) {
			for _, found := range flagLine.FindAllStringSubmatch(run(t, row.command+" --help").Out, -1) {
				name := found[1]
				v, known := row.flags[name]
				require.True(t, known || name == "help", "--%s is not tested", name)
				given := func(value string) ran {
					ctx := t.Context()
					if row.command == "serve" {
						ctx = ended(t)
					}
					if strings.Contains(value, " ") {
						value = ` "` + value + `"`
					} else {
						value = "=" + value
					}
					return runIn(t, ctx, cli.Options{}, fmt.Sprintf("%s %s %s --%s%s", row.command, row.line, v.with, name, value))
				}
				if name == "help" {
					continue
				}
				first, second := given(v.first), given(v.second)
				require.NotEqual(t, first, second, "--%s %s, and %s", name, v.first, v.second)
				require.NotEqual(t, cli.Usage, first.Exit, first.Err)
				require.NotEqual(t, cli.Usage, second.Exit, second.Err)
			}
		})
	}
}
