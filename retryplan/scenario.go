package retryplan

import (
	"fmt"
	"time"

	"github.com/retrygo/retry"
)

// Scenario is a fleet of clients, the server that they call and what happens to it. The zero Scenario has no Duration and
// is refused.
type Scenario struct {
	// Policy is the policy of every run. Its AttemptTimeout is the clients' timeout: the client stops listening, the
	// server does not know. Its Budget, Gate and Pay must be nil; Rand and Observe are not called. Classify and Wait
	// are given retry.ErrAttemptTimeout and errors of the simulation, which say in their text what happened.
	Policy retry.Policy
	// Deadline is the caller's, counted from the start of each run. Zero means none.
	Deadline time.Duration

	// Clients is the number of clients, up to 10,000,000. A client has its own budget unless Shared. Zero means
	// 1.
	Clients int
	// Rate is how many runs a second the fleet begins: an open loop, as a Poisson process, however many are under way.
	// Each belongs to a client chosen at random. Zero means a herd: every client makes one run, at time 0.
	Rate float64
	// Network is the time of one hop between client and server, in either direction. Zero means none.
	Network Dist
	// Server is what the attempts meet. The zero Server answers everything at once.
	Server Server
	// Triggers are what happens to server and arrivals, in any order; they may overlap. Nil means none.
	Triggers []Trigger

	// Budget gives the retries of each client a budget, or those of the whole fleet if Shared. Nil means none.
	Budget *retry.BudgetConfig
	// Shared makes all clients share one budget, as the calls of one process do. False means one for each client.
	Shared bool

	// Hedge starts second calls beside slow attempts. Zero means none.
	Hedge Hedge

	// Duration is how long the simulation lasts. It is required.
	Duration time.Duration
	// Step is the interval of the time series. Zero means 1s. A scenario of more than 1,000,000 steps is refused.
	Step time.Duration
	// Seed chooses the random numbers. Arrivals, network and service draw from streams of their own, so that two
	// policies under one seed meet the same arrivals. Zero is a seed like any other.
	Seed uint64
	// Progress is called from time to time, in the goroutine of Simulate: with how much of Duration was simulated; how many events that took; and how many runs, attempts and events are kept in memory, in
	// which each takes less than 150 bytes. Nil means no call.
	Progress func(simulated time.Duration, events uint64, held int)

	warm time.Duration // the first delay of trackers; 0 means the quantile of Server.Service
}

// Server is a model of a backend. The zero Server answers everything at once.
//
// An attempt that reaches it waits for a worker, in the order of arrival, is worked on for Service, and then succeeds, or
// fails with probability FailureRate. The server does not notice that a client no longer waits: it works on the attempt
// in vain.
type Server struct {
	// Workers is how many attempts are worked on at the same time. Zero means any number, without a queue.
	Workers int
	// Service is how long one attempt is worked on. Zero means no time.
	Service Dist
	// FailureRate is the probability in [0,1] that an attempt that was worked on fails. Zero means that none does.
	FailureRate float64
}

// Trigger is something that happens to the fleet or its server for a while: from From on, for For. Of triggers that
// overlap slowdowns and surges multiply, and of cuts and failures the worst counts.
type Trigger struct {
	Kind TriggerKind
	From time.Duration
	For  time.Duration
	// Factor is how much: see the kinds. Stall and Outage do not use it.
	Factor float64
}

// End returns when t ends: From+For, or the largest Duration if that overflows.
func (t Trigger) End() time.Duration { return time.Duration(t.end()) }

// TriggerKind says what a Trigger does.
type TriggerKind uint8

// The kinds of trigger.
const (
	Stall       TriggerKind = iota + 1 // the server works on nothing; what is under way goes on afterwards
	Outage                             // the server rejects every attempt at once
	Slowdown                           // work that begins takes Factor times as long; Factor above 1
	CapacityCut                        // only the share Factor, in [0,1), of workers is there, rounded up
	Surge                              // arrivals come Factor times as often; Factor above 0; open loop only
	Failing                            // attempts that are worked on fail with probability Factor, in (0,1]
)

// String returns "stall", "outage", "slowdown", "capacity_cut", "surge" or "failing", "" for the zero TriggerKind, and
// "TriggerKind(7)" for one that does not exist.
func (k TriggerKind) String() string {
	return named(uint8(k), "TriggerKind", "", "stall", "outage", "slowdown", "capacity_cut", "surge", "failing")
}

// named returns the name of a value of an enumeration.
func named(value uint8, enum string, names ...string) string {
	if int(value) < len(names) {
		return names[value]
	}
	return fmt.Sprintf("%s(%d)", enum, value)
}
