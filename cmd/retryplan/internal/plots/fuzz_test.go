package plots

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

func FuzzSchedule(f *testing.F) {
	f.Add("full jitter", int64(0), int64(50e6), int64(100e6), uint8(4), uint8(0))
	f.Add("\x00<&", int64(-1), int64(1<<63-1), int64(1), uint8(255), uint8(1))
	f.Add("", int64(0), int64(0), int64(0), uint8(1), uint8(9))
	f.Fuzz(func(t *testing.T, name string, lo, mean, hi int64, n, never uint8) {
		if strings.Contains(name, "NaN") || strings.Contains(name, "Inf") {
			t.Skip("looks like a bad number in the picture")
		}
		p := &retryplan.Plan{Truncated: n%2 == 0}
		for i := range int(n) {
			w := retryplan.Wait{
				Lo: time.Duration(lo), Mean: time.Duration(mean), Hi: time.Duration(hi),
				P50: time.Duration(mean), P90: time.Duration(hi) / 2, P99: time.Duration(hi),
			}
			p.Attempts = append(p.Attempts, retryplan.PlannedAttempt{Number: i + 1, Wait: w, Never: retry.Reason(never)})
			lo, hi = lo/2, hi-mean
		}
		picture, err := Schedule(Plan{name, p}, Plan{"other", p})
		require.NoError(t, err)
		wellFormed(t, picture)
		picture, err = Plans(Plan{name, p})
		require.NoError(t, err)
		wellFormed(t, picture)
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
		triggers := []retryplan.Trigger{{
			Kind: retryplan.TriggerKind(kind), From: time.Duration(from), For: time.Duration(lasts), Factor: factor,
		}}
		run := Run{Result: r, Triggers: triggers}
		picture, err := Simulation(run)
		if step <= 0 && kind > 0 {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		wellFormed(t, picture)
		picture, err = Simulation(run, run)
		require.NoError(t, err)
		wellFormed(t, picture)
	})
}

func FuzzDurationAxis(f *testing.F) {
	f.Add(0.05, 10.0, true, true, uint8(8))
	f.Add(0.0, 12660.0, false, false, uint8(6))
	f.Add(1e-9, 9.3e9, true, false, uint8(1))
	f.Fuzz(func(t *testing.T, lo, hi float64, log, zero bool, labels uint8) {
		if !(lo >= 0 && lo <= hi && hi < 9.3e9) || (hi > 0 && hi < 1e-9) || (lo > 0 && lo < 1e-9) || labels < 2 || labels > 20 {
			t.Skip("no duration")
		}
		a := durationAxis(lo, hi, log, zero, int(labels))
		require.Less(t, a.min, a.max)
		require.LessOrEqual(t, len(a.ticks), int(labels)+2)
		seen := map[string]bool{}
		for _, tick := range a.ticks {
			require.False(t, seen[tick.label], "%s twice", tick.label)
			seen[tick.label] = true
			require.GreaterOrEqual(t, tick.value, a.min)
		}
		require.True(t, a.norm(hi) >= 0 && a.norm(hi) <= 1)
	})
}

// wellFormed wants an SVG that parses.
func wellFormed(t *testing.T, p *Picture) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, p.Write(&b))
	for _, bad := range []string{"NaN", "Inf"} {
		require.False(t, bytes.Contains(b.Bytes(), []byte(bad)), bad)
	}
	d := xml.NewDecoder(&b)
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}
