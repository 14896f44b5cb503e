package retryplan

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

const (
	maxStormAttempts = 1000 // attempts of a run that are counted; also what Model.Horizon allows
	// What was measured of the next three is what was of stepsPerTimeout.
	maxStages     = 24   // attempts of a run that the fluid distinguishes; later ones are like the last of them. Measured: with 4 all of 848 agreed, of fleets with up to 6 attempts
	stormRuns     = 2048 // runs that are played through if a wait depends on those before it. Measured: with 128 all of 848 agreed
	piecesPerWait = 16   // quantiles of a wait that has no closed form. Measured: with 4 all of 848 agreed
)

// storm is what a run does when every attempt is abandoned by its client: the schedule of a policy in a storm.
type storm struct {
	attempts float64 // mean
	stages   []stage // by attempt
	// last is the probability that an attempt beyond the stages follows the one before. It is 0 if there are none.
	last float64
	// timeout is that of the first attempt in seconds, or +Inf if no client ever gives up.
	timeout float64
}

// stage is one attempt of a run in a storm.
type stage struct {
	timeout float64 // mean, in seconds
	goes    float64 // probability that another attempt follows this one
	waits   []piece // before that other attempt
}

// piece is a part of a wait's distribution: even over [lo, hi) seconds.
type piece struct{ lo, hi, share float64 }

// newStorm returns the schedule of p in a storm. Runs of p are played through with the policy's own Decide, in each of
// which every attempt times out, or is refused at once.
func newStorm(p retry.Policy, deadline time.Duration, refused bool) storm {
	timeout := attemptEnds(&p, deadline, 0)
	if timeout == maxDuration {
		return storm{attempts: 1, stages: []stage{{timeout: math.Inf(1)}}, timeout: math.Inf(1)}
	}
	s := playedStorm(p, deadline, refused)
	s.timeout = timeout.Seconds()
	return s
}

// storm returns the schedule of all runs of a fleet together, which have the same timeout.
func (f *Fleet) storm(p retry.Policy, refused bool) storm {
	if len(f.Others) == 0 {
		return newStorm(p, f.Deadline, refused)
	}
	var (
		all   storm
		reach [maxStages]float64 // by attempt: the share of the runs that make it
	)
	populations(p, f.Others, func(p retry.Policy, share float64) {
		s := newStorm(p, f.Deadline, refused)
		all.attempts += share * s.attempts
		all.timeout = s.timeout
		for i, g := range s.stages {
			if i == len(all.stages) {
				all.stages = append(all.stages, stage{})
			}
			reach[i] += share
			a := &all.stages[i]
			a.timeout += share * g.timeout
			share *= g.goes
			a.goes += share
			for _, w := range g.waits {
				a.waits = append(a.waits, piece{w.lo, w.hi, w.share * share})
			}
		}
	})
	for i := range all.stages {
		g := &all.stages[i]
		for k := range g.waits {
			g.waits[k].share /= g.goes
		}
		slices.SortFunc(g.waits, func(x, y piece) int { return cmp.Or(cmp.Compare(x.hi, y.hi), cmp.Compare(x.lo, y.lo)) })
		g.timeout /= reach[i]
		g.goes /= reach[i]
	}
	if len(all.stages) == maxStages {
		all.last = all.stages[maxStages-1].goes
	}
	return all
}

// attemptEnds returns when a client gives up an attempt that begins at the given time; the largest Duration means never.
func attemptEnds(p *retry.Policy, deadline, begins time.Duration) time.Duration {
	ends := maxDuration
	if p.AttemptTimeout > 0 {
		ends = saturatingAdd(begins, p.AttemptTimeout)
	}
	if deadline > 0 {
		ends = min(ends, deadline)
	}
	return ends
}

// play plays one run through and calls visit after each attempt with how long its client would have waited and with
// what was decided.
func play(p *retry.Policy, deadline time.Duration, refused bool, u func() float64, visit func(pr *retry.Progress, timeout time.Duration, d retry.Decision)) {
	pr := retry.Progress{Deadline: deadline}
	for pr.Attempt < maxStormAttempts {
		pr.Attempt++
		begins := pr.Elapsed
		ends, err := attemptEnds(p, deadline, begins), retry.ErrAttemptTimeout
		timeout := ends - begins
		if refused {
			ends, err = begins, ErrRejected
		}
		pr.Elapsed, pr.Lasted = ends, ends-begins
		d := p.Decide(pr, err, u())
		visit(&pr, timeout, d)
		if d.Status != retry.Waiting {
			return
		}
		pr.Elapsed, pr.Prev, pr.Since = saturatingAdd(pr.Elapsed, d.Delay), d.Backoff, d.Since
	}
}

// playedStorm plays runs through and counts: one if the waits are even over their bounds and do not depend on one
// another. The same policy gives the same schedule, since the seed is fixed.
func playedStorm(p retry.Policy, deadline time.Duration, refused bool) storm {
	rnd := rand.New(rand.NewPCG(1, 2))
	runs := stormRuns
	even := p.TTL == 0 && deadline == 0 && p.Jitter != retry.DecorrelatedJitter && p.Wait == nil
	if even {
		runs = 1
	}
	var (
		started  [maxStages]float64
		timeouts [maxStages]float64
		waits    [maxStages][]float64
		bounds   [maxStages]piece
		attempts int
	)
	for range runs {
		play(&p, deadline, refused, rnd.Float64, func(pr *retry.Progress, timeout time.Duration, d retry.Decision) {
			attempts++
			if pr.Attempt > maxStages {
				return
			}
			i := pr.Attempt - 1
			started[i]++
			timeouts[i] += timeout.Seconds()
			if d.Status == retry.Waiting {
				waits[i] = append(waits[i], d.Delay.Seconds())
				lo, hi := p.Bounds(pr.Attempt - d.Since)
				bounds[i] = piece{lo.Seconds(), hi.Seconds(), 1}
			}
		})
	}
	s := storm{attempts: float64(attempts) / float64(runs)}
	for i, n := range started {
		if n == 0 {
			break
		}
		g := stage{timeout: timeouts[i] / n, goes: float64(len(waits[i])) / n, waits: pieces(waits[i])}
		if even && g.goes > 0 {
			g.waits = []piece{bounds[i]}
		}
		s.stages = append(s.stages, g)
	}
	s.fold()
	return s
}

// fold makes the last stage stand for all attempts from it on, so that their number has the same mean.
func (s *storm) fold() {
	told, reach := 0.0, 1.0
	for i := range s.stages {
		told += reach
		if i < len(s.stages)-1 {
			reach *= s.stages[i].goes
		}
	}
	if beyond := s.attempts - told; len(s.stages) == maxStages && beyond > 1e-9 {
		// A geometric number of further attempts with mean beyond/reach.
		s.last = beyond / (beyond + reach)
	}
	if len(s.stages) == maxStages {
		s.stages[maxStages-1].goes = s.last
	}
}

// feeds returns how long, in seconds, all attempts must have failed until those of new runs and their retries alone are
// more than the given number of attempts a run: the earliest time from which a storm cannot but feed itself.
func (s *storm) feeds(attempts float64) float64 {
	sum, reach, span := 0.0, 1.0, 0.0
	for _, g := range s.stages {
		sum += reach
		if sum > attempts {
			return span
		}
		reach *= g.goes
		span += g.timeout
		if n := len(g.waits); n > 0 {
			span += g.waits[n-1].hi
		}
	}
	if s.last > 0 && len(s.stages) > 0 {
		g := s.stages[len(s.stages)-1]
		span += (attempts - sum + 1) * (g.timeout + g.waits[len(g.waits)-1].hi)
	}
	return span
}

// pieces returns the quantiles of the samples as ranges of equal share.
func pieces(samples []float64) []piece {
	n := len(samples)
	if n == 0 {
		return nil
	}
	slices.Sort(samples)
	count := min(piecesPerWait, n)
	all := make([]piece, count)
	for i := range all {
		from, to := i*n/count, (i+1)*n/count
		all[i] = piece{samples[from], samples[min(to, n-1)], float64(to-from) / float64(n)}
	}
	return all
}

// attemptsAt returns how many attempts a run makes in a storm in which a retry that is asked for is paid with
// probability grant: Σ grant^(k−1)·P(attempt k is asked for).
func (s *storm) attemptsAt(grant float64) float64 {
	if grant >= 1 {
		return s.attempts
	}
	sum, reach := 0.0, 1.0
	for i, g := range s.stages {
		sum += reach
		if i == len(s.stages)-1 {
			break
		}
		reach *= g.goes * grant
	}
	if s.last > 0 {
		next := s.last * grant
		sum += reach * next / (1 - next)
	}
	return sum
}
