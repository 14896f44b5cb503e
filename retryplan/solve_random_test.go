package retryplan_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
	"github.com/stretchr/testify/require"
)

// solvable returns requirements that a random policy is known to meet: its own figures, loosened by a twentieth.
func solvable(t *testing.T, row uint64) (retryplan.Requirements, retry.Policy) {
	rnd := rand.New(rand.NewPCG(row, 5))
	r := retryplan.Requirements{Failure: math.Round(rnd.Float64()*70) / 100}
	median := inSeconds(spread(rnd, 0.01, 1))
	switch rnd.IntN(3) {
	case 0:
		r.Duration = retryplan.Constant(median)
	case 1:
		r.Duration = retryplan.LogNormal(median, time.Duration(spread(rnd, 2, 20)*float64(median)))
	case 2:
		r.Duration = retryplan.Exponential(median)
	}
	bases := []time.Duration{time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second}
	p := retry.Policy{MaxAttempts: 1 + rnd.IntN(5), Backoff: retry.Backoff{Base: bases[rnd.IntN(len(bases))], Jitter: retry.FullJitter}}
	withOutage := p.MaxAttempts > 1 && rnd.IntN(3) == 0
	if withOutage {
		p.Jitter = retry.EqualJitter
	}
	if rnd.IntN(3) > 0 {
		p.AttemptTimeout = median * time.Duration([]int{2, 4, 5, 8}[rnd.IntN(4)])
		for unit := time.Millisecond; unit < time.Minute; unit *= 10 {
			if p.AttemptTimeout >= unit && p.AttemptTimeout < 10*unit {
				p.AttemptTimeout = p.AttemptTimeout / unit * unit // one digit
			}
		}
	}
	plan, err := retryplan.New(p, retryplan.Model{Failure: []float64{r.Failure}, Duration: r.Duration})
	require.NoError(t, err)
	for r.Success == 0 && r.P99 == 0 && r.WorstCase == 0 && r.Load == 0 && r.Outage == 0 {
		if rnd.IntN(2) == 0 && plan.Success < 1 {
			r.Success = 1 - min((1-plan.Success)*1.05, 1)
		}
		if rnd.IntN(2) == 0 {
			r.P99 = plan.Elapsed.Quantile(0.99) / 20 * 21
		}
		if rnd.IntN(2) == 0 && plan.WorstCase < math.MaxInt64/2 {
			r.WorstCase = plan.WorstCase / 20 * 21
		}
		if rnd.IntN(2) == 0 {
			r.Load = 1 + (plan.Load-1)*1.05
		}
		if withOutage {
			lo, _ := p.TotalWait()
			r.Outage = lo / 20 * 19
		}
	}
	if rnd.IntN(8) == 0 && r.Load > 0 { // of those with a Load, so that the backend bears it
		r.Fleet = &retryplan.Fleet{Rate: 100, Capacity: math.Round(100 * plan.Load * spread(rnd, 1.2, 3)), Workers: 200, Clients: 10,
			Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 5 * time.Second}}
	}
	return r, p
}

// unsolvable returns requirements that no policy at all can meet, and those of them that conflict.
func unsolvable(row uint64) (r retryplan.Requirements, a, b retryplan.Requirement) {
	rnd := rand.New(rand.NewPCG(row, 6))
	d := inSeconds(spread(rnd, 0.01, 1))
	r.Failure = 0.1 + math.Round(rnd.Float64()*60)/100
	r.Duration = retryplan.Constant(d)
	attempts := 2 + rnd.IntN(6)
	enough := 1 - math.Pow(r.Failure, float64(attempts)-0.5) // attempts−1 are too few, and that many do
	switch rnd.IntN(6) {
	case 0: // so many attempts take their time
		r.Success, r.WorstCase = enough, time.Duration(attempts)*d/10*9
		a, b = "Success", "WorstCase"
	case 1: // E[attempts]·(1−f) = P(success) for any rule that says when to stop
		r.Success, r.Load = enough, max(1, 0.95*enough/(1-r.Failure))
		if r.Load == 1 {
			r.Success = 1 - r.Failure*0.9
		}
		a, b = "Success", "Load"
	case 2:
		r.Outage = inSeconds(spread(rnd, 1, 1000))
		r.WorstCase = r.Outage / 10 * 9
		a, b = "WorstCase", "Outage"
	case 3: // a run makes its k-th attempt with probability f^(k−1), here above a hundredth
		k := min(attempts, 1+int(math.Log(0.011)/math.Log(r.Failure)))
		r.Success, r.P99 = enough, time.Duration(k)*d/10*9
		a, b = "Success", "P99"
	case 4:
		rate := spread(rnd, 10, 1000)
		r.Fleet = &retryplan.Fleet{Rate: rate, Capacity: rate * spread(rnd, 0.3, 1), Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: time.Second}}
		r.P99 = time.Minute
		a = "Fleet"
	case 5:
		r.Failure = 0.95
		r.Success = 1 - math.Pow(0.95, 64)/2
		r.Outage = time.Minute
		a = "Success"
	}
	return r, a, b
}

func rowsOf(short int) uint64 {
	if fullForm {
		return 200
	}
	return uint64(short)
}

// TestSolveMeetsWhatCanBeMet takes requirements that a policy is known to meet, 20 of them, or 200 with
// RETRYPLAN_FULL=1, and checks Solve's policy against them by New.
func TestSolveMeetsWhatCanBeMet(t *testing.T) {
	for row := range rowsOf(20) {
		r, known := solvable(t, row)
		t.Run(fmt.Sprint(row), func(t *testing.T) {
			s, err := retryplan.Solve(context.Background(), r)
			require.NoError(t, err, "%+v is met by %v, attempt timeout %v", r, known, known.AttemptTimeout)
			require.NoError(t, s.Policy.Validate())
			plan, err := retryplan.New(s.Policy, retryplan.Model{Failure: []float64{r.Failure}, Duration: r.Duration})
			require.NoError(t, err)
			const rounding = 1e-9
			require.GreaterOrEqual(t, plan.Success+rounding, r.Success)
			if r.P99 > 0 {
				require.LessOrEqual(t, plan.Elapsed.Quantile(0.99), r.P99)
			}
			if r.WorstCase > 0 {
				require.LessOrEqual(t, plan.WorstCase, r.WorstCase)
			}
			if r.Load > 0 {
				require.LessOrEqual(t, plan.Load, r.Load+rounding)
			}
			if r.Outage > 0 {
				at, err := retryplan.New(s.Policy, retryplan.Model{})
				require.NoError(t, err)
				require.GreaterOrEqual(t, at.Attempts[at.CanStart-1].Earliest, r.Outage)
			}
			if r.Fleet != nil {
				require.True(t, s.Certificate.Stability.Survives())
				require.True(t, s.Simulation.Recovered)
			}
		})
	}
}

// TestSolveNamesWhatCannotBeMet takes requirements that no policy can meet, 20 of them, or 200 with RETRYPLAN_FULL=1.
func TestSolveNamesWhatCannotBeMet(t *testing.T) {
	for row := range rowsOf(20) {
		r, a, b := unsolvable(row)
		t.Run(fmt.Sprint(row), func(t *testing.T) {
			s, err := retryplan.Solve(context.Background(), r)
			var infeasible *retryplan.InfeasibleError
			require.ErrorAs(t, err, &infeasible, "%+v: %v", r, s.Policy)
			require.Equal(t, []retryplan.Requirement{a, b}, []retryplan.Requirement{infeasible.A, infeasible.B}, "%+v: %v", r, err)
			t.Log(err)
		})
	}
}

// FuzzSolve holds what the doc comments promise of any requirements: a policy that meets them, or an error of a known
// kind.
func FuzzSolve(f *testing.F) {
	f.Add(0.1, 0.999, int64(time.Second), int64(2*time.Second), 1.5, int64(0), int64(20*time.Millisecond), int64(200*time.Millisecond))
	f.Add(0.5, 0.9, int64(0), int64(0), 0.0, int64(time.Hour), int64(0), int64(0))
	f.Add(0.0, 0.0, int64(1), int64(1), 1.0, int64(math.MaxInt64), int64(1), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, failure, success float64, p99, worst int64, load float64, outage, median, slow int64) {
		r := retryplan.Requirements{Failure: failure, Success: success, P99: time.Duration(p99), WorstCase: time.Duration(worst), Load: load,
			Outage: time.Duration(outage), Duration: retryplan.LogNormal(time.Duration(median), time.Duration(slow))}
		s, err := retryplan.Solve(context.Background(), r)
		var (
			bad        *retry.FieldError
			infeasible *retryplan.InfeasibleError
		)
		switch {
		case errors.As(err, &infeasible):
			require.NotEmpty(t, infeasible.A)
			require.NotEmpty(t, infeasible.Why)
			require.NotEqual(t, infeasible.A, infeasible.B)
		case err != nil:
			require.ErrorAs(t, err, &bad)
		default:
			require.NoError(t, s.Policy.Validate())
			require.NotEmpty(t, s.Binding)
			require.GreaterOrEqual(t, s.Plan.Success+1e-9, r.Success)
			require.True(t, r.P99 == 0 || s.Plan.Elapsed.Quantile(0.99) <= r.P99)
			require.True(t, r.WorstCase == 0 || s.Plan.WorstCase <= r.WorstCase)
			require.True(t, r.Load == 0 || s.Plan.Load <= r.Load+1e-9)
		}
	})
}

func BenchmarkSolve(b *testing.B) {
	slow := retryplan.LogNormal(20*time.Millisecond, 200*time.Millisecond)
	stall := retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second}
	for name, r := range map[string]retryplan.Requirements{
		"solved":            {Failure: 0.1, Duration: slow, Success: 0.999, P99: time.Second, WorstCase: 2 * time.Second},
		"fleet":             {Failure: 0.1, Success: 0.999, Fleet: &retryplan.Fleet{Rate: 70, Capacity: 100, Deadline: 2 * time.Second, Trigger: stall}},
		"outage and P99":    {Failure: 0.3, Outage: 123 * time.Second, P99: 7 * time.Second, WorstCase: 200 * time.Second, Duration: slow},
		"deadline":          {Failure: 0.3, Success: 0.9999, P99: time.Second, Duration: slow, Fleet: &retryplan.Fleet{Rate: 70, Capacity: 110, Deadline: 2 * time.Second, Trigger: stall}},
		"outage in a fleet": {Failure: 0.2, Success: 0.99, Outage: 3 * time.Second, Fleet: &retryplan.Fleet{Rate: 100, Capacity: 200, Deadline: 5 * time.Second, Trigger: stall}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _ = retryplan.Solve(context.Background(), r)
			}
		})
	}
}
