package cli_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
)

// TestFlagsChangeAPolicy lists what each flag replaces in a policy.
func TestFlagsChangeAPolicy(t *testing.T) {
	for _, row := range []struct{ name, line, want string }{
		{"a flag alone", "show policy.json --attempts 3", "checkout: 3 attempts, exponential 100ms ×2, cap 10s, full jitter, attempt timeout 2s: 100ms 200ms (0s to 300ms in all)"},
		{"a base keeps the factor", "show search@policies.json --base 10ms", "search: 4 attempts, exponential 10ms ×3, cap 1s, full jitter, attempt timeout 10s: 10ms 30ms 90ms (0s to 130ms in all)"},
		{"a base makes a list exponential, of as many attempts", "show --preset standard --base 1s", "standard: 4 attempts, exponential 1s ×2, cap 1h: 1s 2s 4s (7s in all)"},
		{"a mode makes a list another", "show --preset standard --mode fixed", "standard: 4 attempts, fixed 5s: 5s 5s 5s (15s in all)"},
		{"delays make a list, of its own attempts", "show policy.json --delays 1s,2s --jitter none", "checkout: 3 attempts, list, cap 10s, attempt timeout 2s: 1s 2s (3s in all)"},
		{"another mode has its own factor", "show search@policies.json --mode linear --jitter none", "search: 4 attempts, linear 20ms +20ms, cap 1s, attempt timeout 10s: 20ms 40ms 60ms (120ms in all)"},
		{"the same mode changes nothing", "show search@policies.json --mode exponential", "search: 4 attempts, exponential 20ms ×3, cap 1s, full jitter, attempt timeout 10s: 20ms 60ms 180ms (0s to 260ms in all)"},
		{"the mode of a list changes nothing", "show --preset standard --mode list", "standard: 4 attempts, list: 1m 30m 3h (3h31m in all)"},
		{"all policies of a catalog change", "lint policies.json --ttl 10h --json", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := run(t, row.line)
			if row.want == "" {
				require.Equal(t, 2, strings.Count(got.Out, `"ttl":"10h0m0s"`), got.Out)
				return
			}
			require.Equal(t, cli.Done, got.Exit, got.Err)
			require.Equal(t, row.want, headline(got.Out))
		})
	}
}

// flagLine finds the flags that help lists.
var flagLine = regexp.MustCompile(`(?m)^ +(?:-h, )?--([a-z0-9-]+)`)

// TestEveryFlagIsRead holds that each flag of each command changes what is printed, or is refused with a reason of its
// own.
func TestEveryFlagIsRead(t *testing.T) {
	policy := map[string]string{
		"attempts": "3", "mode": "fixed", "base": "300ms", "factor": "3", "cap": "150ms", "delays": "1s,5s", "jitter": "equal", "jitter-ratio": "0.4 --jitter ratio",
		"attempt-timeout": "7ms", "ttl": "150ms", "max-hint": "7s", "reset-after": "50ms", "preset": "aggressive",
	}
	setting := map[string]string{"inline": "", "deadline": "250ms", "clients": "5000", "duration": `"uniform 1s 5s"`}
	guard := map[string]string{"fail-on": "note"}
	picture := map[string]string{"plot": "none.gif"}
	measured := map[string]string{"from": "price@metrics.txt", "over": "1s", "calls": "x", "errors": "x", "took": "x"}
	budget := map[string]string{"budget": "", "budget-ratio": "0.5 --budget-initial -1", "budget-burst": "50 --budget-initial 50", "budget-initial": "7", "budget-trickle": "100ms", "shared": "--budget"}
	join := func(all ...map[string]string) map[string]string {
		joined := map[string]string{"help": ""}
		for _, m := range all {
			for k, v := range m {
				joined[k] = v
			}
		}
		return joined
	}
	counted := map[string]string{"seeds": "4", "seed": "2", "limit": "1ns"}
	hedges := map[string]string{"hedge-delay": "50ms", "hedge-share": "0.05"}
	for _, row := range []struct {
		command, line string
		flags         map[string]string
	}{
		{"show", "", join(policy, setting, guard, picture, measured, map[string]string{"failure": "0.3"})},
		{"show", "--failure 0.5", join(policy, setting, guard, picture, measured, map[string]string{"failure": "0.3"})},
		{"lint", "policy.json --fail-on none --attempt-timeout 1s --rate 20 --capacity 100 --seeds 2", join(policy, setting, measured, budget, hedges, counted, map[string]string{
			"fail-on": "note", "jitter": "none", "clients": "5000 --jitter none", "mode": "fixed --ttl 200ms", "base": "3m", "factor": "30 --ttl 200ms",
			"cap": "50ms --ttl 200ms", "max-hint": "2m --inline",
			"reset-after": "1ns", "attempt-timeout": "5ms --duration 10ms", "format": "github", "config": "missing.yaml",
			"rate": "60", "capacity": "30", "workers": "200", "failure-rate": "0.8", "trigger": `"stall 10m"`, "hedge-share": "0.9", "seeds": "-1", "seed": "-1",
		})},
		{"simulate", "--attempt-timeout 1s --rate 70 --capacity 100 --base 100ms --seeds 2", join(policy, guard, measured, budget, picture, hedges, counted, map[string]string{
			"band": "", "config": "missing.yaml", "rate": "60", "capacity": "90", "workers": "200", "clients": "10000 --budget", "deadline": "500ms", "trigger": `"surge 10s 2"`,
			"failure-rate": "0.2", "inline": "--base 1m", "duration": `"uniform 1s 5s"`,
		})},
		{"chain", "--attempt-timeout 1s --base 100ms --layers 2 --rate 1 --capacity 100 --seeds 1", join(policy, guard, budget, picture, counted, map[string]string{
			"fail-on": "any", "jitter-ratio": "2", "reset-after": "1m", "factor": "3 --ttl 2s --pass-on", "cap": "50ms --ttl 2600ms", "jitter": "full --ttl 2600ms", "base": "1s --ttl 2s",
			"budget-ratio": "0.5 --failure 0.5", "budget-trickle": "1s", "attempt-timeout": "1500ms", "max-hint": "-1s", "mode": "fixed --ttl 2600ms",
			"layers": "3", "timeouts": "3s,1s", "pass-on": "", "do-not-retry": "", "trust-requests": "", "trigger-at": "3", "deadline": "1500ms", "failure": "0.3", "rate": "30", "capacity": "90",
			"workers": "200", "clients": "7 --budget", "trigger": `"surge 10s 2"`,
		})},
		{"compare", "policy.json preset:aggressive --attempt-timeout 1s --rate 70 --capacity 100 --seeds 1", join(policy, setting, guard, measured, picture, budget, hedges, counted, map[string]string{
			"failure": "0.3", "rate": "60", "capacity": "90", "workers": "200", "trigger": `"surge 10s 2"`, "failure-rate": "0.2",
		})},
		{"serve", "", map[string]string{"help": "", "addr": "127.0.0.1:9"}},
	} {
		t.Run(row.command, func(t *testing.T) {
			ctx := t.Context()
			if row.command == "serve" {
				ctx = ended(t)
			}
			plain := runIn(t, ctx, cli.Options{}, row.command+" "+row.line)
			require.Equal(t, cli.Done, plain.Exit, plain.Err)
			help := run(t, row.command+" --help")
			for _, found := range flagLine.FindAllStringSubmatch(help.Out, -1) {
				name := found[1]
				value, known := row.flags[name]
				if name == "json" {
					value, known = "", true
				}
				if row.command == "compare" && name == "preset" {
					continue
				}
				require.True(t, known, "--%s is not tested", name)
				line := row.command + " " + row.line + " --" + name + " " + value
				got := runIn(t, ctx, cli.Options{}, line)
				require.NotEqual(t, plain, got, line)
				if got.Exit == cli.Usage {
					require.Contains(t, strings.ReplaceAll(strings.ToLower(got.Err), "_", "-"), name, line)
				}
			}
		})
	}
}
