package retrydebug

import "time"

const (
	settled = 10 * time.Second // after the newest run that gave up, if runs succeed again, an outage is over
	lull    = 10 * time.Minute // without a run that gave up
)

// trouble notes since when the runs of a policy give up. Its times are since the page was made.
//
// It judges periods of shortSlot. A bad period is one in which at least half of the runs gave up, not counting those
// that their callers canceled. An outage is a series of bad periods with less than a minute between them, or with no
// run between them that did not give up.
type trouble struct {
	runs   uint32 // that ended in period, without those that were canceled
	gaveUp uint32 // of runs
	period int32  // that is counted now, from shortSlots on, so that the zero bad is long ago
	bad    int32  // the newest bad period before it

	streak time.Duration // the first run of the newest that gave up one after the other
	begins time.Duration // the outage, if period turns out to be bad
	since  time.Duration // the beginning of the newest outage, or of runs that gave up after a lull
	last   time.Duration // the newest run that gave up
	any    bool          // a run gave up
	giving bool          // the newest run gave up
}

// ended notes the end of a run.
func (t *trouble) ended(now time.Duration, k kind) {
	t.close(now)
	if k == canceled {
		return
	}
	t.runs++
	if k < gaveUp {
		t.giving = false
		return
	}
	if !t.giving {
		t.streak = now
		if !t.any || now-t.last > lull {
			t.since = now
		}
	}
	if t.gaveUp == 0 {
		t.begins = t.streak
	}
	t.gaveUp++
	t.last = now
	t.any = true
	t.giving = true
}

// close judges the period that is counted if it is over at now, and begins another.
func (t *trouble) close(now time.Duration) {
	period := int32(now/shortSlot) + shortSlots
	if period <= t.period {
		return
	}
	if t.gaveUp > 0 && 2*t.gaveUp >= t.runs {
		if t.period-t.bad >= shortSlots {
			t.since = t.begins
		}
		t.bad = t.period
	}
	t.period, t.runs, t.gaveUp = period, 0, 0
}

// state returns the state of a policy with the figures of its last minute. t was closed at now.
func (t *trouble) state(now time.Duration, m *Figures, waiting int) string {
	switch outage := t.period-t.bad < shortSlots; {
	case m.GaveUp == 0 && m.Retries == 0 && waiting == 0:
		return calm
	case m.GaveUp == 0:
		return retrying
	case outage && !t.giving && now-t.last > settled:
		return failed
	case 2*m.GaveUp >= m.Runs-m.Canceled:
		return failing
	default:
		return someFail
	}
}
