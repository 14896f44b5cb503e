package retryplan

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan/internal/event"
)

// ChainResult is what the simulation of a chain saw.
type ChainResult struct {
	// Result is about the runs of the user and the attempts at the bottom: Attempts, Rejected, Wasted, Amplification,
	// Peak, and in Series Attempts, Arrived, Rejected, Queue, Busy and Tokens (of the budgets of the innermost layer)
	// are the bottom's. TimedOut and Waiting are those of all layers.
	Result
	// Nodes is how many attempts were sent to each node.
	Nodes []int
	// Trigger is Chain.Trigger with the From that it had.
	Trigger Trigger
}

// SimulateChain runs c event by event: a while of calm, the trigger at the bottom, and a time after it that is long
// enough to see a recovery if there is one. It calls each layer's own Decide and a real Budget for each process, with
// the simulation's time as their argument. Every node works in the order of arrival and executes abandoned work. The
// same Chain and seed give the same ChainResult.
//
// Errors are retry.FieldErrors: each field that is out of its range, those of Policy.Validate included; Rate is
// required. When ctx ends, SimulateChain returns what it has seen so far together with ctx's cause.
func SimulateChain(ctx context.Context, c Chain, seed uint64) (ChainResult, error) {
	var bad retry.FieldErrors
	bad.Append(c.validate())
	if c.Rate == 0 {
		bad.Add(pkg, "Chain.Rate", c.Rate, "is required")
	}
	if err := bad.Err(); err != nil {
		return ChainResult{}, err
	}
	s := newChainSimulation(&c, seed)
	err := s.play(ctx)
	r := ChainResult{Result: s.finish(s.scenario.Duration), Nodes: s.sent, Trigger: c.Trigger}
	if c.Trigger.Kind != 0 {
		r.Trigger = s.scenario.Triggers[0]
	}
	return r, err
}

// scenario returns the user's side of the simulation of c.
func (c *Chain) scenario(seed uint64) Scenario {
	top := &c.Layers[0]
	s := Scenario{
		Policy: top.Policy, Deadline: c.Deadline, Clients: max(top.Clients, 1), Arrivals: Arrivals{Rate: c.Rate}, Seed: seed,
		Server: Server{Service: Constant(inNanoseconds(c.work(0)))},
	}
	longest := time.Duration(0)
	for i := range c.Layers {
		longest = max(longest, c.Layers[i].Policy.AttemptTimeout)
	}
	warm := 10*time.Second + min(10*longest, time.Minute)
	t := c.Trigger
	t.From = warm
	if t.Kind != 0 {
		s.Triggers = []Trigger{t}
	}
	s.Duration = saturatingAdd(warm, saturatingAdd(t.For, c.aftermath()))
	s.Duration = saturatingAdd(s.Duration, (time.Second-s.Duration%time.Second)%time.Second) // whole steps
	s.Step = max(time.Second, s.Duration/100_000)
	return s
}

// aftermath returns how long to look at a chain after its trigger: one and a half minutes and three times the predicted
// recovery, or twice the time from the first attempt of a run to its last if none is predicted, for an hour at most.
func (c *Chain) aftermath() time.Duration {
	const least, most = 90 * time.Second, time.Hour
	if c.Trigger.Kind == 0 {
		return least
	}
	storm := c.storm(c.bottom(), c.bottom(), true)
	after := min(2*storm.starts[len(storm.starts)-1], most)
	if t := c.Trigger.Kind; t != Outage && t != Failing {
		if cert := newChainCertifier(c).certificate(); cert.Recovery > 0 {
			after = max(after, min(cert.Recovery, most)*3)
		}
	}
	return least + min(after, most)
}

// chainRun is a run of a layer that is under way.
type chainRun struct {
	began    int64
	deadline int64 // when its caller gives it up; never if that does not end it
	started  int64 // the attempt that is under way or was last
	prev     int64
	parent   uint32 // the attempt at the node above that needs it, but for the user's runs
	gen      uint32 // of the attempt; changes when it ends
	client   uint32
	number   int32
	layer    int32
}

// chainAttempt is an attempt at a node, until the node is done with it.
type chainAttempt struct {
	giveUp int64
	run    uint32
	gen    uint32
	layer  int32
}

// chainNode is a node, and the budgets of the processes that call it.
type chainNode struct {
	*simServer
	layer    *Layer
	policy   retry.Policy
	budgets  []*retry.Budget
	tokens   int64 // millionths in all budgets
	client   *rand.Rand
	jitter   *rand.Rand
	failures *rand.Rand
}

type chainSimulation struct {
	*Chain
	recorder
	scenario Scenario
	arrivals *openLoop
	nodes    []chainNode
	runs     event.Slab[chainRun]
	attempts event.Slab[chainAttempt]
	sent     []int
	waiting  int
}

func newChainSimulation(c *Chain, seed uint64) *chainSimulation {
	s := &chainSimulation{Chain: c, scenario: c.scenario(seed), sent: make([]int, len(c.Layers))}
	sc := &s.scenario
	s.recorder = newRecorder(sc, event.New(int64(sc.Duration)), s.note)
	s.arrivals = newOpenLoop(c.Rate, sc.Triggers, newStream(seed, arrivalStream))
	s.recovery.share = c.calm().success
	for i := range c.Layers {
		l := &c.Layers[i]
		server := Scenario{Seed: scrambled(seed + uint64(i)), Server: Server{Service: Constant(l.service())}}
		if l.Capacity > 0 {
			server.Server.Workers = max(l.Workers, 1)
		}
		if i == c.bottom() {
			server.Triggers = sc.Triggers
		}
		n := chainNode{
			simServer: newSimServer(&server), layer: l, policy: l.Policy,
			client: newStream(server.Seed, clientStream), jitter: newStream(server.Seed, jitterStream), failures: newStream(server.Seed, failureStream),
		}
		n.policy.Rand, n.policy.Observe = nil, nil
		if l.Budget != nil {
			n.budgets = make([]*retry.Budget, max(l.Clients, 1))
			b := *l.Budget
			if ratio, burst, _ := budgetFigures(b); ratio > 0 {
				b.Initial = int(burst) // as after a calm that was long enough to fill it
			}
			for k := range n.budgets {
				n.budgets[k] = retry.NewBudgetAt(b, simulationStart)
				n.tokens += millionths(n.budgets[k])
			}
		}
		s.nodes = append(s.nodes, n)
	}
	for _, at := range s.nodes[c.bottom()].conditions {
		s.events.Plan(at.until, conditionsChange, 0, 0)
	}
	return s
}

func (s *chainSimulation) play(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.planArrival()
	var e event.Event
	for s.events.Next(&e) {
		if e.At >= s.edge {
			s.reach(e.At)
		}
		s.happen(&e)
		if s.result.Events++; s.result.Events%lookUp == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	s.passed = true
	return nil
}

func (s *chainSimulation) planArrival() {
	if at := s.arrivals.next(); at < int64(s.scenario.Duration) {
		s.events.Plan(at, runBegins, 0, 0)
	}
}

func (s *chainSimulation) happen(e *event.Event) {
	switch e.Kind() {
	case runBegins:
		s.began()
		deadline := int64(never)
		if s.Deadline > 0 {
			deadline = later(s.events.Now, int64(s.Deadline))
		}
		s.begin(0, 0, deadline)
		s.planArrival()
	case workEnds:
		s.workEnded(e.Ref)
	case attemptTimesOut:
		if r := s.runs.At(e.Ref); r.gen == e.Gen {
			s.point.TimedOut++
			r.gen++
			if s.events.Now >= r.deadline {
				s.end(e.Ref, retry.DeadlinePassed)
			} else {
				s.failed(e.Ref, retry.ErrAttemptTimeout)
			}
		}
	case waitEnds:
		s.waiting--
		s.start(e.Ref)
	case conditionsChange:
		s.nodes[s.bottom()].turn(s.events.Now)
		s.dispatch(s.bottom())
	}
}

// begin begins a run of a layer for an attempt at the node above.
func (s *chainSimulation) begin(layer int, parent uint32, deadline int64) {
	i := s.runs.Take()
	r := s.runs.At(i)
	*r = chainRun{began: s.events.Now, deadline: deadline, parent: parent, gen: r.gen, layer: int32(layer)}
	if n := &s.nodes[layer]; len(n.budgets) > 1 {
		r.client = uint32(n.client.IntN(len(n.budgets)))
	}
	s.start(i)
}

// start sends the next attempt of a run.
func (s *chainSimulation) start(i uint32) {
	r := s.runs.At(i)
	now := s.events.Now
	r.number++
	r.started = now
	giveUp := r.deadline
	if timeout := s.nodes[r.layer].policy.AttemptTimeout; timeout > 0 {
		giveUp = min(giveUp, later(now, int64(timeout)))
	}
	if giveUp != never {
		s.events.Plan(giveUp, attemptTimesOut, i, r.gen)
	}
	layer := int(r.layer)
	s.sent[layer]++
	if layer == s.bottom() {
		s.result.Attempts++
		s.point.Attempts++
		s.point.Arrived++
	}
	a := s.attempts.Take()
	*s.attempts.At(a) = chainAttempt{giveUp: giveUp, run: i, gen: r.gen, layer: r.layer}
	v := &s.nodes[layer]
	switch {
	case v.conditions[0].outage:
		s.result.Rejected++
		s.point.Rejected++
		s.answer(a, ErrRejected)
	case v.free():
		s.work(layer, a)
	default:
		v.queue.Push(a)
	}
}

func (s *chainSimulation) work(layer int, a uint32) {
	s.events.Plan(s.nodes[layer].begin(s.events.Now), workEnds, a, 0)
}

func (s *chainSimulation) dispatch(layer int) {
	for v := &s.nodes[layer]; v.queue.Len() > 0 && v.free(); {
		s.work(layer, v.queue.Pop())
	}
}

// workEnded answers an attempt, or begins the calls that the node makes for it.
func (s *chainSimulation) workEnded(a uint32) {
	attempt := s.attempts.At(a)
	layer := int(attempt.layer)
	v := &s.nodes[layer]
	v.busy--
	now := s.events.Now
	if layer == s.bottom() && attempt.giveUp < now {
		s.result.Wasted++
	}
	fails := max(v.layer.Failure, v.conditions[0].failing)
	switch {
	case fails > 0 && v.failures.Float64() < fails:
		s.answer(a, ErrWorkFailed)
	case layer == s.bottom():
		s.answer(a, nil)
	case !s.PassOn:
		s.begin(layer+1, a, never)
	case now < attempt.giveUp:
		s.begin(layer+1, a, attempt.giveUp)
	default:
		s.attempts.Release(a)
	}
	s.dispatch(layer)
}

// answer gives a node's answer to the run that made the attempt, if that still listens.
func (s *chainSimulation) answer(a uint32, err error) {
	attempt := *s.attempts.At(a)
	s.attempts.Release(a)
	r := s.runs.At(attempt.run)
	if r.gen != attempt.gen {
		return
	}
	r.gen++
	if err == nil {
		s.spend(r, &retry.Decision{Status: retry.Succeeded})
		s.end(attempt.run, 0)
		return
	}
	s.failed(attempt.run, err)
}

// failed decides what follows an attempt that ended with err, and pays for it.
func (s *chainSimulation) failed(i uint32, err error) {
	r := s.runs.At(i)
	v := &s.nodes[r.layer]
	pr := retry.Progress{
		Attempt: int(r.number),
		Elapsed: time.Duration(s.events.Now - r.began),
		Lasted:  time.Duration(s.events.Now - r.started),
		Prev:    time.Duration(r.prev),
	}
	if r.deadline != never {
		pr.Deadline = time.Duration(r.deadline - r.began)
	}
	d := v.policy.Decide(pr, err, v.jitter.Float64())
	if d.Status == retry.Waiting {
		s.spend(r, &d)
	}
	if d.Status != retry.Waiting {
		s.end(i, d.Reason)
		return
	}
	r.prev = int64(d.Backoff)
	s.waiting++
	s.events.Plan(later(s.events.Now, int64(d.Delay)), waitEnds, i, 0)
}

func (s *chainSimulation) spend(r *chainRun, d *retry.Decision) {
	v := &s.nodes[r.layer]
	if v.budgets == nil {
		return
	}
	b := v.budgets[r.client]
	before := millionths(b)
	*d = b.Spend(*d, simulationStart.Add(time.Duration(s.events.Now)))
	v.tokens += millionths(b) - before
}

// end ends a run, with success if there is no reason, and answers the attempt that needed it.
func (s *chainSimulation) end(i uint32, reason retry.Reason) {
	r := s.runs.At(i)
	r.gen++
	layer, parent, began := int(r.layer), r.parent, r.began
	s.runs.Release(i)
	if layer > 0 {
		if reason == 0 {
			s.answer(parent, nil)
		} else {
			s.answer(parent, s.failure(layer-1))
		}
		return
	}
	s.over(began, reason)
}

// note notes what there is at the end of a point.
func (s *chainSimulation) note(p *Point, _ int64) {
	v := &s.nodes[s.bottom()]
	p.Queue, p.Busy, p.Waiting = v.queue.Len(), v.busy, s.waiting
	p.Tokens = float64(v.tokens) / 1e6 / float64(max(len(v.budgets), 1))
}
