package retry_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

func TestBudgetsFor(t *testing.T) {
	t.Run("the same key gives the same budget", func(t *testing.T) {
		s := retry.NewBudgets(retry.BudgetConfig{}, 10)
		a := s.For("a")
		require.Same(t, a, s.For("a"))
		require.NotSame(t, a, s.For("b"))
		require.Same(t, a, s.For("a"))
		require.Equal(t, 2, s.Len())
	})
	t.Run("the empty key is a key", func(t *testing.T) {
		s := retry.NewBudgets(retry.BudgetConfig{}, 10)
		require.Same(t, s.For(""), s.For(""))
		require.NotSame(t, s.For(""), s.For(" "))
		require.Equal(t, 2, s.Len())
	})
	t.Run("each key has the config and its own tokens", func(t *testing.T) {
		s := retry.NewBudgets(retry.BudgetConfig{Ratio: 0.5, Burst: 4, Initial: 3}, 10)
		require.Equal(t, 3, takeAll(s.For("a")))
		s.For("b").Deposit()
		require.Equal(t, []float64{0, 3.5, 3}, []float64{s.For("a").Tokens(), s.For("b").Tokens(), s.For("c").Tokens()})
	})
	t.Run("each key has its own periods of Trickle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := retry.NewBudgets(retry.BudgetConfig{Initial: -1, Trickle: time.Minute}, 10)
			a := s.For("a")
			<-time.After(time.Minute / 2)
			b := s.For("b")
			<-time.After(time.Minute / 2)
			require.Equal(t, []bool{true, false}, []bool{a.Withdraw(time.Now()), b.Withdraw(time.Now())})
			<-time.After(time.Minute / 2)
			require.Equal(t, []bool{false, true}, []bool{a.Withdraw(time.Now()), b.Withdraw(time.Now())})
		})
	})
	for _, maxKeys := range []int{1, 0, -1, math.MinInt} {
		t.Run(fmt.Sprintf("maxKeys %d keeps one key", maxKeys), func(t *testing.T) {
			s := retry.NewBudgets(retry.BudgetConfig{}, maxKeys)
			a := s.For("a")
			require.Same(t, a, s.For("a"))
			b := s.For("b")
			require.Same(t, b, s.For("b"))
			require.Equal(t, 1, s.Len())
			require.NotSame(t, a, s.For("a"))
			require.Equal(t, 1, s.Len())
		})
	}
	t.Run("the zero Budgets keeps one key", func(t *testing.T) {
		var s retry.Budgets
		require.Same(t, s.For("a"), s.For("a"))
		require.NotSame(t, s.For("a"), s.For("b"))
		require.Equal(t, 1, s.Len())
	})
	t.Run("the largest maxKeys reserves nothing", func(t *testing.T) {
		s := retry.NewBudgets(retry.BudgetConfig{}, math.MaxInt)
		require.Same(t, s.For("a"), s.For("a"))
		require.Equal(t, 1, s.Len())
	})
	t.Run("there are never more than maxKeys", func(t *testing.T) {
		s := retry.NewBudgets(retry.BudgetConfig{}, 7)
		for i := range 1000 {
			s.For(fmt.Sprint(i))
			require.Equal(t, min(i+1, 7), s.Len())
		}
		require.Equal(t, 993, s.Forgotten())
	})
	t.Run("a run that holds an evicted budget goes on with it", func(t *testing.T) {
		s := retry.NewBudgets(retry.BudgetConfig{Initial: 3}, 1)
		a := s.For("a")
		got := settle(t.Context(), retry.Policy{MaxAttempts: 8, Backoff: noWait, Budget: a}, func(ctx context.Context) error {
			if retry.AttemptNumber(ctx) == 2 {
				s.For("b")
			}
			return errOutage
		})
		got.Elapsed = 0
		require.Equal(t, settled{Reason: retry.BudgetExhausted, Attempts: 4, Tokens: 0}, got)
		require.Equal(t, 3.0, s.For("b").Tokens())
		a.Deposit()
		require.Equal(t, 0.1, a.Tokens())
		require.Equal(t, 3.0, s.For("a").Tokens())
	})
}

func TestBudgetsEviction(t *testing.T) {
	for _, row := range []struct {
		name    string
		maxKeys int
		// "a" asks for the key; "-a" takes a token from what was its budget and "+a" puts one in, without asking.
		steps     string
		kept      string
		forgotten int
	}{
		{name: "the only full one goes, however often it was asked for", maxKeys: 3, steps: "a b c -a -c b b d", kept: "a c d"},
		{name: "a full one goes before a half drained one", maxKeys: 2, steps: "a b -a c", kept: "a c"},
		{name: "a full one goes before a drained one", maxKeys: 2, steps: "a b -a -a c", kept: "a c"},
		{name: "a full busy one goes before a drained idle one", maxKeys: 2, steps: "a b -a -a c c c d", kept: "a d"},
		{name: "a half drained one goes before a drained one", maxKeys: 2, steps: "a b -a -a -b c", kept: "a c", forgotten: 1},
		{name: "a half drained busy one goes before a drained idle one", maxKeys: 2, steps: "a b -a -a c -c c d", kept: "a d", forgotten: 1},
		{name: "a full idle one goes before a full busy one", maxKeys: 3, steps: "a b c -a -b d +a +b b e", kept: "b d e"},
		{name: "a full idle one goes before a full busy one that is older", maxKeys: 3, steps: "a b c -a -b d +a +b a e", kept: "a d e"},
		{name: "a drained idle one goes before a drained busy one", maxKeys: 3, steps: "a b c -a -a -b -b d -d -d b e", kept: "b d e", forgotten: 1},
		{name: "a drained idle one goes before a drained busy one that is older", maxKeys: 3, steps: "a b c -a -a -b -b d -d -d a e", kept: "a d e", forgotten: 1},
		{name: "having asked before the last eviction does not count", maxKeys: 3, steps: "a b c -a -b a a a d +a +b b e", kept: "b d e"},
		{name: "a refilled one is full again", maxKeys: 2, steps: "a b -a -b +b c", kept: "a c"},
		{name: "taking and putting in without asking does not make busy", maxKeys: 3, steps: "a b c -a -b d +a +b b -a +a e", kept: "b d e"},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := retry.NewBudgets(retry.BudgetConfig{Ratio: 1, Burst: 2, Initial: 2}, row.maxKeys)
			budgets := map[string]*retry.Budget{}
			for _, step := range strings.Fields(row.steps) {
				switch step[0] {
				case '-':
					require.True(t, budgets[step[1:]].Withdraw(anyTime))
				case '+':
					budgets[step[1:]].Deposit()
				default:
					budgets[step] = s.For(step)
				}
			}
			for _, key := range strings.Fields(row.kept) {
				require.Same(t, budgets[key], s.For(key), key)
			}
			require.Equal(t, row.maxKeys, s.Len())
			require.Equal(t, row.forgotten, s.Forgotten())
		})
	}
	t.Run("a thousand fresh keys do not displace the drained ones", func(t *testing.T) {
		s := retry.NewBudgets(retry.BudgetConfig{Initial: 10}, 10)
		var drained [9]*retry.Budget
		for i := range drained {
			drained[i] = s.For(fmt.Sprint("drained ", i))
			require.True(t, drained[i].Withdraw(anyTime))
		}
		for i := range 1000 {
			s.For(fmt.Sprint("fresh ", i))
		}
		for i := range drained {
			require.Same(t, drained[i], s.For(fmt.Sprint("drained ", i)))
		}
		require.Equal(t, 0, s.Forgotten())
	})
}

func TestBudgetsInAHundredGoroutines(t *testing.T) {
	t.Run("as many keys as there is room for: one budget each, and none is forgotten", func(t *testing.T) {
		s := retry.NewBudgets(retry.BudgetConfig{Burst: 1000, Initial: 1000}, 50)
		var granted [50]atomic.Int64
		crowd(func(i int) {
			for n := range 50 {
				key := (i + n) % 50
				granted[key].Add(int64(takeAll(s.For(fmt.Sprint(key)))))
			}
		})
		for key := range granted {
			require.Equal(t, int64(1000), granted[key].Load(), key)
		}
		require.Equal(t, []int{50, 0}, []int{s.Len(), s.Forgotten()})
	})
	t.Run("fifty keys in ten places: never more, no budget under two keys, each eviction counted once", func(t *testing.T) {
		s := retry.NewBudgets(retry.BudgetConfig{}, 10) // with one token of ten none is full, so that Forgotten counts each
		var keys sync.Map                               // *retry.Budget → key
		var made, mixed, beyond atomic.Int64
		crowd(func(i int) {
			for n := range 200 {
				key := (i*7 + n*n) % 50
				b := s.For(fmt.Sprint(key))
				if n%3 == 0 {
					b.Withdraw(anyTime)
				}
				if other, seen := keys.LoadOrStore(b, key); !seen {
					made.Add(1)
				} else if other != key {
					mixed.Add(1)
				}
				if s.Len() > 10 {
					beyond.Add(1)
				}
			}
		})
		require.Equal(t, []int64{0, 0}, []int64{mixed.Load(), beyond.Load()})
		require.Equal(t, []int{10, int(made.Load()) - 10}, []int{s.Len(), s.Forgotten()})
	})
	t.Run("full ones come and go without being forgotten", func(t *testing.T) {
		s := retry.NewBudgets(retry.BudgetConfig{Initial: 10}, 10)
		crowd(func(i int) {
			for n := range 200 {
				s.For(fmt.Sprint((i*7 + n*n) % 50)).Deposit()
			}
		})
		require.Equal(t, []int{10, 0}, []int{s.Len(), s.Forgotten()})
	})
}
