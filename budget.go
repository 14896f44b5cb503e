package retry

import (
	"cmp"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A tenth of a token a success: at most 10% of calls are retries in the long run, the client-wide bound of Google's
	// "Site Reliability Engineering", chapter 21, "Deciding to Retry".
	defaultRatio = 0.1
	defaultBurst = 10
	// One retry of credit. Initial credit is multiplied by the fleet: with 10 tokens each, 1,000 fresh clients are
	// allowed 10,000 retries before any call has succeeded, which is a storm.
	defaultInitial = 1

	token    = 1_000_000 // one retry, in the unit in which a Budget counts
	maxBurst = 1_000_000_000
)

// BudgetConfig says how a Budget is funded. Its zero value allows one retry at once, and one more for ten successes.
type BudgetConfig struct {
	// Ratio is how much of a token each successful run adds, kept to a millionth; a smaller positive one counts as a
	// millionth, a negative one or NaN as no funding. Zero means 0.1.
	Ratio float64
	// Burst is the capacity in tokens, from 1 to 10⁹; anything beyond is clamped. Zero means 10.
	Burst int
	// Initial is how many tokens there are at first, at most Burst. -1 (and below) means none. Zero means 1.
	Initial int
	// Trickle is a period, counted from the creation on. At its end a budget with less than one token is granted one
	// without any success, so that a lone client can still retry. The next retry uses it; it is dropped if successes
	// fund a token first. Zero (and below) means never.
	Trickle time.Duration
}

// Effective returns c with every default written out and every value out of range clamped: -1 is a Ratio without
// funding and an Initial of none. Effective of it is itself.
func (c BudgetConfig) Effective() BudgetConfig {
	c.Burst = min(max(cmp.Or(c.Burst, defaultBurst), 1), maxBurst)
	c.Initial = min(max(cmp.Or(c.Initial, defaultInitial), -1), c.Burst)
	c.Trickle = max(c.Trickle, 0)
	if c.Ratio = cmp.Or(c.Ratio, defaultRatio); c.Ratio > 0 { // not NaN
		c.Ratio = max(math.Round(min(c.Ratio, float64(c.Burst))*token), 1) / token
	} else {
		c.Ratio = -1
	}
	return c
}

// Budget bounds the retries of all runs that share it: a token bucket that successes fund and each retry takes one
// token from. A first attempt never pays. A refused retry ends its run at once as DeadLettered(BudgetExhausted):
// callers that wait for a token make no successes to fund one. Requests do not fund it, since a storm consists of them.
//
// A Budget is safe for concurrent use and lock-free; while it is full and calls succeed it is only read. It lives in
// one process, so Initial and Burst count per client. The methods of a nil Budget do nothing and allow everything. The
// zero Budget has no capacity and refuses every retry: use NewBudget.
type Budget struct {
	burst   int64
	gain    int64 // per success
	trickle time.Duration
	created time.Time // Trickle only

	_       [64]byte     // so that what is written is on another line of the cache than what is read
	level   atomic.Int64 // millionths of a token, in [0, burst]
	emptied atomic.Int64 // Trickle only: the period in which a token was last taken that left less than one
	refused atomic.Int64
}

// NewBudget returns a budget with Initial tokens. BudgetConfig says how values out of range are clamped.
func NewBudget(c BudgetConfig) *Budget { return c.NewAt(time.Now()) }

// NewAt is NewBudget for a clock of your own: Trickle counts from created, and Policy.Spend takes times of that clock.
func (c BudgetConfig) NewAt(created time.Time) *Budget {
	c = c.Effective()
	b := &Budget{burst: int64(c.Burst) * token, trickle: c.Trickle, created: created}
	if c.Ratio > 0 {
		b.gain = int64(math.Round(c.Ratio * token))
	}
	b.level.Store(max(int64(c.Initial), 0) * token)
	return b
}

// fund adds what a success is worth. A full budget is only looked at, so that many successes do not wait for each other.
func (b *Budget) fund() {
	if b != nil && b.level.Load() != b.burst {
		b.add(b.gain)
	}
}

func (b *Budget) take(now time.Time) bool {
	if b == nil {
		return true
	}
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

// period returns how many periods have ended since the creation. After 292 years there are no more of them: the longest
// Duration is over.
func (b *Budget) period(now time.Time) int64 { return int64(now.Sub(b.created) / b.trickle) }

// Refund gives back the token of a retry that did not start or did not return.
func (b *Budget) Refund() {
	if b != nil {
		b.add(token)
	}
}

// refundUnless calls Refund unless returned is true. Deferred, it pays back if a function of the caller panics.
func (b *Budget) refundUnless(returned *bool) {
	if !*returned {
		b.Refund()
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

// Tokens returns how many tokens there are, in [0, Burst], not counting Trickle, and +Inf for a nil Budget.
func (b *Budget) Tokens() float64 {
	if b == nil {
		return math.Inf(1)
	}
	return float64(b.level.Load()) / token
}

// Burst returns the capacity in tokens: BudgetConfig.Burst as it is in force. It is 0 for a nil Budget and for the zero
// Budget.
func (b *Budget) Burst() int {
	if b == nil {
		return 0
	}
	return int(b.burst / token)
}

// Refused returns the number of retries and hedges that b has had no token for since it was created. It is 0 for a nil
// Budget.
func (b *Budget) Refused() int {
	if b == nil {
		return 0
	}
	return int(b.refused.Load())
}

// Budgets keeps one Budget per key, for example per tenant and endpoint, so that one failing peer does not use up the
// retries of the others. It holds a bounded number of keys and is safe for concurrent use.
//
// The tokens of maxKeys budgets, and of one that the keys beyond them share, are all there are. A key that has earned
// tokens keeps its budget while it is used, so a peer that makes up keys only gets a share of the shared one.
type Budgets struct {
	config  BudgetConfig
	maxKeys int

	byKey sync.Map     // string → *keyed; For of a known key takes no lock and, mostly, writes nothing
	round atomic.Int64 // of idleRound, counted while there is no room

	overflows atomic.Int64
	mu        sync.Mutex // guards the fields below
	kept      []*keyed
	hand      int           // the place in kept that is looked at next
	turned    time.Duration // when round was last counted, since epoch
	shared    *Budget       // of the keys beyond maxKeys
}

const (
	// A key that was not asked for in a whole round gives its place to another. It is long beside the pause between two
	// calls of a quiet tenant, and a peer that makes up keys cannot hasten it.
	idleRound = time.Hour
	// For looks at this many places for one to take over, so that it takes about as long with many keys as with few.
	looks = 8
)

// keyed is the Budget of a key, with the round in which it was last asked for.
type keyed struct {
	key    string
	budget *Budget
	round  atomic.Int64
}

// NewBudgets returns an empty set of budgets with the same config. maxKeys below 1 means 1.
func NewBudgets(c BudgetConfig, maxKeys int) *Budgets {
	return &Budgets{config: c, maxKeys: maxKeys}
}

// For returns the budget of key, and creates it if there is room. Otherwise the key takes the place of one that has no
// tokens or was not asked for in an hour, with at most the tokens that are left there; without such a place it gets the
// budget that all such keys share. A run keeps the budget that it has, but a replaced one has no tokens.
//
// A known key costs a map look-up, a new one beyond maxKeys a few steps.
func (s *Budgets) For(key string) *Budget {
	found, ok := s.byKey.Load(key)
	if !ok {
		return s.insert(key)
	}
	k := found.(*keyed)
	if round := s.round.Load(); k.round.Load() != round {
		k.round.Store(round)
	}
	return k.budget
}

// Len returns how many keys have a budget of their own.
func (s *Budgets) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept)
}

// Overflows returns how many calls of For have returned the shared budget. If it grows, maxKeys is too small.
func (s *Budgets) Overflows() int { return int(s.overflows.Load()) }

func (s *Budgets) insert(key string) *Budget {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.byKey.Load(key); ok { // another goroutine was faster
		return k.(*keyed).budget
	}
	k := &keyed{key: key}
	if len(s.kept) < max(s.maxKeys, 1) { // also of the zero Budgets
		k.budget = NewBudget(s.config)
		s.kept = append(s.kept, k)
	} else if !s.replace(k) {
		s.overflows.Add(1)
		return s.shared
	}
	k.round.Store(s.round.Load())
	s.byKey.Store(key, k)
	return k.budget
}

// replace gives k the place and the tokens, up to Initial, of a key that has none or is idle. It reports whether there
// was one.
func (s *Budgets) replace(k *keyed) bool {
	if now := time.Since(epoch); s.shared == nil {
		s.shared, s.turned = NewBudget(s.config), now
	} else if now-s.turned >= idleRound {
		s.turned = now
		s.round.Add(1)
	}
	for range min(looks, len(s.kept)) {
		i := s.hand
		s.hand = (i + 1) % len(s.kept)
		victim := s.kept[i]
		if victim.budget.level.Load() == 0 || s.round.Load()-victim.round.Load() > 1 {
			// A victim is left with nothing but what its runs pay back and deposit.
			b := victim.budget
			k.budget = s.config.NewAt(b.created)
			k.budget.level.Store(min(b.level.Swap(0), k.budget.level.Load()))
			k.budget.emptied.Store(b.emptied.Swap(math.MaxInt64)) // the periods of Trickle
			s.byKey.Delete(victim.key)
			s.kept[i] = k
			return true
		}
	}
	return false
}
