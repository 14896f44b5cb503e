package cli_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
)

// closed is an output whose reader is gone.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("the pipe is\nclosed") }

func TestOutputThatIsNotWritten(t *testing.T) {
	t.Chdir("testdata")
	for _, line := range []string{
		"", "show", "show policy.json --failure 0.5", "simulate --rate 1 --capacity 9 --seeds 1", "compare policies.json", "lint policies.json",
	} {
		var err bytes.Buffer
		require.Equal(t, cli.Failed, cli.Run(t.Context(), cli.Options{}, split(line), closed{}, &err), "%s: %s", line, &err)
		require.Equal(t, "retryplan: the pipe is; closed\n", err.String(), line)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := runIn(t, ctx, cli.Options{}, "simulate policies.json --rate 10 --capacity 100")
	require.Equal(t, cli.Interrupted, got.Exit)
	require.Regexp(t, `^retryplan: interrupted: [^\n]+\n$`, got.Err)
}
