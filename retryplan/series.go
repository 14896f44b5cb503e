package retryplan

import "time"

// recovery looks for the moment from which a fleet is well again: the first second after the end of the last trigger from which
// the goodput of every 5 s is at least 0.9 of what is due, for 20 s, with a success among it.
//
// What is due in 5 s is what the rate of arrivals begins in them on average, but no more than the runs that chance let begin. A
// run is due when it ends, so that one that is begun at the end of a window and succeeds after it is no loss to the first; but it
// is due 2 s after its begin at the latest, since an overloaded fleet whose runs take ever longer has no fewer of them. All that
// such a fleet can hide so is 2 s of 20 s, the tenth that may be missing anyway.
type recovery struct {
	from   int64 // the end of the last trigger; never where there is nothing to look for
	needed float64
	second int64 // that is being counted, from 0
	// well are the successes and due the runs that are due in the newest seconds, and due those of the next ones that will be
	// if they do not end before; each at its second modulo their number.
	well, due [healthyMean + dueAfter + 1]int
	since     int64 // the first second of the windows that were well, up to the newest
	success   int64 // the last second with a success, -1 for none
	found     bool
	at        int64 // the second
}

const (
	healthyMean  = 5  // seconds of a window
	healthyWhile = 20 // seconds of windows in a row
	healthyShare = 0.9
	dueAfter     = 2 // seconds
	second       = 1_000_000_000
)

func newRecovery(s *Scenario) recovery {
	from, ok := lastEnd(s.Triggers)
	if !ok || s.Arrivals.Rate == 0 {
		from = never
	}
	return recovery{from: from, needed: healthyShare * s.Arrivals.Rate * healthyMean, success: -1}
}

// judges reports whether there is enough time until the given one to see whether the fleet is well.
func (r *recovery) judges(until int64) bool {
	return r.from != never && until-healthyWhile*second >= r.from
}

// began counts a run that begins.
func (r *recovery) began(now int64) {
	if r.found || later(now, dueAfter*second) < r.from {
		return
	}
	r.reach(now)
	r.due[r.dueAt(now)]++
}

// ended counts a run that ends, well or not.
func (r *recovery) ended(began, now int64, well bool) {
	if r.found {
		return
	}
	r.reach(now)
	if now-began < dueAfter*second && later(began, dueAfter*second) >= r.from { // not due yet
		r.due[r.dueAt(began)]--
		if now >= r.from {
			r.due[r.place(now)]++
		}
	}
	if well && now >= r.from {
		r.well[r.place(now)]++
		r.success = r.second
	}
}

// dueAt returns the place of the second in which a run is due at the latest.
func (r *recovery) dueAt(began int64) int { return r.place(later(began, dueAfter*second)) }

func (r *recovery) place(at int64) int { return int((at - r.from) / second % int64(len(r.due))) }

// reach closes the seconds that end at or before now.
func (r *recovery) reach(now int64) {
	if now < r.from || r.found {
		return
	}
	for to := (now - r.from) / second; r.second < to && !r.found; {
		if to-r.second > 2*int64(len(r.due)) && r.empty() {
			r.second = to - int64(len(r.due)) // nothing happens for long, and nothing is due
			continue
		}
		r.close()
	}
}

func (r *recovery) empty() bool {
	var none [len(r.due)]int
	return r.well == none && r.due == none
}

// close closes the second that is being counted, and with it the window that ends there.
func (r *recovery) close() {
	well, due := 0, 0
	for i := max(r.second-healthyMean+1, 0); i <= r.second; i++ {
		well += r.well[i%int64(len(r.well))]
		due += r.due[i%int64(len(r.due))]
	}
	switch {
	case r.second < healthyMean-1: // no window yet
	case float64(well) < min(r.needed, healthyShare*float64(due)):
		r.since = r.second - healthyMean + 2
	}
	if r.second+1-r.since >= healthyWhile && r.success >= r.since {
		r.found, r.at = true, r.since
	}
	old := (r.second - healthyMean + 1 + int64(len(r.due))) % int64(len(r.due))
	r.well[old], r.due[old] = 0, 0
	r.second++
}

// reach closes the points that end at or before now.
func (s *simulation) reach(now int64) {
	for now >= s.edge {
		s.closePoint(s.edge)
		s.series = append(s.series, Point{Start: s.step * time.Duration(len(s.series))})
		s.point = &s.series[len(s.series)-1]
		s.edge = later(s.edge, int64(s.step))
	}
}

// closePoint notes what there is at the end of a point.
func (s *simulation) closePoint(at int64) {
	p := s.point
	p.Queue = s.server.queue.n
	p.Busy = s.server.busy
	p.Waiting = s.waiting
	p.Tokens = s.clients.meanTokens()
	p.Open = s.clients.openBreakers(at)
}
