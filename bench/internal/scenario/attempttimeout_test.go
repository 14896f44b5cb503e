package scenario

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAttemptTimeoutIsOneAttemptPerCall(t *testing.T) {
	made := 0
	s := attemptTimeout(cancellable(t), "fn counts", func(context.Context) error {
		made++
		return nil
	})
	for _, c := range s.Contenders {
		t.Run(c.Name, func(t *testing.T) {
			made = 0
			c.New()(25)
			require.Equal(t, 25, made)
		})
	}
}

func TestAttemptTimeoutEndsTheAttemptOfEveryContender(t *testing.T) {
	for i, c := range AttemptTimeout()[0].Contenders {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lasted time.Duration
				made := 0
				s := attemptTimeout(cancellable(t), "fn waits for its context once", func(ctx context.Context) error {
					if made++; made == 1 {
						lasted = elapsed(func() { <-ctx.Done() })
					}
					return nil
				})
				s.Contenders[i].New()(1)
				require.Equal(t, time.Second, lasted)
			})
		})
	}
}

func TestAttemptTimeoutFunctionsSeeTheEndOfTheirContext(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, readErr(context.Background()))
	require.Equal(t, context.Canceled, readErr(ended))
	require.NoError(t, selectOnDone(context.Background()))
	require.Equal(t, context.Canceled, selectOnDone(ended))
	require.NoError(t, deriveContext(context.Background()))
}

func TestAttemptTimeoutRunsEveryFunction(t *testing.T) {
	for _, s := range AttemptTimeout() {
		for _, c := range s.Contenders {
			t.Run(s.Name+"/"+c.Name, func(t *testing.T) {
				require.NotPanics(t, func() { c.New()(2) })
			})
		}
	}
}
