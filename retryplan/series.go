package retryplan

import "time"

// recovery looks for the moment from which a fleet is well again: the first second after the end of the last trigger from which
// the mean goodput of every 5 s is at least 0.9 of the rate of arrivals, for 20 s.
type recovery struct {
	from   int64 // the end of the last trigger; never where there is nothing to look for
	needed float64
	second int64            // that is being counted, from 0
	counts [healthyMean]int // of the newest seconds; the one being counted is at second modulo their number
	streak int64            // how many windows in a row were well, up to the newest
	found  bool
	at     int64 // the second
}

const (
	healthyMean  = 5  // seconds of a window
	healthyWhile = 20 // seconds of windows in a row
	healthyShare = 0.9
	second       = 1_000_000_000
)

func newRecovery(s *Scenario) recovery {
	from, ok := lastEnd(s.Triggers)
	if !ok || s.Arrivals.Rate == 0 {
		from = never
	}
	return recovery{from: from, needed: healthyShare * s.Arrivals.Rate * healthyMean}
}

// succeeded counts a run that succeeded.
func (r *recovery) succeeded(now int64) {
	if now < r.from || r.found {
		return
	}
	r.reach(now)
	r.counts[r.second%healthyMean]++
}

// reach closes the seconds that end at or before now.
func (r *recovery) reach(now int64) {
	if now < r.from || r.found {
		return
	}
	for to := (now - r.from) / second; r.second < to && !r.found; {
		if to-r.second > 2*healthyMean && r.empty() {
			r.second, r.streak = to-healthyMean, 0 // nothing happens for long
			continue
		}
		r.close()
	}
}

func (r *recovery) empty() bool { return r.counts == [healthyMean]int{} }

// close closes the second that is being counted, and with it the window that ends there.
func (r *recovery) close() {
	sum := 0
	for _, n := range r.counts {
		sum += n
	}
	switch {
	case r.second < healthyMean-1: // no window yet
	case float64(sum) >= r.needed:
		r.streak++
	default:
		r.streak = 0
	}
	if r.streak == healthyWhile-healthyMean+1 {
		r.found = true
		r.at = r.second + 1 - healthyWhile
	}
	r.second++
	r.counts[r.second%healthyMean] = 0
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
