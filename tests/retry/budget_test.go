package retry_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

func TestBudgetSharedByAHundredRuns(t *testing.T) {
	t.Run("of a failing service: all attempts are the first ones and the burst", func(t *testing.T) {
		p := retry.Policy{
			MaxAttempts: retry.Unlimited,
			Backoff:     noWait,
			Budget:      retry.NewBudget(retry.BudgetConfig{Burst: 25, Initial: 25}),
		}
		var attempts, refused atomic.Int64
		crowd(func(int) {
			err := retry.Do(context.Background(), p, func(context.Context) error {
				attempts.Add(1)
				return errOutage
			})
			if errors.Is(err, retry.BudgetExhausted) {
				refused.Add(1)
			}
		})
		require.Equal(t, []int64{125, 100}, []int64{attempts.Load(), refused.Load()})
		require.Equal(t, 0.0, p.Budget.Tokens())
	})
	t.Run("canceled while they wait: all is paid back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			p := retry.Policy{Backoff: retry.Backoff{Base: time.Hour}, Budget: retry.NewBudget(retry.BudgetConfig{Initial: 10})}
			var during float64
			time.AfterFunc(time.Minute, func() {
				during = p.Budget.Tokens()
				cancel()
			})
			var refused, canceled atomic.Int64
			crowd(func(int) {
				switch err := retry.Do(ctx, p, failing); {
				case errors.Is(err, retry.BudgetExhausted):
					refused.Add(1)
				case errors.Is(err, retry.CallerCanceled):
					canceled.Add(1)
				}
			})
			require.Equal(t, []int64{90, 10}, []int64{refused.Load(), canceled.Load()})
			require.Equal(t, []float64{0, 10}, []float64{during, p.Budget.Tokens()})
		})
	})
	t.Run("of which some succeed: each retry and each success is counted once", func(t *testing.T) {
		p := retry.Policy{
			MaxAttempts: 3,
			Backoff:     noWait,
			Budget:      retry.NewBudget(retry.BudgetConfig{Burst: 1_000_000, Initial: 100_000}),
		}
		crowd(func(i int) {
			for n := range 100 {
				_ = retry.Do(context.Background(), p, func(ctx context.Context) error {
					if (i+n)%4 < retry.AttemptNumber(ctx) {
						return nil
					}
					return errOutage
				})
			}
		})
		// Of 10,000 runs a quarter each takes 0, 1 and 2 retries and succeeds; a quarter takes 2 and fails.
		require.Equal(t, 100_000-2500*(0+1+2+2)+0.1*7500, p.Budget.Tokens())
	})
}

// slowBudget is a second implementation, written from the documentation: fractions instead of millionths, and periods
// that are counted one by one instead of divided.
type slowBudget struct {
	tokens, burst, ratio *big.Rat
	trickle              time.Duration // 0 is none
	end                  time.Duration // since creation: of the period in which the budget got below one token
}

// newSlowBudget returns a budget with a Ratio in millionths.
func newSlowBudget(millionths int64, burst, initial int, trickle time.Duration) *slowBudget {
	s := &slowBudget{trickle: trickle, end: trickle}
	switch {
	case millionths == 0:
		s.ratio = big.NewRat(1, 10)
	case millionths < 0:
		s.ratio = new(big.Rat)
	default:
		s.ratio = big.NewRat(millionths, 1_000_000)
	}
	switch {
	case burst == 0:
		s.burst = big.NewRat(10, 1)
	case burst < 1:
		s.burst = big.NewRat(1, 1)
	case burst > 1_000_000_000:
		s.burst = big.NewRat(1_000_000_000, 1)
	default:
		s.burst = big.NewRat(int64(burst), 1)
	}
	switch {
	case initial == 0:
		s.tokens = s.burst
	case initial < 0:
		s.tokens = new(big.Rat)
	default:
		s.tokens = big.NewRat(int64(initial), 1)
	}
	s.add(new(big.Rat))
	return s
}

func (s *slowBudget) add(amount *big.Rat) {
	s.tokens = new(big.Rat).Add(s.tokens, amount)
	if s.tokens.Cmp(s.burst) > 0 {
		s.tokens = s.burst
	}
}

func (s *slowBudget) withdraw(age time.Duration) bool {
	one := big.NewRat(1, 1)
	if s.tokens.Cmp(one) >= 0 {
		s.tokens = new(big.Rat).Sub(s.tokens, one)
		if s.tokens.Cmp(one) < 0 {
			s.below(age)
		}
		return true
	}
	if s.trickle == 0 || age < s.end {
		return false
	}
	s.below(age)
	return true
}

// below notes that from age on there is less than a token.
func (s *slowBudget) below(age time.Duration) {
	for s.trickle > 0 && s.end <= age {
		s.end += s.trickle
	}
}

// float returns the number of tokens as the nearest float64.
func (s *slowBudget) float() float64 {
	f, _ := s.tokens.Float64()
	return f
}

// FuzzBudget plays ops on a Budget and on a slowBudget: a byte's two low bits are Deposit, Refund or (twice) Withdraw,
// and a Withdraw's next byte moves its time by so many eighths of a period, forth or back, and a nanosecond to either
// side, as the rest of the first byte says.
func FuzzBudget(f *testing.F) {
	const deposit, refund, withdraw, before, after = 0, 1, 2, 1 << 2, 2 << 2
	f.Add(int64(0), 0, 0, uint32(0), []byte{withdraw, 0, withdraw, 0, refund, deposit, withdraw, 0})
	f.Add(int64(300_000), 10, -1, uint32(0), []byte{deposit, deposit, deposit, withdraw, 0, deposit, withdraw, 0, withdraw, 0})
	f.Add(int64(1), math.MaxInt, math.MaxInt, uint32(1), []byte{refund, withdraw, 8, deposit, withdraw, 8})
	f.Add(int64(-1), math.MinInt, math.MinInt, uint32(80), []byte{withdraw | before, 8, withdraw | after, 0, withdraw, 4, withdraw, 4})
	f.Add(int64(math.MaxInt64), 3, 0, uint32(1000), []byte{deposit, withdraw, 80, withdraw, 0x80, withdraw, 0, withdraw, 0, withdraw, 127})
	f.Add(int64(500_000), 1, 1, uint32(math.MaxUint32), []byte{withdraw, 4, deposit, withdraw, 4, refund, withdraw, 0, withdraw | before, 8})
	f.Add(int64(500_000), 0, 2, uint32(80), []byte{withdraw, 24, withdraw, 0xEC, withdraw, 8, deposit, deposit, deposit, withdraw, 20, withdraw, 0})
	f.Fuzz(func(t *testing.T, millionths int64, burst, initial int, trickle uint32, ops []byte) {
		period := time.Duration(trickle)
		synctest.Test(t, func(t *testing.T) { // for the instant of creation
			created := time.Now()
			b := retry.NewBudget(retry.BudgetConfig{
				Ratio:   float64(millionths) / 1_000_000,
				Burst:   burst,
				Initial: initial,
				Trickle: period,
			})
			slow := newSlowBudget(millionths, burst, initial, period)
			require.Equal(t, slow.float(), b.Tokens(), "at first")
			var age time.Duration
			for i := 0; i < len(ops); i++ {
				place := i
				switch op := ops[i] & 3; op {
				case deposit:
					fund(b)
					slow.add(slow.ratio)
				case refund:
					b.Refund()
					slow.add(big.NewRat(1, 1))
				default:
					if i++; i == len(ops) {
						return
					}
					age += time.Duration(int8(ops[i])) * period / 8
					asked := age
					switch ops[place] & (before | after) {
					case before:
						asked--
					case after:
						asked++
					}
					require.Equal(t, slow.withdraw(asked), take(b, created.Add(asked)), "op %d: Withdraw at %d", place, asked)
				}
				require.Equal(t, slow.float(), b.Tokens(), "after op %d", place)
			}
		})
	})
}

// crowd calls f in 100 goroutines that start together, with 0 to 99, and waits for all.
func crowd(f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range 100 {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

func TestBudgetInAHundredGoroutines(t *testing.T) {
	t.Run("with successes no more are granted than were funded, and none is lost", func(t *testing.T) {
		b := retry.NewBudget(retry.BudgetConfig{Burst: 1_000_000, Initial: 50})
		var granted atomic.Int64
		crowd(func(int) {
			for range 1000 {
				fund(b)
				if take(b, anyTime) {
					granted.Add(1)
				}
			}
		})
		// 50 at first and 100·1000·0.1 from successes.
		require.LessOrEqual(t, granted.Load(), int64(10_050))
		for take(b, anyTime) {
			granted.Add(1)
		}
		require.Equal(t, int64(10_050), granted.Load())
		require.Equal(t, 0.0, b.Tokens())
	})
	t.Run("what is paid back can be taken again, and nothing is made or lost", func(t *testing.T) {
		b := retry.NewBudget(retry.BudgetConfig{Burst: 70, Initial: 70})
		var beyond atomic.Int64
		crowd(func(int) {
			for range 1000 {
				if take(b, anyTime) {
					b.Refund()
				}
				if tokens := b.Tokens(); tokens < 0 || tokens > 70 {
					beyond.Add(1)
				}
			}
		})
		require.Equal(t, int64(0), beyond.Load())
		require.Equal(t, 70.0, b.Tokens())
	})
	t.Run("deposits and refunds together never go above Burst", func(t *testing.T) {
		b := retry.NewBudget(retry.BudgetConfig{Ratio: 0.7, Burst: 3})
		var above atomic.Int64
		crowd(func(i int) {
			for range 1000 {
				switch i % 3 {
				case 0:
					fund(b)
				case 1:
					b.Refund()
				default:
					take(b, anyTime)
				}
				if b.Tokens() > 3 {
					above.Add(1)
				}
			}
		})
		require.Equal(t, int64(0), above.Load())
	})
	t.Run("an empty one with Trickle grants one at one instant", func(t *testing.T) {
		var budgets [1000]*retry.Budget
		var granted [1000]atomic.Int64
		for i := range budgets {
			budgets[i] = retry.NewBudget(retry.BudgetConfig{Initial: -1, Trickle: time.Minute})
		}
		at := time.Now().Add(time.Hour)
		crowd(func(int) {
			for i, b := range budgets {
				if take(b, at) {
					granted[i].Add(1)
				}
			}
		})
		for i := range budgets {
			require.Equal(t, int64(1), granted[i].Load())
		}
	})
	t.Run("with successes Trickle grants at most one more at one instant", func(t *testing.T) {
		for range 20 {
			b := retry.NewBudget(retry.BudgetConfig{Burst: 1_000_000, Initial: -1, Trickle: time.Minute})
			at := time.Now().Add(time.Hour)
			var granted atomic.Int64
			crowd(func(int) {
				for range 100 {
					fund(b)
					if take(b, at) {
						granted.Add(1)
					}
				}
			})
			for take(b, at) {
				granted.Add(1)
			}
			require.Contains(t, []int64{1000, 1001}, granted.Load())
			require.Equal(t, 0.0, b.Tokens())
		}
	})
	t.Run("over ten periods Trickle grants at most ten", func(t *testing.T) {
		for range 20 {
			b := retry.NewBudget(retry.BudgetConfig{Initial: -1, Trickle: time.Hour})
			created := time.Now()
			var granted atomic.Int64
			crowd(func(i int) {
				for n := range 10 {
					if take(b, created.Add(time.Duration(n+1)*time.Hour+time.Duration(i)*time.Minute/2)) {
						granted.Add(1)
					}
				}
			})
			require.LessOrEqual(t, granted.Load(), int64(10))
			require.GreaterOrEqual(t, granted.Load(), int64(1))
		}
	})
}

// lockstep calls f(i, round) for each round in two goroutines, i being 0 and 1, that enter every round together.
func lockstep(rounds int, f func(i, round int)) {
	var arrived atomic.Int64
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for round := range rounds {
				arrived.Add(1)
				for spins := 0; arrived.Load() < int64(2*(round+1)); spins++ {
					if spins > 1000 { // the other one has no core
						runtime.Gosched()
					}
				}
				f(i, round)
			}
		})
	}
	wg.Wait()
}

func TestBudgetTrickleUnderContention(t *testing.T) {
	const rounds = 10_000
	budgets := func(c retry.BudgetConfig) []*retry.Budget {
		list := make([]*retry.Budget, rounds)
		for i := range list {
			list[i] = retry.NewBudget(c)
		}
		return list
	}
	for name, initial := range map[string]int{
		"of two that ask an empty budget together one is granted a token": -1,
		"of two that ask for the last token together one is granted it":   1,
	} {
		t.Run(name, func(t *testing.T) {
			list := budgets(retry.BudgetConfig{Initial: initial, Trickle: time.Hour})
			at := time.Now().Add(90 * time.Minute)
			var granted atomic.Int64
			lockstep(rounds, func(_, round int) {
				if take(list[round], at) {
					granted.Add(1)
				}
			})
			require.Equal(t, int64(rounds), granted.Load())
		})
	}
	t.Run("of two on either side of a period's end neither is granted one too many", func(t *testing.T) {
		list := budgets(retry.BudgetConfig{Initial: 1, Trickle: time.Hour})
		at := [2]time.Time{time.Now().Add(30 * time.Minute), time.Now().Add(90 * time.Minute)}
		var granted atomic.Int64
		lockstep(rounds, func(i, round int) {
			if take(list[round], at[i]) {
				granted.Add(1)
			}
		})
		require.GreaterOrEqual(t, granted.Load(), int64(rounds))
		require.LessOrEqual(t, granted.Load(), int64(2*rounds), "the token and the first period's grant")
		for _, b := range list {
			require.False(t, take(b, at[1]), "nothing is left of that period")
		}
	})
}

// TestBudgetTrickleFarFromCreation is about ages beyond any Duration, which is 292 years.
func TestBudgetTrickleFarFromCreation(t *testing.T) {
	today := time.Date(2026, time.February, 3, 4, 5, 0, 0, time.UTC)
	for _, row := range []struct {
		name    string
		created time.Time
		trickle time.Duration
		want    []bool // today, a nanosecond later, and a year later
	}{
		{"290 years ago", today.AddDate(-290, 0, 0), minute, []bool{true, false, true}},
		{"since the zero time: the periods that have ended grant one token, the last", time.Time{}, minute, []bool{true, false, false}},
		{"since the zero time, with the longest period", time.Time{}, longest, []bool{true, false, false}},
		{"after every clock", today.Add(longest).Add(longest), minute, []bool{false, false, false}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := retry.BudgetConfig{Initial: -1, Trickle: row.trickle}.NewAt(row.created)
			require.Equal(t, row.want, []bool{take(b, today), take(b, today.Add(1)), take(b, today.AddDate(1, 0, 0))})
		})
	}
}

func TestBudgetTrickleBesideSuccesses(t *testing.T) {
	const T = time.Minute
	type step struct {
		successes int
		refunds   int
		at        time.Duration // when a token is asked for
		want      bool
		tokens    float64 // after it
	}
	for _, row := range []struct {
		name  string
		steps []step
	}{
		{"a part of a token stays beside a grant", []step{
			{successes: 9, at: T - 1, tokens: 0.9}, {at: T, want: true, tokens: 0.9}, {at: T, tokens: 0.9}, {successes: 1, at: T, want: true}}},
		{"a grant that was not taken is not counted in Tokens", []step{{at: T - 1}, {successes: 5, at: 7 * T, want: true, tokens: 0.5}}},
		{"a grant that was not taken lapses when successes have made a whole token", []step{
			{successes: 10, at: T + 1, want: true}, {at: T + 2}, {at: 2*T - 1}, {at: 2 * T, want: true}}},
		{"a token taken out of one and a half leaves less than one, and the next period grants", []step{
			{successes: 15, at: T + 1, want: true, tokens: 0.5}, {at: T + 2, tokens: 0.5}, {at: 2*T - 1, tokens: 0.5}, {at: 2 * T, want: true, tokens: 0.5}}},
		{"a granted token can be paid back and taken again in the same period", []step{
			{at: T, want: true}, {refunds: 1, at: T, want: true}, {at: 2*T - 1}, {at: 2 * T, want: true}}},
		{"a granted token that is paid back late is not a second grant", []step{{at: T, want: true}, {refunds: 1, at: 5 * T, want: true}, {at: 5 * T}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := retry.BudgetConfig{Initial: -1, Trickle: T}.NewAt(anyTime)
			for i, s := range row.steps {
				for range s.successes {
					fund(b)
				}
				for range s.refunds {
					b.Refund()
				}
				require.Equal(t, s.want, take(b, anyTime.Add(s.at)), "step %d", i+1)
				require.Equal(t, s.tokens, b.Tokens(), "step %d", i+1)
			}
		})
	}
}

// TestBudgetsBeyondMaxKeys shows what many keys can get, and what they cannot take from others.
func TestBudgetsBeyondMaxKeys(t *testing.T) {
	t.Run("1,000 tenants that fail at once over 10 keys", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			const tenants, keys = 1000, 10
			s := retry.NewBudgets(retry.BudgetConfig{}, keys)
			var attempts atomic.Int64
			var all sync.WaitGroup
			for i := range tenants {
				p := retry.Policy{MaxAttempts: 2, Backoff: noWait, Budget: s.For(fmt.Sprint("tenant ", i))}
				all.Go(func() {
					_ = retry.Do(t.Context(), p, func(context.Context) error {
						if attempts.Add(1) <= tenants {
							<-time.After(time.Second) // all first attempts are under way before one fails
						}
						return errOutage
					})
				})
			}
			all.Wait()
			require.Equal(t, int64(tenants+keys+10), attempts.Load(), "one for each key with a place, and as many as the shared one has")
		})
	})
	t.Run("failing tenants are granted no retries by coming back", func(t *testing.T) {
		const tenants, keys, calls = 20, 10, 100_000
		for name, next := range map[string]func(n int) int{
			"in turn": func(n int) int { return n % tenants },
			"at random": func() func(int) int {
				r := rand.New(rand.NewPCG(1, 2))
				return func(int) int { return r.IntN(tenants) }
			}(),
		} {
			s := retry.NewBudgets(retry.BudgetConfig{}, keys)
			granted := 0
			for n := range calls {
				p := retry.Policy{MaxAttempts: 2, Backoff: noWait, Budget: s.For(fmt.Sprint("tenant ", next(n)))}
				if errors.Is(retry.Do(t.Context(), p, failing), retry.AttemptsExhausted) {
					granted++
				}
			}
			t.Logf("%s: %d of %d retries granted (%.3f%%)", name, granted, calls, 100*float64(granted)/calls)
			require.LessOrEqual(t, granted, 10*(keys+1), "each place grants its Initial once, and so does the shared one")
			require.Equal(t, keys, s.Len())
		}
	})
	// A peer that makes up names makes 25 failing calls for each call of 50 quiet tenants, of which one in 20 fails and is
	// retried. When newcomers took places of others, or names kept the places that they had taken first, most of the retries
	// were refused.
	room := []int{60, 1000}
	if testing.Short() {
		room = room[:1]
	}
	for _, keys := range room {
		for name, row := range map[string]struct {
			names int // that the peer uses, over and over
			ahead int // calls of the peer before the first of a tenant
		}{
			"the peer comes later":                                    {1000, 0},
			"the peer is there first":                                 {1000, 5000},
			"the peer is there first and uses each name once":         {math.MaxInt, 5000},
			"the peer comes later and uses each name once":            {math.MaxInt, 0},
			"the peer is there first and has as many names as places": {keys, 5000},
		} {
			t.Run(fmt.Sprintf("quiet tenants beside a peer that makes up keys, with room for %d: %s", keys, name), func(t *testing.T) {
				const quiet, each, every, due = 50, 25, 20, 1000
				s := retry.NewBudgets(retry.BudgetConfig{}, keys)
				r := rand.New(rand.NewPCG(uint64(keys), 7))
				hostile := func(n int) {
					for range n {
						take(s.For(fmt.Sprint("made up ", r.IntN(row.names))), anyTime)
					}
				}
				hostile(row.ahead)
				if row.ahead == 0 {
					for i := range quiet {
						s.For(fmt.Sprint("quiet ", i))
					}
				}
				refused := 0
				for call := range due * every {
					b := s.For(fmt.Sprint("quiet ", r.IntN(quiet)))
					hostile(each)
					if call%every == every-1 && !take(b, anyTime) {
						refused++
					}
					fund(b)
				}
				t.Logf("%d of %d due retries refused", refused, due)
				require.LessOrEqual(t, refused, due/20)
			})
		}
	}
}
