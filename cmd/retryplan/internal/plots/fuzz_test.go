package plots

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

func FuzzSchedule(f *testing.F) {
	f.Add(int64(100e6), uint8(4), uint8(0))
	f.Add(int64(1<<63-1), uint8(255), uint8(1))
	f.Add(int64(0), uint8(1), uint8(9))
	f.Fuzz(func(t *testing.T, base int64, n, never uint8) {
		policy := retry.Policy{MaxAttempts: int(n) + 1, Backoff: retry.Backoff{Base: time.Duration(base), Jitter: retry.JitterMode(never % 4)}}
		p, err := retryplan.New(policy, retryplan.Model{})
		if err != nil {
			t.Skip(err)
		}
		p.Truncated = n%2 == 0
		for i := range p.Attempts {
			p.Attempts[i].Never = retry.Reason(never)
		}
		wellFormed(t, Schedule(p))
	})
}

func FuzzSimulation(f *testing.F) {
	f.Add(int64(time.Second), 70, 277, 0, int64(time.Minute), int64(10*time.Second), uint8(1), 0.5)
	f.Add(int64(1), -1, 1<<31-1, 1<<31-1, int64(-1), int64(1<<63-1), uint8(0), -1.0)
	f.Fuzz(func(t *testing.T, step int64, offered, attempts, queue int, from, lasts int64, kind uint8, factor float64) {
		r := retryplan.Result{Step: time.Duration(step)}
		for i := range int(kind) * 9 {
			r.Series = append(r.Series, retryplan.Point{
				Start: time.Duration(i) * r.Step, Offered: offered, Attempts: attempts * i, Goodput: offered - i, Queue: queue,
			})
		}
		r.Trigger = retryplan.Trigger{Kind: retryplan.TriggerKind(kind), From: time.Duration(from), For: time.Duration(lasts), Factor: factor}
		wellFormed(t, Simulation(r))
		wellFormed(t, Comparison(Run{Result: r}, Run{Result: r}))
	})
}

func FuzzDurationAxis(f *testing.F) {
	f.Add(int64(10e9), uint16(400))
	f.Add(int64(12660e9), uint16(600))
	f.Add(int64(1<<63-1), uint16(240))
	f.Fuzz(func(t *testing.T, hi int64, room uint16) {
		if hi < 0 || room < 200 || room > 2000 {
			t.Skip("no duration, or no page")
		}
		a := durationAxis("", time.Duration(hi))
		require.Less(t, a.min, a.max)
		ticks := a.ticks(float64(room), func(label string) float64 { return widthOf(label, tickSize) + 16 })
		slices.Sort(ticks)
		end := math.Inf(-1)
		for _, v := range ticks {
			require.GreaterOrEqual(t, v, a.min)
			middle, half := a.norm(v)*float64(room), widthOf(a.text(v), tickSize)/2
			require.Less(t, end, middle-half, "%s runs into the one before it", a.text(v))
			end = middle + half
		}
		require.True(t, a.norm(float64(hi)) >= 0 && a.norm(float64(hi)) <= 1)
	})
}

// wellFormed wants an SVG that parses.
func wellFormed(t *testing.T, p Picture) {
	t.Helper()
	svg := p.SVG("Simulation")
	for _, bad := range []string{"NaN", "Inf"} {
		require.NotContains(t, svg, bad)
	}
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}
