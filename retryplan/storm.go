package retryplan

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

const (
	maxStormAttempts = 1000 // attempts of a run that are counted; also what Model.Horizon allows
	// The next three were measured as stepsPerTimeout was: with 4 stages (of up to 6 attempts), with 128 runs and with 4
	// quantiles all of 848 fleets agreed.
	maxStages     = 24   // attempts of a run that the fluid distinguishes; later ones are like the last of them
	stormRuns     = 2048 // runs to play through if a wait depends on those before it
	piecesPerWait = 16   // quantiles of a wait that has no closed form
)

// storm is what the runs of a fleet do when every attempt is abandoned by its client: the schedule of its policies in a
// storm.
type storm struct {
	attempts float64 // mean
	// stages are the attempts of a run in their order. The last of maxStages stands for all attempts from it on, and
	// follows itself.
	stages []stage
	// timeout is that of the first attempt in seconds, or +Inf if no client ever gives up.
	timeout float64
}

// stage is one attempt of a run in a storm.
type stage struct {
	timeout float64 // mean, in seconds
	goes    float64 // probability that another attempt follows this one
	waits   []piece // before that other attempt, the longest last
}

// piece is a part of a wait's distribution: even over [lo, hi) seconds.
type piece struct{ lo, hi, share float64 }

// storm returns the schedule of all runs of a fleet together. They are played through with the policy's own Decide; every
// attempt times out, or is refused at once. One run is enough if the waits are even over their bounds and do not depend
// on one another. The same fleet gives the same schedule, since the seed is fixed.
func (f *Fleet) storm(p retry.Policy, refused bool) storm {
	timeout := attemptEnds(&p, f.Deadline, 0)
	if timeout == maxDuration {
		return storm{attempts: 1, stages: []stage{{timeout: math.Inf(1)}}, timeout: math.Inf(1)}
	}
	takes := maxDuration
	if refused {
		takes = 0
	}
	even, runs := f.Deadline == 0 && p.TTL == 0 && p.Jitter != retry.DecorrelatedJitter && p.Wait == nil, stormRuns
	if even {
		runs = 1
	}
	var (
		s       = storm{timeout: timeout.Seconds()}
		rnd     = rand.New(rand.NewPCG(1, 2))
		each    = 1 / float64(runs)
		started [maxStages]float64 // by attempt: the share of the runs that make it
		waits   [maxStages][]float64
	)
	for range runs {
		play(&p, f.Deadline, takes, ErrRejected, rnd.Float64, func(pr *retry.Progress, timeout time.Duration, d retry.Decision) {
			s.attempts += each
			if pr.Attempt > maxStages {
				return
			}
			i := pr.Attempt - 1
			if i == len(s.stages) {
				s.stages = append(s.stages, stage{})
			}
			g := &s.stages[i]
			started[i] += each
			g.timeout += each * timeout.Seconds()
			if d.Status != retry.WaitingRetry {
				return
			}
			g.goes += each
			if even {
				lo, hi := p.Bounds(pr.Attempt - d.Forgiven)
				g.waits = []piece{{lo.Seconds(), hi.Seconds(), 1}}
				return
			}
			waits[i] = append(waits[i], d.Delay.Seconds())
		})
	}
	staged := 0.0 // attempts of the stages
	for i := range s.stages {
		g := &s.stages[i]
		staged += started[i]
		if !even {
			g.waits = pieces(waits[i])
		}
		g.timeout /= started[i]
		g.goes /= started[i]
	}
	if len(s.stages) == maxStages {
		// A geometric number of further attempts with mean beyond/last.
		last, goes := started[maxStages-1], &s.stages[maxStages-1].goes
		if beyond := s.attempts - staged; beyond > 1e-9 {
			*goes = beyond / (beyond + last)
		} else {
			*goes = 0
		}
	}
	return s
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

// play plays one run through whose attempts fail with an error after the given time, or time out before it. It calls
// visit after each attempt with how long its client would have waited and with what was decided.
func play(p *retry.Policy, deadline, takes time.Duration, failure error, u func() float64, visit func(pr *retry.Progress, timeout time.Duration, d retry.Decision)) {
	pr := retry.Progress{Deadline: deadline}
	for pr.Attempt < maxStormAttempts {
		pr.Attempt++
		begins := pr.Elapsed
		ends, err := attemptEnds(p, deadline, begins), retry.ErrAttemptTimeout
		timeout := ends - begins
		if takes < timeout {
			ends, err = saturatingAdd(begins, takes), failure
		}
		pr.Elapsed, pr.Lasted = ends, ends-begins
		d := p.Decide(pr, err, u())
		visit(&pr, timeout, d)
		if d.Status != retry.WaitingRetry {
			return
		}
		pr.Elapsed, pr.Prev, pr.Forgiven = saturatingAdd(pr.Elapsed, d.Delay), d.Backoff, d.Forgiven
	}
}

// feeds returns how long, in seconds, all attempts must have failed until those of new runs and their retries alone are
// more than the given number of attempts a run: the earliest time from which a storm cannot but feed itself.
func (s *storm) feeds(attempts float64) float64 {
	sum, reach, span := 0.0, 1.0, 0.0
	for i, g := range s.stages {
		sum += reach
		if sum > attempts {
			return span
		}
		lasts := g.timeout
		if n := len(g.waits); n > 0 {
			lasts += g.waits[n-1].hi
		}
		span += lasts
		if i == maxStages-1 && g.goes > 0 {
			span += (attempts - sum + 1) * lasts
		}
		reach *= g.goes
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
		next := g.goes * grant
		if i == maxStages-1 {
			reach /= 1 - next
		}
		sum += reach
		reach *= next
	}
	return sum
}
