package gates

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

const ms = time.Millisecond

var (
	errDown = errors.New("down")
	fixed   = retry.Backoff{Mode: retry.Fixed, Base: 20 * ms}
)

// guard makes an attempt through the peer's breaker or limiter.
type guard func(ctx context.Context, attempt func() error) error

// protected is a breaker that opens for openFor at the third failure in a row, and lets a number of trials through
// after it.
type protected struct {
	openFor time.Duration // until an attempt is let through
	gate    func(context.Context) time.Duration
	through guard
	refused []error // the error of each attempt that the gate refuses
	closed  func() bool
}

// breakers are both, by name.
var breakers = map[string]func(trials uint) protected{
	"gobreaker": func(trials uint) protected {
		breaker, gate := Gobreaker[string](gobreaker.Settings{
			Timeout:     300 * ms,
			MaxRequests: uint32(trials),
			ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= 3 },
		})
		return protected{
			openFor: 300*ms + 1,
			gate:    gate,
			through: func(_ context.Context, attempt func() error) error {
				_, err := breaker.Execute(func() (string, error) { return "", attempt() })
				return err
			},
			refused: []error{gobreaker.ErrOpenState, gobreaker.ErrTooManyRequests},
			closed:  func() bool { return breaker.State() == gobreaker.StateClosed },
		}
	},
	"failsafe-go": func(trials uint) protected {
		breaker := circuitbreaker.NewBuilder[string]().WithFailureThreshold(3).WithDelay(300 * ms).WithSuccessThreshold(trials).Build()
		return protected{
			openFor: 300 * ms,
			gate:    Failsafe(breaker),
			through: func(ctx context.Context, attempt func() error) error {
				_, err := FailsafeThrough(ctx, breaker, func(context.Context) (string, error) { return "", attempt() })
				return err
			},
			refused: []error{circuitbreaker.ErrOpen},
			closed:  breaker.IsClosed,
		}
	},
}

// open makes three attempts that fail at once.
func (b protected) open(t *testing.T) {
	t.Helper()
	for range 3 {
		require.Equal(t, errDown, b.through(t.Context(), func() error { return errDown }))
	}
	require.Equal(t, b.openFor, b.gate(t.Context()))
	require.Contains(t, b.refused, b.through(t.Context(), func() error {
		t.Error("sent while open")
		return nil
	}))
}

// do makes one run and returns when its attempts were sent, since now.
func (b protected) do(ctx context.Context, p retry.Policy, answer func(sent int) error) (sent []time.Duration, err error) {
	start := time.Now()
	p.Gate = b.gate
	err = retry.Do(ctx, p, func(ctx context.Context) error {
		return b.through(ctx, func() error {
			sent = append(sent, time.Since(start))
			return answer(len(sent))
		})
	})
	return sent, err
}

func up(int) error { return nil }

func eachBreaker(t *testing.T, trials uint, test func(*testing.T, protected)) {
	for name, breaker := range breakers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, breaker(trials)) })
		})
	}
}

func TestAClosedBreakerLetsGo(t *testing.T) {
	eachBreaker(t, 1, func(t *testing.T, b protected) {
		require.LessOrEqual(t, b.gate(t.Context()), time.Duration(0))
		sent, err := b.do(t.Context(), retry.Policy{}, up)
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0}, sent)
	})
}

func TestAnOpenBreakerDefersARunToTheNanosecond(t *testing.T) {
	eachBreaker(t, 1, func(t *testing.T, b protected) {
		b.open(t)
		sent, err := b.do(t.Context(), retry.Policy{}, up)
		require.NoError(t, err)
		require.Equal(t, []time.Duration{b.openFor}, sent)
		require.True(t, b.closed())
	})
}

// The run's own failures open it: its fourth attempt waits for the breaker, not for the policy's 20ms.
func TestAnOpenBreakerDefersARetry(t *testing.T) {
	eachBreaker(t, 1, func(t *testing.T, b protected) {
		sent, err := b.do(t.Context(), retry.Policy{Backoff: fixed}, func(sent int) error {
			if sent <= 4 {
				return errDown
			}
			return nil
		})
		require.NoError(t, err)
		second := 40*ms + b.openFor // the trial, which fails: open again for as long
		require.Equal(t, []time.Duration{0, 20 * ms, 40 * ms, second, second + b.openFor}, sent)
	})
}

func TestADeferralPastTheTTLExpiresTheRunAtOnce(t *testing.T) {
	eachBreaker(t, 1, func(t *testing.T, b protected) {
		b.open(t)
		start := time.Now()
		sent, err := b.do(t.Context(), retry.Policy{TTL: b.openFor - 1}, up)
		require.ErrorIs(t, err, retry.TTLElapsed)
		require.Empty(t, sent)
		require.Zero(t, time.Since(start))

		sent, err = b.do(t.Context(), retry.Policy{TTL: b.openFor}, up) // exactly at the TTL is in time
		require.NoError(t, err)
		require.Equal(t, []time.Duration{b.openFor}, sent)
	})
}

func TestADeferralPastTheDeadlineExpiresTheRunAtOnce(t *testing.T) {
	eachBreaker(t, 1, func(t *testing.T, b protected) {
		b.open(t)
		ctx, cancel := context.WithTimeout(t.Context(), b.openFor)
		defer cancel()
		start := time.Now()
		sent, err := b.do(ctx, retry.Policy{}, up)
		require.ErrorIs(t, err, retry.DeadlineTooNear)
		require.Empty(t, sent)
		require.Zero(t, time.Since(start))
	})
}

// If many runs wait for one breaker, exactly as many attempts as it allows are sent when it half-opens. It refuses the
// others, which costs each an attempt that is not sent, and they retry as their policy says.
func TestHalfOpenLetsThroughAsManyAsTheBreakerSays(t *testing.T) {
	for _, trials := range []uint{1, 3} {
		eachBreaker(t, trials, func(t *testing.T, b protected) {
			b.open(t)
			start := time.Now()
			var mu sync.Mutex
			sent := map[time.Duration]int{}
			refused := 0
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					p := retry.Policy{MaxAttempts: 2, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 50 * ms}, Gate: b.gate}
					err := retry.Do(t.Context(), p, func(ctx context.Context) error {
						err := b.through(ctx, func() error {
							mu.Lock()
							sent[time.Since(start)]++
							mu.Unlock()
							<-time.After(10 * ms) // so that the trials are under way together
							return nil
						})
						mu.Lock()
						defer mu.Unlock()
						for _, target := range b.refused {
							if errors.Is(err, target) {
								refused++
							}
						}
						return err
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			require.Equal(t, map[time.Duration]int{b.openFor: int(trials), b.openFor + 50*ms: 100 - int(trials)}, sent)
			require.Equal(t, 100-int(trials), refused)
			require.True(t, b.closed())
		})
	}
}

// While a peer is down for long, many impatient runs send only the attempts that open the breaker, and its trials.
func TestNothingIsSentWhileOpen(t *testing.T) {
	eachBreaker(t, 1, func(t *testing.T, b protected) {
		start := time.Now()
		var mu sync.Mutex
		var sent []time.Duration
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				p := retry.Policy{MaxAttempts: retry.Unlimited, TTL: time.Second, Backoff: retry.Backoff{Mode: retry.Fixed, Base: ms}, Gate: b.gate}
				err := retry.Do(t.Context(), p, func(ctx context.Context) error {
					return b.through(ctx, func() error {
						mu.Lock()
						defer mu.Unlock()
						sent = append(sent, time.Since(start))
						return errDown
					})
				})
				if !errors.Is(err, retry.TTLElapsed) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		// All of the first wave can have passed the breaker before it opened. After them come only its trials, at least
		// one each time.
		require.GreaterOrEqual(t, len(sent), 3)
		byTime := map[time.Duration]int{}
		for _, at := range sent {
			byTime[at]++
		}
		delete(byTime, 0)
		require.Equal(t, map[time.Duration]int{b.openFor: 1, 2 * b.openFor: 1, 3 * b.openFor: 1}, byTime)
	})
}

// The caller's own listener is still called.
func TestGobreakerGateKeepsTheListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var states []string
		breaker, gate := Gobreaker[string](gobreaker.Settings{
			ReadyToTrip:   func(gobreaker.Counts) bool { return true },
			OnStateChange: func(_ string, from, to gobreaker.State) { states = append(states, from.String()+" to "+to.String()) },
		})
		_, err := breaker.Execute(func() (string, error) { return "", errDown })
		require.Equal(t, errDown, err)
		require.Equal(t, []string{"closed to open"}, states)
		require.Equal(t, time.Minute+1, gate(t.Context())) // gobreaker's default, and the first instant after it
		<-time.After(time.Minute)
		require.Equal(t, gobreaker.StateOpen, breaker.State())
		<-time.After(1)
		require.Equal(t, gobreaker.StateHalfOpen, breaker.State())
	})
}
