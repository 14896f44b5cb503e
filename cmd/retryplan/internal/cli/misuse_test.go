package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
)

// TestAWrongCommandLine tells what is refused with status 2, on two lines.
func TestAWrongCommandLine(t *testing.T) {
	for _, row := range []struct{ line, err string }{
		{"shwo", `unknown command "shwo"; did you mean show?`},
		{"show --jiter full", `unknown flag: --jiter`},
		{"show --preset standad", `preset "standad" is not one of aggressive, standard, patient, cautious, delivery`},
		{"show preset:", `preset "" is not one of aggressive, standard, patient, cautious, delivery`},
		{"show policy.json --preset standard", `--preset standard and policy.json are two policies; give one, or compare them`},
		{"show --base 0", `invalid argument "0" for "--base" flag: retryconf: "0" is not above 0; leave it out for the default`},
		{"show --base 5", `invalid argument "5" for "--base" flag: retryconf: "5" has no unit; write it as a string such as "5s"`},
		{"show --factor NaN", `invalid argument "NaN" for "--factor" flag: retryconf: "NaN" is not a number above 0; leave it out for the default`},
		{"show --attempts -3", `invalid argument "-3" for "--attempts" flag: retryconf: "-3" is not a whole number of 1 or more, nor "unlimited"; leave it out for the default`},
		{"show --base 2s --cap 1s", `the flags make a policy that is not valid: retry: Policy.Cap 1s is below Base 2s`},
		{"show --deadline soon", `invalid argument "soon" for "--deadline" flag: "soon" is no duration such as 30s, 1m30s or 250ms`},
		{"show --plot out.gif", ``},
		{"show --fail-on terrible", `invalid argument "terrible" for "--fail-on" flag: "terrible" is not one of none, note, warning, severe`},
		{"show - -", `standard input can be read once`},
		{"plan --failure 2", `--failure 2 is outside [0,1]`},
		{"plan --failure NaN --horizon -4", `--failure NaN is outside [0,1]; --horizon -4 is outside [0,1000]`},
		{"plan --horizon 99999999999999999999", `invalid argument "99999999999999999999" for "--horizon" flag: strconv.ParseInt: parsing "99999999999999999999": value out of range`},
		{"simulate", `give one of --rate, --closed and --at-once: when do runs begin?`},
		{"simulate --rate 5 --closed", `give one of --rate, --closed and --at-once: when do runs begin?`},
		{"simulate --rate 5 --rows -1", `--rows -1 is below 0`},
		{"simulate --rate Inf", `--rate +Inf is not a number above 0`},
		{"simulate --rate 5 --clients -4", `--clients -4 is negative`},
		{`simulate --rate 5 --trigger "stall 1s"`, `invalid argument "stall 1s" for "--trigger" flag: "stall 1s" is no trigger such as "stall 60s 10s" (kind, from, for) or "surge 60s 10s 3" (kind, from, for, factor)`},
		{`simulate --rate 5 --trigger "blip 1s 1s"`, `invalid argument "blip 1s 1s" for "--trigger" flag: "blip" is not one of stall, outage, slowdown, capacity_cut, surge, failing`},
		{`simulate --rate 5 --trigger "stall 1s 1s" --trigger "stall -1s 1s"`, `--trigger 2: From -1s is negative`},
		{"simulate --rate 5 --shed all", `--shed "all" is not one of nothing, expired, hopeless`},
		{"simulate --rate 5 --duration -1s", ``},
		{"simulate --rate 5 --duration 9000h --step 1ns", ``},
		{"simulate --rate 1e308", ``},
		{"certify", `--rate is required: a fleet is --rate runs a second against a backend of --capacity attempts a second`},
		{"certify --rate 5", `--capacity is required: a fleet is --rate runs a second against a backend of --capacity attempts a second`},
		{"certify --rate NaN --capacity 5", `--rate NaN is not a finite number`},
		{`certify --rate 5 --capacity 5 --trigger "outage 3s"`, `--trigger: Kind outage is one that is simulated, but not certified`},
		{`certify --rate 5 --capacity 5 --trigger "stall 3s 3s 3s"`, `invalid argument "stall 3s 3s 3s" for "--trigger" flag: "stall 3s 3s 3s" is no trigger such as "stall 10s" (kind, for) or "surge 10s 3" (kind, for, factor)`},
		{"compare", `requires at least 1 arg(s), only received 0`},
		{"compare policy.json", `policy.json is one policy: there is nothing to compare it with`},
		{"compare policies.json --workers 3", `--rate is required: a fleet is --rate runs a second against a backend of --capacity attempts a second`},
		{"solve", `nothing is required: give --success, --p99, --worst-case, --load, --outage or a fleet`},
		{"solve policy.json", `unknown command "policy.json" for "retryplan solve"`},
		{"solve --clients 3 --success 0.9", `--rate is required: a fleet is --rate runs a second against a backend of --capacity attempts a second`},
		{"serve policies.json", `the page opens with one policy; say which: email@policies.json`},
		{"serve a b", `accepts at most 1 arg(s), received 2`},
	} {
		t.Run(row.line, func(t *testing.T) {
			got := run(t, row.line)
			require.Equal(t, ran{Exit: cli.Usage, Err: got.Err}, got)
			first, second, _ := strings.Cut(got.Err, "\n")
			if row.err != "" {
				require.Equal(t, "retryplan: "+row.err, first)
			}
			require.Regexp(t, `^retryplan: 'retryplan( [a-z]+)? --help' tells more\n$`, second)
		})
	}
}

// TestWhatCannotBeDone tells what fails with status 1, on one line.
func TestWhatCannotBeDone(t *testing.T) {
	for _, row := range []struct{ line, stdin, err string }{
		{"show missing.json", "", `open missing.json: no such file or directory`},
		{"show email@missing.json", "", `open missing.json: no such file or directory`},
		{"show nobody@policies.json", "", `policies.json: there is no policy "nobody", but email, search`},
		{"show .", "", `read .: is a directory`},
		{"show -", "", `standard input: the document is empty`},
		{"show -", `{"base": "1s"`, `standard input: retryconf: the document is not valid JSON: it ends too early`},
		{"show -", `{"base": "5", "bose": 1}`, ``},
		{"show -", `{"policies": {"a": {"extends": "b"}}}`, ``},
		{"show -", `{"policies": {}}`, `standard input: the catalog has no policies`},
		{"show -", `{"policies": 3}`, ``},
		{"show -", `[1]`, ``},
		{"show -", `{"name": "` + strings.Repeat("x", 1<<20) + `"}`, ``},
		{"show policy.json --plot nowhere/out.svg", "", ``},
	} {
		t.Run(row.line+" "+row.stdin[:min(len(row.stdin), 40)], func(t *testing.T) {
			got := runIn(t, t.Context(), cli.Config{Stdin: strings.NewReader(row.stdin)}, row.line)
			require.Equal(t, cli.Failed, got.Exit)
			require.Regexp(t, `^retryplan: [^\n]+\n$`, got.Err)
			if row.err != "" {
				require.Equal(t, "retryplan: "+row.err+"\n", got.Err)
			}
		})
	}
}
