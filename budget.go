package retry

import (
	"cmp"
	"math"
	"sync/atomic"
	"time"
)

const (
	// With a tenth of a token a success at most 10% of calls are retries in the long run, the client-wide bound of
	// Google's "Site Reliability Engineering", chapter 21, "Deciding to Retry".
	defaultRatio = 0.1
	defaultBurst = 10

	token    = 1_000_000 // one retry, in the unit in which a Budget counts
	maxBurst = 1_000_000_000
)

// BudgetConfig sets the funding of a Budget. Its zero value allows ten retries at once, and one more for ten successes.
//
// A budget that successes fund is for a peer that is mostly up. Deliveries to an endpoint that can be down for hours
// need no budget, or one with Trickle.
type BudgetConfig struct {
	// Ratio is how much of a token each successful run adds, kept to a millionth. Smaller positive values count as a
	// millionth. Negative values and NaN mean no funding. Zero means 0.1.
	Ratio float64
	// Burst is the capacity in tokens, from 1 to 10⁹. Other values are clamped. Zero means 10.
	Burst int
	// Initial is the number of tokens at first, at most Burst. A client that starts during an outage can make these
	// retries before any success, so a fleet of more than some 1,000 processes, or of processes that live for seconds,
	// sets it to 1. -1 (and below) means no tokens. Zero means Burst, as after a calm.
	Initial int
	// Trickle is a period, counted from the creation on. At its end a budget with less than one token is granted one
	// without any success, so that a lone client can still retry. The next retry uses it. It is dropped if successes
	// fund a token first. Zero (and below) means never.
	Trickle time.Duration
}

// Effective returns c with every default written out and every value out of range clamped. In the result -1 means a
// Ratio without funding and an Initial without tokens. Effective of it is itself.
func (c BudgetConfig) Effective() BudgetConfig {
	c.Burst = min(max(cmp.Or(c.Burst, defaultBurst), 1), maxBurst)
	c.Initial = min(max(cmp.Or(c.Initial, c.Burst), -1), c.Burst)
	c.Trickle = max(c.Trickle, 0)
	if c.Ratio = cmp.Or(c.Ratio, defaultRatio); c.Ratio > 0 { // not NaN
		c.Ratio = max(math.Round(min(c.Ratio, float64(c.Burst))*token), 1) / token
	} else {
		c.Ratio = -1
	}
	return c
}

// Budget bounds the retries of all runs that share it. It is a token bucket that successes fund. Each retry takes one
// token. A first attempt never pays. A refused retry ends its run at once as DeadLettered(BudgetExhausted), because
// callers that wait for a token make no successes to fund one. Requests do not fund it, since a storm consists of them.
//
// A Budget is safe for concurrent use and lock-free. While it is full and calls succeed it is only read. It lives in
// one process, so Initial and Burst count per client. The methods of a nil Budget have no effect and allow everything.
// The zero Budget is not valid, and Policy.Validate refuses it. Use NewBudget.
type Budget struct {
	burst   int64
	gain    int64 // per success
	trickle time.Duration
	created time.Time             // Trickle only
	guest   atomic.Pointer[guest] // not nil if the tokens are elsewhere, for a key that had no place in a Budgets

	_       [64]byte     // so that reads and writes are on different lines of the cache
	level   atomic.Int64 // millionths of a token, in [0, burst]
	emptied atomic.Int64 // Trickle only: the last period in which the level fell below one token
	proven  atomic.Bool  // a call has succeeded
	refused atomic.Int64
}

// NewBudget returns a budget with Initial tokens. Values out of range are clamped (see BudgetConfig).
func NewBudget(c BudgetConfig) *Budget { return c.NewAt(time.Now()) }

// NewAt is NewBudget for a clock of your own. Trickle counts from created, and Policy.Spend takes times of that clock.
func (c BudgetConfig) NewAt(created time.Time) *Budget {
	c = c.Effective()
	b := &Budget{burst: int64(c.Burst) * token, trickle: c.Trickle, created: created}
	if c.Ratio > 0 {
		b.gain = int64(math.Round(c.Ratio * token))
	}
	b.level.Store(max(int64(c.Initial), 0) * token)
	return b
}

// fund adds the share of a success. A full budget is only read, so that many successes do not wait for each other.
func (b *Budget) fund() {
	if b == nil {
		return
	}
	if g := b.guest.Load(); g != nil {
		b = g.settle()
	}
	if !b.proven.Load() {
		b.proven.Store(true)
	}
	if b.level.Load() != b.burst {
		b.add(b.gain)
	}
}

// account returns the budget that holds the tokens of b.
func (b *Budget) account() *Budget {
	if g := b.guest.Load(); g != nil {
		return g.account()
	}
	return b
}

// zero reports whether b was made without NewBudget.
func (b *Budget) zero() bool { return b != nil && b.burst == 0 && b.guest.Load() == nil }

func (b *Budget) take(now time.Time) bool {
	if b == nil {
		return true
	}
	b = b.account()
	for level := b.level.Load(); level >= token; level = b.level.Load() {
		if b.trickle > 0 && level < 2*token {
			// Before the level falls, so that no goroutine sees an empty bucket with an old time. A goroutine that
			// loses the race for the last token has delayed the next grant, by a period at most.
			b.advance(now)
		}
		if b.level.CompareAndSwap(level, level-token) {
			return true
		}
	}
	if b.trickle > 0 && b.advance(now) {
		return true // a token for the period that has ended
	}
	b.refused.Add(1)
	return false
}

// advance notes that the bucket is empty now, and reports whether that last happened in an earlier period.
func (b *Budget) advance(now time.Time) bool {
	for period := b.period(now); ; {
		emptied := b.emptied.Load()
		if period <= emptied {
			return false
		}
		if b.emptied.CompareAndSwap(emptied, period) {
			return true
		}
	}
}

// period returns the number of periods that have ended since the creation. It stops growing after 292 years, the
// longest Duration.
func (b *Budget) period(now time.Time) int64 { return int64(now.Sub(b.created) / b.trickle) }

// Refund gives back the token of a retry that did not start or did not return.
func (b *Budget) Refund() {
	if b != nil {
		b.account().add(token)
	}
}

// add adds an amount, up to the capacity.
func (b *Budget) add(amount int64) {
	for level := b.level.Load(); level < b.burst; level = b.level.Load() {
		if b.level.CompareAndSwap(level, min(level+amount, b.burst)) {
			return
		}
	}
}

// Tokens returns the number of tokens, in [0, Burst], not counting Trickle, and +Inf for a nil Budget.
func (b *Budget) Tokens() float64 {
	if b == nil {
		return math.Inf(1)
	}
	return float64(b.account().level.Load()) / token
}

// Burst returns the capacity in tokens, BudgetConfig.Burst as it is in force. It is 0 for a nil Budget.
func (b *Budget) Burst() int {
	if b == nil {
		return 0
	}
	return int(b.account().burst / token)
}

// Refused returns the number of retries for which b has had no token since it was created. It is 0 for a nil Budget. A
// hedge without a token is not counted, since no call fails by it (see retryhedge.Event).
func (b *Budget) Refused() int {
	if b == nil {
		return 0
	}
	return int(b.account().refused.Load())
}
