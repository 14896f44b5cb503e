package retryplan_test

import (
	"testing"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// herd is the thundering herd: 1,000 clients that call at once, a server that is down for 10 s and then accepts 20
// attempts in each 100 ms, and a latency of 10 ms.
func herd(p retry.Policy) retryplan.Scenario {
	p.MaxAttempts = retry.Unlimited
	return retryplan.Scenario{
		Policy:   p,
		Clients:  1000,
		Network:  retryplan.Constant(5 * time.Millisecond),
		Server:   retryplan.Server{RateLimit: 20, RateWindow: 100 * time.Millisecond},
		Triggers: []retryplan.Trigger{{Kind: retryplan.Outage, For: 10 * time.Second}},
		Duration: 10 * time.Second,
		Step:     5 * time.Millisecond,
		Drain:    true,
	}
}

// herdFigures are the attempts, those rejected after the recovery, the most that arrive in 100 ms then, and when half,
// 95 % and all of the clients are done, in seconds after it. The reference's quantiles are the elements q·n of n, from 0.
func herdFigures(r retryplan.Result) []float64 {
	figures := []float64{float64(r.Attempts), 0, 0}
	done, next := 0, []int{501, 951, 1000}
	var sent [20]int // attempts that arrive in the newest 100 ms
	for i, p := range r.Series {
		for done += p.Goodput; len(next) > 0 && done >= next[0]; next = next[1:] {
			figures = append(figures, (p.Start+r.Step/2).Seconds()-10)
		}
		if i >= 1999 {
			figures[1] += float64(p.Rejected)
			sent[(i+1)%20] = p.Attempts // they arrive a step later
			if (i+1)%20 == 19 {
				sum := 0
				for _, n := range sent {
					sum += n
				}
				figures[2] = max(figures[2], float64(sum))
			}
		}
	}
	return figures
}

var herdNames = []string{"calls", "rejected", "peak", "50 %", "95 %", "100 %"}

var herdBackoff = retry.Backoff{Base: 100 * time.Millisecond, Cap: 10 * time.Second}

func herdJittered(j retry.JitterMode, ratio float64) retry.Policy {
	b := herdBackoff
	b.Jitter, b.JitterRatio = j, ratio
	return retry.Policy{Backoff: b}
}

// herdAround waits for the delay times lo to hi, spread after the cap and so beyond it.
func herdAround(lo, hi float64) retry.Policy {
	even := retry.Backoff{Mode: retry.Fixed, Base: time.Hour, Cap: time.Hour, Jitter: retry.FullJitter}
	return retry.Policy{Backoff: even, Wait: func(attempt int, _ error, computed time.Duration) time.Duration {
		return time.Duration(float64(herdBackoff.Delay(attempt)) * (lo + float64((hi-lo)*computed.Hours())))
	}}
}

// The table holds the means of 10 runs. Two of its jitters differ from ours at the cap: ours clip the window, and these
// let the sample pass it or pile up on it. Ours must not be later.
func TestReferenceHerd(t *testing.T) {
	c := compare(t, "1,000 clients behind an outage: calls, rejected after it, peak in 100 ms, done after it in s")
	ratio := [6]float64{8122, 8, 24, 3.5, 10.3, 16.9}
	decorrelated := [6]float64{11616, 187, 45, 2.7, 9.0, 12.0}
	for _, row := range []struct {
		name   string
		policy retry.Policy
		ours   bool
		want   [6]float64
		sd     [6]float64
	}{
		{"none", herdJittered(retry.NoJitter, 0), false,
			[6]float64{32500, 24500, 1000, 253, 473, 493}, [6]float64{}},
		{"full", herdJittered(retry.FullJitter, 0), false,
			[6]float64{9459, 18, 27, 3.3, 8.0, 11.6}, [6]float64{26, 7.2, 2.5, .1, .16, 1.06}},
		{"ratio .5 beyond the cap", herdAround(.5, 1.5), false,
			ratio, [6]float64{11.2, 5.6, 1.87, .09, .68, 1.16}},
		{"ratio .5", herdJittered(retry.RatioJitter, .5), true,
			ratio, [6]float64{11, 5.7, 1.88, .086, .25, 1.08}},
		{"equal", herdJittered(retry.EqualJitter, 0), false,
			[6]float64{8705, 78, 38, 5.5, 9.1, 14.0}, [6]float64{10.5, 12.6, 3.2, .1, .11, 2.5}},
		{"decorrelated", herdJittered(retry.DecorrelatedJitter, 0), true,
			decorrelated, [6]float64{142, 22.3, 3.9, .045, .21, .64}},
		{".8d+.2dU (Temporal)", herdAround(.8, 1), false,
			[6]float64{8786, 786, 88, 10.0, 19.8, 21.1}, [6]float64{14.8, 14.8, 5.3, .046, .12, .154}},
		{"d(1+.1U) (Kubernetes)", herdAround(1, 1.1), false,
			[6]float64{9483, 1483, 161, 17.3, 35.2, 42.8}, [6]float64{19.8, 19.8, 8.8, 4.4, .062, 3.8}},
	} {
		values := sample(t, seeds(10, 100), func(uint64) retryplan.Scenario { return herd(row.policy) }, herdFigures)
		for i, name := range herdNames {
			unit := 1.0
			if i > 2 && row.want[i] < 100 {
				unit = .1
			}
			f := measured(row.want[i], 10, row.sd[i], unit)
			if row.ours && i > 3 {
				c.atMost(row.name+", "+name, values[i], f)
			} else {
				c.mean(row.name+", "+name, values[i], f)
			}
		}
	}
	c.done()
}

// A rejection that says when to come back, spread over the time that the server needs for all, is what a herd wants: in
// the reference it takes the place of the backoff, and all are done after 12.3 s. Server.RetryAfter is a floor for the
// wait and is given during the outage as well, which spreads the clients before it ends.
func TestReferenceHerdWithRetryAfter(t *testing.T) {
	c := compare(t, "The same herd, told to come back within 5 s: all done after the outage, in s")
	finished := func(p retry.Policy, hint time.Duration) []float64 {
		return sample(t, seeds(10, 100), func(uint64) retryplan.Scenario {
			s := herd(p)
			s.Server.RetryAfter = retryplan.Uniform(0, hint)
			return s
		}, herdFigures)[5]
	}
	c.mean("no jitter", finished(herdAround(1, 1), 0), measured(493, 10, 0, 1))
	c.atMost("no jitter, RetryAfter", finished(herdJittered(retry.NoJitter, 0), 5*time.Second), measured(12.3, 10, .64, .1))
	// This is RatioJitter, whose last clients vary much since its window is clipped at the cap. A ratio beyond the cap
	// gives 15.8 s with an sd of 0.2, which the reference's figure does not agree with.
	c.mean("ratio .2", finished(herdJittered(retry.RatioJitter, .2), 0), measured(16.2, 10, 3.3, .1))
	c.atMost("ratio .2, RetryAfter", finished(herdJittered(retry.RatioJitter, .2), 5*time.Second), measured(16.2, 10, .61, .1))
	c.done()
}
