//go:build unix

package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The stub of the go command never answers. It inherits the write end of a pipe, as does every process that it starts, and the read
// end is at its end once all of them have ended.
func TestASignalLeavesNoProcessBehind(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), []byte("#!/bin/sh\necho $$ >&3\nexec sleep 100000\n"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/x\n"), 0o666))
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	cmd := exec.Command(os.Args[0], "./...")
	cmd.Dir, cmd.ExtraFiles = dir, []*os.File{w}
	cmd.Env = append(os.Environ(), "RETRYVET_MAIN=1", "PATH="+dir+":"+os.Getenv("PATH"))
	require.NoError(t, cmd.Start())
	w.Close()

	require.NoError(t, r.SetReadDeadline(time.Now().Add(5*time.Minute))) // only if the test fails
	pipe := bufio.NewReader(r)
	first, err := pipe.ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait() // its status is read below
	others, err := io.ReadAll(pipe)
	if err != nil {
		for _, field := range strings.Fields(first + string(others)) {
			if pid, err := strconv.Atoi(field); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
	require.NoError(t, err, "the go command goes on")
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
}
