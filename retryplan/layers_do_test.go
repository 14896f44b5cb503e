package retryplan

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// slowNode is a service as a program has it: handlers in goroutines, and calls that are made with retry.Do.
type slowNode struct {
	chain   *slowChain
	number  int
	policy  retry.Policy
	workers chan struct{} // those that are busy; others wait in their order to send
	sent    atomic.Int64
}

// slowChain is a chain in real goroutines, and the time of its bubble.
type slowChain struct {
	Chain
	began   time.Time
	trouble Trigger
	nodes   []*slowNode
	good    atomic.Int64
	failed  atomic.Int64
	under   sync.WaitGroup
}

func newSlowChain(c Chain, trouble Trigger) *slowChain {
	s := &slowChain{Chain: c, began: time.Now(), trouble: trouble}
	for i, l := range c.Layers {
		workers := max(l.Workers, 1)
		if l.Capacity == 0 {
			workers = 1 << 30
		}
		n := &slowNode{chain: s, number: i, policy: l.Policy, workers: make(chan struct{}, workers)}
		if l.Budget != nil {
			b := *l.Budget
			b.Initial = b.Burst
			n.policy.Budget = retry.NewBudget(b)
		}
		s.nodes = append(s.nodes, n)
	}
	return s
}

// call makes the attempts of a client, each of which the node answers unless its context ends first.
func (n *slowNode) call(ctx context.Context, once bool) error {
	if once {
		ctx = retry.OneAttempt(ctx)
	}
	return retry.Do(ctx, n.policy, func(ctx context.Context) error {
		n.sent.Add(1)
		again := n.chain.TrustRequests && (once || retry.AttemptNumber(ctx) > 1)
		answer := make(chan error, 1)
		n.chain.under.Go(func() { answer <- n.handle(ctx, again) })
		select {
		case err := <-answer:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

var errSlow = errors.New("503")

// handle does the node's own work, in the order of arrival even if the caller has gone, and then its calls.
func (n *slowNode) handle(ctx context.Context, again bool) error {
	bottom := n.number == len(n.chain.nodes)-1
	if bottom && n.chain.trouble.Kind == Outage && n.during() {
		return errSlow
	}
	n.workers <- struct{}{}
	left := n.chain.Layers[n.number].service()
	if bottom && n.chain.trouble.Kind == Stall {
		from, to := n.chain.trouble.From, n.chain.trouble.From+n.chain.trouble.For
		if now := time.Since(n.chain.began); now < from && now+left > from {
			time.Sleep(to - now)
			left -= from - now
		} else if n.during() {
			time.Sleep(to - now)
		}
	}
	time.Sleep(left)
	<-n.workers
	if bottom {
		return nil
	}
	if !n.chain.PassOn {
		ctx = context.Background()
	}
	err := n.chain.nodes[n.number+1].call(ctx, again)
	switch {
	case err == nil:
		return nil
	case n.chain.DoNotRetry && !again:
		return retry.Permanent(errSlow)
	default:
		return errSlow
	}
}

func (n *slowNode) during() bool {
	now := time.Since(n.chain.began)
	return now >= n.chain.trouble.From && now < n.chain.trouble.From+n.chain.trouble.For
}

// randomChain returns the chain of a row. Its times are odd, so that no two things happen at the same time by accident.
func randomChain(row uint64) Chain {
	rnd := rand.New(rand.NewPCG(row, 31))
	span := func(lo, hi time.Duration) time.Duration { return lo + time.Duration(rnd.Int64N(int64(hi-lo))) | 1 }
	c := Chain{PassOn: rnd.IntN(2) == 0, DoNotRetry: rnd.IntN(3) == 0}
	product := 1
	for range 2 + rnd.IntN(3) {
		attempts := 1 + rnd.IntN(4)
		product *= attempts
		l := Layer{Policy: retry.Policy{MaxAttempts: attempts, AttemptTimeout: span(200*time.Millisecond, 4*time.Second)}}
		l.Policy.Delays = []time.Duration{span(0, 300*time.Millisecond), span(0, 600*time.Millisecond)}
		if rnd.IntN(4) == 0 {
			l.Policy.TTL = span(time.Second, 5*time.Second)
		}
		if rnd.IntN(3) == 0 {
			l.Budget = &retry.BudgetConfig{Ratio: 0.1, Burst: 1 + rnd.IntN(20)}
		}
		if rnd.IntN(2) == 0 {
			l.Capacity, l.Workers = 20+200*rnd.Float64(), 1+rnd.IntN(3)
		}
		c.Layers = append(c.Layers, l)
	}
	c.Layers[len(c.Layers)-1].Capacity = 20 + 50*rnd.Float64()
	if rnd.IntN(3) == 0 {
		c.Deadline = span(time.Second, 8*time.Second)
	}
	c.Rate = max(150*rnd.Float64()/float64(product), 0.5)
	c.Trigger = Trigger{Kind: Stall, For: span(time.Second, 15*time.Second)}
	if rnd.IntN(3) == 0 {
		c.Trigger.Kind = Outage
	}
	c.TrustRequests = rnd.IntN(3) == 0
	return c
}

// TestAChainDoesWhatServicesWithDoDo compares the simulation of random chains with goroutines that call each other with
// the real Do: the attempts at every node and the runs that end, one by one.
func TestAChainDoesWhatServicesWithDoDo(t *testing.T) {
	rows := uint64(60)
	if testing.Short() || RaceDetector {
		rows = 10
	}
	for row := range rows {
		t.Run(fmt.Sprint(row), func(t *testing.T) {
			c := randomChain(row)
			q := Question{Chain: c}
			front, nodes := q.nodes(row)
			front.Trigger.From = 10 * time.Second
			nodes[c.bottom()].Trigger = front.Trigger
			front.Duration = 2 * time.Minute
			sim := q.simulation(front, nodes)
			require.NoError(t, sim.play(t.Context()))
			r := sim.finish()
			type counts struct {
				sent           []int64
				succeed, fails int64
			}
			got := counts{succeed: int64(r.Endings[0]), fails: int64(r.Runs - r.Endings[0] - r.Unfinished)}
			for _, sent := range r.Nodes {
				got.sent = append(got.sent, int64(sent))
			}
			if row < 3 {
				t.Logf("to be checked by hand: %+v %+v", c, got)
			}
			var want counts
			synctest.Test(t, func(t *testing.T) {
				sc := front
				s := newSlowChain(c, sc.Trigger)
				arrivals := openLoop{rng: newStream(row, arrivalStream), rate: c.Rate / 1e9, parts: conditionsOver(sc.Trigger)}
				for at := arrivals.next(); at < int64(sc.Duration); at = arrivals.next() {
					time.Sleep(time.Duration(at) - time.Since(s.began))
					s.under.Go(func() {
						ctx, cancel := context.Background(), context.CancelFunc(func() {})
						if c.Deadline > 0 {
							ctx, cancel = context.WithTimeout(ctx, c.Deadline)
						}
						defer cancel()
						if s.nodes[0].call(ctx, false) == nil {
							s.good.Add(1)
						} else {
							s.failed.Add(1)
						}
					})
				}
				time.Sleep(sc.Duration - time.Since(s.began))
				want.succeed, want.fails = s.good.Load(), s.failed.Load()
				for _, n := range s.nodes {
					want.sent = append(want.sent, n.sent.Load())
				}
				s.under.Wait()
			})
			require.Equal(t, want, got, "%+v", c)
		})
	}
}
