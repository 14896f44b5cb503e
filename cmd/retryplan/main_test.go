package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
)

// asCommand is the environment variable that makes the test binary the command.
const asCommand = "RETRYPLAN_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// command returns the command as a process.
func command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}

// patience is the longest wait for another process. Only a failure takes as long.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestTheExitStatusReportsTheResult(t *testing.T) {
	for _, row := range []struct {
		name string
		args []string
		want int
	}{
		{"done", []string{"show", "preset:standard"}, cli.Done},
		{"findings", []string{"lint", "preset:standard", "--fail-on", "note"}, cli.Failed},
		{"a wrong command line", []string{"show", "--bose", "1s"}, cli.Usage},
	} {
		t.Run(row.name, func(t *testing.T) {
			cmd := command(patience(t), row.args...)
			_ = cmd.Run()
			require.Equal(t, row.want, cmd.ProcessState.ExitCode())
		})
	}
}

func TestAPolicyIsReadFromAPipe(t *testing.T) {
	cmd := command(patience(t), "show", "-")
	cmd.Stdin = strings.NewReader(`{"base": "1s", "max_attempts": 3, "jitter": "full"}`)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "standard input: 3 attempts, exponential 1s ×2, cap 1h, full jitter: 1s 2s (0s\n  to 3s in all)\n")
	require.NotContains(t, string(out), "\x1b", "a pipe has no colors")
}

func TestThePageIsServedUntilASignal(t *testing.T) {
	cmd := command(patience(t), "serve")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	url, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "%s", &stderr)
	require.Regexp(t, `^http://127\.0\.0\.1:\d+/\n$`, url)
	resp, err := http.Get(strings.TrimSpace(url))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Wait(), "%s", &stderr)
}

// TestASignalEndsASimulation stops one that would take long. Its policy is more than a pipe holds, so that the process is
// reading, and has taken over the signal, once it is written.
func TestASignalEndsASimulation(t *testing.T) {
	cmd := command(patience(t), "simulate", "-", "--rate", "100000", "--capacity", "1000000", "--trigger", "stall 1h")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = io.WriteString(stdin, `{"policies": {"price": {"max_attempts": 3}}}`+strings.Repeat(" ", 1<<19))
	require.NoError(t, err)
	require.NoError(t, stdin.Close())
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	require.Equal(t, cli.Interrupted, cmd.ProcessState.ExitCode(), stderr.String())
	require.Contains(t, stderr.String(), "retryplan: interrupted: ")
}
