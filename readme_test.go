package retry_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// The code in README.md and ARCHITECTURE.md is copied from the functions below, from shell_test.go and from examples/.
// TestREADME holds it to that.

// orderPolicy is for a call that somebody waits for.
var orderPolicy = retry.Policy{
	Name:           "orders",
	MaxAttempts:    4,
	Backoff:        retry.Backoff{Base: 50 * time.Millisecond, Cap: time.Second, Jitter: retry.FullJitter},
	AttemptTimeout: 2 * time.Second,
	TTL:            10 * time.Second,
}

func TestOrderPolicy(t *testing.T) {
	// Delays are pure functions of the attempt and of u in [0,1), which chooses the jitter.
	lo, hi := orderPolicy.Bounds(3)
	require.Equal(t, time.Duration(0), lo)
	require.Equal(t, 200*time.Millisecond, hi)
	require.Equal(t, 100*time.Millisecond, orderPolicy.Jittered(3, 0, 0.5))

	// So is the decision: which wait, or which ending.
	late := retry.Progress{Attempt: 2, Elapsed: 11 * time.Second}
	require.Equal(t, retry.TTLElapsed, orderPolicy.Decide(late, errors.New("503"), 0.5).Reason)
}

func TestGivesUpBeforeTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // virtual time: nothing sleeps
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		err := retry.Do(ctx, retry.Policy{}, func(context.Context) error { return errors.New("503") })
		require.ErrorIs(t, err, retry.DeadlineTooNear)
		require.Equal(t, 35*time.Second, time.Since(start)) // 5s + 10s + 20s; the next 40s do not fit
	})
}

func TestREADME(t *testing.T) {
	var sources strings.Builder
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".go" {
			source, err := os.ReadFile(path)
			sources.WriteString(flat(string(source)))
			return err
		}
		return err
	}))
	for _, name := range []string{"README.md", "ARCHITECTURE.md", "docs/testing.md"} {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(strings.ReplaceAll(string(text), "\r", ""), -1)
		require.NotEmpty(t, blocks, name)
		for _, block := range blocks {
			if !strings.Contains(sources.String(), flat(block[1])) { // require.Contains would print all the sources
				t.Errorf("code in %s is nowhere in the repository, so that nothing compiles it:\n%s", name, block[1])
			}
		}
		for _, promise := range regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`").FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(sources.String(), "func "+promise[1]+"(") {
				t.Errorf("%s names a test that does not exist: %s", name, promise[1])
			}
		}
		if name == "README.md" {
			require.Contains(t, string(text), retry.Policy{}.String())
		}
	}
}

// flat makes code comparable whatever its indentation.
func flat(code string) string { return strings.Join(strings.Fields(code), " ") }
