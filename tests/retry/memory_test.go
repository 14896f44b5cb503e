package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// await collects garbage until something that was kept is among it.
func await(collected <-chan struct{}) {
	for {
		runtime.GC()
		select {
		case <-collected:
			return
		default:
			runtime.Gosched()
		}
	}
}

// An error that was looked at or observed keeps nothing of the caller's context.
func TestAnErrorKeepsNoContext(t *testing.T) {
	for name, look := range map[string]func(p *retry.Policy) func(error){
		"after its text was read": func(*retry.Policy) func(error) { return func(err error) { _ = err.Error() } },
		"after errors.Is":         func(*retry.Policy) func(error) { return func(err error) { _ = errors.Is(err, io.EOF) } },
		"that was observed": func(p *retry.Policy) func(error) {
			p.Observe = func(context.Context, retry.Event) {}
			return func(error) {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			type big [1 << 20]byte
			type key struct{}
			collected := make(chan struct{})
			failed := func() error {
				value := new(big)
				runtime.AddCleanup(value, func(int) { close(collected) }, 0)
				ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), key{}, value))
				cancel(io.ErrUnexpectedEOF)
				p := atOnce
				look := look(&p)
				err := retry.Do(ctx, p, failing)
				look(err)
				return err
			}()
			await(collected)
			require.ErrorIs(t, failed, io.ErrUnexpectedEOF, "but it has the cause")
		})
	}
}

// A context that is kept from a retry, as a stream does, keeps none of the errors of the other attempts.
func TestAContextOfARetryKeepsNoFailures(t *testing.T) {
	type large struct {
		error
		_ [1 << 16]byte
	}
	var kept context.Context
	collected := make(chan struct{})
	p := atOnce
	p.MaxAttempts = 300
	err := retry.Do(t.Context(), p, func(ctx context.Context) error {
		failed := &large{error: errFlaky}
		switch retry.AttemptNumber(ctx) {
		case 2:
			kept = ctx
		case 100:
			runtime.AddCleanup(failed, func(int) { close(collected) }, 0)
		}
		return failed
	})
	require.Len(t, must[*retry.Error](t, err).History, 64)
	await(collected)
	require.Equal(t, 2, retry.AttemptNumber(kept))
}

// TestJudgeTakesNoLongerThanATreeIsBig holds that the time of Judge, of errors.Is and of Error does not double with each
// level of a deep tree.
func TestJudgeTakesNoLongerThanATreeIsBig(t *testing.T) {
	kinds := map[string]func(error) error{
		"mark":   retry.Permanent,
		"hint":   func(err error) error { return retry.After(sec, err) },
		"run":    runOf,
		"list":   func(err error) error { return multi{err, io.EOF} },
		"last":   func(err error) error { return multi{io.EOF, err} },
		"opaque": func(err error) error { return opaque{err} },
		"join":   func(err error) error { return errors.Join(io.EOF, err) },
		"late":   retryshell.MarkTimeout,
		"both":   func(err error) error { return both{err} },
		"wrap":   func(err error) error { return fmt.Errorf("x: %w", err) },
	}
	const levels = 60
	for _, row := range []string{
		"mark", "run", "list", "last", "opaque", "late",
		"list mark", "list run", "opaque mark", "opaque run", "run mark", "list opaque run mark", "last list mark run",
		"both mark", "both run", "both run mark", "opaque late run", "join list run mark hint", "wrap list join opaque run late mark hint last",
	} {
		t.Run(row, func(t *testing.T) {
			asked := 0
			var err error = countingLeaf{&asked}
			names := strings.Fields(row)
			for i := range levels {
				err = kinds[names[(levels-1-i)%len(names)]](err)
			}
			asked = 0
			retry.Policy{}.Judge(err)
			require.Less(t, asked, 100*levels*levels, "Judge")
			if strings.Contains(row, "both") {
				return // errors.As itself doubles its way with each level
			}
			asked = 0
			_ = errors.Is(runOf(err), io.ErrNoProgress)
			require.Less(t, asked, 100*levels*levels, "errors.Is")
			asked = 0
			_ = runOf(err).Error()
			require.Less(t, asked, 100*levels*levels, "Error")
		})
	}
}

// countingLeaf counts how often it is asked.
type countingLeaf struct{ asked *int }

func (countingLeaf) Error() string { return "leaf" }

func (l countingLeaf) As(any) bool { *l.asked++; return false }

func (l countingLeaf) Is(error) bool { *l.asked++; return false }

func (l countingLeaf) Unwrap() error { *l.asked++; return nil }

func (l countingLeaf) Timeout() bool { *l.asked++; return false }

// must returns the T that errors.As finds in err.
func must[T error](t *testing.T, err error) T {
	t.Helper()
	var found T
	require.ErrorAs(t, err, &found)
	return found
}
