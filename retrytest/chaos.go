package retrytest

import (
	"context"
	"database/sql/driver"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
)

// Chaos makes calls fail at random, for soak tests. The fault of the n-th call depends only on Seed, Rate, the mix and
// n. So the same seed replays the same faults if the calls come in the same order. The seed is logged.
//
// A mix is rows as in a script. Each failing call gets one of them. All are equally likely, and their Times is ignored.
// A nil mix means ordinary errors, without an attempt that hangs.
type Chaos struct {
	// Seed chooses the faults. Zero means a random seed.
	Seed uint64
	// Rate is the fraction of calls that fail, from 0 to 1. Zero means that no call fails.
	Rate float64
}

// Func returns fn with the given failures. A failing call executes a Step instead of fn.
func (c Chaos) Func(tb testing.TB, fn func(context.Context) error, mix []Step) func(context.Context) error {
	tb.Helper()
	if mix == nil {
		mix = []Step{{Err: errors.New("retrytest: chaos")}}
	}
	d := newDice(tb, c, mix)
	return func(ctx context.Context) error {
		if i, ok := d.roll(len(mix)); ok {
			_, err := mix[i].perform(ctx)
			return err
		}
		return fn(ctx)
	}
}

// RoundTripper returns base with the given failures. A failing request goes to a Server in memory instead of base, so
// RoundTripper works inside a synctest bubble if base does.
func (c Chaos) RoundTripper(tb testing.TB, base http.RoundTripper, mix []Answer) http.RoundTripper {
	tb.Helper()
	if mix == nil {
		mix = []Answer{{Status: 503}, {Status: 500}, {Status: 429}, {Fault: ResetUnread}, {Fault: ResetRead}, {Fault: Truncate}, {Fault: Garbage}}
	}
	t := &chaosTransport{base: base, dice: newDice(tb, c, mix)}
	for _, a := range mix {
		a.Times = Forever
		t.servers = append(t.servers, NewPipeServer(tb, []Answer{a}))
	}
	return t
}

type chaosTransport struct {
	base    http.RoundTripper
	dice    *dice
	servers []*Server // one for each row of the mix
}

func (t *chaosTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if i, ok := t.dice.roll(len(t.servers)); ok {
		return t.servers[i].RoundTrip(req)
	}
	return t.base.RoundTrip(req)
}

// Connector returns base with the given failures, like NewConnector with the failures of a script. Here a call is an
// operation that a row of the mix matches.
func (c Chaos) Connector(tb testing.TB, base driver.Connector, mix []SQLFault) *Connector {
	tb.Helper()
	if mix == nil {
		mix = []SQLFault{
			{Err: ErrSerialization}, {Err: ErrDeadlock}, {Lost: true}, {On: Connect, Lost: true}, {On: Reuse, Lost: true},
			{On: Begin, Lost: true}, {On: Commit, Err: ErrSerialization}, {On: Commit, Lost: true}, {On: Commit, Lost: true, Late: true},
		}
	}
	d := newDice(tb, c, mix)
	return newConnector(tb, base, mix, func(op Op, query string) SQLFault {
		fitting := slices.DeleteFunc(slices.Clone(mix), func(f SQLFault) bool { return !f.matches(op, query) })
		if i, ok := d.roll(len(fitting)); ok {
			return fitting[i]
		}
		return SQLFault{}
	})
}

type dice struct {
	seed  uint64
	rate  float64
	calls atomic.Uint64
}

func newDice[R row](tb testing.TB, c Chaos, mix []R) *dice {
	tb.Helper()
	if !(c.Rate >= 0 && c.Rate <= 1) { // NaN is neither
		tb.Fatalf("retrytest: %s: Chaos.Rate %v is not from 0 to 1", caller(), c.Rate)
	}
	checkRows(tb, mix, " of the mix", false)
	for c.Seed == 0 {
		c.Seed = rand.Uint64()
	}
	tb.Logf("retrytest: %#v", c)
	return &dice{seed: c.Seed, rate: c.Rate}
}

// roll returns which of n faults the next call gets, and false if it does not fail. With n of 0 it does not count a
// call. Each call has its own generator, so its fault does not depend on how many numbers other calls have drawn.
func (d *dice) roll(n int) (int, bool) {
	if n == 0 {
		return 0, false
	}
	r := rand.New(rand.NewPCG(d.seed, d.calls.Add(1)))
	if r.Float64() >= d.rate {
		return 0, false
	}
	return r.IntN(n), true
}
