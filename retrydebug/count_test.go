package retrydebug_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retrydebug"
	"github.com/retrygo/retry/retryhedge"
)

// answer is an error that is an answer, as that of retryhttp for a 404.
type answer struct{ error }

func (answer) Answer() bool { return true }

// TestRunsAreCountedByTheirEnd makes one run of each kind and compares all counts.
func TestRunsAreCountedByTheirEnd(t *testing.T) {
	for _, row := range []struct {
		name   string
		policy retry.Policy
		errs   []error
		want   retrydebug.Figures
	}{
		{"a success at once", retry.Policy{}, []error{nil}, retrydebug.Figures{FirstTry: 1}},
		{"a success after two retries", retry.Policy{}, []error{errRefused, errRefused, nil}, retrydebug.Figures{Recovered: 1, Retries: 2}},
		{"all attempts failed", retry.Policy{MaxAttempts: 3}, []error{errRefused},
			retrydebug.Figures{GaveUp: 1, Retries: 2, Reasons: map[string]int{"attempts_exhausted": 1}}},
		{"a terminal error", retry.Policy{}, []error{retry.Permanent(errRefused)},
			retrydebug.Figures{GaveUp: 1, Reasons: map[string]int{"terminal_error": 1}}},
		{"an answer", retry.Policy{}, []error{retry.Permanent(answer{errors.New("404")})}, retrydebug.Figures{Answered: 1}},
		{"an answer after a retry", retry.Policy{}, []error{errRefused, retry.Permanent(answer{errors.New("404")})},
			retrydebug.Figures{Answered: 1, Retries: 1}},
		{"an empty budget", retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{Initial: -1})}, []error{errRefused},
			retrydebug.Figures{GaveUp: 1, Reasons: map[string]int{"budget_exhausted": 1}}},
		{"a TTL", retry.Policy{TTL: time.Second}, []error{errRefused}, retrydebug.Figures{GaveUp: 1, Reasons: map[string]int{"ttl_elapsed": 1}}},
		{"a deadline", retry.Policy{Backoff: retry.Backoff{Base: time.Hour}}, []error{errRefused},
			retrydebug.Figures{GaveUp: 1, Reasons: map[string]int{"deadline_too_near": 1}}},
		{"a hint", retry.Policy{MaxHint: time.Second}, []error{retry.After(time.Minute, errRefused)},
			retrydebug.Figures{GaveUp: 1, Reasons: map[string]int{"hint_too_long": 1}}},
		{"a doubt", retry.Policy{}, []error{retry.Ambiguous(errRefused)},
			retrydebug.Figures{GaveUp: 1, InDoubt: 1, Reasons: map[string]int{"terminal_error": 1}}},
		{"a caller that leaves in doubt", retry.Policy{}, []error{retry.Ambiguous(context.Canceled)}, retrydebug.Figures{Canceled: 1, InDoubt: 1}},
		{"retries disabled", retry.Policy{Disabled: true}, []error{errRefused}, retrydebug.Figures{GaveUp: 1, Reasons: map[string]int{"retries_disabled": 1}}},
		{"a caller that leaves", retry.Policy{}, []error{context.Canceled}, retrydebug.Figures{Canceled: 1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				live := retrydebug.New(retrydebug.Options{})
				row.policy.Observe = live.Observe
				ctx, cancel := context.WithTimeout(t.Context(), 59*time.Second)
				defer cancel()
				fn := takes(time.Millisecond, row.errs...)
				_ = retry.Do(ctx, row.policy, func(ctx context.Context) error {
					err := fn(ctx)
					if errors.Is(err, context.Canceled) {
						cancel()
					}
					return err
				})
				want := row.want
				want.Runs, want.Over = 1, time.Since(live.Snapshot().Since)
				if want.Reasons == nil {
					want.Reasons = map[string]int{}
				}
				p := policyOf(t, live.Snapshot(), "")
				require.Equal(t, want, p.Minute)
				require.Equal(t, want, p.Hour)
				require.Equal(t, want, p.Total)
			})
		})
	}
}

// TestTheWindowsMove counts one run, and looks at it as time goes by.
func TestTheWindowsMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := retrydebug.New(retrydebug.Options{})
		time.Sleep(25 * time.Second)
		live.Observe(t.Context(), failed)
		live.Observe(t.Context(), gaveUp)
		began := time.Now()
		for _, row := range []struct {
			after               time.Duration
			minute, hour, total int
			state               string
			slot                int // of the last 60 minutes
		}{
			{0, 1, 1, 1, "failing", 59},
			{60 * time.Second, 1, 1, 1, "failing", 58},
			{70 * time.Second, 0, 1, 1, "calm", 58},
			{59 * time.Minute, 0, 1, 1, "calm", 0},
			{60 * time.Minute, 0, 1, 1, "calm", -1},
			{61 * time.Minute, 0, 0, 1, "calm", -1},
			{24 * time.Hour, 0, 0, 1, "calm", -1},
		} {
			time.Sleep(time.Until(began.Add(row.after)))
			p := policyOf(t, live.Snapshot(), "p")
			require.Equal(t, []int{row.minute, row.hour, row.total}, []int{p.Minute.GaveUp, p.Hour.GaveUp, p.Total.GaveUp}, row.after)
			require.Equal(t, []int{row.minute, row.hour, row.total}, []int{p.Minute.Retries, p.Hour.Retries, p.Total.Retries}, row.after)
			line := make([]int, 60)
			if row.slot >= 0 {
				line[row.slot] = 1
			}
			require.Equal(t, line, p.GaveUp, row.after)
			require.Equal(t, line, p.Retries, row.after)
			require.Equal(t, row.hour > 0 && row.slot >= 0, p.Slowest == 4*time.Second, row.after)
			require.Equal(t, row.state, p.State, row.after)
		}
		p := policyOf(t, live.Snapshot(), "p")
		require.Equal(t, time.Minute+5*time.Second, p.Minute.Over)
		require.Equal(t, time.Hour+25*time.Second, p.Hour.Over)
		require.Equal(t, 24*time.Hour+25*time.Second, p.Total.Over)
	})
}

func TestTheStateOfAPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live := retrydebug.New(retrydebug.Options{})
		states := func() (list []string) {
			for _, p := range live.Snapshot().Policies {
				list = append(list, fmt.Sprint(p.Name, " ", p.State, " ", p.Waiting))
			}
			return list
		}
		slow := retry.Policy{Name: "c", MaxAttempts: 2, Backoff: retry.Backoff{Base: time.Hour}, Observe: live.Observe}
		slower := slow
		slower.Base += time.Second
		go func() { _ = retry.Do(t.Context(), slow, takes(0, errRefused)) }()
		go func() { _ = retry.Do(t.Context(), slower, takes(0, errRefused, nil)) }()
		for _, name := range []string{"a", "b"} {
			p := slow
			p.Name, p.Observe = name, live.Observe
			_ = retry.Do(t.Context(), p, takes(0, nil))
		}
		_ = retry.Do(t.Context(), retry.Policy{Name: "b", Disabled: true, Observe: live.Observe}, takes(0, errRefused))
		live.Observe(inAJob(t.Context(), "mail"), retry.Event{Policy: "job", Attempt: failed.Attempt, Decision: failed.Decision})
		synctest.Wait()
		require.Equal(t, []string{"b failing 0", "c retrying 2", "job retrying 0", "a calm 0"}, states(), "a job may end in another process")
		time.Sleep(30 * time.Minute)
		require.Equal(t, []string{"c retrying 2", "a calm 0", "b calm 0", "job calm 0"}, states(), "it waits for longer than a minute")
		time.Sleep(31 * time.Minute)
		require.Equal(t, []string{"c failed 0", "a calm 0", "b calm 0", "job calm 0"}, states(), "one of its runs gave up, and then one succeeded")
		last := policyOf(t, live.Snapshot(), "c").Last
		require.Equal(t, 2, last.Attempt.Number, "its second attempt, after an hour")
	})
}

// TestSinceWhenRunsGiveUp makes a run a second, or one in each interval, of which some give up, and compares the state and
// the times after some seconds.
func TestSinceWhenRunsGiveUp(t *testing.T) {
	between := func(s, from, to int) bool { return from <= s && s <= to }
	outage := func(s int) bool { return between(s, 129, 200) }
	oneIn30 := func(s int) bool { return s%30 == 7 }
	for _, row := range []struct {
		name         string
		every        int // seconds
		gaveUp       func(s int) bool
		ends         int // of the runs
		at           int // of the look
		state        string
		since, until int
	}{
		{"an outage that begins", 1, outage, 140, 140, "some fail", 129, 140},
		{"an outage", 1, outage, 166, 166, "failing", 129, 166},
		{"an outage that is over for 5 s", 1, outage, 205, 205, "failing", 129, 200},
		{"an outage that is over for 11 s", 1, outage, 211, 211, "failed", 129, 200},
		{"no run since the outage", 1, outage, 200, 250, "failing", 129, 200},
		{"an outage that is over for more than a minute", 1, outage, 275, 275, "calm", 129, 200},
		{"one bad address all night", 1, oneIn30, 20_000, 20_000, "some fail", 7, 19_987},
		{"an outage after a night with a bad address", 1, func(s int) bool { return oneIn30(s) || s >= 19_999 }, 20_040, 20_040, "failing", 19_999, 20_040},
		{"two outages with less than a minute between them", 1, func(s int) bool { return outage(s) || s >= 240 }, 280, 280, "failing", 129, 280},
		{"two outages", 1, func(s int) bool { return outage(s) || s >= 300 }, 340, 340, "failing", 300, 340},
		{"every other run", 1, func(s int) bool { return s%2 == 0 && s >= 60 }, 600, 600, "failing", 60, 600},
		{"a run in five minutes", 300, func(s int) bool { return s >= 600 }, 3000, 3030, "failing", 600, 3000},
		{"a failure after a lull", 1, func(s int) bool { return s == 50 || s == 700 }, 705, 705, "some fail", 700, 700},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				live := retrydebug.New(retrydebug.Options{})
				began := time.Now()
				for s := 0; s <= row.ends; s += row.every {
					time.Sleep(time.Until(began.Add(time.Duration(s) * time.Second)))
					if row.gaveUp(s) {
						live.Observe(t.Context(), gaveUp)
					} else {
						live.Observe(t.Context(), firstTry)
					}
				}
				time.Sleep(time.Until(began.Add(time.Duration(row.at) * time.Second)))
				p := policyOf(t, live.Snapshot(), "p")
				require.Equal(t, row.state, p.State)
				seconds := func(at time.Time) int { return int(at.Sub(began) / time.Second) }
				require.Equal(t, []int{row.since, row.until}, []int{seconds(p.Trouble.Since), seconds(p.Trouble.Until)})
			})
		})
	}
}

// TestCanceledRunsDoNotHideAnOutage: callers that leave an outage early are not among the runs that went well, and they
// make none.
func TestCanceledRunsDoNotHideAnOutage(t *testing.T) {
	live := retrydebug.New(retrydebug.Options{})
	left := eventOf(retry.Canceled, retry.CallerCanceled)
	live.Observe(t.Context(), left)
	require.Nil(t, policyOf(t, live.Snapshot(), "p").Trouble)
	for range 3 {
		live.Observe(t.Context(), left)
		live.Observe(t.Context(), left)
		live.Observe(t.Context(), gaveUp)
	}
	live.Observe(t.Context(), firstTry)
	require.Equal(t, "failing", policyOf(t, live.Snapshot(), "p").State)
}

// TestTheBudgetOfPolicies: a budget has the names and the refusals of all policies that use it, and each of them names it.
func TestTheBudgetOfPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, own := retry.NewBudget(retry.BudgetConfig{Initial: -1}), retry.NewBudget(retry.BudgetConfig{})
		live := retrydebug.New(retrydebug.Options{})
		run := func(name string, b *retry.Budget, err error) {
			_ = retry.Do(t.Context(), live.Watch(retry.Policy{Name: name, Budget: b}), takes(0, err))
		}
		run("prices", shared, errRefused)
		time.Sleep(2 * time.Minute)
		run("prices", shared, errRefused)
		run("charges", shared, errRefused)
		run("mail", own, nil)
		live.Budget("of a library", own)
		live.Budget("stock", own)
		_ = retry.Do(t.Context(), retry.Policy{Name: "stock", Observe: live.Observe}, takes(0, nil))
		s := live.Snapshot()
		require.Equal(t, []retrydebug.Budget{
			{Name: "charges, prices", Policies: []string{"charges", "prices"}, Burst: 10, RefusedMinute: 2, RefusedHour: 3, Refused: 3},
			{Name: "of a library", Policies: []string{"mail", "stock"}, Tokens: 10, Burst: 10},
			{Name: "stock", Policies: []string{"mail", "stock"}, Tokens: 10, Burst: 10},
		}, s.Budgets)
		for name, want := range map[string]bool{"prices": true, "charges": true, "mail": false, "stock": false} {
			require.Equal(t, want, policyOf(t, s, name).BudgetEmpty, name)
		}
		require.Equal(t, "charges, prices", policyOf(t, s, "charges").Budget)
		text := get(live, "", "").Body.String()
		require.Contains(t, text, "charges  failing since 00:02:00 (0s), budget empty")
		require.Regexp(t, `charges, prices +0.0 +10 +2 +3 +3\n`, text)
	})
}

// TestARunThatBeganBeforeThePage: its end takes nothing from the runs that are under way.
func TestARunThatBeganBeforeThePage(t *testing.T) {
	live := retrydebug.New(retrydebug.Options{})
	live.Observe(t.Context(), gaveUp)
	require.Zero(t, policyOf(t, live.Snapshot(), "p").Waiting)
	live.Observe(t.Context(), failed)
	require.Equal(t, 1, policyOf(t, live.Snapshot(), "p").Waiting)
}

func TestHedgesAreCounted(t *testing.T) {
	live := retrydebug.New(retrydebug.Options{})
	for _, e := range []retryhedge.Event{
		{Calls: make([]retryhedge.Call, 1), Won: 1}, {Calls: make([]retryhedge.Call, 2), Won: 1}, {Calls: make([]retryhedge.Call, 2), Won: 2},
		{Calls: make([]retryhedge.Call, 1), Won: 1, Refused: true},
	} {
		e.Policy = "prices"
		live.ObserveHedge(t.Context(), e)
	}
	p := policyOf(t, live.Snapshot(), "prices")
	require.Equal(t, &retrydebug.Hedges{Calls: 4, Hedged: 2, Won: 1, Refused: 1}, p.Hour.Hedges)
	require.Zero(t, p.Hour.Runs)
	require.Contains(t, get(live, "", "").Body.String(), "hedged in an hour: 50.0% of 4 calls, 1 won, 1 refused")
}

// TestNamesAreBounded: a service that names its policies after its customers gets one row for most of them, which has no
// schedule, since that is of no policy.
func TestNamesAreBounded(t *testing.T) {
	live := retrydebug.New(retrydebug.Options{})
	for i := range 1000 {
		p := live.Watch(retry.Policy{Name: fmt.Sprintf("customer-%03d", i), TTL: time.Hour, Budget: retry.NewBudget(retry.BudgetConfig{})})
		_ = retry.Do(t.Context(), p, takes(0, nil))
	}
	s := live.Snapshot()
	require.Len(t, s.Policies, 101)
	require.Len(t, s.Budgets, 100)
	require.Equal(t, 1, policyOf(t, s, "customer-099").Total.FirstTry)
	others := policyOf(t, s, "_OTHER")
	require.Equal(t, 900, others.Total.FirstTry)
	require.Empty(t, others.Schedule)
	require.Zero(t, others.TTL)
}

func TestALongNameIsCut(t *testing.T) {
	live := retrydebug.New(retrydebug.Options{})
	e := firstTry
	e.Policy = fmt.Sprintf("%0500d\x1b[2J", 7)
	for range 3 {
		live.Observe(t.Context(), e)
	}
	s := live.Snapshot()
	require.Len(t, s.Policies, 1)
	require.Len(t, s.Policies[0].Name, 128)
	require.Equal(t, 3, s.Policies[0].Total.Runs)
}

func TestWatchShowsThePolicy(t *testing.T) {
	live := retrydebug.New(retrydebug.Options{})
	seen := 0
	p := live.Watch(retry.Policy{Name: "inventory", TTL: time.Minute, Budget: retry.NewBudget(retry.BudgetConfig{Initial: 2, Burst: 5}),
		Observe: func(context.Context, retry.Event) { seen++ }})
	_ = retry.Do(t.Context(), p, takes(0, nil))
	require.Equal(t, 1, seen, "the observer of the policy is called too")
	shown := policyOf(t, live.Snapshot(), "inventory")
	require.Equal(t, "8 attempts, exponential 5s ×2, cap 1h, TTL 1m: 5s 10s 20s 40s 1m20s 2m40s 5m20s (10m35s in all)", shown.Schedule)
	require.Equal(t, time.Minute, shown.TTL)
	require.Equal(t, 1, shown.Total.FirstTry)
	require.Equal(t, []retrydebug.Budget{{Name: "inventory", Policies: []string{"inventory"}, Tokens: 2.1, Burst: 5}}, live.Snapshot().Budgets)
}

func TestACatalogIsShown(t *testing.T) {
	var catalog retryconf.Catalog
	live := retrydebug.New(retrydebug.Options{Catalog: catalog.All})
	shared := retry.NewBudget(retry.BudgetConfig{Initial: 1})
	ref := catalog.Define("prices", retry.Policy{Budget: shared, Observe: live.Observe})
	catalog.Define("stock", retry.Policy{Budget: shared})
	require.Equal(t, []retrydebug.Budget{{Name: "prices, stock", Policies: []string{"prices", "stock"}, Tokens: 1, Burst: 10}}, live.Snapshot().Budgets, "a budget that two share is shown once")
	require.NoError(t, catalog.Load(strings.NewReader(`{"policies": {"prices": {"max_attempts": 2, "base": "1s"}}}`)))
	require.Contains(t, policyOf(t, live.Snapshot(), "prices").Schedule, "2 attempts, exponential 1s ×2", "the loaded policy")
	_ = retry.Do(t.Context(), ref.Policy(), takes(0, nil))
	require.Equal(t, 1, policyOf(t, live.Snapshot(), "prices").Total.Runs)
	live.Budget("shop", shared)
	require.Equal(t, []retrydebug.Budget{{Name: "shop", Policies: []string{"prices", "stock"}, Tokens: 1.1, Burst: 10}}, live.Snapshot().Budgets)
}

// TestAnEventIsCheap: what happens to nearly all runs allocates nothing, and a failed attempt allocates once a second.
func TestAnEventIsCheap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live, ctx := retrydebug.New(retrydebug.Options{}), t.Context()
		for range 20 {
			live.Observe(ctx, failed)
			live.Observe(ctx, gaveUp)
		}
		for name, e := range map[string]retry.Event{"a success": firstTry, "a failed attempt": failed, "a run beyond 16 in a second": gaveUp} {
			require.Zero(t, testing.AllocsPerRun(100, func() { live.Observe(ctx, e) }), name)
		}
	})
}

// TestManyGoroutines reports and reads at once, and compares the sums.
func TestManyGoroutines(t *testing.T) {
	const goroutines, rounds = 16, 200
	live := retrydebug.New(retrydebug.Options{})
	budget := retry.NewBudget(retry.BudgetConfig{Initial: 10})
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			p := live.Watch(retry.Policy{Name: fmt.Sprint("p", g%3), MaxAttempts: 3, Backoff: retry.Backoff{Delays: []time.Duration{0}}})
			for i := range rounds {
				_ = retry.Do(t.Context(), p, takes(0, errRefused, nil))
				_ = retry.Do(t.Context(), p, takes(0, nil))
				live.Observe(t.Context(), gaveUp)
				live.ObserveHedge(t.Context(), retryhedge.Event{Policy: "p"})
				live.Budget(fmt.Sprint("b", i%150), budget)
				if i%50 == 0 {
					require.Equal(t, 200, get(live, "", []string{"text/html", "text/plain", "application/json"}[g%3]).Code)
				}
			}
		})
	}
	all.Wait()
	s := live.Snapshot()
	sum := retrydebug.Figures{}
	for _, p := range s.Policies {
		sum.Runs += p.Total.Runs
		sum.FirstTry += p.Total.FirstTry
		sum.Recovered += p.Total.Recovered
		sum.GaveUp += p.Total.GaveUp
		sum.Retries += p.Total.Retries
		require.Zero(t, p.Waiting, p.Name)
	}
	const n = goroutines * rounds
	require.Equal(t, retrydebug.Figures{Runs: 3 * n, FirstTry: n, Recovered: n, GaveUp: n, Retries: n}, sum)
	require.Equal(t, n, policyOf(t, s, "p").Total.Hedges.Calls)
}

// TestNoBudgetIsNotShown: a nil Budget has endless tokens, which JSON cannot say.
func TestNoBudgetIsNotShown(t *testing.T) {
	live := retrydebug.New(retrydebug.Options{})
	live.Budget("none", nil)
	live.Watch(retry.Policy{Name: "without"})
	require.Empty(t, live.Snapshot().Budgets)
	for _, accept := range []string{"text/html", "text/plain", "application/json"} {
		require.Equal(t, 200, get(live, "", accept).Code)
	}
}
