package main

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// dashboard has the fields of Grafana's JSON that matter here.
type dashboard struct {
	Title         string
	SchemaVersion int
	Templating    struct{ List []variable }
	Panels        []panel
}

type variable struct {
	Name, Type, Definition string
	Datasource             *source
}

type source struct{ Type, UID string }

type panel struct {
	ID                 int
	Title, Description string
	Datasource         *source
	GridPos            struct{ X, Y, W, H int }
	Targets            []struct {
		Expr, LegendFormat, RefID string
		Datasource                *source
	}
}

func readDashboard(t *testing.T) dashboard {
	text, err := os.ReadFile("dashboard.json")
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.NewDecoder(bytes.NewReader(text)).Decode(&d))
	return d
}

func TestTheDashboardAsksForWhatIsEmitted(t *testing.T) {
	e := emit(t)
	for _, p := range readDashboard(t).Panels {
		t.Run(p.Title, func(t *testing.T) {
			require.NotEmpty(t, p.Description)
			require.NotEmpty(t, p.Targets)
			for _, target := range p.Targets {
				q, err := e.read(target.Expr)
				require.NoError(t, err)
				require.NotEmpty(t, q.metrics)
				require.Empty(t, q.unknown, target.Expr)
				require.Subset(t, q.groups, shownIn(target.LegendFormat))
			}
		})
	}
}

func TestTheDashboardShowsAllThatIsEmitted(t *testing.T) {
	e := emit(t)
	var shown []string
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			q, err := e.read(target.Expr)
			require.NoError(t, err)
			for _, metric := range q.metrics {
				shown = append(shown, e.family(metric))
			}
		}
	}
	slices.Sort(shown)
	require.Equal(t, e.families, slices.Compact(shown))
}

var labelValues = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)

func TestTheDashboardsVariablesAreOfWhatIsEmitted(t *testing.T) {
	e := emit(t)
	list := readDashboard(t).Templating.List
	require.Len(t, list, 2)
	require.Equal(t, variable{Name: "datasource", Type: "datasource"}, list[0])
	require.Equal(t, &source{"prometheus", "${datasource}"}, list[1].Datasource)
	asked := labelValues.FindStringSubmatch(list[1].Definition)
	require.Len(t, asked, 3, list[1].Definition)
	require.Contains(t, e.metrics, asked[1])
	require.Contains(t, e.metrics[asked[1]], asked[2])
}

// Grafana imports a dashboard in which these are wrong, and shows it badly or not at all.
func TestTheDashboardIsWhole(t *testing.T) {
	d := readDashboard(t)
	require.Equal(t, 42, d.SchemaVersion)
	require.NotEmpty(t, d.Title)
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		require.False(t, ids[p.ID], "panel %d twice", p.ID)
		ids[p.ID] = true
		require.Equal(t, &source{"prometheus", "${datasource}"}, p.Datasource, p.Title)
		refs := map[string]bool{}
		for _, target := range p.Targets {
			require.Equal(t, p.Datasource, target.Datasource, p.Title)
			require.False(t, refs[target.RefID], "%s: target %s twice", p.Title, target.RefID)
			refs[target.RefID] = true
		}
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				cell := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				require.Empty(t, cells[cell], "%s covers", p.Title)
				cells[cell] = p.Title
			}
		}
	}
}
