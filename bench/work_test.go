package bench_test

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	k8s "k8s.io/apimachinery/pkg/util/wait"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrytest"
)

// The tests of this file hold that every contender does the same work.

func loops() []loop {
	return append([]loop{bareLoop, ours, oursWithBudget, oursWithValue, oursByRange}, peers...)
}

// configured returns a config with the same limits for all loops.
func configured(attempts int, delay, timeout time.Duration) config {
	return config{attempts, delay, timeout, retry.Policy{
		MaxAttempts: attempts, Backoff: retry.Backoff{Delays: []time.Duration{delay}}, AttemptTimeout: timeout,
	}}
}

// forEachLoop runs test for each loop in a bubble, with a context that can be canceled.
func forEachLoop(t *testing.T, loops []loop, test func(t *testing.T, ctx context.Context, l loop)) {
	for _, l := range loops {
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				test(t, ctx, l)
			})
		})
	}
}

func TestEveryLoopMakesExactlyTheAttemptsAndWaitsOfItsConfig(t *testing.T) {
	for _, row := range []struct {
		name     string
		delay    time.Duration
		failures int // of ten attempts at most
		elapsed  time.Duration
	}{
		{name: "a first-try success is one attempt", delay: 7 * time.Second, failures: 0, elapsed: 0},
		{name: "a delay of 0 means no wait", delay: 0, failures: 3, elapsed: 0},
		{name: "a delay of 1ns is one of 1ns", delay: 1, failures: 3, elapsed: 3},
		{name: "a delay stays the same", delay: 7 * time.Second, failures: 3, elapsed: 21 * time.Second},
		{name: "the last attempt can succeed", delay: 0, failures: 9, elapsed: 0},
		{name: "ten failures are the end", delay: 0, failures: 10, elapsed: 0},
		{name: "the last failure has no wait", delay: 7 * time.Second, failures: 10, elapsed: 63 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			forEachLoop(t, loops(), func(t *testing.T, ctx context.Context, l loop) {
				script := append(slices.Repeat([]retrytest.Step{{Err: errFlaky}}, row.failures), retrytest.Step{})
				script = script[:min(row.failures+1, 10)]
				fn := retrytest.Script(t, slices.Repeat(script, 2)) // of two calls: a loop must not remember the first
				call := l.make(ctx, configured(10, row.delay, 0), fn)
				for range 2 {
					start := time.Now()
					err := call()
					require.Equal(t, row.elapsed, time.Since(start))
					switch {
					case row.failures < 10:
						require.NoError(t, err)
					case l.name == "k8s-wait":
						require.True(t, k8s.Interrupted(err))
					default:
						require.ErrorIs(t, err, errFlaky)
					}
				}
			})
		})
	}
}

func TestEveryLoopEndsAnAttemptAtItsTimeout(t *testing.T) {
	forEachLoop(t, loops(), func(t *testing.T, ctx context.Context, l loop) {
		start := time.Now()
		script := retrytest.Script(t, []retrytest.Step{{Hang: true, Times: 2}, {}})
		require.NoError(t, l.make(ctx, configured(10, 0, time.Second), script)())
		require.Equal(t, 2*time.Second, time.Since(start))
	})
}

func TestEveryLoopWaitsUnderItsContext(t *testing.T) {
	forEachLoop(t, append(loops(), bareWaiter, handWaiter), func(t *testing.T, _ context.Context, l loop) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Minute, cancel)
		start := time.Now()
		require.Error(t, l.make(ctx, configured(10, 10*time.Minute, 0), retrytest.Errors(t, errFlaky))())
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestEveryLoopServesSeveralGoroutines(t *testing.T) {
	for _, l := range loops() {
		t.Run(l.name, func(t *testing.T) {
			var made atomic.Int64
			call := l.make(t.Context(), configured(3, 0, 0), func(context.Context) error {
				made.Add(1)
				return errFlaky
			})
			together(4, 100, func(n int) {
				for range n {
					if call() == nil {
						t.Error("a call that failed returned nil")
					}
				}
			})
			require.EqualValues(t, 300, made.Load())
		})
	}
}

// scenarios are all except those of waiters, which are not made of contenders.
func scenarios(tb testing.TB) map[string][]contender {
	return map[string][]contender{
		"FirstTry": firstTry(), "FirstTryBudget": firstTryBudget(), "FirstTryValue": firstTryValue(),
		"AttemptTimeoutIgnored": attemptTimeout(succeed), "AttemptTimeoutErr": attemptTimeout(readErr),
		"AttemptTimeoutDone": attemptTimeout(selectOnDone), "AttemptTimeoutDerived": attemptTimeout(deriveContext),
		"ThreeFailures": threeFailures(), "ThreeWaits": threeWaits(), "TenFailures": tenFailures(),
		"BudgetSuccess": budgetSuccess(), "BudgetRetry": budgetRetry(), "BudgetRefusal": budgetRefusal(),
		"HTTP200": exchange{}.contenders(), "HTTP200Body": exchange{body: smallBody}.contenders(),
		"HTTP200Put":         exchange{put: true}.contenders(),
		"HTTP200Timeout":     exchange{timeout: time.Minute}.contenders(),
		"HTTP200BodyTimeout": exchange{timeout: time.Minute, body: smallBody}.contenders(),
		"HTTP503503200":      exchange{failures: 2}.contenders(),
		"HedgeFast":          hedgeContenders(time.Minute), "Hedged": hedgeContenders(1),
		"SQLUpdate": sqlTx(tb, deposit), "SQLEmpty": sqlTx(tb, ""),
		"GRPCUnary": grpcUnary(tb, 0), "GRPCRetry": grpcUnary(tb, 2),
		"SlogFirstTry": slogged(0), "SlogRetry": slogged(3), "OTelFirstTry": metered(0), "OTelRetry": metered(3),
		"Delay": delay(), "DelayGiven": delayGiven(), "DelayDrawn": delayDrawn(),
		"DelayFactor3": delayFactor(3), "DelayFactor1_5": delayFactor(1.5), "DelayLinear": delayLinear(),
	}
}

// The work panics if it is not what the scenario says.
func TestEveryContenderDoesTheWork(t *testing.T) {
	for name, contenders := range scenarios(t) {
		for _, c := range contenders {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				c.work(1)
				c.work(10)
				if strings.HasPrefix(name, "Budget") || strings.HasPrefix(name, "FirstTry") {
					together(4, 1000, c.work)
				}
			})
		}
	}
}

func TestWorkThatIsNotDonePanics(t *testing.T) {
	liar := loop{"liar", func(context.Context, config, attempt) func() error { return func() error { return nil } }}
	require.Panics(t, func() { calls(patient, func(context.Context) error { return errFlaky }, bareCall)[0].work(1) })
	require.Panics(t, func() { failing(eightAtOnce, 3, bareCall)[0].work(1) })
	require.Panics(t, func() { failing(tenAtOnce, 10, bareCall)[0].work(1) })
	require.Panics(t, func() { failing(eightAtOnce, 3, liar)[0].work(1) })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, context.Canceled, readErr(ended))
	require.Equal(t, context.Canceled, selectOnDone(ended))
}

// TestAllocations holds the allocations of ours, which do not depend on the machine.
func TestAllocations(t *testing.T) {
	all := scenarios(t)
	allocs := func(t *testing.T, scenario, name string) float64 {
		i := slices.IndexFunc(all[scenario], func(c contender) bool { return c.name == name })
		require.GreaterOrEqual(t, i, 0, name)
		park() // goroutines of the last contender allocate too
		return testing.AllocsPerRun(100, func() { all[scenario][i].work(1) })
	}
	for _, row := range []struct {
		scenario, ours string
		most           float64
		beyond         string // a contender; empty means zero
	}{
		{"FirstTry", "retry", 0, ""},
		{"FirstTry", "retry-attempts", 0, ""},
		{"FirstTryBudget", "retry", 0, ""},
		{"FirstTryValue", "retry", 0, ""},
		{"AttemptTimeoutIgnored", "retry", 0, "bare-deadline"},
		{"AttemptTimeoutErr", "retry", 0, "bare-deadline"},
		{"AttemptTimeoutDone", "retry", 0, "bare-deadline"},
		{"AttemptTimeoutDerived", "retry", 0, "bare-deadline"},
		{"ThreeFailures", "retry", 5, ""},
		{"TenFailures", "retry", 14, ""},
		{"BudgetSuccess", "retry", 0, ""},
		{"BudgetRetry", "retry", 0, ""},
		{"BudgetRefusal", "retry", 0, ""},
		{"HTTP200", "retryhttp", 0, "bare-client"},
		{"HTTP200Body", "retryhttp", 0, "bare-client"},
		{"HTTP200Put", "retryhttp", 1, "bare-client"},
		{"HTTP200Timeout", "retryhttp", -1, "rehttp"},
		{"HTTP200BodyTimeout", "retryhttp", -1, "rehttp"},
		{"HTTP503503200", "retryhttp", 0, "rehttp"},
		{"SQLUpdate", "retrysql", 2, "bare-tx"}, // one is for a connection of its own, which can be discarded,
		{"SQLEmpty", "retrysql", 2, "bare-tx"},
		{"SlogFirstTry", "retryslog", 1, "bare-do"},
		{"OTelFirstTry", "retryotel", 1, "bare-do"},
		{"Delay", "retry", 0, ""},
		{"DelayGiven", "retry", 0, ""},
	} {
		t.Run(row.scenario, func(t *testing.T) {
			if row.beyond != "" {
				row.most += allocs(t, row.scenario, row.beyond)
			}
			require.LessOrEqual(t, allocs(t, row.scenario, row.ours), row.most)
		})
	}
}

// sums returns the sum of the delays after attempts 1 to n, for each n up to 2·delaysInTurn: two such lists are equal if
// and only if every delay is.
func sums(c contender) []time.Duration {
	sums := make([]time.Duration, 2*delaysInTurn)
	for i := range sums {
		c.work(i + 1)
		sums[i] = delaySum
	}
	return sums
}

func TestContendersAgreeOnDelays(t *testing.T) {
	for name, row := range map[string]struct {
		contenders []contender
		third      time.Duration                     // the sum of the first three
		grow       func(time.Duration) time.Duration // from a delay to the next, if that is exact
	}{
		"factor 2":   {delay(), 35 * time.Second, func(d time.Duration) time.Duration { return d + d }},
		"factor 3":   {delayFactor(3), 65 * time.Second, func(d time.Duration) time.Duration { return d + d + d }},
		"factor 3/2": {delayFactor(1.5), 23_750 * time.Millisecond, nil},
		"linear":     {delayLinear(), 30 * time.Second, func(d time.Duration) time.Duration { return d + firstDelay }},
		"given":      {delayGiven(), 10_500 * time.Millisecond, nil},
	} {
		want := sums(row.contenders[0])
		require.Equal(t, row.third, want[2], name)
		var sum, delay time.Duration
		for i := 0; row.grow != nil && i < len(want); i++ {
			if delay = min(row.grow(delay), longestDelay); i%delaysInTurn == 0 {
				delay = firstDelay
			}
			sum += delay
			require.Equal(t, sum, want[i], "%s, attempt %d", name, i+1)
		}
		for _, c := range row.contenders {
			t.Run(name+"/"+c.name, func(t *testing.T) { require.Equal(t, want, sums(c)) })
		}
	}
}

// TestDrawnDelaysSpread shows that each contender's delays are random within lo and hi times the doubling delay, ahead of
// it by so many doublings.
func TestDrawnDelaysSpread(t *testing.T) {
	type spread struct {
		lo, hi float64
		ahead  time.Duration
	}
	half, ahead := spread{0.5, 1.5, 1}, spread{0, 1, 2}
	spreads := map[string]spread{"k8s-wait": {1, 2, 1}, "cenkalti-v5": half, "cenkalti-v7": half,
		"avast-v4": ahead, "avast-v5": ahead, "codegroove": ahead}
	for _, c := range delayDrawn() {
		t.Run(c.name, func(t *testing.T) {
			s := cmp.Or(spreads[c.name], spread{0, 1, 1})
			first := sums(c)
			require.NotEqual(t, first, sums(c))
			var least, most, delay time.Duration
			for i, sum := range first {
				if delay = min(2*delay, longestDelay); i%delaysInTurn == 0 {
					delay = s.ahead * firstDelay
				}
				least += time.Duration(s.lo*float64(delay)) - 1 // 1 ns for the rounding
				most += time.Duration(s.hi*float64(delay)) + 1
				require.GreaterOrEqual(t, sum, least, "attempt %d", i+1)
				require.LessOrEqual(t, sum, most, "attempt %d", i+1)
			}
		})
	}
}

// TestHTTPClientsRetry keeps a client that is set up wrongly out of the table.
func TestHTTPClientsRetry(t *testing.T) {
	for _, c := range append([]httpClient{{"bare-loop", loopHTTP}}, retryingHTTP...) {
		for _, timeout := range []time.Duration{0, time.Minute} {
			t.Run(c.name+" with attempt timeout "+timeout.String(), func(t *testing.T) {
				server := &inMemory{failures: httpAttempts - 1, body: smallBody}
				require.NoError(t, get(c.make(server, timeout), exchange{}.request(), len(smallBody)))
				require.Equal(t, httpAttempts, server.hits)
			})
		}
		t.Run(c.name+" gives up", func(t *testing.T) {
			server := &inMemory{failures: httpAttempts}
			require.Error(t, get(c.make(server, 0), exchange{}.request(), 0))
			require.Equal(t, httpAttempts, server.hits)
		})
		t.Run(c.name+" ends an attempt that hangs", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, hits := time.Now(), 0
				hangOnce := roundTripper(func(req *http.Request) (*http.Response, error) {
					if hits++; hits == 1 {
						<-req.Context().Done()
						return nil, req.Context().Err()
					}
					return response(req, http.StatusOK, nil), nil
				})
				require.NoError(t, get(c.make(hangOnce, time.Minute), exchange{}.request().WithContext(t.Context()), 0))
				require.Equal(t, 2, hits)
				require.Equal(t, time.Minute, time.Since(start))
			})
		})
	}
}

func TestWaitersAreMeasured(t *testing.T) {
	const smallest = 1536 // three quarters of runtime.stackMin: meanwhile others return theirs
	for _, l := range waiters() {
		t.Run(l.name, func(t *testing.T) {
			require.Greater(t, memoryOf(l, 2000), int64(2000*smallest))
			require.Positive(t, timeToDismiss(l, 100))
			require.Len(t, cancelLatencies(l, 100), 100)
		})
	}
}

// TestRetainedBytesSeesWhatIsKept shows that the errors that a run keeps are counted, and those that it drops are not.
func TestRetainedBytesSeesWhatIsKept(t *testing.T) {
	const failures, bytesPerError = 100_000, 16 // an errorString
	keepsAll := []string{"avast-v4", "avast-v4-usual", "avast-v5-usual"}
	for _, l := range endless() {
		kept := retainedBytes(l, failures)
		require.Equal(t, slices.Contains(keepsAll, l.name), kept > failures*bytesPerError, "%s keeps %d bytes", l.name, kept)
	}
}
