package plots_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/retryplan"
)

// The pictures of the READMEs are drawn by this test: go test ./internal/plots -run README -update
var update = flag.Bool("update", false, "write the pictures of the READMEs")

func TestPicturesOfREADMEAreUpToDate(t *testing.T) {
	budget := &retry.BudgetConfig{}
	for _, row := range []struct {
		file    string
		picture plots.Picture
	}{
		{"retryplan-storm.svg", plots.Comparison(storm(t, "3 immediate retries", nil), storm(t, "3 immediate retries with a budget", budget))},
		{"retryplan-chain.svg", plots.Comparison(chain(t, "3 layers of 3 attempts", nil), chain(t, "with a budget in each layer", budget))},
	} {
		t.Run(row.file, func(t *testing.T) {
			drawn := []byte(row.picture.SVG("Simulation"))
			require.Less(t, len(drawn), 60_000, "a README should load fast")
			path := filepath.Join("..", "..", "..", "..", "docs", "images", row.file)
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, drawn, 0o644))
			}
			kept, err := os.ReadFile(path)
			require.NoError(t, err)
			if runtime.GOARCH != "amd64" {
				t.Skip("the last digit of a place may differ between processors: compared on amd64 only")
			}
			require.True(t, bytes.Equal(kept, drawn), "%s is not what this code draws: run the test with -update", row.file)
		})
	}
}

// storm is a server with a queue that stalls for 10s, at 70 % of its capacity, whose clients time out after 1s.
func storm(t *testing.T, name string, budget *retry.BudgetConfig) plots.Run {
	t.Helper()
	q := retryplan.Question{
		Policy: retry.Policy{
			MaxAttempts: 4, AttemptTimeout: time.Second, Backoff: retry.Backoff{Delays: []time.Duration{0}},
		},
		Fleet: retryplan.Fleet{Rate: 70, Capacity: 100, Budget: budget, Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second}},
	}
	r, err := retryplan.Simulate(context.Background(), q, 1)
	require.NoError(t, err)
	return plots.Run{Name: name, Result: r}
}

// chain is three layers of three attempts above a server that stalls for 10s, at 10 % of its capacity.
func chain(t *testing.T, name string, budget *retry.BudgetConfig) plots.Run {
	t.Helper()
	layer := retryplan.Layer{
		Policy: retry.Policy{MaxAttempts: 3, AttemptTimeout: time.Second, Backoff: retry.Backoff{Delays: []time.Duration{0}}}, Budget: budget,
	}
	c := retryplan.Chain{Layers: []retryplan.Layer{layer, layer, layer}, Rate: 100, Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second}}
	c.Layers[2].Capacity = 1000
	r, err := retryplan.Simulate(context.Background(), retryplan.Question{Chain: c}, 1)
	require.NoError(t, err)
	return plots.Run{Name: name, Result: r}
}

func plan(t *testing.T, p retry.Policy) *retryplan.Plan {
	t.Helper()
	made, err := retryplan.New(p, retryplan.Model{})
	require.NoError(t, err)
	return made
}
