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
		require.Same(t, s.For(""), s.For(""), "the empty key is one")
		require.NotSame(t, s.For(""), s.For(" "))
		require.Equal(t, 4, s.Len())
	})
	t.Run("each key has the config and its own tokens", func(t *testing.T) {
		s := retry.NewBudgets(retry.BudgetConfig{Ratio: 0.5, Burst: 4, Initial: 3}, 10)
		require.Equal(t, 3, takeAll(s.For("a")))
		fund(s.For("b"))
		require.Equal(t, []float64{0, 3.5, 3}, []float64{s.For("a").Tokens(), s.For("b").Tokens(), s.For("c").Tokens()})
	})
	t.Run("each key has its own periods of Trickle", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := retry.NewBudgets(retry.BudgetConfig{Initial: -1, Trickle: time.Minute}, 10)
			a := s.For("a")
			<-time.After(time.Minute / 2)
			b := s.For("b")
			<-time.After(time.Minute / 2)
			require.Equal(t, []bool{true, false}, []bool{take(a, time.Now()), take(b, time.Now())})
			<-time.After(time.Minute / 2)
			require.Equal(t, []bool{false, true}, []bool{take(a, time.Now()), take(b, time.Now())})
		})
	})
	for name, s := range map[string]*retry.Budgets{
		"maxKeys of 1":      retry.NewBudgets(retry.BudgetConfig{}, 1),
		"maxKeys below 1":   retry.NewBudgets(retry.BudgetConfig{}, -1),
		"the least maxKeys": retry.NewBudgets(retry.BudgetConfig{}, math.MinInt),
		"the zero Budgets":  {},
	} {
		t.Run(name+" means one key", func(t *testing.T) {
			a := s.For("a")
			require.NotSame(t, a, s.For("b"))
			require.True(t, take(s.For("b"), anyTime))
			require.Equal(t, 9.0, s.For("c").Tokens(), "they share one")
			require.Same(t, a, s.For("a"))
			require.Equal(t, 10.0, a.Tokens())
			require.Equal(t, []int{1, 3}, []int{s.Len(), s.Overflows()})
		})
	}
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
		require.Equal(t, 993, s.Overflows())
	})
	t.Run("a run whose key loses its place has the tokens that all keys without one share", func(t *testing.T) {
		s := retry.NewBudgets(retry.BudgetConfig{Initial: 1}, 1)
		a := s.For("a")
		got := settle(t.Context(), retry.Policy{MaxAttempts: 8, Backoff: noWait, Budget: a}, func(ctx context.Context) error {
			if retry.AttemptNumber(ctx) == 2 {
				fund(s.For("b"))
				require.Equal(t, 0.1, s.For("b").Tokens(), "as many as a had left when b took its place, and those of the success")
			}
			return errOutage
		})
		got.Elapsed = 0
		require.Equal(t, settled{Reason: retry.BudgetExhausted, Attempts: 3, Tokens: 0}, got)
		fund(a)
		require.Equal(t, 0.1, a.Tokens())
		require.Equal(t, 0.1, s.For("b").Tokens())
		require.NotSame(t, a, s.For("a"))
		require.NotSame(t, s.For("a"), s.For("a"), "it has no place")
	})
	t.Run("budgets that their callers keep have no more tokens than the places", func(t *testing.T) {
		s := retry.NewBudgets(retry.BudgetConfig{Ratio: 1}, 1)
		var held []*retry.Budget
		for key := range 20 {
			fund(s.For(fmt.Sprint(key)))
			b := s.For(fmt.Sprint(key))
			takeAll(b)
			held = append(held, b)
		}
		granted := 0
		for _, b := range held {
			depositTimes(b, 50)
		}
		for _, b := range held {
			for take(b, anyTime) {
				granted++
			}
		}
		require.Equal(t, 20, granted, "one place and the shared one with 10 tokens each")
	})
	t.Run("a nil Budgets has nil for every key, which allows every retry", func(t *testing.T) {
		var s *retry.Budgets
		require.Nil(t, s.For("a"))
		require.Equal(t, []int{0, 0}, []int{s.Len(), s.Overflows()})
	})
}

func TestBudgetsEviction(t *testing.T) {
	for _, row := range []struct {
		name    string
		maxKeys int
		// "A" asks for the key. "-A" takes a token from its budget, which was asked for before, and "+A" is a success. "h" is
		// an hour, and "d" a day.
		steps     string
		kept      string
		overflows int
	}{
		{name: "a key with a success keeps its place", maxKeys: 2, steps: "A B +A +B C +C", kept: "A B", overflows: 1},
		{name: "a key without one gives it away to one with a success", maxKeys: 2, steps: "A B +A C +C", kept: "A C", overflows: 1},
		{name: "a key without a success gets no place from one without", maxKeys: 2, steps: "A B +A C -C D", kept: "A B", overflows: 2},
		{name: "one without tokens gives it away", maxKeys: 2, steps: "A B +A +B -A C +C", kept: "B C", overflows: 1},
		{name: "the hand goes on from where it was", maxKeys: 3, steps: "A B C +A +B +C -A -B D +D E +E", kept: "C D E", overflows: 2},
		{name: "the hand goes round", maxKeys: 2, steps: "A B +A +B -A C +C C -B D +D D -C c +c", kept: "D c", overflows: 3},
		{name: "one that has earned a token again keeps it", maxKeys: 2, steps: "A B +A +B -A +A C +C", kept: "A B", overflows: 1},
		{name: "a newcomer has earned its place", maxKeys: 1, steps: "A +A -A B +B C +C", kept: "B", overflows: 2},
		{name: "two runs of a newcomer take one place", maxKeys: 2, steps: "A B C +C +C", kept: "B C", overflows: 1},
		{name: "eight places are looked at, and then the next eight", maxKeys: 10,
			steps: "A B C D E F G H I J +A +B +C +D +E +F +G +H +I +J -I -J K +K +K L +L", kept: "A H L K", overflows: 2},
		{name: "an hour without use is not enough", maxKeys: 2, steps: "A B +A +B h C +C", kept: "A B", overflows: 1},
		{name: "more than an hour without use is", maxKeys: 2, steps: "A B +A +B h m C +C", kept: "C B", overflows: 1},
		{name: "a key that was asked for within the hour stays", maxKeys: 2, steps: "A B +A +B h A m C +C", kept: "A C", overflows: 1},
		{name: "keys of yesterday go at once, however many come", maxKeys: 3, steps: "A B C +A +B +C d D +D E +E F +F", kept: "D E F", overflows: 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := retry.NewBudgets(retry.BudgetConfig{Ratio: 1, Burst: 2, Initial: 1}, row.maxKeys)
				budgets := map[string]*retry.Budget{}
				for _, step := range strings.Fields(row.steps) {
					switch step[0] {
					case 'd':
						<-time.After(24 * time.Hour)
					case 'h':
						<-time.After(time.Hour)
					case 'm':
						<-time.After(time.Minute)
					case '-':
						for take(budgets[step[1:]], anyTime) {
						}
					case '+':
						fund(budgets[step[1:]])
					default:
						budgets[step] = s.For(step)
					}
				}
				require.Equal(t, []int{row.maxKeys, row.overflows}, []int{s.Len(), s.Overflows()})
				for _, key := range strings.Fields(row.kept) {
					require.Same(t, s.For(key), s.For(key), key)
				}
				require.Equal(t, row.overflows, s.Overflows(), "those had a budget of their own")
			})
		})
	}
	for _, row := range []struct {
		name   string
		victim float64 // tokens of the key whose place is taken
		want   float64 // tokens of the newcomer
	}{
		{"a drained victim leaves nothing but the success", 0, 0.5},
		{"a victim with a part of a token leaves that part", 0.5, 1},
		{"a victim with as many as Initial leaves them", 2, 2.5},
		{"a victim with more leaves Initial", 2.5, 2.5},
		{"a full victim leaves Initial", 4, 2.5},
	} {
		t.Run("a newcomer inherits no more than its victim had: "+row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := retry.NewBudgets(retry.BudgetConfig{Ratio: 0.5, Burst: 4, Initial: 2}, 1)
				victim := s.For("victim")
				takeAll(victim)
				depositTimes(victim, int(2*row.victim))
				require.Equal(t, row.victim, victim.Tokens())
				<-time.After(2 * time.Hour)
				fund(s.For("newcomer"))
				require.Equal(t, row.want, s.For("newcomer").Tokens())
				require.Same(t, s.For("newcomer"), s.For("newcomer"))
				takeAll(s.For("another"))
				require.Zero(t, victim.Tokens(), "the victim has the tokens that keys without a place share: no token is lent twice")
			})
		})
	}
	t.Run("the periods of Trickle go with the place", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := retry.NewBudgets(retry.BudgetConfig{Ratio: -1, Initial: 1, Trickle: time.Minute}, 1)
			a := s.For("a")
			require.True(t, take(a, time.Now()))
			<-time.After(time.Minute / 2)
			fund(s.For("b"))
			b := s.For("b")
			takeAll(a) // which all keys without a place share from now on
			<-time.After(time.Minute / 2)
			require.Equal(t, []bool{false, true, false}, []bool{take(a, time.Now()), take(b, time.Now()), take(b, time.Now())})
		})
	})
}

func TestBudgetsInAHundredGoroutines(t *testing.T) {
	t.Run("as many keys as there is room for: one budget each, and none is shared", func(t *testing.T) {
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
		require.Equal(t, []int{50, 0}, []int{s.Len(), s.Overflows()})
	})
	t.Run("fifty keys in ten places: never more, and no token is lent twice", func(t *testing.T) {
		s := retry.NewBudgets(retry.BudgetConfig{Burst: 1000, Initial: 100}, 10)
		var taken, beyond atomic.Int64
		crowd(func(i int) {
			for n := range 200 {
				if take(s.For(fmt.Sprint((i*7+n*n)%50)), anyTime) {
					taken.Add(1)
				}
				if s.Len() > 10 {
					beyond.Add(1)
				}
			}
		})
		require.Zero(t, beyond.Load())
		require.Equal(t, 10, s.Len())
		require.LessOrEqual(t, taken.Load(), int64(11*100))
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
