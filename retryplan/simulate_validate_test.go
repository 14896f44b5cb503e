package retryplan_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

func TestSimulateRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	trigger := func(tr ...retryplan.Trigger) func(*retryplan.Scenario) {
		return func(s *retryplan.Scenario) { s.Triggers = tr }
	}
	for _, row := range []struct {
		change func(*retryplan.Scenario)
		want   []string
	}{
		{func(s *retryplan.Scenario) { *s = retryplan.Scenario{} }, []string{"Scenario.Duration 0s is required"}},
		{func(s *retryplan.Scenario) { s.Clients, s.Deadline = -1, -1 }, []string{"Scenario.Deadline -1ns is negative", "Scenario.Clients -1 is negative"}},
		{func(s *retryplan.Scenario) { s.Rate, s.Clients = 0, 10_000_001 }, []string{"Scenario.Clients 10000001 is above 10000000"}},
		{func(s *retryplan.Scenario) { s.Rate, s.Clients = 0, 100_000_000 }, []string{"Scenario.Clients 100000000 is above 10000000"}},
		{func(s *retryplan.Scenario) { s.Policy.Budget = retry.NewBudget(retry.BudgetConfig{}) }, []string{"Scenario.Policy.Budget (set) is state of a running program: use Scenario.Budget"}},
		{func(s *retryplan.Scenario) { s.Policy.Gate = func(context.Context) time.Duration { return 0 } }, []string{"Scenario.Policy.Gate (set) is state of a running program"}},
		{func(s *retryplan.Scenario) { s.Policy.Pay = func(context.Context, retry.Decision) bool { return true } }, []string{"Scenario.Policy.Pay (set) is state of a running program"}},
		{func(s *retryplan.Scenario) { s.Policy.Cap, s.Duration = -1, -1 }, []string{"Policy.Cap -1ns is negative", "Scenario.Duration -1ns is negative"}},
		{func(s *retryplan.Scenario) { s.Rate = nan }, []string{"Scenario.Rate NaN is not a number of 0 or more"}},
		{func(s *retryplan.Scenario) { s.Rate = inf }, []string{"Scenario.Rate +Inf is not a number of 0 or more"}},
		{func(s *retryplan.Scenario) { s.Rate = -1 }, []string{"Scenario.Rate -1 is not a number of 0 or more"}},
		{func(s *retryplan.Scenario) { s.Rate = 1e8 }, []string{"Scenario.Rate 1e+08 makes 6e+09 runs in Duration 1m, and no more than 1000000000 are simulated"}},
		{func(s *retryplan.Scenario) { s.Step = -1 }, []string{"Scenario.Step -1ns is negative"}},
		{func(s *retryplan.Scenario) { s.Step = time.Microsecond }, []string{"Scenario.Step 1µs makes more than 1000000 steps of Duration 1m"}},
		{
			func(s *retryplan.Scenario) {
				s.Server = retryplan.Server{Workers: -1, FailureRate: nan}
			},
			[]string{
				"Scenario.Server.Workers -1 is negative",
				"Scenario.Server.FailureRate NaN is outside [0,1]",
			},
		},
		{trigger(retryplan.Trigger{}), []string{"Scenario.Triggers[0].Kind 0 is not one of Stall, Outage, Slowdown, CapacityCut, Surge and Failing"}},
		{trigger(retryplan.Trigger{Kind: retryplan.Stall, From: -1, For: -2}), []string{"Scenario.Triggers[0].From -1ns is negative", "Scenario.Triggers[0].For -2ns is negative"}},
		{
			trigger(retryplan.Trigger{Kind: retryplan.Slowdown, Factor: 1}, retryplan.Trigger{Kind: retryplan.Surge}, retryplan.Trigger{Kind: retryplan.Failing, Factor: 1.1}),
			[]string{
				"Scenario.Triggers[0].Factor 1 is not above 1, which Slowdown needs", "Scenario.Triggers[1].Factor 0 is not above 0, which Surge needs",
				"Scenario.Triggers[2].Factor 1.1 is outside (0,1], which Failing needs",
			},
		},
		{trigger(retryplan.Trigger{Kind: retryplan.CapacityCut, Factor: 1}), []string{
			"Scenario.Triggers[0].Factor 1 is outside [0,1), which CapacityCut needs", "Scenario.Triggers[0].Kind capacity_cut needs Workers",
		}},
		{func(s *retryplan.Scenario) {
			s.Rate = 0
			s.Triggers = []retryplan.Trigger{{Kind: retryplan.Surge, Factor: 2}}
		}, []string{"Scenario.Triggers[0].Kind surge needs a Rate"}},
	} {
		t.Run(row.want[0], func(t *testing.T) {
			s := retryplan.Scenario{Rate: 1, Duration: time.Minute}
			row.change(&s)
			r, err := retryplan.Simulate(t.Context(), s)
			require.Error(t, err)
			require.Zero(t, r)
			require.Equal(t, row.want, fieldTexts(t, err))
		})
	}
	var none context.Context
	_, err := retryplan.Simulate(none, retryplan.Scenario{Rate: 1, Duration: time.Minute})
	require.EqualError(t, err, "retryplan: Simulate.ctx <nil> is not a context")
}

// fieldTexts returns what each bad field in err says, without its package.
func fieldTexts(t *testing.T, err error) (texts []string) {
	var bad retry.FieldErrors
	require.ErrorAs(t, err, &bad)
	require.NotContains(t, err.Error(), "\n")
	for _, err := range bad {
		var field *retry.FieldError
		require.ErrorAs(t, err, &field)
		pkg := "retryplan"
		if strings.HasPrefix(field.Field, "Policy.") && field.Package == "" {
			pkg = ""
		}
		require.Equal(t, pkg, field.Package)
		texts = append(texts, field.Field+" "+field.Value+" "+field.Rule)
	}
	return texts
}

func FuzzSimulate(f *testing.F) {
	f.Add(uint64(1), uint64(2), int64(50*ms), int64(20*ms), int64(10*ms), 0.3, 5)
	f.Add(uint64(3), uint64(0xffff), int64(500*ms), int64(ms), int64(0), 0.9, 1)
	f.Add(uint64(5), uint64(0x12345678), int64(0), int64(0), int64(0), 0.0, 50)
	for i := range uint64(60) {
		f.Add(i, i*0x9e3779b97f4a7c15, int64(i)*int64(7*ms), int64(i%7)*int64(5*ms), int64(i%5)*int64(3*ms), float64(i%4)/4, int(i%9))
	}
	f.Fuzz(func(t *testing.T, seed, bits uint64, timeout, service, hop int64, rate float64, size int) {
		flag := func() bool { bits = bits>>1 | bits<<63; return bits>>63 == 1 }
		rarely := func() bool { first := flag(); return flag() && first }
		short := func(d int64) time.Duration { return time.Duration(d) % (2 * time.Second) }
		dist := func(d int64) retryplan.Dist {
			switch d := short(d); {
			case rarely():
				return retryplan.Exponential(d)
			case flag():
				return retryplan.Uniform(d/2, d)
			default:
				return retryplan.Constant(d)
			}
		}
		s := retryplan.Scenario{
			Policy:   retry.Policy{MaxAttempts: size%5 + 1, AttemptTimeout: short(timeout), Backoff: retry.Backoff{Base: 20 * ms, Jitter: retry.JitterMode(seed % 5)}},
			Clients:  size % 50,
			Network:  dist(hop),
			Server:   retryplan.Server{Service: dist(service), FailureRate: rate},
			Duration: time.Second,
			Step:     10 * ms,
			Seed:     seed,
			Shared:   flag(),
		}
		if flag() {
			s.Rate = 100
		}
		if flag() {
			s.Deadline = 300 * ms
		}
		if flag() {
			s.Policy.TTL = max(200*ms, s.Policy.AttemptTimeout)
		}
		if flag() {
			s.Server.Workers = size%4 + 1
		}
		if flag() {
			s.Budget = &retry.BudgetConfig{Trickle: 50 * ms}
		}
		for kind := retryplan.Stall; kind <= retryplan.Failing; kind++ {
			if rarely() {
				factor := 0.5
				if kind == retryplan.Slowdown || kind == retryplan.Surge {
					factor = 3
				}
				s.Triggers = append(s.Triggers, retryplan.Trigger{Kind: kind, From: short(timeout).Abs(), For: short(service).Abs(), Factor: factor})
			}
		}
		r, err := retryplan.Simulate(t.Context(), s)
		if err != nil {
			t.Log(err)
			return
		}
		conserved(t, s, r)
		again, err := retryplan.Simulate(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}
