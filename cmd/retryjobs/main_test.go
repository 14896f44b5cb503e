package main

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
)

// asCommand is the environment variable that makes the test binary the command.
const asCommand = "RETRYJOBS_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(m.Run())
}

// ran is the result of a command.
type ran struct {
	Exit     int
	Out, Err string
}

// command returns the command as a process, with the database in its environment.
func command(ctx context.Context, database string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "RETRYJOBS_DATABASE="+database)
	return cmd
}

// patience is how long to wait for another process; only a failure takes that long.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestTheExitStatusReportsTheResult(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.db")
	for _, row := range []struct {
		name string
		args []string
		want int
	}{
		{"done", []string{"--help"}, cli.Done},
		{"failed", []string{"stats"}, cli.Failed},
		{"a wrong command line", []string{"purge"}, cli.Usage},
	} {
		t.Run(row.name, func(t *testing.T) {
			cmd := command(patience(t), missing, row.args...)
			_ = cmd.Run()
			require.Equal(t, row.want, cmd.ProcessState.ExitCode())
		})
	}
	require.NoFileExists(t, missing)
}

// TestASignalEndsTheProcess has a server that accepts a connection and sends nothing.
func TestASignalEndsTheProcess(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	cmd := command(patience(t), "postgres://me:hush@"+listener.Addr().String()+"/jobs?sslmode=disable", "stats")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	conn, err := listener.Accept()
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	require.Equal(t, cli.Failed, cmd.ProcessState.ExitCode(), stderr.String())
	require.Contains(t, stderr.String(), "retryjobs: interrupted: database postgres://me@"+listener.Addr().String()+"/jobs: ")
	require.NotContains(t, stderr.String(), "hush")
}
