package retry

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Budgets keeps one Budget per key, for example per tenant and endpoint, so that one failing peer does not use up the
// retries of the others. It holds a bounded number of keys and is safe for concurrent use.
//
// The tokens of maxKeys budgets, and of one that the keys beyond them share, are all there are. A key beyond maxKeys
// gets a place of its own by a success. So a peer that makes up keys of calls that fail only gets a share of the shared
// budget, whether it comes first or not.
//
// The zero Budgets holds one key. The methods of a nil Budgets return nil, which allows everything, and 0.
type Budgets struct {
	config  BudgetConfig
	maxKeys int

	byKey     sync.Map // string → *keyed, so that For of a known key takes no lock
	overflows atomic.Int64

	mu     sync.Mutex // guards the fields below
	kept   []*keyed
	hand   int     // the place in kept that is looked at next
	shared *Budget // of the keys beyond maxKeys, nil before there are any
}

const (
	// A key that was not asked for in this time gives its place to another. It is long beside the pause between two
	// calls of a quiet tenant.
	idleAfter = time.Hour
	// The use of a key is noted to this precision, so that For mostly does not write.
	usePrecision = time.Minute
	// A key that needs a place looks at this many, so that it takes about as long with many keys as with few.
	looks = 8
)

// keyed is the Budget of a key with a place.
type keyed struct {
	key    string
	budget *Budget
	used   atomic.Int64 // when it was last asked for, in nanoseconds since epoch
}

// NewBudgets returns an empty set of budgets with the same config. maxKeys below 1 means 1.
func NewBudgets(c BudgetConfig, maxKeys int) *Budgets {
	return &Budgets{config: c, maxKeys: maxKeys}
}

// For returns the budget of key, and creates it if there is room. Otherwise it returns a budget whose tokens all keys
// without a place share, until a call with it succeeds. Then the key takes the place of one that has no tokens, has
// never had a success or was not asked for in an hour, with at most the tokens that are left there. A budget that is kept
// follows its key, but only For notes that the key is in use.
//
// A known key costs a map look-up and a reading of the clock.
func (s *Budgets) For(key string) *Budget {
	if s == nil {
		return nil
	}
	now := time.Since(epoch)
	found, ok := s.byKey.Load(key)
	if !ok {
		return s.place(key, now)
	}
	k := found.(*keyed)
	if now-time.Duration(k.used.Load()) >= usePrecision {
		k.used.Store(int64(now))
	}
	return k.budget
}

// Len returns the number of keys that have a budget of their own.
func (s *Budgets) Len() int {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept)
}

// Overflows returns the number of calls of For for keys without a place. If it grows, maxKeys is too small.
func (s *Budgets) Overflows() int {
	if s == nil {
		return 0
	}
	return int(s.overflows.Load())
}

// place returns the budget of a key that had no place.
func (s *Budgets) place(key string, now time.Duration) *Budget {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.byKey.Load(key); ok { // another goroutine was faster
		return k.(*keyed).budget
	}
	if len(s.kept) < max(s.maxKeys, 1) { // also of the zero Budgets
		k := &keyed{key: key, budget: NewBudget(s.config)}
		k.used.Store(int64(now))
		s.kept = append(s.kept, k)
		s.byKey.Store(key, k)
		return k.budget
	}
	if s.shared == nil {
		s.shared = NewBudget(s.config)
	}
	s.overflows.Add(1)
	return s.guestBudget(key, now)
}

// guestBudget returns a budget with the shared tokens, for a key without a place.
func (s *Budgets) guestBudget(key string, now time.Duration) *Budget {
	b := &Budget{}
	b.guest.Store(&guest{set: s, key: key, shared: s.shared, came: now})
	return b
}

// guest is a key that had no place when it was asked for, or lost it.
type guest struct {
	set    *Budgets
	key    string
	shared *Budget
	came   time.Duration // when it was asked for, since epoch
}

// account returns the budget that holds the tokens of the key now.
func (g *guest) account() *Budget {
	if k, ok := g.set.byKey.Load(g.key); ok {
		return k.(*keyed).budget
	}
	return g.shared
}

// settle gives a key that has had a success a place, if it finds one, and returns the budget that the success funds.
func (g *guest) settle() *Budget {
	s := g.set
	if k, ok := s.byKey.Load(g.key); ok {
		return k.(*keyed).budget
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, ok := s.byKey.Load(g.key); ok { // another goroutine was faster
		return k.(*keyed).budget
	}
	for range min(looks, len(s.kept)) {
		place := s.hand
		s.hand = (place + 1) % len(s.kept)
		victim := s.kept[place]
		if victim.replaceable(g.came) {
			k := &keyed{key: g.key, budget: s.config.inherit(victim.budget)}
			k.used.Store(int64(g.came))
			s.kept[place] = k
			s.byKey.Delete(victim.key)
			s.byKey.Store(g.key, k)
			victim.budget.guest.Store(&guest{set: s, key: victim.key, shared: g.shared, came: g.came})
			return k.budget
		}
	}
	return g.shared
}

// replaceable reports whether another key may take the place of k.
func (k *keyed) replaceable(now time.Duration) bool {
	return k.budget.level.Load() == 0 || !k.budget.proven.Load() || now-time.Duration(k.used.Load()) > idleAfter
}

// inherit returns a budget with the tokens of b, up to Initial. From then on b has no tokens.
func (c BudgetConfig) inherit(b *Budget) *Budget {
	heir := c.NewAt(b.created)
	heir.level.Store(min(b.level.Swap(0), heir.level.Load()))
	heir.emptied.Store(b.emptied.Swap(math.MaxInt64)) // the periods of Trickle
	return heir
}
