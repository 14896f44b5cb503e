package retryplan_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// mixed returns a fleet in which a share of the runs makes another number of attempts.
func mixed(rate, share float64, attempts int) retryplan.Fleet {
	f := at100(rate, retryplan.Stall, 10*time.Second, 0)
	f.Others = []retryplan.Population{{Policy: waiting(attempts, time.Second, 0), Share: share}}
	return f
}

// A storm feeds itself if λ·Σσ·A > μ, no matter which clients retry.
func TestReferencePopulations(t *testing.T) {
	for _, row := range []struct {
		share, attempts, hidden, rate float64
		recovers                      bool
	}{
		{0.5, 2.5, 40, 30, true}, {0.5, 2.5, 40, 36, true}, {0.5, 2.5, 40, 44, false},
		{0.25, 1.75, 400 / 7., 50, true}, {0.25, 1.75, 400 / 7., 60, false},
	} {
		t.Run(fmt.Sprintf("%v of 4 attempts at %v", row.share, row.rate), func(t *testing.T) {
			p, f := waiting(1, time.Second, 0), mixed(row.rate, row.share, 4)
			c := certify(t, p, f)
			require.InDelta(t, row.attempts, c.Attempts, 1e-9)
			require.InDelta(t, row.hidden, c.HiddenCapacity, 1e-9)
			require.Equal(t, row.recovers, c.Stability == retryplan.Safe, "%+v", c)
			recovered, mean := comesBack(t, p, f, 4)
			require.Equal(t, row.recovers, recovered >= 2, "%d", recovered)
			if row.recovers && c.Margin > 0.05 {
				require.InDelta(t, c.Recovery.Seconds(), mean, 0.4*mean)
			}
			require.Equal(t, row.recovers, c.Stability.Survives())
		})
	}
}

func TestThoseWhoDoNotRetryPayAlike(t *testing.T) {
	f := mixed(44, 0.5, 4)
	s := f.Scenario(waiting(1, time.Second, 0), 1)
	s.Duration = 300 * time.Second
	r, err := retryplan.Simulate(context.Background(), s)
	require.NoError(t, err)
	require.Len(t, r.Populations, 2)
	require.Equal(t, r.Runs, r.Populations[0].Runs+r.Populations[1].Runs)
	require.Equal(t, r.Endings[0], r.Populations[0].Succeeded+r.Populations[1].Succeeded)
	var success [2]float64
	for i, p := range r.Populations {
		require.InDelta(t, 0.5, float64(p.Runs)/float64(r.Runs), 0.02)
		success[i] = float64(p.Succeeded) / float64(p.Runs)
	}
	require.InDelta(t, success[0], success[1], 0.03)
	require.Less(t, success[0], 0.3)
}

// Half make 4 attempts with a timeout of 1s, half one with 30s: between the two timeouts only the impatient fail.
func TestThePatientAreServedUntilTheirTimeout(t *testing.T) {
	impatient := waiting(4, time.Second, 0)
	f := at100(36, retryplan.Stall, 10*time.Second, 0)
	f.Others = []retryplan.Population{{Policy: waiting(1, 30*time.Second, 0), Share: 0.5}}
	_, err := retryplan.Certify(impatient, f)
	require.Equal(t, []string{"Fleet.Others[0].Policy.AttemptTimeout 30s is not that of the other policy: such a fleet is simulated, but not certified"}, fieldTexts(t, err))
	for _, row := range []struct {
		rate           float64
		recovers       bool
		success, least [2]float64
	}{
		{36, true, [2]float64{0.73, 1}, [2]float64{}},
		{50, false, [2]float64{}, [2]float64{}},
	} {
		f.Rate = row.rate
		s := f.Scenario(impatient, 1)
		s.Duration = 300 * time.Second
		r, err := retryplan.Simulate(context.Background(), s)
		require.NoError(t, err)
		require.Equal(t, row.recovers, r.Recovered, "at %v", row.rate)
		if row.recovers {
			for i, p := range r.Populations {
				require.InDelta(t, row.success[i], float64(p.Succeeded)/float64(p.Runs), 0.1)
			}
		}
	}
}

// mixedFleet returns the fleet of a row, with one to three other policies.
func mixedFleet(row uint64) (retry.Policy, retryplan.Fleet) {
	p, f := randomFleet(row)
	rnd := rand.New(rand.NewPCG(row, 10))
	for range 1 + rnd.IntN(3) {
		other, _ := randomFleet(row + 1000*uint64(1+rnd.IntN(1000)))
		other.AttemptTimeout = p.AttemptTimeout
		f.Others = append(f.Others, retryplan.Population{Policy: other, Share: between(rnd, 0.05, 0.32)})
	}
	return p, f
}

// TestCertificatesOfPopulationsAgreeWithSimulations is TestCertificatesAgreeWithSimulations for fleets of several
// policies. A row comes again from mixedFleet(row).
func TestCertificatesOfPopulationsAgreeWithSimulations(t *testing.T) {
	rows := uint64(60)
	if fullForm {
		rows = 1000
	}
	judged, agreed := 0, 0
	verdicts := map[string]int{}
	for row := range rows {
		p, f := mixedFleet(row)
		c := certify(t, p, f)
		if c.Margin < 0.05 {
			continue
		}
		judged++
		verdicts[fmt.Sprintf("%v (%v)", c.Stability, c.Law)]++
		if recovered, _ := comesBack(t, p, f, 1); c.Stability.Survives() == (recovered == 1) {
			agreed++
			continue
		}
		t.Logf("row %d disagrees\n  %+v\n  %+v %+v\n  %v", row, c, f, f.Budget, p)
	}
	t.Logf("%d of %d agree: %v", agreed, judged, verdicts)
	require.GreaterOrEqual(t, float64(agreed), 0.98*float64(judged))
	require.GreaterOrEqual(t, judged, int(rows)/3, "most of the fleets are no test")
}

func TestPopulationsTellEveryBadField(t *testing.T) {
	f := at100(70, retryplan.Stall, time.Second, 0)
	bad := retry.Policy{MaxAttempts: -5, AttemptTimeout: time.Second}
	f.Others = []retryplan.Population{
		{Policy: bad, Share: 0.5},
		{Policy: retry.Policy{AttemptTimeout: time.Second, Budget: retry.NewBudget(retry.BudgetConfig{}), ResetAfter: time.Second}, Share: 1},
	}
	want := []string{
		"Others[0].Policy.MaxAttempts -5 is below -1, which is Unlimited",
		"Others[1].Share 1 is outside (0,1)",
		"Others[1].Policy.Budget (set) is state of a running program",
		"Others[1].Policy.ResetAfter 1s is for connections, and these are requests",
		"Others (1.5 of the runs) leave none to the other policy",
	}
	at := func(owner string) (fields []string) {
		for _, text := range want {
			fields = append(fields, owner+"."+text)
		}
		return fields
	}
	_, err := retryplan.Certify(waiting(2, time.Second, 0), f)
	require.Equal(t, at("Fleet"), fieldTexts(t, err))
	s := f.Scenario(waiting(2, time.Second, 0), 1)
	s.Duration, s.Step = time.Second, 0
	_, err = retryplan.Simulate(context.Background(), s)
	require.Equal(t, at("Scenario"), fieldTexts(t, err))
}
