package retryplan

import (
	"math"
	"slices"
)

// outcome is the state of a fleet after its trigger.
type outcome uint8

const (
	undecided outcome = iota
	back              // the fleet is well and stayed so while it was watched
	drains            // it is not well in time, but its backlog shrinks
	lost              // it is not well in time, and its backlog does not shrink
)

const (
	calmTime   = 120 * second // before the trigger; it fills budgets and trains trackers
	withinTime = 600 * second // after the trigger, in which the fleet has to be well
	watchTime  = 120 * second // for which a fleet that is well has to stay so
	// mostWatched bounds the runs for which a fleet is watched, and so the time for which it waits for late retries.
	mostWatched = 100_000
	// leastStorm is the shortest time for which a storm feeds itself before the simulation ends.
	leastStorm = 60 * second
)

// decider ends the simulation of a seed once its outcome is known.
//
// A fleet is back once recovery has found it well, and still does after watch. It is not back if it is not well within
// the time for that. A storm that feeds itself ends the simulation sooner, after a window in which each run that began has
// ended, none succeeded, no budget paid for anything, and the backlog grew by more than chance explains. Measured: without
// the room for chance 8 of 12 seeds of a fleet just below the capacity that a storm leaves were given up, and came back.
type decider struct {
	from   int64 // the end of the trigger
	within int64
	watch  int64
	window int64 // 0 means that no storm is given up
	next   int64 // when to decide again

	mark    mark // the state at the start of the window
	half    mark // the state after half of within
	outcome outcome
}

// mark is the state of a simulation at a time.
type mark struct {
	at                        int64
	well, runs, sent, backlog int
	tokens                    int64
}

func newDecider(front *scenario, nodes []scenario) *decider {
	r := newRecovery(front)
	d := &decider{from: r.from, within: max(withinTime, 2*r.while*second, nanoseconds(20/front.Rate*second)), next: r.from}
	d.watch = max(watchTime, r.while*second, min(r.echo, nanoseconds(mostWatched/front.Rate*second)))
	if front.Trigger.Kind == 0 { // nothing ever needs to be waited for, and a calm is watched as long as a storm
		d.watch = max(d.watch, d.within)
	}
	tracked := slices.ContainsFunc(nodes, func(n scenario) bool { return n.Hedge.Share > 0 })
	if r.echo < d.within && !tracked { // in a storm trackers reduce the hedges for minutes
		d.window = max(leastStorm, r.echo)
	}
	return d
}

// end returns the latest time at which the outcome is known.
func (d *decider) end() int64 { return later(later(d.from, d.within), later(d.watch, second)) }

// decide looks at the fleet at most once a second, and reports whether its outcome is known.
func (d *decider) decide(s *simulation, now int64) bool {
	d.next = now - now%second + second
	s.recovery.reach(now)
	here := s.mark(now)
	if d.mark.at == 0 {
		d.mark = here
	}
	if d.half.at == 0 && now-d.from >= d.within/2 {
		d.half = here
	}
	switch {
	case s.recovery.found && now-d.from-s.recovery.at*second >= d.watch:
		d.outcome = back
	case s.recovery.found:
	case now-d.from >= d.within && here.backlog < d.half.backlog:
		d.outcome = drains
	case now-d.from >= d.within || d.feedsItself(&here):
		d.outcome = lost
	}
	return d.outcome != undecided
}

// feedsItself reports whether the window that ends here was a storm that feeds itself.
func (d *decider) feedsItself(here *mark) bool {
	if d.window == 0 || here.at-d.mark.at < d.window {
		return false
	}
	from := d.mark
	d.mark = *here
	runs, sent := float64(here.runs-from.runs), float64(here.sent-from.sent)
	chance := 4 * sent / math.Sqrt(runs) // 4 standard deviations of the attempts
	return here.well == from.well && here.tokens == from.tokens && float64(here.backlog-from.backlog) > chance
}

// mark returns the state of s.
func (s *simulation) mark(now int64) mark {
	m := mark{at: now, well: s.result.Endings[0], runs: s.begun}
	for i := range s.nodes {
		n := &s.nodes[i]
		m.sent += n.sent
		m.backlog += len(n.queue) + n.busy
		m.tokens += n.tokens
	}
	return m
}
