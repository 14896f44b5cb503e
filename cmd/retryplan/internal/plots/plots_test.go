package plots_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/retryplan"
)

func TestPicturesSayWhatTheyShow(t *testing.T) {
	standard := plan(t, "standard", retry.Standard())
	aggressive := plan(t, "aggressive", retry.Aggressive())
	short := plan(t, "short", retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Second, Jitter: retry.EqualJitter}})
	late := plan(t, "late", retry.Policy{TTL: time.Minute})
	many := plan(t, "forever", retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Cap: time.Minute}})
	run := storm(t, "storm", nil)
	for _, row := range []struct {
		name  string
		draw  func() (*plots.Picture, error)
		texts []string
	}{
		{"a schedule", func() (*plots.Picture, error) { return plots.Plans(standard) },
			[]string{"Wait before each attempt: standard", "wait (log scale)", "attempt", "2", "3", "4", "wait, no jitter", "1m", "30m", "3h"}},
		{"a schedule with jitter", func() (*plots.Picture, error) { return plots.Plans(short) },
			[]string{"wait", "mean", "shortest to longest", "p50", "p90", "p99", "1s", "2s"}},
		{"a schedule that the TTL cuts", func() (*plots.Picture, error) { return plots.Plans(late) },
			[]string{"can never start (ttl_elapsed)"}},
		{"a schedule beyond what was looked at", func() (*plots.Picture, error) { return plots.Plans(many) },
			[]string{"Attempts go on after the last one shown, 100.", "100"}},
		{"a total wait", func() (*plots.Picture, error) { return plots.Plans(short) },
			[]string{"share of runs", "total wait of a run that never succeeds", "p50 2.25s, p99 2.9s, worst 3s", "50%", "2s", "3s"}},
		{"a total wait without chance", func() (*plots.Picture, error) { return plots.Plans(standard) },
			[]string{"always 3h31m", "1h", "2h"}},
		{"policies side by side", func() (*plots.Picture, error) { return plots.Plans(standard, aggressive, short) },
			[]string{"standard", "aggressive", "short", "total wait of a run that never succeeds (log scale)",
				"aggressive: always 6m10s", "A bar goes from the shortest wait to the longest, a line through the means."}},
		{"a policy without end beside another", func() (*plots.Picture, error) { return plots.Plans(many, standard) },
			[]string{"Attempts go on after the last one shown, 8. A bar goes from the shortest wait to the longest, a line through the means.", "8", "Without a last attempt, and not shown: forever.", "standard: always 3h31m"}},
		{"an outlook", func() (*plots.Picture, error) { return plots.Outlook(4*time.Second, short) },
			[]string{"Time that a run takes: short", "time since the start of a run", "deadline 4s", "p50 2.25s, p99 2.9s, worst 3s"}},
		{"a deadline that is far off", func() (*plots.Picture, error) { return plots.Outlook(time.Hour, short) },
			[]string{"deadline 1h, beyond this picture", "2s", "3s"}},
		{"a queue of one", func() (*plots.Picture, error) {
			return plots.Simulation(plots.Run{Result: retryplan.Result{Step: time.Second, Series: []retryplan.Point{{Offered: 40, Attempts: 40, Queue: 1}}}})
		}, []string{"queue, attempts", "0", "1", "40"}},
		{"a simulation", func() (*plots.Picture, error) { return plots.Simulation(run) },
			[]string{"Simulation: storm", "load, per second", "goodput: runs that succeeded", "queue, attempts", "time since the start",
				"stall 10s", "trigger", "runs offered", "attempts sent", "1m30s", "4m", "200"}},
		{"simulations", func() (*plots.Picture, error) { return plots.Simulation(run, storm(t, "", &retry.BudgetConfig{})) },
			[]string{"goodput, per second", "attempts sent, per second", "storm", "run 2", "stall 10s", "time since the start"}},
		{"a simulation of nothing", func() (*plots.Picture, error) { return plots.Simulation(plots.Run{}) },
			[]string{"no data: nothing was simulated"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p, err := row.draw()
			require.NoError(t, err)
			require.Subset(t, textsOf(t, p.SVG()), row.texts)
		})
	}
}

var (
	upright  = regexp.MustCompile(`(?s)<g transform="[^"]*rotate.*?</g>`)
	textSpan = regexp.MustCompile(`<text [^>]*font-size="([0-9.]+)" x="([-0-9.]+)" y="([-0-9.]+)" textLength="([0-9.]+)"[^>]*>([^<]*)<`)
)

// Tight distributions, long durations and names, and triggers that begin one after the other.
func TestNoTextRunsIntoAnother(t *testing.T) {
	tight := plan(t, "tight", retry.Policy{MaxAttempts: 60, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 3 * time.Second, Jitter: retry.RatioJitter}})
	wide := retry.Policy{MaxAttempts: 12, Backoff: retry.Backoff{Base: 11111 * time.Second, Cap: 9999 * time.Hour}}
	long := plan(t, strings.Repeat("policy of many words ", 2), wide)
	wide.Jitter = retry.FullJitter
	spread := plan(t, "spread", wide)
	endless := plan(t, "endless", retry.Policy{MaxAttempts: retry.Unlimited})
	run := storm(t, "storm", nil)
	for i := range 12 {
		trigger := retryplan.Trigger{Kind: retryplan.CapacityCut, From: time.Duration(60+3*i) * time.Second, For: 10 * time.Second, Factor: 0.5}
		run.Triggers = append(run.Triggers, trigger)
	}
	for name, draw := range map[string]func() (*plots.Picture, error){
		"tight":    func() (*plots.Picture, error) { return plots.Outlook(2*time.Minute, tight) },
		"long":     func() (*plots.Picture, error) { return plots.Plans(long) },
		"spread":   func() (*plots.Picture, error) { return plots.Plans(spread) },
		"several":  func() (*plots.Picture, error) { return plots.Outlook(time.Hour, long, spread, tight, endless, long) },
		"triggers": func() (*plots.Picture, error) { return plots.Simulation(run) },
	} {
		p, err := draw()
		require.NoError(t, err)
		noneRunsIntoAnother(t, name, p.SVG(), 720)
		if name == "several" {
			continue // the page shows one
		}
		for _, width := range []float64{290, 330, 800} {
			for part := range 2 {
				svg, _ := p.Part(part, width, 400)
				noneRunsIntoAnother(t, fmt.Sprint(name, " ", part, ", ", width), svg, width)
			}
		}
	}
}

func noneRunsIntoAnother(t *testing.T, name, svg string, width float64) {
	t.Helper()
	type box struct {
		text                     string
		left, right, bottom, top float64
	}
	var boxes []box
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		require.NoError(t, err)
		return v
	}
	for _, m := range textSpan.FindAllStringSubmatch(upright.ReplaceAllString(svg, ""), -1) {
		x, y := number(m[2]), number(m[3])
		boxes = append(boxes, box{m[5], x, x + number(m[4]), y, y - 0.7*number(m[1])}) // a capital is 0.7 high
	}
	require.Greater(t, len(boxes), 8)
	for i, a := range boxes {
		require.True(t, a.left >= 0 && a.right <= width, "%s: %q leaves the picture", name, a.text)
		for _, b := range boxes[:i] {
			require.False(t, a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom, "%s: %q runs into %q", name, a.text, b.text)
		}
	}
}

func TestSameInputGivesSameBytes(t *testing.T) {
	draw := func() *plots.Picture {
		p, err := plots.Simulation(storm(t, "a", nil), storm(t, "b", &retry.BudgetConfig{}))
		require.NoError(t, err)
		return p
	}
	first := draw()
	once := first.SVG()
	require.True(t, once == first.SVG(), "drawn twice")
	require.True(t, once == draw().SVG(), "made twice")
}

func TestTableSaysWhatIsDrawn(t *testing.T) {
	p, err := plots.Plans(plan(t, "short", retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Second, Jitter: retry.EqualJitter}}))
	require.NoError(t, err)
	_, waits := p.Part(0, 600, 400)
	require.Equal(t, plots.Table{
		Head: []string{"attempt", "shortest to longest", "mean", "p50", "p90", "p99"},
		Rows: [][]string{{"2", "500ms to 1s", "750ms", "750ms", "950ms", "995ms"}, {"3", "1s to 2s", "1.5s", "1.5s", "1.9s", "1.99s"}},
	}, waits)
	_, total := p.Part(1, 600, 400)
	require.Len(t, total.Rows, 21)
	require.Equal(t, []string{"1.5s", "0%"}, total.Rows[0])
	require.Equal(t, []string{"2.25s", "50%"}, total.Rows[10])
	require.Equal(t, []string{"3s", "100%"}, total.Rows[20])

	s, err := plots.Simulation(storm(t, "", nil))
	require.NoError(t, err)
	_, load := s.Part(0, 600, 400)
	require.Equal(t, []string{"time since the start", "trigger", "attempts sent", "goodput: runs that succeeded", "runs offered"}, load.Head)
	require.Equal(t, "yes", load.Rows[5][1], "at %s", load.Rows[5][0])
	require.Empty(t, load.Rows[6][1], "at %s", load.Rows[6][0])
}

func TestErrors(t *testing.T) {
	one := plan(t, "one", retry.Policy{MaxAttempts: 1})
	nine := make([]plots.Plan, 9)
	for i := range nine {
		nine[i] = one
	}
	for _, row := range []struct {
		name string
		err  error
		want string
	}{
		{"no plan", second(plots.Plans()), "plots: a picture shows 1 to 8 plans, not 0"},
		{"nine plans", second(plots.Plans(nine...)), "plots: a picture shows 1 to 8 plans, not 9"},
		{"no plan of an outlook", second(plots.Outlook(0)), "plots: a picture shows 1 to 8 plans, not 0"},
		{"no run", second(plots.Simulation()), "plots: a picture shows 1 to 8 runs, not 0"},
		{"nine runs", second(plots.Simulation(make([]plots.Run, 9)...)), "plots: a picture shows 1 to 8 runs, not 9"},
		{"another ending", plots.CheckFile("dir.svg/plan.png"), `plots: "dir.svg/plan.png" does not end in .svg`},
		{"no ending", plots.CheckFile("plan"), `plots: "plan" does not end in .svg`},
		{"an ending in upper case", plots.CheckFile("PLAN.SVG"), ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.want == "" {
				require.NoError(t, row.err)
				return
			}
			require.EqualError(t, row.err, row.want)
		})
	}
}

func TestSave(t *testing.T) {
	p, err := plots.Plans(plan(t, "standard", retry.Standard()))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "out.svg")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("old "), 100_000), 0o600))
	require.NoError(t, p.Save(path))
	saved, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, p.SVG() == string(saved), "the old file is replaced, all of it")

	missing := filepath.Join(t.TempDir(), "none", "out.svg")
	require.ErrorIs(t, p.Save(missing), os.ErrNotExist)
	require.NoFileExists(t, missing)
}

func TestOddPlansAreDrawn(t *testing.T) {
	forever := time.Duration(math.MaxInt64)
	names := []string{
		"", " ", "<&>\"'", "line\nbreak\tand\x00\x1b[31mescape", "\xff\xfe", "名前がとても長い方針の名前がとても長い方針の名前がとても長い方針",
		"👩‍👩‍👧‍👦 family", "\u202egnp", strings.Repeat("very long ", 1000),
	}
	policies := []retry.Policy{
		{MaxAttempts: 1}, {Disabled: true}, {MaxAttempts: 100}, {MaxAttempts: retry.Unlimited},
		{Backoff: retry.Backoff{Delays: []time.Duration{0, 0, 0}}},
		{Backoff: retry.Backoff{Delays: []time.Duration{forever, 0, 1, forever}}},
		{MaxAttempts: 3, Backoff: retry.Backoff{Base: forever, Cap: forever, Jitter: retry.FullJitter}},
		{MaxAttempts: 9, Backoff: retry.Backoff{Base: 1, Factor: 1e9, Cap: forever, Jitter: retry.EqualJitter}},
		{MaxAttempts: 9, Backoff: retry.Backoff{Base: 1, Cap: 2}},
	}
	var all []plots.Plan
	for i, p := range policies {
		made := plan(t, names[i], p)
		all = append(all, made)
		drawAll(t, func() (*plots.Picture, error) { return plots.Plans(made) })
	}
	drawAll(t, func() (*plots.Picture, error) { return plots.Plans(all[1:]...) })
	drawAll(t, func() (*plots.Picture, error) { return plots.Plans(all[:8]...) })
	// Not what New gives, but what the types allow.
	odd := retryplan.PlannedAttempt{Number: 7, Wait: retryplan.Wait{Lo: forever, Hi: -forever, Mean: -1, P50: forever}}
	drawAll(t, func() (*plots.Picture, error) {
		return plots.Plans(plots.Plan{Plan: &retryplan.Plan{Attempts: []retryplan.PlannedAttempt{odd, odd, odd}}})
	})
}

func TestOddSimulationsAreDrawn(t *testing.T) {
	forever := time.Duration(math.MaxInt64)
	long := make([]retryplan.Point, 100_000)
	for i := range long {
		long[i] = retryplan.Point{Start: time.Duration(i) * time.Millisecond, Offered: i % 7, Attempts: i % 11, Queue: i}
	}
	triggers := []retryplan.Trigger{
		{}, {Kind: retryplan.Stall, From: forever, For: forever}, {Kind: retryplan.Surge, Factor: 2, For: forever},
		{Kind: retryplan.Failing, From: -forever, For: -forever}, {Kind: 200, For: time.Second},
		{Kind: retryplan.Outage, From: 99 * time.Second}, {Kind: retryplan.CapacityCut, Factor: 0.25, For: time.Minute},
		{Kind: retryplan.Slowdown, Factor: 1e300, For: time.Minute},
	}
	point := []retryplan.Point{{Offered: 3, Goodput: math.MaxInt, Queue: -5}}
	for _, r := range []retryplan.Result{
		{}, {Step: 1, Series: long}, {Step: time.Second, Series: point}, {Step: forever, Series: point}, {Step: 1, Series: point},
		{Step: time.Second, Series: make([]retryplan.Point, 2)}, {Step: time.Second, Series: long[:50], Simulated: forever},
	} {
		run := plots.Run{Result: r, Triggers: triggers}
		drawAll(t, func() (*plots.Picture, error) { return plots.Simulation(run) })
		p, err := plots.Simulation(run, plots.Run{Name: "other"})
		require.NoError(t, err)
		textsOf(t, p.SVG())
	}
}

func TestLongSeriesMakeSmallPictures(t *testing.T) {
	series := make([]retryplan.Point, 100_000)
	for i := range series {
		series[i] = retryplan.Point{Start: time.Duration(i) * time.Second, Offered: i * 31 % 97, Attempts: i * 17 % 89, Goodput: i % 7, Queue: i % 13}
	}
	p, err := plots.Simulation(plots.Run{Result: retryplan.Result{Step: time.Second, Series: series}})
	require.NoError(t, err)
	require.Less(t, len(p.SVG()), 60_000)
}

// drawAll draws a picture, and wants it to be whole.
func drawAll(t *testing.T, draw func() (*plots.Picture, error)) {
	t.Helper()
	p, err := draw()
	require.NoError(t, err)
	svg := p.SVG()
	textsOf(t, svg)
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		require.NotContains(t, svg, bad)
	}
}

// textsOf parses a picture and returns what is written in it.
func textsOf(t *testing.T, svg string) []string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	var texts []string
	inText, titled := false, false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			require.True(t, titled, "a picture has a name for those who cannot see it")
			return texts
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			inText, titled = token.Name.Local == "text", titled || token.Name.Local == "title"
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				texts = append(texts, string(token))
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }
