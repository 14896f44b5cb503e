package retry

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// A tenth of a token a success: at most 10% of calls are retries in the long run, the client-wide bound of
	// Google's "Site Reliability Engineering", chapter 21, "Deciding to Retry".
	defaultRatio = 0.1
	defaultBurst = 10
	// One retry of credit. Initial credit is multiplied by the fleet: with 10 tokens each, 1,000 fresh clients are
	// allowed 10,000 retries before any call has succeeded, which is a storm.
	defaultInitial = 1

	token    = 1_000_000 // one retry, in the unit in which a Budget counts
	maxBurst = 1_000_000_000
)

// BudgetConfig says how a Budget is funded. The zero BudgetConfig allows one retry at once and one more for every ten
// successes, up to ten saved.
type BudgetConfig struct {
	// Ratio is how much of a token each successful run adds, kept to a millionth; a smaller positive one counts as
	// a millionth, a negative one or NaN as no funding. Zero means 0.1.
	Ratio float64
	// Burst is the capacity in tokens, from 1 to 10⁹; anything beyond is clamped. Zero means 10.
	Burst int
	// Initial is how many tokens there are at first, at most Burst. -1 (and below) means none. Zero means 1.
	Initial int
	// Trickle is a period, counted from the creation on. At its end a budget with less than one token is granted
	// one without any success, so that a lone client is never mute. It is given to the next who asks, and lapses
	// where successes have made a token by then. Zero (and below) means never.
	Trickle time.Duration
}

// Budget bounds the retries of all runs that share it: a token bucket that successes fund and each retry takes one
// token from. A first attempt never pays. A refused retry ends its run at once as DeadLettered(BudgetExhausted):
// nobody waits for a token, since callers that wait make no successes that would fund one.
//
// A bucket that requests fund keeps a storm alive, because a storm is made of requests. So successes fund it: the
// share of retries is bounded by what works.
//
// A Budget is safe for concurrent use and lock-free; while it is full and calls succeed it is only read, so that it
// scales with cores. It lives in one process: nothing is shared between clients, and Initial and Burst count per client.
// The methods of a nil Budget do nothing and allow everything. The zero Budget has no capacity and refuses every retry:
// use NewBudget.
type Budget struct {
	level   atomic.Int64 // millionths of a token, in [0, burst]
	emptied atomic.Int64 // Trickle only: when a token was last taken that left less than one; since created, in ns
	burst   int64
	gain    int64 // per success
	trickle time.Duration
	created time.Time // Trickle only
}

// NewBudget returns a budget with Initial tokens. Values that BudgetConfig does not allow are clamped as its fields
// say.
func NewBudget(c BudgetConfig) *Budget {
	var created time.Time
	if c.Trickle > 0 {
		created = now()
	}
	return NewBudgetAt(c, created)
}

// NewBudgetAt is NewBudget for a clock of your own, such as that of a simulation: the periods of Trickle are counted
// from created, and Withdraw takes times of the same clock.
func NewBudgetAt(c BudgetConfig, created time.Time) *Budget {
	b := &Budget{burst: c.burst() * token, trickle: max(c.Trickle, 0), created: created}
	b.gain = c.gain(b.burst)
	b.level.Store(min(c.initial()*token, b.burst))
	return b
}

func (c *BudgetConfig) burst() int64 {
	if c.Burst == 0 {
		return defaultBurst
	}
	return min(max(int64(c.Burst), 1), maxBurst)
}

func (c *BudgetConfig) initial() int64 {
	if c.Initial == 0 {
		return defaultInitial
	}
	return min(max(int64(c.Initial), 0), maxBurst)
}

// gain returns how much a success adds to a bucket of the given capacity.
func (c *BudgetConfig) gain(burst int64) int64 {
	switch {
	case c.Ratio == 0:
		return defaultRatio * token
	case !(c.Ratio > 0):
		return 0
	case c.Ratio >= float64(burst)/token:
		return burst
	default:
		return max(int64(math.Round(c.Ratio*token)), 1)
	}
}

// Withdraw takes the token for one retry and reports whether there was one. now is the caller's clock; only a budget
// with Trickle reads it, and a now that is ahead of the clock puts off Trickle until then. Do calls it for each retry
// before the wait; a shell of your own does the same.
func (b *Budget) Withdraw(now time.Time) bool {
	if b == nil {
		return true
	}
	for {
		level := b.level.Load()
		if level < token {
			return b.trickles(now)
		}
		if b.trickle > 0 && level < 2*token {
			// Before the level falls, so that nobody sees an empty bucket with an old time. Who loses the race for
			// the last token has put the next grant off, by a period at most; none is granted too many.
			b.emptiedAt(now)
		}
		if b.level.CompareAndSwap(level, level-token) {
			return true
		}
	}
}

// trickles grants a token to an empty bucket, and takes it, where a period has ended since the bucket became empty.
// The periods are counted from the creation; one that ends while there is a token grants nothing.
func (b *Budget) trickles(now time.Time) bool {
	if b.trickle == 0 {
		return false
	}
	age := now.Sub(b.created)
	for {
		emptied := b.emptied.Load()
		if age/b.trickle <= time.Duration(emptied)/b.trickle {
			return false
		}
		if b.emptied.CompareAndSwap(emptied, int64(age)) {
			return true
		}
	}
}

// emptiedAt notes that the bucket becomes empty now; it never goes back in time.
func (b *Budget) emptiedAt(now time.Time) {
	age := int64(now.Sub(b.created))
	for {
		emptied := b.emptied.Load()
		if age <= emptied || b.emptied.CompareAndSwap(emptied, age) {
			return
		}
	}
}

// Deposit adds what one success is worth. Do calls it once for each run that succeeds.
func (b *Budget) Deposit() {
	if b != nil {
		b.add(b.gain)
	}
}

// Refund gives back the token of a retry that did not start or did not return.
func (b *Budget) Refund() {
	if b != nil {
		b.add(token)
	}
}

func (b *Budget) add(amount int64) {
	for {
		level := b.level.Load()
		if level == b.burst || b.level.CompareAndSwap(level, min(level+amount, b.burst)) {
			return
		}
	}
}

// Tokens returns how many tokens there are, in [0, Burst], and +Inf for a nil Budget. A token that Trickle would
// grant is not counted.
func (b *Budget) Tokens() float64 {
	if b == nil {
		return math.Inf(1)
	}
	return float64(b.level.Load()) / token
}

func (b *Budget) full() bool { return b.level.Load() == b.burst }

// Budgets keeps one Budget per key, for example per tenant and endpoint, so that one failing peer does not use up the
// retries of the others. It holds a bounded number of keys and is safe for concurrent use.
type Budgets struct {
	config  BudgetConfig
	maxKeys int

	byKey     sync.Map   // string → *keyed; For of a known key takes no lock and, mostly, writes nothing
	mu        sync.Mutex // guards what follows
	kept      []*keyed
	forgotten int
}

// keyed is a Budget with what eviction needs to know.
type keyed struct {
	key    string
	budget *Budget
	used   atomic.Bool // since the last eviction
}

// NewBudgets returns an empty set of budgets with the same config. maxKeys below 1 means 1.
func NewBudgets(c BudgetConfig, maxKeys int) *Budgets {
	return &Budgets{config: c, maxKeys: maxKeys}
}

// For returns the budget of key, and makes it where there is none. A key beyond maxKeys takes the place of another:
// of the fullest, and among the equally full of one that was not asked for since the last eviction. So a full budget
// always goes before a drained one, whose loss would grant its client a fresh Initial. A run that holds an evicted
// budget goes on with it.
//
// A known key costs a map look-up. A new one beyond maxKeys costs a scan of all.
func (s *Budgets) For(key string) *Budget {
	k, ok := s.byKey.Load(key)
	if !ok {
		k = s.insert(key)
	}
	found := k.(*keyed)
	if !found.used.Load() {
		found.used.Store(true)
	}
	return found.budget
}

// Len returns how many keys are held.
func (s *Budgets) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept)
}

// Forgotten returns how many budgets were evicted although they were not full. If it grows, maxKeys is too small.
func (s *Budgets) Forgotten() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forgotten
}

func (s *Budgets) insert(key string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.byKey.Load(key); ok { // another goroutine was faster
		return k
	}
	k := &keyed{key: key, budget: NewBudget(s.config)}
	if len(s.kept) < max(s.maxKeys, 1) { // also of the zero Budgets
		s.kept = append(s.kept, k)
	} else {
		s.kept[s.evict()] = k
	}
	s.byKey.Store(key, k)
	return k
}

// evict forgets one budget and returns its place.
func (s *Budgets) evict() int {
	victim, mostLevel, victimUsed := 0, int64(-1), false
	for i, k := range s.kept {
		level, used := k.budget.level.Load(), k.used.Swap(false)
		if level > mostLevel || level == mostLevel && victimUsed && !used {
			victim, mostLevel, victimUsed = i, level, used
		}
	}
	if !s.kept[victim].budget.full() {
		s.forgotten++
	}
	s.byKey.Delete(s.kept[victim].key)
	return victim
}
