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
	Notes   map[string]string // by contender, beside those of the template; {reading} is the time of a reading of the clock
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

const bareRun = "what retry.Do promises, by hand for one schedule: reads the clock at the start and at each failure, looks for a mark and a cancellation in each error, keeps a row for each failure, gives each retry a context with its number, and returns an error with the history"

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
		// Each retry is a piece of memory, with its context and how it failed, so that failures are kept in one place
		// only: beside the shortest wait, three allocations are nothing. It may cost 1.4 times the 1.28 of a list in
		// four places.
		Targets: []target{
			atMost(1.8, "bare-run", "near the same record by hand"),
			atMost(1, fastestPeer, "ahead of every peer"), allocations("", 4),
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
		Bench: "BudgetSuccess", Title: "Budget, success", Shared: true,
		About:   "A first attempt succeeds and the bucket is full.",
		Targets: []target{allocations("", 0), scalesLike("bare-load")},
	},
	{
		Bench: "BudgetRetry", Title: "Budget, retry", Shared: true,
		About: "The token of a retry is taken and returned.",
		// No target beside bare-spend: Policy.Spend copies its Policy of 300 bytes, about 8 ns, which a wait follows. A pointer
		// receiver would spare it, and make Spend the one method that a Policy in a map or from a function does not have.
		Targets: []target{allocations("", 0), scalesLike("bare-spend")},
	},
	{
		Bench: "BudgetRefusal", Title: "Budget, refusal", Shared: true,
		About:   "A retry is refused, because the bucket is empty.",
		Targets: []target{allocations("", 0), scalesLike("bare-load")},
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
		About:   "A GET that is answered at once, by a client that would make a hedge after a minute.",
		Targets: []target{atMost(1, "resty", "as fast as the peer that leaves nothing open")},
	},
	{
		Bench: "Hedged", Title: "HTTP 200 of a hedge",
		About:   "The first request of a GET is never answered; its hedge, a nanosecond later, at once.",
		Targets: []target{atMost(1, "resty", "as fast as the peer that leaves nothing open")},
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
		Bench: "WaiterMemory", Title: "Memory of a waiter", Unit: "B/waiter", Once: true,
		About:   "100,000 goroutines wait in a retry, with a peer 20,000: stack and heap in use, for each.",
		Targets: []target{atMost(1.05, "bare-run", "near a goroutine with the same record by hand")},
	},
	{
		Bench: "WaiterCancel", Title: "Canceling 100,000 waiters", Unit: "sec/waiter", Once: true,
		About:   "The one context of 100,000 goroutines that wait in a retry is canceled: the time until the last has returned, for each.",
		Targets: []target{atMost(1.3, "bare-run", "near goroutines with the same record by hand")},
	},
	{
		Bench: "CancelOne", Title: "Canceling one waiter, median", Unit: "p50-sec", Once: true,
		About: "The context of one of 2,000 goroutines that wait in a retry is canceled: the time until it has returned.",
	},
	{
		Bench: "CancelOne", Title: "Canceling one waiter, 99th percentile", Unit: "p99-sec", Once: true,
	},
	{
		Bench: "Retained", Title: "Retained after 1,000,000 failed attempts", Unit: "retained-B", Once: true,
		About: "The heap in use in the attempt after 1,000,000 that failed, each with an error of its own, less that before the run. retry keeps the last attempts for its history.",
	},
	{
		Bench: "Delay", Title: "Delay, factor 2",
		About:   "The delays after attempts 1 to 64 in turn: 5s, 10s, 20s, ... up to 1h.",
		Targets: []target{atMost(1.3, "bare-method", "near the four formulas by hand")},
	},
	{
		Bench: "DelayGiven", Title: "Delay, factor 2, full jitter of a given number",
		About:   "No peer takes the number as an argument.",
		Targets: []target{atMost(1.3, "bare-method", "near the four formulas by hand")},
	},
	{
		Bench: "DelayDrawn", Title: "Delay, factor 2, jitter drawn",
		About: "The number is drawn from math/rand/v2 for each, or from the source that a peer uses.",
	},
	{Bench: "DelayFactor3", Title: "Delay, factor 3"},
	{Bench: "DelayFactor1_5", Title: "Delay, factor 1.5"},
	{Bench: "DelayLinear", Title: "Delay, linear", About: "5s, 10s, 15s, ... up to 1h."},
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
