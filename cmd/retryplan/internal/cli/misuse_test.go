package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
)

// TestAWrongCommandLine lists command lines that are refused with status 2, on two lines.
func TestAWrongCommandLine(t *testing.T) {
	for _, row := range []struct{ line, err string }{
		{"shwo", `unknown command "shwo" for "retryplan"; did you mean show`},
		{"show --jiter full", `unknown flag: --jiter`},
		{"show preset:standad", `preset "standad" is not one of inline, aggressive, standard, patient, cautious, delivery`},
		{"show preset:", `preset "" is not one of inline, aggressive, standard, patient, cautious, delivery`},
		{"show --base 0", `invalid argument "0" for "--base" flag: retryconf: "0" is not above 0 (leave it out for the default)`},
		{"show --base 5", `invalid argument "5" for "--base" flag: retryconf: "5" has no unit (write it as a string such as "5s")`},
		{"show --factor NaN", `invalid argument "NaN" for "--factor" flag: retryconf: "NaN" is not a number above 0 (leave it out for the default)`},
		{"show --attempts -3", `invalid argument "-3" for "--attempts" flag: retryconf: "-3" is not a whole number of 1 or more, nor "unlimited" (leave it out for the default)`},
		{"show --base 2s --cap 1s", `the flags make a policy that is not valid: retryconf: cap 1s is below base 2s`},
		{"show --deadline soon", `invalid argument "soon" for "--deadline" flag: time: invalid duration "soon"`},
		{"show --mode list", `the flags make a policy that is not valid: retryconf: delays [] is empty, and mode list needs one delay at least`},
		{"show --delays 1s --base 1s --mode linear", `the flags make a policy that is not valid: retryconf: mode linear is set together with delays, which need mode list or none; base 1s is set together with delays`},
		{"show --deadline -1m --clients -1", `--clients -1 is negative`},
		{"lint ./...", "./... is Go source: retryvet -policy finds policies there"},
		{"chain --layers -1", `--layers -1 is negative`},
		{"simulate --rate 5 --capacity 9 --budget-burst -5", `--budget-burst -5 is negative`},
		{"show --inline=2", `invalid argument "2" for "--inline" flag: strconv.ParseBool: parsing "2": invalid syntax`},
		{`show --failure ""`, `invalid argument "" for "--failure" flag: strconv.ParseFloat: parsing "": invalid syntax`},
		{`simulate --rate 5 --capacity 5 --trigger "capacity-cut 1s 3"`, `Trigger.Factor 3 is outside [0,1), which CapacityCut needs`},
		{"show --fail-on terrible", `invalid argument "terrible" for "--fail-on" flag: "terrible" is not one of note, warning, severe`},
		{"show --failure 2", `Failure[0] 2 is outside [0,1]`},
		{"simulate", `Rate 0 is not above 0; Capacity 0 is not above 0`},
		{"simulate --rate 5 --capacity 9 --seed -1", `invalid argument "-1" for "--seed" flag: strconv.ParseUint: parsing "-1": invalid syntax`},
		{`simulate --rate 5 --capacity 5 --trigger "blip 1s"`, `invalid argument "blip 1s" for "--trigger" flag: "blip" is not one of stall, outage, slowdown, capacity_cut, surge, failing`},
		{`simulate --rate 5 --capacity 5 --trigger "stall 3s 3s"`, `invalid argument "stall 3s 3s" for "--trigger" flag: "stall 3s 3s" is not a trigger such as "stall 10s" or "surge 10s 3": kind, length, and the factor of kinds that have one`},
		{"chain --attempts 10 --layers 7", `Layers (1e+07 attempts) multiply to more than 1000000 attempts`},
		{"chain --layers 17 --attempts 1", `Layers (17) are not 1 to 16`},
		{"chain --capacity -3", `Layers[0].Capacity -3 is not above 0`},
		{"chain --timeouts 1s,2s --layers 3", `--timeouts has 2 of them, and there are 3 layers`},
		{"chain policies.json --layers 3", `--layers repeats one policy, and there are 2`},
		{"simulate --rate 5 --capacity 9 --seeds 10001", `Seeds 10001 is outside [0,10000]`},
		{"simulate --rate 5 --capacity 9 --trigger none --band", `--band is about the length of a --trigger, and there is none`},
		{"compare policy.json", `give two policies or more, or a catalog`},
		{"compare policies.json --workers 3", `Rate 0 is not above 0; Capacity 0 is not above 0`},
		{"serve policies.json", `unknown command "policies.json" for "retryplan serve"`},
	} {
		t.Run(row.line, func(t *testing.T) {
			got := run(t, row.line)
			require.Equal(t, ran{Exit: cli.Usage, Err: got.Err}, got)
			first, second, _ := strings.Cut(got.Err, "\n")
			if row.err != "" {
				require.Equal(t, "retryplan: "+row.err, first)
			}
			require.Regexp(t, `^retryplan: run 'retryplan( [a-z]+)? --help' for usage\n$`, second)
		})
	}
}

// TestWhatCannotBeDone lists commands that fail with status 1, on one line.
func TestWhatCannotBeDone(t *testing.T) {
	for _, row := range []struct{ line, stdin, err string }{
		{"show missing.json", "", `open missing.json: no such file or directory`},
		{"serve --addr :8080", "", `web: address ":8080" is not a loopback address with a port, such as 127.0.0.1:8080: the page is for this machine only`},
		{"show email@missing.json", "", `open missing.json: no such file or directory`},
		{"show nobody@policies.json", "", `policies.json: there is no policy "nobody", but email, search`},
		{"show .", "", `read .: is a directory`},
		{"show -", "", `standard input: the document is empty`},
		{"show - -", `{"base": "1s"}`, `standard input: the document is empty`},
		{"show -", `{"base": "1s"`, `standard input: retryconf: document is not valid JSON: unexpected end`},
		{"show -", `{"base": "5", "bose": 1}`, ``},
		{"show -", `{"policies": {"a": {"extends": "b"}}}`, ``},
		{"show -", `{"policies": {}}`, `standard input: the catalog has no policies`},
		{"show -", `{"policies": {"": {"base": "1s"}, "b": {"base": "x"}}}`, `standard input: policies has an entry whose name is "": a policy of a catalog needs a name`},
		{"show a@b@missing.json", "", `open missing.json: no such file or directory`},
		{"show -", `{"policies": 3}`, ``},
		{"show -", `[1]`, ``},
		{"show -", `{"name": "` + strings.Repeat("x", 1<<20) + `"}`, ``},
	} {
		t.Run(row.line+" "+row.stdin[:min(len(row.stdin), 40)], func(t *testing.T) {
			got := runIn(t, t.Context(), cli.Options{Stdin: strings.NewReader(row.stdin)}, row.line)
			require.Equal(t, cli.Failed, got.Exit)
			require.Regexp(t, `^retryplan: [^\n]+\n$`, got.Err)
			if row.err != "" {
				require.Equal(t, "retryplan: "+row.err+"\n", got.Err)
			}
		})
	}
}
