package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryplan"
)

func TestThePageShowsTheOutput(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(&out))
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "```text\n"+out.String()+"```\n")
}

func TestThePageGivesAReasonForEachKey(t *testing.T) {
	var d struct{ Policies map[string]map[string]any }
	require.NoError(t, json.Unmarshal(document, &d))
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	explained := map[string]map[string]any{}
	for section := range strings.SplitSeq(string(page), "\n## ") {
		name, text, _ := strings.Cut(section, "\n")
		for line := range strings.SplitSeq(text, "\n") {
			cells := strings.Split(line, " | ")
			key, isRow := strings.CutPrefix(cells[0], "| ")
			if !isRow || key == "key" || key == "budget" {
				continue
			}
			require.Len(t, cells, 3, line)
			if explained[name] == nil {
				explained[name] = map[string]any{}
			}
			explained[name][key] = cells[1]
		}
	}
	require.Equal(t, fmt.Sprint(d.Policies), fmt.Sprint(explained))
}

// TestEachFleetComesBack requires that no finding is worse than a note, and that every simulated seed comes back.
func TestEachFleetComesBack(t *testing.T) {
	catalog, err := load()
	require.NoError(t, err)
	require.Len(t, catalog.All(), len(entries))
	for _, e := range entries {
		t.Run(e.name, func(t *testing.T) {
			ref, ok := catalog.Lookup(e.name)
			require.True(t, ok)
			p := ref.Policy()
			for _, f := range retryplan.Lint(p, e.setting()) {
				require.Equal(t, retryplan.Note, f.Level, f.Text)
			}
			v, err := e.judge(p)
			require.NoError(t, err)
			require.Equal(t, v.Seeds, v.Back, "%v", v)
		})
	}
}
