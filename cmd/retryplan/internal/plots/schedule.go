package plots

import (
	"fmt"
	"time"

	"github.com/retrygo/retry/retryplan"
)

// labeled is up to how many attempts the longest wait of each is written above it.
const labeled = 12

func scheduleSection(plans []Plan, width float64) section {
	truncated, jittered := false, false
	last := lastShown(plans)
	var each [][]retryplan.PlannedAttempt
	var all, positive []float64
	for _, p := range plans {
		shown := waits(p.Plan)
		shown = shown[:min(len(shown), last-1)]
		for _, a := range shown {
			jittered = jittered || a.Wait.Hi > a.Wait.Lo
			all = append(all, a.Wait.Lo.Seconds(), a.Wait.Mean.Seconds(), a.Wait.Hi.Seconds())
			positive = append(positive, a.Wait.Mean.Seconds())
		}
		each = append(each, shown)
		truncated = truncated || p.Plan.Truncated
	}
	s := section{title: "Wait before each attempt"}
	if len(plans) == 1 {
		s.title += ": " + plans[0].Name
	}
	if truncated {
		s.note = fmt.Sprintf("Attempts go on after the last one shown, %d.", last)
	}
	y := waitAxis(all, positive)
	yLabel := "wait"
	if y.log {
		yLabel = "wait (log scale)"
	}
	p := newPanel(280, attemptAxis(2, last, int(width/36)), "attempt", y, yLabel)
	switch {
	case len(positive) == 0:
		p.add(message("one attempt: there is no wait"))
	case len(plans) == 1:
		s.keys = singleSchedule(&p, each[0], jittered)
	default:
		s.keys = manySchedules(&p, plans, each, jittered)
	}
	s.panels = []panel{p}
	return s
}

// lastShown returns the attempt up to which plans are drawn: the last one of the plans that have an end, and 8 at
// least. The attempts of a plan without end would leave the others no room.
func lastShown(plans []Plan) int {
	const few = 8
	last, limited := 2, 0
	for _, p := range plans {
		last = max(last, len(p.Plan.Attempts))
		if !p.Plan.Truncated {
			limited = max(limited, len(p.Plan.Attempts), few)
		}
	}
	if limited > 0 {
		return min(last, limited)
	}
	return last
}

// waits returns the attempts that have a wait before them: all but the first.
func waits(p *retryplan.Plan) []retryplan.PlannedAttempt {
	var ws []retryplan.PlannedAttempt
	for _, a := range p.Attempts {
		if a.Number > 1 {
			ws = append(ws, a)
		}
	}
	return ws
}

// waitAxis chooses the scale by the means: full jitter reaches down to 0, which would ask for a log scale every time.
func waitAxis(all, means []float64) axis {
	if !spans(means) {
		return durationAxis(0, upper(all...), false, false, 7).withRoom(0.08) // for the labels above the highest
	}
	mean, lo := leastPositive(means), leastPositive(all)
	if lo < mean/30 { // next to nothing, which is drawn as 0
		lo = mean
	}
	zero := false
	for _, v := range all {
		zero = zero || v < lo
	}
	return durationAxis(lo, upper(all...), true, zero, 8).withRoom(0.08)
}

func singleSchedule(p *panel, attempts []retryplan.PlannedAttempt, jittered bool) []key {
	const wide = 0.62 // of the room of an attempt
	main := looks[0]
	var bars, never []box
	var means, p50, p90, p99 []point
	var texts []label
	var reason string
	for _, a := range attempts {
		x, w := float64(a.Number), a.Wait
		bars = append(bars, box{x, wide, w.Lo.Seconds(), w.Hi.Seconds()})
		means = append(means, point{x, w.Mean.Seconds()})
		p50 = append(p50, point{x, w.P50.Seconds()})
		p90 = append(p90, point{x, w.P90.Seconds()})
		p99 = append(p99, point{x, w.P99.Seconds()})
		if a.Never != 0 {
			never, reason = append(never, box{x, 1, p.y.min, p.y.max}), a.Never.Error()
		}
		if len(attempts) > labeled {
			continue
		}
		text := label{at: point{x, w.Hi.Seconds()}, dy: -10, text: durationText(w.Hi), centered: true}
		if !jittered { // beside the line, not on it
			text.centered, text.ended, text.dx, text.dy = false, true, 4, -8
		}
		texts = append(texts, text)
	}
	var keys []key
	p.add(boxes("faint", never))
	if jittered {
		p.add(boxes(main.class, bars))
		keys = append(keys, boxKey("shortest to longest", main.class))
	}
	p.add(line(main.stroke, means))
	r := size(len(attempts), 3.5)
	if jittered {
		// Above 40 attempts the quantiles would run into each other.
		for _, q := range []struct {
			name, dash string
			at         []point
		}{{"p50", "", p50}, {"p90", "5 3", p90}, {"p99", "1.6 2.2", p99}} {
			if len(attempts) > 40 {
				break
			}
			s := stroke{"ink", q.dash}
			p.add(strokes(s, wide, q.at))
			keys = append(keys, lineKey(q.name, s, "thin"))
		}
	}
	p.add(marks(main, r, means), labels(texts...))
	name := "wait, no jitter"
	if jittered {
		name = "mean"
	}
	keys = append([]key{lookKey(name, main, r)}, keys...)
	if len(never) > 0 {
		keys = append(keys, boxKey("can never start ("+reason+")", "faint"))
	}
	return keys
}

func manySchedules(p *panel, plans []Plan, each [][]retryplan.PlannedAttempt, jittered bool) []key {
	const group = 0.8 // of the room of an attempt
	wide := group / float64(len(plans))
	var keys []key
	var over []func()
	for i, plan := range plans {
		attempts := each[i]
		shift := (float64(i)+0.5)*wide - group/2
		var bars []box
		var means []point
		for _, a := range attempts {
			x := float64(a.Number) + shift
			means = append(means, point{x, a.Wait.Mean.Seconds()})
			if a.Wait.Hi > a.Wait.Lo {
				bars = append(bars, box{x, wide * 0.85, a.Wait.Lo.Seconds(), a.Wait.Hi.Seconds()})
			}
		}
		l := looks[i]
		r := size(len(attempts), 3.7)
		p.add(boxes(l.class, bars))
		over = append(over, func() { p.add(line(l.stroke, means), marks(l, r, means)) })
		name := plan.Name
		if len(attempts) == 0 {
			name += " (no retry)"
		}
		keys = append(keys, lookKey(name, l, r))
	}
	for _, add := range over { // means above all bars
		add()
	}
	if jittered {
		keys = append(keys, boxKey("shortest to longest wait; the line is the mean", "faint"))
	}
	return keys
}

// size returns r, or less if n marks in a row would touch.
func size(n int, r float64) float64 {
	if n > 25 {
		return max(r*25/float64(n), 1)
	}
	return r
}

// longest returns d as text, and says if it may be longer: durations saturate.
func longest(d time.Duration) string {
	if d == 1<<63-1 {
		return durationText(d) + " or more"
	}
	return durationText(d)
}
