package retryplan

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan/internal/event"
)

// The kinds of event.
const (
	runBegins        event.Kind = iota // Ref is the client
	workEnds                           // Ref is an attempt
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

// simulation runs a scenario to its end, one event after the other, with the policies' own Decide, Admit, Classify and
// Wait, and real Budgets, with the simulation's time as their argument. The same scenario has the same events.
//
// Events of the same time happen in the order in which they were planned. So an answer that arrives at the very
// moment of a timeout is late, and a trigger is on from its first moment until before its last.
type simulation struct {
	*scenario // of the runs that are counted: those of the first node
	recorder
	decider    *decider // ends the simulation early; nil if it runs to its end
	events     *event.Queue
	arrivals   *openLoop // nil if runs begin otherwise
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

func newSimulation(s *scenario, nodes ...scenario) *simulation {
	sim := &simulation{scenario: s, nodes: make([]node, len(nodes))}
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

// planArrivals begins the run of each client, or plans the first run.
func (s *simulation) planArrivals() {
	if s.InTurn > 0 {
		s.planNext()
		return
	}
	if s.Rate == 0 {
		for client := range s.Clients {
			s.arrived(uint32(client))
		}
		return
	}
	s.arrivals = &openLoop{rng: newStream(s.Seed, arrivalStream), rate: s.Rate / 1e9, parts: conditionsOver(s.Trigger)}
	s.planRun()
}

// planNext begins a run after another has ended, unless there were enough.
func (s *simulation) planNext() {
	if s.begun < s.InTurn && s.nodes[len(s.nodes)-1].sent < mostInTurn {
		s.events.Plan(s.events.Now, runBegins, s.nodes[0].pick())
	}
}

// planRun plans the next run of an open loop.
func (s *simulation) planRun() {
	if s.arrivals == nil {
		return
	}
	if at, client := s.arrivals.next(), s.nodes[0].pick(); at < int64(s.Duration) {
		s.events.Plan(at, runBegins, client)
	}
}

// play goes from event to event until the end, or until the outcome is known. Its error is the cause of ctx's end, or a
// *retry.FieldError if time stands still, which is if events at one moment never end, as with unlimited attempts that
// take no time.
func (s *simulation) play(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.planArrivals()
	var e event.Event
	var still uint64 // events since time last passed
	var last int64
	for s.events.Next(&e) {
		if s.decider != nil && e.At >= s.decider.next && s.decider.decide(s, e.At) {
			return nil
		}
		if e.At >= s.edge {
			s.reach(e.At)
		}
		s.happen(&e)
		s.recorder.events++
		if still++; e.At > last {
			last, still = e.At, 0
		}
		if s.recorder.events%lookUp == 0 {
			if err := s.look(ctx, still); err != nil {
				return err
			}
		}
	}
	s.passed = true
	return nil
}

// look ends a simulation whose context is done, or in which still events have happened at one moment.
func (s *simulation) look(ctx context.Context, still uint64) error {
	if s.Progress != nil {
		s.Progress(s.runs.Len() + s.attempts.Len() + s.events.Pending())
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case still > min(maxInstant+10_000*uint64(s.Clients), 1_000_000_000):
		return &retry.FieldError{Package: pkg, Field: "Policy.MaxAttempts", Value: strconv.Itoa(s.Policy.Effective().MaxAttempts),
			Rule: "lets attempts that take no time go on without end at " + plainly(time.Duration(s.events.Now))}
	}
	return nil
}

func (s *simulation) happen(e *event.Event) {
	switch e.Kind {
	case runBegins:
		s.arrived(e.Ref)
		s.planRun()
	case workEnds:
		s.workEnded(e.Ref)
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
