package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
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
		"", "show", "show --json", "show policy.json --failure 0.5", "simulate --rate 5 --duration 2s", "certify --rate 1 --capacity 9", "compare policies.json", "lint policies.json",
	} {
		var err bytes.Buffer
		require.Equal(t, cli.Failed, cli.Run(t.Context(), cli.Options{}, split(line), closed{}, &err), "%s: %s", line, &err)
		require.Equal(t, "retryplan: the pipe is; closed\n", err.String(), line)
	}
}

// looked is a context that ends as it is looked at for the third time, which is in the midst of a simulation.
type looked struct {
	context.Context
	stop  context.CancelFunc
	times int
}

func (l *looked) Err() error {
	if l.times++; l.times == 3 {
		l.stop()
	}
	return l.Context.Err()
}

func TestAnInterruptedSimulationPrintsWhatItHasSeen(t *testing.T) {
	t.Chdir("testdata")
	for _, format := range []string{"", " --json"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var out, err bytes.Buffer
		exit := cli.Run(&looked{Context: ctx, stop: cancel}, cli.Options{}, split("simulate policies.json --rate 1000 --duration 24h"+format), &out, &err)
		require.Equal(t, cli.Interrupted, exit)
		text := err.String()
		require.Regexp(t, `^retryplan: interrupted: email after [0-9a-z.]+ of 24h: context canceled\n$`, text)
		if format == "" {
			require.Regexp(t, `\nsimulated +[0-9a-z.]+, seed 1\n`, out.String())
			continue
		}
		var got struct {
			Policies []struct {
				Result struct{ Runs int }
			}
		}
		require.NoError(t, json.Unmarshal(out.Bytes(), &got))
		require.Len(t, got.Policies, 1)
		require.Positive(t, got.Policies[0].Result.Runs)
	}
}

func TestInterruptedBeforeAnything(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := runIn(t, ctx, cli.Options{}, "simulate policies.json --rate 10 --duration 1h")
	require.Equal(t, cli.Interrupted, got.Exit)
	require.Regexp(t, `^retryplan: interrupted: [^\n]+\n$`, got.Err)
}
