package plots_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"math"
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
	standard := plan(t, retry.Standard())
	short := plan(t, retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Second, Jitter: retry.EqualJitter}})
	late := plan(t, retry.Policy{TTL: time.Minute})
	many := plan(t, retry.Policy{MaxAttempts: retry.Unlimited, Backoff: retry.Backoff{Cap: time.Minute}})
	run := storm(t, "storm", nil)
	for _, row := range []struct {
		name  string
		drawn plots.Picture
		texts []string
	}{
		{"a schedule", plots.Schedule(standard),
			[]string{"wait, mean and range", "attempt", "2", "3", "4", "1h", "2h"}},
		{"a schedule with jitter", plots.Schedule(short),
			[]string{"wait, mean and range", "1s", "2s"}},
		{"a schedule that the TTL cuts", plots.Schedule(late),
			[]string{"can never start (ttl_elapsed)"}},
		{"a schedule beyond what is drawn", plots.Schedule(many),
			[]string{"attempt, of the first 20", "20"}},
		{"a queue of one", plots.Simulation(retryplan.Result{Step: time.Second, Series: []retryplan.Point{{Offered: 40, Attempts: 40, Queue: 1}}}),
			[]string{"queue, attempts", "0", "1", "40"}},
		{"a simulation", plots.Simulation(run.Result),
			[]string{"Simulation", "load, per second", "goodput: runs that succeeded", "queue, attempts", "time since the start",
				"trigger: stall 10s", "runs offered", "attempts sent", "2m", "3m", "200"}},
		{"simulations", plots.Comparison(run, storm(t, "budget", &retry.BudgetConfig{})),
			[]string{"goodput, per second", "attempts sent, per second", "storm", "budget", "trigger: stall 10s", "time since the start"}},
		{"a simulation of nothing", plots.Simulation(retryplan.Result{}),
			[]string{"no data: nothing was simulated"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Subset(t, textsOf(t, row.drawn.SVG("Simulation")), row.texts)
		})
	}
}

var textSpan = regexp.MustCompile(`<text class="[^"]*" text-anchor="(\w+)"(?: [^>]*textLength="([0-9.]+)")? font-size="([0-9.]+)" x="([-0-9.]+)" y="([-0-9.]+)">([^<]*)<`)

// Tight distributions, long durations, and triggers that begin one after the other.
func TestNoTextRunsIntoAnother(t *testing.T) {
	tight := plan(t, retry.Policy{MaxAttempts: 60, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 3 * time.Second, Jitter: retry.RatioJitter}})
	wide := retry.Policy{MaxAttempts: 12, Backoff: retry.Backoff{Base: 11111 * time.Second, Cap: 9999 * time.Hour}}
	long := plan(t, wide)
	wide.Jitter = retry.FullJitter
	spread := plan(t, wide)
	cut := storm(t, "storm", nil)
	cut.Result.Trigger = retryplan.Trigger{Kind: retryplan.CapacityCut, From: time.Minute, For: 10 * time.Second, Factor: 0.5}
	for name, p := range map[string]plots.Picture{
		"tight":    plots.Schedule(tight),
		"long":     plots.Schedule(long),
		"spread":   plots.Schedule(spread),
		"one run":  plots.Simulation(cut.Result),
		"two runs": plots.Comparison(cut, storm(t, "storm of another trigger", nil)),
	} {
		noneRunsIntoAnother(t, name, p.SVG("Simulation"), 720)
		if name == "two runs" {
			continue // the page shows one
		}
		for _, width := range []float64{290, 330, 800} {
			for part := range p {
				svg := p.Part(part, width, 400)
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
	for _, m := range textSpan.FindAllStringSubmatch(svg, -1) {
		size, x, y, text := number(m[3]), number(m[4]), number(m[5]), html.UnescapeString(m[6])
		width := helvetica(text) * size / 1000
		if m[2] != "" {
			width = number(m[2])
		}
		left := x - width*map[string]float64{"start": 0, "middle": 0.5, "end": 1}[m[1]]
		boxes = append(boxes, box{text, left, left + width, y, y - 0.7*size}) // a capital is 0.7 high
	}
	require.Greater(t, len(boxes), 5)
	for i, a := range boxes {
		require.True(t, a.left >= 0 && a.right <= width, "%s: %q leaves the picture", name, a.text)
		for _, b := range boxes[:i] {
			require.False(t, a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom, "%s: %q runs into %q", name, a.text, b.text)
		}
	}
}

// helvetica returns the width of text in thousandths of its size: Adobe Font Metrics, Helvetica.afm 4.1. Arial and
// Liberation Sans have the same.
func helvetica(text string) (sum float64) {
	widths := [...]float64{
		278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556, 556, 556, 556,
		278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, 667, 778, 722, 667,
		611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833,
		556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
	}
	for _, r := range text {
		if i := int(r) - ' '; i >= 0 && i < len(widths) {
			sum += widths[i]
		} else {
			sum += 1000
		}
	}
	return sum
}

func TestSameInputGivesSameBytes(t *testing.T) {
	draw := func() plots.Picture {
		return plots.Comparison(storm(t, "a", nil), storm(t, "b", &retry.BudgetConfig{}))
	}
	first := draw()
	once := first.SVG("Simulation")
	require.True(t, once == first.SVG("Simulation"), "drawn twice")
	require.True(t, once == draw().SVG("Simulation"), "made twice")
}

func TestOddPlansAreDrawn(t *testing.T) {
	forever := time.Duration(math.MaxInt64)
	policies := []retry.Policy{
		{MaxAttempts: 1}, {Disabled: true}, {MaxAttempts: 100}, {MaxAttempts: retry.Unlimited},
		{Backoff: retry.Backoff{Delays: []time.Duration{0, 0, 0}}},
		{Backoff: retry.Backoff{Delays: []time.Duration{forever, 0, 1, forever}}},
		{MaxAttempts: 3, Backoff: retry.Backoff{Base: forever, Cap: forever, Jitter: retry.FullJitter}},
		{MaxAttempts: 9, Backoff: retry.Backoff{Base: 1, Factor: 1e9, Cap: forever, Jitter: retry.EqualJitter}},
		{MaxAttempts: 9, Backoff: retry.Backoff{Base: 1, Cap: 2}},
	}
	for _, p := range policies {
		whole(t, plots.Schedule(plan(t, p)))
	}
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
		{Step: time.Second, Series: make([]retryplan.Point, 2)}, {Step: time.Second, Series: long[:50]},
	} {
		for _, r.Trigger = range triggers {
			whole(t, plots.Simulation(r))
			textsOf(t, plots.Comparison(plots.Run{Result: r}, plots.Run{Name: "<&>\"'"}).SVG("Simulation"))
		}
	}
}

func TestLongSeriesMakeSmallPictures(t *testing.T) {
	series := make([]retryplan.Point, 100_000)
	for i := range series {
		series[i] = retryplan.Point{Start: time.Duration(i) * time.Second, Offered: i * 31 % 97, Attempts: i * 17 % 89, Goodput: i % 7, Queue: i % 13}
	}
	p := plots.Simulation(retryplan.Result{Step: time.Second, Series: series})
	require.Less(t, len(p.SVG("Simulation")), 60_000)
}

// whole requires that a picture is whole.
func whole(t *testing.T, p plots.Picture) {
	t.Helper()
	svg := p.SVG("Simulation")
	textsOf(t, svg)
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		require.NotContains(t, svg, bad)
	}
}

// textsOf parses a picture and returns the texts in it.
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
