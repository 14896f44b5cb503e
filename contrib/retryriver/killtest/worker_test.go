//go:build unix

package killtest_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The variable that makes the test binary a worker, and its settings.
const (
	databaseVariable = "KILLTEST_DATABASE"
	effectsVariable  = "KILLTEST_EFFECTS"
)

func TestMain(m *testing.M) {
	if database := os.Getenv(databaseVariable); database != "" {
		if err := work(context.Background(), database, os.Getenv(effectsVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// openEffects opens the file to append to.
func openEffects(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
}

// work is the main function of a worker: it reports that it is ready, and works until its standard input ends.
func work(ctx context.Context, database, effects string) error {
	file, err := openEffects(effects)
	if err != nil {
		return err
	}
	defer file.Close()
	e, err := open(ctx, database, file)
	if err != nil {
		return err
	}
	defer e.close()
	if err := e.start(ctx); err != nil {
		return err
	}
	recurring, end := context.WithCancel(ctx)
	defer end()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		comesBack().Recur(recurring, e)
	}()
	fmt.Println(ready)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	end()
	<-ended
	return e.stop(ctx)
}

const ready = "ready"

// process is a worker, seen from the test.
type process struct {
	command *exec.Cmd
	stdin   io.Closer
	stdout  *bufio.Reader
	stderr  bytes.Buffer // read after it has ended
}

// start starts a worker, which ends with the test at the latest.
func start(t *testing.T, database, effects string) *process {
	executable, err := os.Executable()
	require.NoError(t, err)
	p := &process{command: exec.Command(executable)}
	p.command.Env = append(os.Environ(), databaseVariable+"="+database, effectsVariable+"="+effects)
	p.command.Stderr = &p.stderr
	stdin, err := p.command.StdinPipe()
	require.NoError(t, err)
	stdout, err := p.command.StdoutPipe()
	require.NoError(t, err)
	p.stdin, p.stdout = stdin, bufio.NewReader(stdout)
	require.NoError(t, p.command.Start())
	t.Cleanup(func() { // after a failure; otherwise it has already ended
		_ = p.command.Process.Kill()
		_ = p.command.Wait()
		if t.Failed() && p.stderr.Len() > 0 {
			t.Logf("worker %d:\n%s", p.command.Process.Pid, p.stderr.Bytes())
		}
	})
	return p
}

// awaitReady returns when the worker works.
func (p *process) awaitReady(t *testing.T) {
	line, err := p.stdout.ReadString('\n')
	require.NoError(t, err, "the worker ended before it was ready")
	require.Equal(t, ready+"\n", line)
}

// suspend stops the worker at any point, like the pause of a container, except in a transaction, whose locks would stop
// all the others.
func (p *process) suspend(t *testing.T, locked func() bool) {
	for {
		require.NoError(t, p.command.Process.Signal(syscall.SIGSTOP))
		var status syscall.WaitStatus // until then it goes on, and can begin a transaction
		_, err := syscall.Wait4(p.command.Process.Pid, &status, syscall.WUNTRACED, nil)
		require.NoError(t, err)
		require.True(t, status.Stopped(), "%v", status)
		if !locked() {
			return
		}
		p.resume(t)
		pause(t.Context(), 10*time.Millisecond)
	}
}

// resume lets the worker continue.
func (p *process) resume(t *testing.T) {
	require.NoError(t, p.command.Process.Signal(syscall.SIGCONT))
}

// kill ends the worker with SIGKILL, at any point.
func (p *process) kill(t *testing.T) {
	require.NoError(t, p.command.Process.Kill())
	_ = p.command.Wait() // "signal: killed"
}

// finish makes the worker end its current jobs.
func (p *process) finish(t *testing.T) {
	require.NoError(t, p.stdin.Close())
	_, err := io.Copy(io.Discard, p.stdout) // Wait closes the pipe
	require.NoError(t, err)
	require.NoError(t, p.command.Wait(), "a worker that was not killed has failed")
}
