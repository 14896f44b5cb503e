package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
)

// TestJSONAgreesWithTheTable holds that the JSON and the table state the same figures.
func TestJSONAgreesWithTheTable(t *testing.T) {
	type result struct {
		Runs, Attempts  int
		RecoverySeconds float64 `json:"recovery_seconds"`
	}
	type one struct {
		Name   string
		Policy struct {
			Text     string
			Document json.RawMessage
		}
		Plan struct {
			Attempts []struct {
				LatestSeconds float64 `json:"latest_seconds"`
				Wait          struct {
					MaxSeconds float64 `json:"max_seconds"`
				}
			}
			Load, Success    float64
			WorstCaseSeconds float64 `json:"worst_case_seconds"`
		}
		Findings   []struct{ Code, Level string }
		Simulation result
		Verdict    struct {
			Text        string
			Seeds, Back int
		}
	}
	both := func(line string) (string, []one) {
		table, data := run(t, line), run(t, line+" --json")
		require.Equal(t, table.Exit, data.Exit)
		require.Equal(t, table.Err, data.Err)
		var got struct{ Policies []one }
		require.NoError(t, json.Unmarshal([]byte(data.Out), &got), data.Out)
		require.NotEmpty(t, got.Policies)
		for _, p := range got.Policies {
			for _, f := range p.Findings {
				require.Contains(t, table.Out, f.Level)
				require.Contains(t, table.Out, f.Code)
			}
		}
		return table.Out, got.Policies
	}
	span := func(seconds float64) string {
		return say.Duration(time.Duration(seconds * float64(time.Second)).Round(time.Millisecond))
	}

	table, found := both("show policies.json")
	require.Len(t, found, 2)
	for _, p := range found {
		require.Contains(t, unwrapped(table), p.Name+": "+p.Policy.Text+"\n")
		for i, at := range p.Plan.Attempts[1:] {
			require.Regexp(t, fmt.Sprintf(`(?m)^ +%d +0s\.\.%s +0s\.\.%s `, i+2, span(at.LatestSeconds), span(at.Wait.MaxSeconds)), table)
		}
	}

	table, found = both("show policy.json --failure 0.5")
	require.Regexp(t, fmt.Sprintf(`(?m)^load +%.4g attempts per run$`, found[0].Plan.Load), table)
	require.Regexp(t, fmt.Sprintf(`(?m)^success +%.4g%%$`, 100*found[0].Plan.Success), table)
	require.Regexp(t, fmt.Sprintf(`(?m)^takes at most +%s$`, span(found[0].Plan.WorstCaseSeconds)), table)

	table, found = both(`simulate policy.json --attempt-timeout 1s --rate 70 --capacity 100 --trigger "stall 5s" --budget --seeds 5`)
	r := found[0].Simulation
	require.Regexp(t, fmt.Sprintf(`(?m)^failed .* of %d runs$`, r.Runs), table)
	require.Regexp(t, fmt.Sprintf(`(?m)^attempts per run .*, %d in all$`, r.Attempts), table)
	require.Regexp(t, fmt.Sprintf(`(?m)^recovery +%s after`, span(r.RecoverySeconds)), table)
	require.Regexp(t, `(?m)^verdict +`+regexp.QuoteMeta(found[0].Verdict.Text)+"$", unwrapped(table))

	table, found = both("compare policy.json preset:aggressive --attempt-timeout 1s --rate 40 --capacity 100 --seeds 5")
	for _, p := range found {
		require.Regexp(t, fmt.Sprintf(`(?m)^%s .* %.4g .* %d of %d .*%%$`, p.Name, p.Plan.Load, p.Verdict.Back, p.Verdict.Seeds), table)
	}

	// What --json prints of a policy is a document that gives the same again.
	again := runIn(t, t.Context(), cli.Options{Stdin: bytes.NewReader(found[0].Policy.Document)}, "show -")
	require.Contains(t, unwrapped(again.Out), found[0].Policy.Text)
}
