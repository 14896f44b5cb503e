package retryplan_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// millis is a duration of whole milliseconds.
func millis(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// planSamples returns the number of runs in the sampled distributions. RETRYPLAN_SAMPLES asks for more. The README is
// about 10000000, with a tolerance of 1.4e-3.
func planSamples(few int) int {
	if n, err := strconv.Atoi(os.Getenv("RETRYPLAN_SAMPLES")); err == nil {
		return n
	}
	return trials(few, few)
}

// planTolerance is the distance that the CDF of so many samples keeps from the true one but once in a million cases, by
// the Dvoretzky–Kiefer–Wolfowitz inequality, plus the error that the plan may have.
//
// The error of a plan of decorrelated jitter is the chance in its own samples.
func planTolerance(p retry.Policy, n int) float64 {
	wrong := 5e-4
	if p.Jitter == retry.DecorrelatedJitter && n > 100_000 { // fewer samples do not show it
		wrong = 1e-2
	}
	return 2.7/math.Sqrt(float64(n)) + wrong
}

// distance returns how far the CDF of d is from that of the samples, which it sorts, if times may be wrong by off. A
// staircase is farthest from a CDF just before a step and at it.
func distance(d retryplan.Distribution, seen []time.Duration, off time.Duration) (most float64) {
	slices.Sort(seen)
	n := float64(len(seen))
	stride := max(len(seen)/200_000, 1)
	for i := 0; i < len(seen); i += stride {
		x := seen[i]
		up, _ := slices.BinarySearch(seen, x+1)
		low, _ := slices.BinarySearch(seen, x)
		most = max(most, d.CDF(x-1-off)-float64(low)/n, float64(up)/n-d.CDF(x+off))
	}
	return most
}

var errSampled = errors.New("sampled failure")

// sampledEnd is one run, as a slow second implementation of the plan makes it: a loop over Decide.
type sampledEnd struct {
	elapsed  time.Duration
	attempts int
	reason   retry.Reason
}

func sampledRun(p retry.Policy, m retryplan.Model, rnd *rand.Rand) sampledEnd {
	var r sampledEnd
	var prev time.Duration
	deadline := m.Deadline
	for r.attempts = 1; ; r.attempts++ {
		took := m.Duration.At(rnd.Float64())
		failed := rnd.Float64() < m.Failure[min(r.attempts, len(m.Failure))-1]
		if p.AttemptTimeout > 0 && took > p.AttemptTimeout {
			took, failed = p.AttemptTimeout, true
		}
		if deadline > 0 && r.elapsed+took > deadline {
			r.elapsed, r.reason = deadline, retry.DeadlinePassed
			return r
		}
		r.elapsed += took
		if !failed {
			return r
		}
		if deadline > 0 && r.elapsed >= deadline {
			r.reason = retry.DeadlinePassed
			return r
		}
		d := p.Decide(retry.Progress{Attempt: r.attempts, Elapsed: r.elapsed, Prev: prev}, errSampled, rnd.Float64())
		if d.Status != retry.WaitingRetry {
			r.reason = d.Reason
			return r
		}
		if deadline > 0 && r.elapsed+d.Delay >= deadline {
			r.reason = retry.DeadlineTooNear
			return r
		}
		prev = d.Delay
		r.elapsed += d.Delay
	}
}

var totalWaits = []struct {
	name   string
	policy retry.Policy
}{
	{"full", retry.Policy{MaxAttempts: 10, Backoff: retry.Backoff{Base: millis(100), Jitter: retry.FullJitter}}},
	{"full with two waits", retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: millis(100), Jitter: retry.FullJitter}}},
	{"full with one wait", retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: millis(100), Jitter: retry.FullJitter}}},
	{"full at the cap", retry.Policy{MaxAttempts: 20, Backoff: retry.Backoff{Base: millis(100), Cap: millis(400), Jitter: retry.FullJitter}}},
	{"full with a large factor", retry.Policy{MaxAttempts: 6, Backoff: retry.Backoff{Base: millis(1), Factor: 10, Jitter: retry.FullJitter}}},
	{"full of nanoseconds", retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 3, Jitter: retry.FullJitter}}},
	{"equal", retry.Policy{MaxAttempts: 8, Backoff: retry.Backoff{Base: millis(100), Jitter: retry.EqualJitter}}},
	{"equal linear", retry.Policy{MaxAttempts: 12, Backoff: retry.Backoff{Mode: retry.Linear, Base: millis(100), Jitter: retry.EqualJitter}}},
	{"ratio", retry.Policy{MaxAttempts: 8, Backoff: retry.Backoff{Base: millis(100), Jitter: retry.RatioJitter}}},
	{"ratio at the cap", retry.Policy{MaxAttempts: 8, Backoff: retry.Backoff{Base: millis(100), Cap: millis(1000), Jitter: retry.RatioJitter, JitterRatio: 1}}},
	{"ratio of a list", retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{millis(10), 0, millis(60_000), 1, millis(500)}, Jitter: retry.RatioJitter}}},
	{"full fixed", retry.Policy{MaxAttempts: 13, Backoff: retry.Backoff{Mode: retry.Fixed, Base: millis(100), Jitter: retry.FullJitter}}},
	{"decorrelated", retry.Policy{MaxAttempts: 10, Backoff: retry.Backoff{Base: millis(100), Cap: millis(10_000), Jitter: retry.DecorrelatedJitter}}},
	{"decorrelated with one wait", retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Base: millis(100), Cap: millis(10_000), Jitter: retry.DecorrelatedJitter}}},
	{"decorrelated with two waits", retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: millis(100), Cap: millis(10_000), Jitter: retry.DecorrelatedJitter}}},
	{"decorrelated at the cap", retry.Policy{MaxAttempts: 12, Backoff: retry.Backoff{Base: millis(100), Cap: millis(500), Jitter: retry.DecorrelatedJitter}}},
	{"decorrelated below three bases", retry.Policy{MaxAttempts: 6, Backoff: retry.Backoff{Base: millis(100), Cap: millis(170), Jitter: retry.DecorrelatedJitter}}},
	{"decorrelated just above the base", retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Base: millis(100), Cap: millis(100) + 3000, Jitter: retry.DecorrelatedJitter}}},
	{"decorrelated without a cap", retry.Policy{MaxAttempts: 8, Backoff: retry.Backoff{Base: millis(1), Jitter: retry.DecorrelatedJitter}}},
}

func TestTotalWaitAgreesWithSamplesOfJittered(t *testing.T) {
	n := planSamples(60_000)
	for i, row := range totalWaits {
		t.Run(row.name, func(t *testing.T) {
			plan := planned(t, row.policy, retryplan.Model{})
			rnd := rand.New(rand.NewPCG(uint64(i), 8))
			seen := make([]time.Duration, n)
			for j := range seen {
				var prev time.Duration
				for attempt := range len(plan.Attempts) - 1 {
					prev = row.policy.Jittered(attempt+1, prev, rnd.Float64())
					seen[j] += prev
				}
			}
			far := distance(plan.TotalWait, seen, 0)
			t.Logf("distance %.2e of %d samples", far, n)
			require.Less(t, far, planTolerance(row.policy, n))
		})
	}
}

type wholeRun struct {
	name   string
	policy retry.Policy
	model  retryplan.Model
}

var wholeRuns = []wholeRun{
	{
		"full jitter, no limits",
		retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Base: millis(100), Jitter: retry.FullJitter}},
		retryplan.Model{Failure: []float64{0.5}, Duration: retryplan.Exponential(millis(50))},
	},
	{
		"no jitter, random durations, timeout",
		retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: millis(100)}, AttemptTimeout: millis(80)},
		retryplan.Model{Failure: []float64{0.3, 0.6}, Duration: retryplan.Exponential(millis(50))},
	},
	{
		"full jitter, TTL",
		retry.Policy{MaxAttempts: 10, Backoff: retry.Backoff{Base: millis(100), Jitter: retry.FullJitter}, TTL: millis(2000)},
		retryplan.Model{Failure: []float64{0.8}, Duration: retryplan.Constant(millis(20))},
	},
	{
		"ratio jitter, TTL, deadline before it, timeout",
		retry.Policy{MaxAttempts: 10, Backoff: retry.Backoff{Base: millis(100), Jitter: retry.RatioJitter}, TTL: millis(2000), AttemptTimeout: millis(300)},
		retryplan.Model{Failure: []float64{0.8}, Duration: retryplan.LogNormal(millis(100), millis(500)), Deadline: millis(1700)},
	},
	{
		"equal jitter, deadline after TTL",
		retry.Policy{MaxAttempts: 10, Backoff: retry.Backoff{Base: millis(100), Jitter: retry.EqualJitter}, TTL: millis(2000)},
		retryplan.Model{Failure: []float64{0.9}, Duration: retryplan.LogNormal(millis(100), millis(400)), Deadline: millis(2050)},
	},
	{
		"decorrelated, no limits",
		retry.Policy{MaxAttempts: 6, Backoff: retry.Backoff{Base: millis(100), Cap: millis(1000), Jitter: retry.DecorrelatedJitter}},
		retryplan.Model{Failure: []float64{0.7}, Duration: retryplan.Uniform(millis(10), millis(200))},
	},
	{
		"decorrelated, TTL",
		retry.Policy{MaxAttempts: 10, Backoff: retry.Backoff{Base: millis(100), Cap: millis(1000), Jitter: retry.DecorrelatedJitter}, TTL: millis(2000)},
		retryplan.Model{Failure: []float64{0.9}, Duration: retryplan.Constant(millis(30))},
	},
	{
		"decorrelated, TTL, deadline, random durations",
		retry.Policy{MaxAttempts: 10, Backoff: retry.Backoff{Base: millis(100), Cap: millis(1000), Jitter: retry.DecorrelatedJitter}, TTL: millis(2000)},
		retryplan.Model{Failure: []float64{0.9}, Duration: retryplan.Exponential(millis(30)), Deadline: millis(1900)},
	},
	{
		"decorrelated, TTL, durations longer than the waits",
		retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: millis(10), Cap: millis(2000), Jitter: retry.DecorrelatedJitter}, TTL: millis(1000)},
		retryplan.Model{Failure: []float64{1}, Duration: retryplan.Uniform(0, millis(1500))},
	},
	{
		"decorrelated, deadline before the TTL, durations as long as the waits",
		retry.Policy{MaxAttempts: 6, Backoff: retry.Backoff{Base: millis(100), Cap: millis(5000), Jitter: retry.DecorrelatedJitter}, TTL: millis(1500)},
		retryplan.Model{Failure: []float64{1}, Duration: retryplan.Exponential(millis(300)), Deadline: millis(1000)},
	},
	{
		"decorrelated, TTL, timeout, two kinds of durations",
		retry.Policy{MaxAttempts: 8, Backoff: retry.Backoff{Base: millis(50), Cap: millis(5000), Jitter: retry.DecorrelatedJitter}, TTL: millis(3000), AttemptTimeout: millis(400)},
		retryplan.Model{Failure: []float64{0.9}, Duration: retryplan.LogNormal(millis(20), millis(4000))},
	},
	{
		"decorrelated, TTL after many attempts",
		retry.Policy{MaxAttempts: 60, Backoff: retry.Backoff{Base: millis(100), Cap: millis(10_000), Jitter: retry.DecorrelatedJitter}, TTL: 3 * time.Minute},
		retryplan.Model{Failure: []float64{1}, Duration: retryplan.LogNormal(millis(20), millis(200))},
	},
	{
		"decorrelated, a TTL that never acts",
		retry.Policy{MaxAttempts: 12, Backoff: retry.Backoff{Base: millis(10), Jitter: retry.DecorrelatedJitter}, TTL: 24 * time.Hour},
		retryplan.Model{Failure: []float64{1}},
	},
	{
		"decorrelated, a TTL that hardly ever acts",
		retry.Policy{MaxAttempts: 12, Backoff: retry.Backoff{Base: millis(10), Jitter: retry.DecorrelatedJitter}, TTL: 30 * time.Minute},
		retryplan.Model{Failure: []float64{1}},
	},
	{
		"decorrelated, a TTL that seldom acts, random durations",
		retry.Policy{MaxAttempts: 12, Backoff: retry.Backoff{Base: millis(10), Jitter: retry.DecorrelatedJitter}, TTL: 2 * time.Minute},
		retryplan.Model{Failure: []float64{0.9}, Duration: retryplan.Exponential(millis(5))},
	},
	{
		"decorrelated, a TTL that acts early and late",
		retry.Policy{MaxAttempts: 12, Backoff: retry.Backoff{Base: millis(10), Cap: time.Hour, Jitter: retry.DecorrelatedJitter}, TTL: 10 * time.Second},
		retryplan.Model{Failure: []float64{0.5}, Duration: retryplan.Constant(millis(1))},
	},
	{
		"decorrelated, all ends late and near one another",
		retry.Policy{MaxAttempts: 18, Backoff: retry.Backoff{Base: millis(13_281), Cap: millis(13_283), Jitter: retry.DecorrelatedJitter}, AttemptTimeout: millis(237)},
		retryplan.Model{Failure: []float64{1}, Duration: retryplan.Constant(millis(237))},
	},
	{
		"decorrelated, first ends near one another",
		retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 502_060, Jitter: retry.DecorrelatedJitter}},
		retryplan.Model{Failure: []float64{0.9}, Duration: retryplan.Uniform(17_087, 17_206), Deadline: 222_199},
	},
	{
		"disabled",
		retry.Policy{Disabled: true, AttemptTimeout: millis(50)},
		retryplan.Model{Failure: []float64{0.4}, Duration: retryplan.Exponential(millis(30))},
	},
	{
		"no jitter, TTL met to the nanosecond",
		retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Mode: retry.Fixed, Base: millis(100)}, TTL: millis(330)},
		retryplan.Model{Failure: []float64{0.5}, Duration: retryplan.Constant(millis(10))},
	},
	{
		"no jitter, deadline met to the nanosecond",
		retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Mode: retry.Fixed, Base: millis(100)}},
		retryplan.Model{Failure: []float64{0.5}, Duration: retryplan.Constant(millis(10)), Deadline: millis(330)},
	},
}

// narrowRuns have jitter that is narrower than the steps in which a plan counts time.
var narrowRuns = []wholeRun{
	{
		"waits of a few steps after durations that are seldom long",
		retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: millis(10), Jitter: retry.RatioJitter, JitterRatio: 0.01}, AttemptTimeout: 2 * time.Second},
		retryplan.Model{Failure: []float64{1}, Duration: retryplan.LogNormal(millis(1), 5*time.Second)},
	},
	{
		"decorrelated just above the base",
		retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Base: millis(100), Cap: millis(100) + 1000, Jitter: retry.DecorrelatedJitter}, TTL: millis(350)},
		retryplan.Model{Failure: []float64{0.5}, Duration: retryplan.Uniform(0, millis(40))},
	},
	{
		"ends that the TTL brings together",
		retry.Policy{MaxAttempts: 10, Backoff: retry.Backoff{Base: millis(10), Jitter: retry.RatioJitter, JitterRatio: 0.001}, TTL: millis(2000)},
		retryplan.Model{Failure: []float64{0.9}, Duration: retryplan.Exponential(1000)},
	},
}

func TestWholeRunsAgreeWithSamplesOfDecide(t *testing.T) {
	n := planSamples(60_000)
	for i, row := range slices.Concat(wholeRuns, narrowRuns) {
		t.Run(row.name, func(t *testing.T) {
			plan := planned(t, row.policy, row.model)
			var off time.Duration
			if i >= len(wholeRuns) {
				off = (plan.Elapsed.Quantile(0.9999) - plan.Elapsed.Min()) / 1000
			}
			rnd := rand.New(rand.NewPCG(uint64(i), 9))
			seen := make([]time.Duration, n)
			starts := make([]float64, len(plan.Attempts))
			endings := map[retry.Reason]float64{}
			for j := range seen {
				r := sampledRun(row.policy, row.model, rnd)
				seen[j] = r.elapsed
				endings[r.reason] += 1 / float64(n)
				for k := range r.attempts {
					starts[k] += 1 / float64(n)
				}
			}
			far := distance(plan.Elapsed, seen, off)
			most := 0.
			for reason := retry.Reason(0); reason <= retry.CallerCanceled; reason++ {
				most = max(most, math.Abs(endings[reason]-plan.Endings[reason]))
			}
			for k, a := range plan.Attempts {
				most = max(most, math.Abs(a.Starts-starts[k]))
			}
			t.Logf("distance %.2e within %v, of a probability %.2e, of %d samples", far, off, most, n)
			require.Less(t, far, planTolerance(row.policy, n))
			require.Less(t, most, planTolerance(row.policy, n))
			require.LessOrEqual(t, seen[n-1], plan.WorstCase)
		})
	}
}
