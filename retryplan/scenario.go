package retryplan

import (
	"time"

	"github.com/retrygo/retry"
)

// scenario is a node to simulate, with a server, the clients that call it, and the trouble of both. The first one of a
// simulation also says how runs begin and how long the simulation lasts.
type scenario struct {
	// Policy is the policy of every run. Its AttemptTimeout is the clients' timeout. The client stops listening, the
	// server does not know. Its Budget, Gate and Pay are nil, and Rand and Observe are not called.
	Policy   retry.Policy
	Deadline time.Duration // of the caller, from the start of each run; 0 means none

	Clients int     // each has its own budget and tracker; at least 1
	Rate    float64 // runs that begin in a second, as a Poisson process; 0 means one run of each client, at time 0
	InTurn  int     // runs that begin one after the other, whatever Rate is; 0 means none
	Server  backend
	Trigger Trigger             // of server and arrivals; the zero Trigger is none
	Budget  *retry.BudgetConfig // of each client; nil means none
	Hedge   Hedge

	Duration time.Duration
	Step     time.Duration // the interval of the time series; 0 means 1s
	// Seed chooses the random numbers. Arrivals and service draw from streams of their own, so that two policies under one
	// seed meet the same arrivals.
	Seed uint64
	// Progress is called after every lookUp events with the number of runs, attempts and events that are kept in memory,
	// each of which takes less than 150 bytes. Nil means no call.
	Progress func(held int)

	warm time.Duration // the first delay of trackers; 0 means the quantile of Server.Service
}

// backend is a model of a server. The zero backend answers everything at once.
//
// An attempt that reaches it waits for a worker, in the order of arrival, is worked on for Service, and then succeeds, or
// fails with probability FailureRate. The server does not notice that a client no longer waits, and works on the attempt
// in vain.
type backend struct {
	Workers     int     // attempts that are worked on at the same time; 0 means any number, without a queue
	Service     Dist    // how long one attempt is worked on
	FailureRate float64 // of attempts that were worked on, in [0,1]
}

// Limits of a simulation.
const (
	defaultStep = time.Second

	maxClients = 10_000_000    // 3 GB of runs, attempts and events if each has a run
	maxRuns    = 1_000_000_000 // some hours
	mostInTurn = 300_000       // attempts at the last node after which no run in turn begins
	lookUp     = 1 << 16       // events between two looks at the context

	// maxInstant is the number of events that may happen at one time, beside 10,000 for each client, before a simulation
	// is given up. It is more than any herd of clients with a bounded number of attempts makes, or one run of a Chain,
	// and few enough to be over in seconds for a fleet of moderate size.
	maxInstant = 1_000_000 + 10*maxChainAttempts
)
