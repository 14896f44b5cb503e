package main

import "slices"

// scenario is a benchmark and how its results are read. A contender whose name begins with "retry" is ours, one with
// "bare-" is a limit, and any other is a peer.
type scenario struct {
	Bench string // without "Benchmark"
	Title string
	About string
	// Unit is what is compared, as benchunit.Tidy writes it. Empty means sec/op.
	Unit string
	// Shared says that 1, 2 and 4 goroutines, each on a core of its own, do it together; otherwise there is one.
	Shared bool
	// Once says that an operation is long or exact: it is run once in a round, and in few rounds.
	Once    bool
	Notes   map[string]string // by contender, in addition to notes
	Targets []target
}

// cores returns the numbers of cores on which s is measured, and those that a machine lacks.
func (s scenario) cores(machine int) (measured, lacking []int) {
	wanted := []int{1}
	if s.Shared {
		wanted = []int{1, 2, 4}
	}
	n, _ := slices.BinarySearch(wanted, machine+1)
	return wanted[:n], wanted[n:]
}

// target is a bound on ours: Factor times Against on every number of cores, or Against plus Plus in allocations.
type target struct {
	Rule    string
	Unit    string // empty means the scenario's
	Against string // a contender, or fastestPeer; empty means zero
	Factor  float64
	Plus    float64
	// Scaling compares how much less time ours takes on several cores than on one with how much less Against takes.
	Scaling bool
}

const fastestPeer = "the best peer"

func atMost(factor float64, against, rule string) target {
	return target{Rule: rule, Against: against, Factor: factor}
}

// allocations are at most so many beyond those of against, which is empty for none.
func allocations(against string, more float64) target {
	return target{Rule: "allocations", Unit: allocsPerOp, Against: against, Plus: more}
}

func scalesLike(limit string) target {
	return target{Rule: "more cores help as they help the limit", Against: limit, Factor: 1.2, Scaling: true}
}

// notes are what to know about a contender to compare fairly; {reading} is the time of a reading of the clock.
var notes = map[string]string{
	"bare-call":     "the function alone",
	"bare-loop":     "a loop written by hand, which looks at its context, notes its start, and keeps the last error only",
	"bare-deadline": "the function under context.WithDeadline",
	"cenkalti-v5":   "does not look at its context before the first attempt; keeps the last error only; options built once",
	"cenkalti-v7":   "does not look at its context before the first attempt; keeps the last error only; options built once, with one BackOff for all calls, against its documentation",
	"avast-v4":      "keeps the last error only; options built once, with one context for all calls; its timer is not stopped",
	"avast-v5":      "keeps the last error only; Retrier built once, with one context, so that a server with a context for each request cannot share it; its timer is not stopped",
	"codegroove":    "keeps the last error only; options built once, with one context for all calls; its timer is not stopped",
	"sethvargo":     "keeps the last error only; its backoff counts one run, so it is built in each call",
	"failsafe-go":   "keeps the last error only; executor built once, with one context for all calls; reports how long a run took",
	"eapache":       "looks at its context in waits only; keeps the last error only; Retrier built once",
	"k8s-wait":      "does not return the error of an attempt; its timer is not stopped",

	"cenkalti-v5-usual": "does not look at its context before the first attempt; keeps the last error only",
	"cenkalti-v7-usual": "does not look at its context before the first attempt; keeps the last error only",
	"avast-v4-usual":    "returns all errors, without times",
	"avast-v5-usual":    "returns all errors, without times",
	"codegroove-usual":  "returns all errors, without times",
	"sethvargo-usual":   "keeps the last error only",
	"failsafe-go-usual": "keeps the last error only; policies built once, executor in each call; reports how long a run took",
	"eapache-usual":     "looks at its context in waits only; keeps the last error only; Retrier built in each call, as in its README, which seeds a random source of 5 kB",

	"bare-reading":   "time.Since",
	"bare-do":        "retry.Do without an observer",
	"retryotel":      "metrics",
	"retryotel-do":   "metrics and a span for the run",
	"bare-calls":     "the attempts, called by hand",
	"grpc-go":        "its own retry, by service config, within one call, so that it can be ahead of as many bare calls; at most 5 attempts by default; knows no attempt timeout, keeps no record",
	"bare-goroutine": "waits for its timer and its context, by hand; has neither a policy, nor a record, nor an error with a history",

	"bare-tx":                "BeginTx, the statement, Commit",
	"bare-client":            "http.Client, which does not repeat",
	"retryhttp":              "its timeout ends with the response's headers",
	"rehttp":                 "keeps no record and does not read the clock, so that a retry has the request of the first attempt, without its number; does not check the request; as set up here repeats every method and ignores Retry-After; its timeout covers the body",
	"go-retryablehttp":       "keeps no record; its own Client, which is not a RoundTripper and takes a request of its own, made once; repeats every method",
	"go-retryablehttp-usual": "keeps no record; its StandardClient; repeats every method; the timeout is that of the http.Client within and covers the body",
	"failsafehttp":           "keeps no record; its timeout ends with the response's headers",
}

var hedgeNotes = map[string]string{
	"bare-hedge":   "two requests by hand: a timer, a context and a goroutine, no policy and no judgment",
	"retryhttp":    "judges each response, waits for the first request to end, and can retry",
	"hedgedhttp":   "does not close the responses of losers, and leaves goroutines (TestWhatHedgesLeave)",
	"failsafehttp": "does not close the responses of losers (TestWhatHedgesLeave)",
	"resty":        "the first response or error wins, whatever it is; its limit of hedges per second is off",
}

var delayNotes = map[string]string{
	"bare-shift":   "a shift and a minimum, inlined",
	"bare-method":  "a method with the four formulas by hand, without their checks for overflow and for settings that exclude each other; its value is copied, as a Backoff is",
	"bare-product": "goes on from the delay before; retry computes each delay by itself",
	"jpillora":     "jitter is from the first delay up to the attempt's; math/rand",
	"k8s-wait":     "has state, so that a delay cannot be asked for by attempt; jitter is up to twice the delay",
	"cenkalti-v5":  "has state, so that a delay cannot be asked for by attempt; jitter is half the delay up or down",
	"cenkalti-v7":  "has state, so that a delay cannot be asked for by attempt; jitter is half the delay up or down",
	"avast-v4":     "the cap is not part of it, but taken beside it, as its Do does; full jitter of twice the delay; math/rand",
	"avast-v5":     "the cap is not part of it, but taken beside it, as its Do does; full jitter of twice the delay; math/rand",
	"codegroove":   "the cap is not part of it, but taken beside it, as its Do does; full jitter of twice the delay",
	"sethvargo":    "has state, so that a delay cannot be asked for by attempt",
	"aws-sdk":      "crypto/rand; from the 12th attempt on no number is drawn",
}

var waiterNotes = map[string]string{
	"bare-run": "the same with a policy, which is passed by value, a record of the failure, and an error with a history",
}

// bareRun is the note of runs by hand.
const bareRun = "what retry.Do promises, by hand for one schedule: reads the clock at the start and at each failure, looks for a mark and a cancellation in each error, keeps a row for each failure, gives each retry a context with its number, and returns an error with the history"

var budgetNotes = map[string]string{
	"retry":       "through Spend, which takes a Decision of 40 bytes and a time, and returns the Decision; Do does without the copies",
	"bare-spend":  "an atomic load, a comparison and, for a retry, two atomic additions, behind the signature of Spend",
	"bare-load":   "an atomic load and a comparison",
	"bare-swaps":  "two atomic additions by compare-and-swap",
	"avast-v5":    "a mutex around a bucket that earns a fixed number of tokens for each success",
	"aws-sdk":     "a mutex",
	"failsafe-go": "has no tokens: it compares the retries under way with the calls under way, and saves nothing for later",
	"x-time-rate": "refills by time, whatever succeeds; reads the clock",
}

var scenarios = []scenario{
	{
		Bench: "Clock", Title: "Clock", About: "One reading of the monotonic clock, the floor of everything that has a record.",
	},
	{
		Bench: "FirstTry", Title: "First try", Shared: true,
		About: "A call of a function that does nothing and succeeds, under a context that can be canceled. Eight attempts are allowed, 5 s apart.",
		Targets: []target{
			atMost(1.2, "bare-loop", "near a loop written by hand"),
			atMost(1, "failsafe-go", "ahead of the peer that can say how long a run took"),
			allocations("", 0), scalesLike("bare-loop"),
		},
	},
	{
		Bench: "FirstTryBudget", Title: "First try, with a full budget", Shared: true,
		About: "The same; all calls share a budget.", Targets: []target{allocations("", 0), scalesLike("bare-loop")},
	},
	{
		Bench: "FirstTryValue", Title: "First try, with a value", Shared: true,
		About: "The same by DoValue.", Targets: []target{allocations("", 0), scalesLike("bare-loop")},
	},
	attemptTimeout("Ignored", "fn ignores its context"),
	attemptTimeout("Err", "fn reads Err"),
	attemptTimeout("Done", "fn selects on Done"),
	attemptTimeout("Derived", "fn derives a context"),
	{
		Bench: "ThreeFailures", Title: "Three failures, then success",
		About: "Delays are zero, for which peers set a timer.",
		Notes: map[string]string{
			"bare-run":   bareRun,
			"bare-clock": "the four calls and 4 readings of the clock at {reading}: the start, and the end of each failure",
		},
		Targets: []target{
			atMost(1.3, "bare-run", "near the same record by hand"),
			atMost(1, fastestPeer, "ahead of every peer"), allocations("", 1),
		},
	},
	{
		Bench: "ThreeWaits", Title: "Three failures, then success, waits of 1 ns",
		About:   "retry sets no timer for a wait that is over already.",
		Notes:   map[string]string{"bare-loop": "one timer for all waits of a call"},
		Targets: []target{atMost(1, fastestPeer, "ahead of every peer")},
	},
	{
		Bench: "TenFailures", Title: "Ten failures, then giving up",
		About: "retry returns an error with the history of all ten: when each began, how long it took and how it ended.",
		Notes: map[string]string{
			"bare-run":   bareRun,
			"bare-clock": "the ten calls and 11 readings of the clock at {reading}: the start, and the end of each failure",
		},
		Targets: []target{
			atMost(1.3, "bare-run", "near the same record by hand"),
			atMost(1, fastestPeer, "ahead of every peer"),
		},
	},
	{
		Bench: "BudgetSuccess", Title: "Budget, success", Shared: true, Notes: budgetNotes,
		About:   "A first attempt succeeds and the bucket is full.",
		Targets: []target{allocations("", 0), scalesLike("bare-load")},
	},
	{
		Bench: "BudgetRetry", Title: "Budget, retry", Shared: true, Notes: budgetNotes,
		About: "The token of a retry is taken and returned.",
		Targets: []target{
			allocations("", 0), atMost(1.3, "bare-spend", "near two atomic additions behind the same signature"), scalesLike("bare-spend"),
		},
	},
	{
		Bench: "BudgetRefusal", Title: "Budget, refusal", Shared: true, Notes: budgetNotes,
		About: "A retry is refused, because the bucket is empty.",
		Targets: []target{
			allocations("", 0), atMost(1.5, "bare-spend", "near a load and a comparison behind the same signature"), scalesLike("bare-load"),
		},
	},
	{
		Bench: "HTTP200", Title: "HTTP 200",
		About: "A GET over a round tripper in memory: what is left is the clients' own work.", Targets: http200,
	},
	{Bench: "HTTP200Body", Title: "HTTP 200 with a body", About: "The response has 512 bytes.", Targets: http200},
	{
		Bench: "HTTP200Put", Title: "HTTP 200 for a PUT", About: "The request has a body of 512 bytes, and is made anew each time.",
		Targets: http200,
	},
	{Bench: "HTTP200Timeout", Title: "HTTP 200, attempt timeout", Targets: httpTimeout},
	{Bench: "HTTP200BodyTimeout", Title: "HTTP 200 with a body, attempt timeout", Targets: httpTimeout},
	{
		Bench: "HTTP503503200", Title: "HTTP 503, 503, 200", About: "Delays are zero.",
		Notes: map[string]string{
			"bare-run":        "a RoundTripper by hand for one policy: reads the clock at the start and at each failure, keeps a row for each failure with its status and some of its header, gives each retry a request of its own with the number of the attempt",
			"bare-loop":       "http.Client in a loop",
			"rehttp-recorded": "as rehttp, with the same rows as bare-run, kept by a RoundTripper below it, and a request with its number for each retry",
		},
		Targets: []target{
			atMost(1, "rehttp-recorded", "as fast as rehttp with the same record"),
			atMost(1, "rehttp", "as fast as rehttp, which keeps none"), allocations("rehttp", 0),
		},
	},
	{
		Bench: "HedgeFast", Title: "HTTP 200 under hedging",
		About: "A GET that is answered at once, by a client that would make a hedge after a minute.",
		Notes: hedgeNotes, Targets: []target{atMost(1, "resty", "as fast as the peer that leaves nothing open")},
	},
	{
		Bench: "Hedged", Title: "HTTP 200 of a hedge",
		About: "The first request of a GET is never answered; its hedge, a nanosecond later, at once.",
		Notes: hedgeNotes, Targets: []target{atMost(1, "resty", "as fast as the peer that leaves nothing open")},
	},
	{
		Bench: "SQLUpdate", Title: "SQL transaction of one UPDATE",
		About:   "SQLite, in a file that is not synced.",
		Targets: []target{atMost(1.1, "bare-tx", "near a bare transaction"), allocations("bare-tx", 1)},
	},
	{
		Bench: "SQLEmpty", Title: "SQL transaction, empty",
		About: "BEGIN and COMMIT.", Targets: []target{allocations("bare-tx", 1)},
	},
	{
		Bench: "GRPCUnary", Title: "gRPC call",
		About: "A unary call over a connection in memory succeeds.",
		Targets: []target{
			atMost(1.05, "bare-calls", "near a bare call"), atMost(1.05, "grpc-go", "as fast as gRPC's own retry"),
		},
	},
	{
		Bench: "GRPCRetry", Title: "gRPC call, UNAVAILABLE, UNAVAILABLE, OK",
		About:   "gRPC's own retry waits for a random time of up to 1 ns, the shortest that it takes.",
		Targets: []target{atMost(1.1, "bare-calls", "near three bare calls")},
	},
	{
		Bench: "SlogFirstTry", Title: "slog, first try",
		About: "Nothing is logged.", Targets: []target{allocations("bare-do", 1)},
	},
	{
		Bench: "SlogRetry", Title: "slog, three failures, then success",
		About: "A text handler that discards its output.",
	},
	{
		Bench: "OTelFirstTry", Title: "OpenTelemetry, first try",
		About: "With OpenTelemetry's SDK and no exporter.",
	},
	{
		Bench: "OTelRetry", Title: "OpenTelemetry, three failures, then success",
		About: "With OpenTelemetry's SDK and no exporter.",
	},
	{
		Bench: "WaiterMemory", Title: "Memory of a waiter", Unit: "B/waiter", Once: true, Notes: waiterNotes,
		About:   "100,000 goroutines wait in a retry, with a peer 20,000: stack and heap in use, for each.",
		Targets: []target{atMost(1.05, "bare-run", "near a goroutine with the same record by hand")},
	},
	{
		Bench: "WaiterCancel", Title: "Canceling 100,000 waiters", Unit: "sec/waiter", Once: true, Notes: waiterNotes,
		About:   "The one context of 100,000 goroutines that wait in a retry is canceled: the time until the last has returned, for each.",
		Targets: []target{atMost(1.3, "bare-run", "near goroutines with the same record by hand")},
	},
	{
		Bench: "CancelOne", Title: "Canceling one waiter, median", Unit: "p50-sec", Once: true, Notes: waiterNotes,
		About: "The context of one of 2,000 goroutines that wait in a retry is canceled: the time until it has returned.",
	},
	{
		Bench: "CancelOne", Title: "Canceling one waiter, 99th percentile", Unit: "p99-sec", Once: true, Notes: waiterNotes,
	},
	{
		Bench: "Retained", Title: "Retained after 1,000,000 failed attempts", Unit: "retained-B", Once: true,
		About: "The heap in use in the attempt after 1,000,000 that failed, each with an error of its own, less that before the run. retry keeps the last attempts for its history.",
	},
	{
		Bench: "Delay", Title: "Delay, factor 2", Notes: delayNotes,
		About:   "The delays after attempts 1 to 64 in turn: 5s, 10s, 20s, ... up to 1h.",
		Targets: []target{atMost(1.3, "bare-method", "near the four formulas by hand")},
	},
	{
		Bench: "DelayGiven", Title: "Delay, factor 2, full jitter of a given number", Notes: delayNotes,
		About:   "No peer takes the number as an argument.",
		Targets: []target{atMost(1.3, "bare-method", "near the four formulas by hand")},
	},
	{
		Bench: "DelayDrawn", Title: "Delay, factor 2, jitter drawn", Notes: delayNotes,
		About: "The number is drawn from math/rand/v2 for each, or from the source that a peer uses.",
	},
	{Bench: "DelayFactor3", Title: "Delay, factor 3", Notes: delayNotes},
	{Bench: "DelayFactor1_5", Title: "Delay, factor 1.5", Notes: delayNotes},
	{Bench: "DelayLinear", Title: "Delay, linear", Notes: delayNotes, About: "5s, 10s, 15s, ... up to 1h."},
}

func attemptTimeout(bench, does string) scenario {
	return scenario{
		Bench: "AttemptTimeout" + bench, Title: "Attempt timeout, " + does,
		About: "As the first try, under a timeout of 1 s for the attempt. Only failsafe-go among the peers has one; with the others it is a context.WithTimeout within fn.",
		Targets: []target{
			atMost(1.1, "bare-deadline", "near the context by itself"), allocations("bare-deadline", 0),
		},
	}
}

var (
	http200 = []target{
		atMost(1, "rehttp", "as fast as rehttp"),
		atMost(1, "go-retryablehttp-usual", "as fast as go-retryablehttp in an http.Client"),
		allocations("bare-client", 1),
	}
	httpTimeout = []target{
		atMost(1, "bare-client", "as fast as http.Client with its Timeout"),
		atMost(1, "rehttp", "as fast as rehttp"),
		allocations("bare-client", 1),
	}
)
