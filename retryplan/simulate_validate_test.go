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

func TestAQuestionReportsEveryBadField(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	trigger := func(tr retryplan.Trigger) func(*retryplan.Question) {
		return func(q *retryplan.Question) { q.Fleet.Trigger = tr }
	}
	for _, row := range []struct {
		change func(*retryplan.Question)
		want   []string
	}{
		{func(q *retryplan.Question) { *q = retryplan.Question{} }, []string{"Fleet.Rate 0 is not above 0", "Fleet.Capacity 0 is not above 0"}},
		{func(q *retryplan.Question) { q.Fleet.Clients, q.Fleet.Deadline = -1, -1 }, []string{"Fleet.Clients -1 is outside [0,10000000]", "Fleet.Deadline -1ns is negative"}},
		{func(q *retryplan.Question) { q.Fleet.Clients = 10_000_001 }, []string{"Fleet.Clients 10000001 is outside [0,10000000]"}},
		{func(q *retryplan.Question) { q.Policy.Budget = retry.NewBudget(retry.BudgetConfig{}) }, []string{"Policy.Budget (set) is state of a running program: use Fleet.Budget"}},
		{func(q *retryplan.Question) { q.Policy.Gate = func(context.Context) time.Duration { return 0 } }, []string{"Policy.Gate (set) is state of a running program"}},
		{func(q *retryplan.Question) { q.Policy.Pay = func(context.Context, retry.Decision) bool { return true } }, []string{"Policy.Pay (set) is state of a running program"}},
		{func(q *retryplan.Question) { q.Policy.Cap, q.Seeds = -1, -1 }, []string{"Policy.Cap -1ns is negative", "Question.Seeds -1 is outside [0,10000]"}},
		{func(q *retryplan.Question) { q.Fleet.Rate, q.Fleet.Capacity = nan, inf }, []string{"Fleet.Rate NaN is not above 0", "Fleet.Capacity +Inf is outside [1e-9, 1e9]"}},
		{func(q *retryplan.Question) { q.Fleet.Rate = 1e8 }, []string{"Fleet.Rate 1e+08 makes 9.01e+10 runs in 15m1s, and no more than 1000000000 are simulated"}},
		{func(q *retryplan.Question) { q.Fleet.Workers, q.Fleet.Failure = -1, nan }, []string{"Fleet.Workers -1 is negative", "Fleet.Failure NaN is outside [0,1]"}},
		{func(q *retryplan.Question) { q.Fleet.Workers, q.Fleet.Service = 2, retryplan.Constant(time.Second) }, []string{"Fleet.Workers 2 is set beside Service, whose mean and Capacity say how many there are"}},
		{trigger(retryplan.Trigger{Kind: 7}), []string{"Fleet.Trigger.Kind 7 is not one of Stall, Outage, Slowdown, CapacityCut, Surge and Failing"}},
		{trigger(retryplan.Trigger{Kind: retryplan.Stall, For: -2}), []string{"Fleet.Trigger.For -2ns is negative"}},
		{trigger(retryplan.Trigger{Kind: retryplan.Slowdown, Factor: 1}), []string{"Fleet.Trigger.Factor 1 is not above 1, which Slowdown needs"}},
		{trigger(retryplan.Trigger{Kind: retryplan.Surge}), []string{"Fleet.Trigger.Factor 0 is not above 0, which Surge needs"}},
		{trigger(retryplan.Trigger{Kind: retryplan.Failing, Factor: 1.1}), []string{"Fleet.Trigger.Factor 1.1 is outside (0,1], which Failing needs"}},
		{trigger(retryplan.Trigger{Kind: retryplan.CapacityCut, Factor: nan}), []string{"Fleet.Trigger.Factor NaN is not a finite number"}},
	} {
		t.Run(row.want[0], func(t *testing.T) {
			q := retryplan.Question{Fleet: retryplan.Fleet{Rate: 1, Capacity: 10, Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: time.Minute}}}
			row.change(&q)
			_, err := retryplan.Judge(t.Context(), q)
			require.Equal(t, row.want, fieldTexts(t, err))
			_, err = retryplan.Simulate(t.Context(), q, 1)
			require.Equal(t, row.want, fieldTexts(t, err))
			_, _, err = retryplan.Band(t.Context(), q)
			require.Equal(t, row.want, fieldTexts(t, err))
			_, err = retryplan.Advise(t.Context(), q, retryplan.Verdict{})
			require.Equal(t, row.want, fieldTexts(t, err))
		})
	}
	_, _, err := retryplan.Band(t.Context(), retryplan.Question{Fleet: retryplan.Fleet{Rate: 1, Capacity: 10}})
	require.EqualError(t, err, "retryplan: Fleet.Trigger.Kind 0 is required for a band")
}

// fieldTexts returns the text of each bad field in err, without its package.
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
	f.Add(uint64(1), uint64(2), int64(50*ms), int64(20*ms), 0.3, 5)
	f.Add(uint64(3), uint64(0xffff), int64(500*ms), int64(ms), 0.9, 1)
	f.Add(uint64(5), uint64(0x12345678), int64(0), int64(0), 0.0, 50)
	for i := range uint64(60) {
		f.Add(i, i*0x9e3779b97f4a7c15, int64(i)*int64(7*ms), int64(i%7)*int64(5*ms), float64(i%4)/4, int(i%9))
	}
	f.Fuzz(func(t *testing.T, seed, bits uint64, timeout, service int64, rate float64, size int) {
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
			Policy:   retry.Policy{MaxAttempts: max(size, 0)%5 + 1, AttemptTimeout: short(timeout).Abs(), Backoff: retry.Backoff{Base: 20 * ms, Jitter: retry.JitterMode(seed % 5)}},
			Clients:  max(size%50, 1),
			Server:   retryplan.Server{Service: dist(service), FailureRate: min(max(rate, 0), 1)},
			Duration: time.Second,
			Step:     10 * ms,
			Seed:     seed,
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
			s.Server.Workers = max(size, 0)%4 + 1
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
				s.Trigger = retryplan.Trigger{Kind: kind, From: short(timeout).Abs(), For: short(service).Abs(), Factor: factor}
			}
		}
		r, err := retryplan.Run(t.Context(), s)
		if err != nil {
			t.Log(err)
			return
		}
		conserved(t, s, r)
		again, err := retryplan.Run(t.Context(), s)
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}
