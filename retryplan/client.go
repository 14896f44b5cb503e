package retryplan

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
)

// The errors of simulated attempts, beside retry.ErrAttemptTimeout. Policy.Classify is called with them.
var (
	ErrWorkFailed = errors.New("retryplan: the attempt failed at the server") // Server.FailureRate, Failing
	ErrRejected   = errors.New("retryplan: the server rejected the attempt")  // Outage
)

// simRun is a run that is under way. It fills one line of the processor's cache, for which most events of a large fleet
// wait.
type simRun struct {
	began    int64
	deadline int64  // never if there is none
	started  int64  // when the last attempt began
	prev     int64  // Decision.Backoff of the last wait
	timer    int64  // when it fires; 0 if none is set. It outlives the run
	parent   uint32 // the attempt at the node above that needs the run; not used in the first layer
	client   uint32
	number   int32  // of the attempt that is under way or next
	since    int32  // Decision.Forgiven of the last decision
	layer    uint8  // of the chain: the node that is called
	calls    uint8  // of the attempt that is under way; 0 if none is
	attempt  uint32 // number of the attempt among all of this place in the slab
}

// simAttempt is a call of an attempt at its node. It outlives its run if the node is slow.
type simAttempt struct {
	giveUp  int64 // when its client stops listening
	hedge   int64 // when a hedge of the first call is due, or 0; of a hedge that is due, its delay
	run     uint32
	attempt uint32 // simRun.attempt
	layer   uint8
	answer  answerKind
	again   bool // with TrustRequests: a retry, or for one
}

type answerKind uint8

const (
	answerOK answerKind = iota
	answerFailed
	answerRejected
	answerFinal // of a node whose own calls have failed, with DoNotRetry
)

// answerErrors are the errors of the clients' attempts, by answer.
var answerErrors = [...]error{nil, ErrWorkFailed, ErrRejected, retry.Permanent(ErrWorkFailed)}

// arrived begins a run of a client of the first node.
func (s *simulation) arrived(client uint32) {
	s.point.Offered++
	s.begun++
	s.recovery.began(s.events.Now)
	deadline := int64(never)
	if s.Deadline > 0 {
		deadline = later(s.events.Now, int64(s.Deadline))
	}
	s.begin(0, client, 0, deadline)
}

// begin begins a run of a layer, for an attempt at the node above if there is one.
func (s *simulation) begin(layer uint8, client, parent uint32, deadline int64) {
	i := s.runs.Take()
	r := s.runs.At(i)
	*r = simRun{began: s.events.Now, deadline: deadline, parent: parent, client: client, timer: r.timer, number: 1, layer: layer, attempt: r.attempt}
	s.start(i)
}

// progress returns the progress of a run after its attempt.
func (s *simulation) progress(r *simRun) retry.Progress {
	p := retry.Progress{
		Attempt:  int(r.number),
		Forgiven: int(r.since),
		Elapsed:  time.Duration(s.events.Now - r.began),
		Lasted:   time.Duration(s.events.Now - r.started),
		Prev:     time.Duration(r.prev),
	}
	if r.deadline != never {
		p.Deadline = time.Duration(r.deadline - r.began)
	}
	return p
}

// once reports whether a run makes one attempt, which is for a retry at the node above, with TrustRequests.
func (s *simulation) once(r *simRun) bool { return r.layer > 0 && s.attempts.At(r.parent).again }

// start sends the next attempt of a run. Decide has allowed it before the wait for it.
func (s *simulation) start(i uint32) {
	r := s.runs.At(i)
	r.started = s.events.Now
	r.attempt++
	s.setTimer(i, s.giveUp(r))
	hedge := s.planHedge(i)
	s.call(i, s.attempts.Take(), hedge)
}

// call makes a call of the attempt that is under way. A hedge of it is due at a time, or 0.
func (s *simulation) call(i, a uint32, hedge int64) {
	r := s.runs.At(i)
	n := &s.nodes[r.layer]
	n.sent++
	if n.bottom {
		s.point.Attempts++
	}
	r.calls++
	*s.attempts.At(a) = simAttempt{giveUp: s.giveUp(r), hedge: hedge, run: i, attempt: r.attempt, layer: r.layer, again: s.trusts && (r.number > 1 || s.once(r))}
	s.arrive(a)
}

// giveUp returns the time at which the client gives up the attempt that is under way.
func (s *simulation) giveUp(r *simRun) int64 {
	if own := s.nodes[r.layer].policy.AttemptTimeout; own > 0 {
		return min(later(r.started, int64(own)), r.deadline)
	}
	return r.deadline
}

// setTimer lets the timer of a run fire at the given time, or before. Most attempts end in time, and the next one gets
// the timer of the one before, which finds out when it fires that it is too early. So a run seldom has more than one.
func (s *simulation) setTimer(i uint32, at int64) {
	if r := s.runs.At(i); at != never && (r.timer == 0 || at < r.timer) {
		r.timer = at
		s.events.Plan(at, timerFires, i)
	}
}

// timerFired ends the attempt that is under way, if it is its time.
func (s *simulation) timerFired(i uint32) {
	r := s.runs.At(i)
	if r.timer != s.events.Now { // another was set before it
		return
	}
	r.timer = 0
	if r.calls == 0 {
		return
	}
	at := s.giveUp(r)
	if at > s.events.Now {
		s.setTimer(i, at)
		return
	}
	s.point.TimedOut++
	r.calls = 0
	if at < r.deadline {
		s.failed(i, retry.ErrAttemptTimeout)
		return
	}
	// The deadline wins if both come at the same time, as in Do, and ends the run whatever the attempt's error is.
	s.end(i, s.nodes[r.layer].policy.Admit(s.progress(r), 0).Reason)
}

// answered gives a client the answer that it still waits for.
func (s *simulation) answered(a uint32) {
	attempt := *s.attempts.At(a)
	s.attempts.Release(a)
	i, err := attempt.run, answerErrors[attempt.answer]
	if s.stale(&attempt) || s.goesOn(&attempt, err) {
		return
	}
	r := s.runs.At(i)
	r.calls = 0
	if err != nil {
		s.failed(i, err)
		return
	}
	s.spend(r.layer, r.client, retry.Decision{Status: retry.Succeeded})
	s.end(i, 0)
}

// failed decides whether a retry follows an attempt that ended with err, and pays for it.
func (s *simulation) failed(i uint32, err error) {
	r := s.runs.At(i)
	n := &s.nodes[r.layer]
	u := 0.0
	if n.policy.Jitter != retry.NoJitter {
		u = n.jitter.Float64()
	}
	p := n.policy
	p.Disabled = p.Disabled || s.once(r)
	d := p.Decide(s.progress(r), err, u)
	if d.Status == retry.WaitingRetry {
		d = s.spend(r.layer, r.client, d)
	}
	if d.Status != retry.WaitingRetry {
		s.end(i, d.Reason)
		return
	}
	r.since, r.prev = int32(d.Forgiven), int64(d.Backoff)
	r.number = min(r.number, math.MaxInt32-1) + 1
	s.events.Plan(later(s.events.Now, int64(d.Delay)), waitEnds, i)
}

// spend pays for a decision from the budget of a client, if there is one.
func (s *simulation) spend(layer uint8, client uint32, d retry.Decision) retry.Decision {
	s.nodes[layer].pay(client, func(b *retry.Budget) {
		d = retry.Policy{Budget: b}.Spend(context.Background(), d, simulationStart.Add(time.Duration(s.events.Now)))
	})
	return d
}

// end ends a run, with success if there is no reason, and answers the attempt that needed it.
func (s *simulation) end(i uint32, reason retry.Reason) {
	r := s.runs.At(i)
	s.runs.Release(i)
	switch {
	case r.layer > 0 && reason == 0:
		s.answer(r.parent, answerOK)
	case r.layer > 0 && s.doNotRetry && !s.once(r):
		s.answer(r.parent, answerFinal)
	case r.layer > 0:
		s.answer(r.parent, answerFailed)
	default:
		s.over(r, reason)
	}
}

// clients are the clients of a node, with their shared state, and the budget and tracker of each.
type clients struct {
	*scenario
	policy   retry.Policy // the scenario's, without Rand and Observe
	choice   *rand.Rand   // of clients
	jitter   *rand.Rand
	budgets  []*retry.Budget       // nil without Budget
	trackers []*retryhedge.Tracker // nil without Hedge.Share
	tokens   int64                 // millionths in all budgets
}

func newClients(s *scenario) clients {
	c := clients{
		scenario: s,
		choice:   newStream(s.Seed, clientStream),
		jitter:   newStream(s.Seed, jitterStream),
		policy:   s.Policy,
	}
	c.policy.Rand, c.policy.Observe = nil, nil
	if s.Hedge.Share > 0 {
		c.trackers = make([]*retryhedge.Tracker, s.Clients)
	}
	if s.Budget != nil {
		c.budgets = make([]*retry.Budget, s.Clients)
		c.tokens = millionths(s.Budget.NewAt(simulationStart)) * int64(s.Clients)
	}
	return c
}

// simulationStart is time 0 for a Budget. Any instant would do.
var simulationStart = time.Unix(0, 0).UTC()

// millionths returns the tokens of a budget in the unit in which it counts.
func millionths(b *retry.Budget) int64 { return int64(math.Round(b.Tokens() * 1e6)) }

// pay calls do with the budget of a client, if there is one.
func (c *clients) pay(client uint32, do func(b *retry.Budget)) {
	if c.budgets == nil {
		return
	}
	if c.budgets[client] == nil {
		c.budgets[client] = c.Budget.NewAt(simulationStart)
	}
	b := c.budgets[client]
	before := millionths(b)
	do(b)
	c.tokens += millionths(b) - before
}

// pick returns the client of a run that begins.
func (c *clients) pick() uint32 { return uint32(c.choice.Uint64N(uint64(c.Clients))) }
