package retryplan

import (
	"context"
	"math"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan/internal/event"
)

// Result is what a simulation saw.
type Result struct {
	// Simulated is how much time was simulated, and Events how many events that took.
	Simulated time.Duration
	Events    uint64
	// Step is the interval of Series, whose points cover all of the time from 0 on.
	Step   time.Duration
	Series []Point

	Runs     int // begun
	Attempts int // sent to the server, hedges included
	Hedges   int // second calls beside a slow one; of all layers of a chain
	Rejected int // attempts that the server rejected
	Wasted   int // attempts that were worked on, to the end, until after their client had gone
	// Endings counts the runs by how they ended, success under the zero Reason. Together with Unfinished they are all
	// Runs.
	Endings map[retry.Reason]int
	// Unfinished are the runs that were under way when the simulation ended.
	Unfinished int
	// Amplification is Attempts per run, or 0 if there was no run.
	Amplification float64
	// Failed is the share of Runs that did not succeed, Unfinished ones included, in [0,1].
	Failed float64
	// Peak is the largest number of attempts sent in one Step, and PeakAt the start of that step.
	Peak   int
	PeakAt time.Duration
	// Recovered reports whether the fleet came back after the last trigger and stayed well: from Recovery after its end
	// on, the goodput of every 5 s was at least 0.9 of what Rate begins in 5 s on average, or of the runs that
	// were due in these 5 s if they were fewer; of those that succeed in a calm, less three standard deviations, if
	// Server.FailureRate fails some. A run is due when it ends, and at the latest 2 s after its begin, or after the
	// time within which all but one in a million attempts end in a calm if that is longer. This held for 20 s, or for
	// 10 of these times, with a success among it, and no longer span after it fell below 0.9 by more than chance, to
	// the end of the simulation. Both are zero without a trigger or without an open loop.
	Recovered bool
	Recovery  time.Duration
	// Judged reports whether there was time to see that: an open loop, and either a fleet that was not well at the end,
	// 20 s or more after the last trigger, or one that was for as long as the policy's retries of what the trigger hit
	// can go on. If it is false, Recovered says nothing yet. Scenario.Horizon returns how long a simulation has to be
	// for it.
	Judged bool
	// Latency is the distribution of the time from a run's start to its success, to 0.2 %.
	Latency Distribution
}

// Point is one interval of a simulation.
type Point struct {
	Start    time.Duration
	Offered  int     // runs begun
	Attempts int     // attempts sent
	Rejected int     // attempts that the server rejected
	TimedOut int     // attempts that their client gave up
	Goodput  int     // runs that succeeded
	Failed   int     // runs that ended otherwise
	Queue    int     // attempts that waited for a worker at the end of the interval
	Tokens   float64 // mean tokens of a budget at its end; 0 without budgets
}

// Simulate runs s to its end, one event after the other. It calls the policy's own Decide, Admit, Classify and Wait,
// and a real Budget, with the simulation's time as their argument. The same Scenario gives the same Result.
//
// Errors are retry.FieldErrors: each field that is out of its range, those of Policy.Validate included. When ctx ends,
// Simulate returns what it has seen so far together with ctx's cause. It does the same with a *retry.FieldError if time
// stands still: if events at one moment never end, as with unlimited attempts that take no time. It gives up
// after 11 million events at that moment, and 10,000 more for each client.
//
// What happens at the same time happens in the order in which it was planned. So an answer that arrives at the very
// moment of a timeout is late, and a trigger is on from its first moment until before its last.
func Simulate(ctx context.Context, s Scenario) (Result, error) {
	if err := s.validate(ctx); err != nil {
		return Result{}, err
	}
	sim := newSimulation(&s, s)
	err := sim.play(ctx)
	return sim.finish(), err
}

// What happens in an event.
const (
	runBegins        event.Kind = iota // Ref is the client
	attemptArrives                     // Ref is an attempt, as in the next two
	workEnds                           //
	answerArrives                      //
	timerFires                         // Ref is a run, as in the next
	waitEnds                           //
	hedgeDue                           // Ref is an attempt
	conditionsChange                   // Ref is a node
)

// never is a time at which nothing happens.
const never = math.MaxInt64

// later returns at+d, saturated. Neither is negative.
func later(at, d int64) int64 {
	if at > math.MaxInt64-d {
		return math.MaxInt64
	}
	return at + d
}

// simulation is the state of a Simulate, which has one node, or of a SimulateChain.
type simulation struct {
	*Scenario // of the runs that are counted: those of the first node
	recorder
	events     *event.Queue
	arrivals   *openLoop // nil if all begin at once
	nodes      []node
	passOn     bool // Chain.PassOn
	doNotRetry bool // Chain.DoNotRetry
	trusts     bool // Chain.TrustRequests
	runs       event.Slab[simRun]
	attempts   event.Slab[simAttempt]
}

// node is a server and its clients. In a chain the server's work needs runs of the next node.
type node struct {
	clients
	server
	sent   int  // attempts
	bottom bool // the last node
}

func newSimulation(s *Scenario, nodes ...Scenario) *simulation {
	sim := &simulation{Scenario: s, nodes: make([]node, len(nodes))}
	sim.events = event.New(int64(s.Duration))
	sim.recorder = newRecorder(s)
	for i := range nodes {
		n := &sim.nodes[i]
		*n = node{clients: newClients(&nodes[i]), server: newServer(&nodes[i]), bottom: i == len(nodes)-1}
		for _, c := range n.conditions {
			sim.events.Plan(c.until, conditionsChange, uint32(i))
		}
	}
	return sim
}

// planArrivals begins the run of each client, or plans the first of an open loop.
func (s *simulation) planArrivals() {
	if s.Rate == 0 {
		for client := range s.Clients {
			s.arrived(uint32(client))
		}
		return
	}
	s.arrivals = &openLoop{rng: newStream(s.Seed, arrivalStream), rate: s.Rate / 1e9, parts: conditionsOver(s.Triggers)}
	s.planRun()
}

// planRun plans the next run of an open loop.
func (s *simulation) planRun() {
	if at, client := s.arrivals.next(), s.nodes[0].pick(); at < int64(s.Duration) {
		s.events.Plan(at, runBegins, client)
	}
}

// play goes from event to event.
func (s *simulation) play(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.planArrivals()
	var e event.Event
	var still uint64 // events since time last passed
	var last int64
	for s.events.Next(&e) {
		if e.At >= s.edge {
			s.reach(e.At)
		}
		s.happen(&e)
		s.result.Events++
		if still++; e.At > last {
			last, still = e.At, 0
		}
		if s.result.Events%lookUp != 0 {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if still > min(maxInstant+10_000*uint64(s.Clients), 1_000_000_000) {
			return &retry.FieldError{Package: pkg, Field: "Scenario.Duration", Value: plainly(s.Duration),
				Rule: "is never reached: at " + plainly(time.Duration(e.At)) + " events go on without end and take no time"}
		}
		if s.Progress != nil {
			held := s.runs.Len() + s.attempts.Len() + s.events.Pending()
			s.Progress(time.Duration(e.At), s.result.Events, held)
		}
	}
	s.passed = true
	return nil
}

func (s *simulation) happen(e *event.Event) {
	switch e.Kind {
	case runBegins:
		s.arrived(e.Ref)
		s.planRun()
	case attemptArrives:
		s.arrive(e.Ref)
	case workEnds:
		s.workEnded(e.Ref)
	case answerArrives:
		s.answered(e.Ref)
	case timerFires:
		s.timerFired(e.Ref)
	case waitEnds:
		s.start(e.Ref)
	case hedgeDue:
		s.hedge(e.Ref)
	case conditionsChange:
		n := &s.nodes[e.Ref]
		for n.conditions[0].until <= e.At {
			n.conditions = n.conditions[1:]
		}
		s.dispatch(n)
	}
}
