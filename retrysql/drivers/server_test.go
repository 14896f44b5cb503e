package drivers_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// server is a database server of this test binary's own, shared by its tests. A test that stops it must not be
// parallel, since parallel tests wait until all others have ended.
type server struct {
	address string           // to connect to
	command func() *exec.Cmd // makes the command for one start
	owner   *account         // to run it as; nil means as ourselves
	last    syscall.Signal   // that ends it at once
	ready   string           // it logs when it can be connected to

	life sync.Mutex // held while it is started or stopped
	cmd  *exec.Cmd
	gone chan struct{} // closed when all of its processes have ended

	mu  sync.Mutex
	log []string // the newest lines
}

// errMissing means that a server is not installed on this machine.
var errMissing = errors.New("is not here")

// required returns the server that once starts, or skips the test if the server is missing.
func required[T any](t *testing.T, once func() (T, error)) T {
	t.Helper()
	s, err := once()
	if errors.Is(err, errMissing) {
		t.Skip(err)
	}
	require.NoError(t, err)
	return s
}

// program returns the path of a program in PATH, or else in one of the folders; of several versions it takes the last.
func program(name string, folders ...string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, folder := range folders {
		found, err := filepath.Glob(filepath.Join(folder, name))
		if err != nil {
			return "", err
		}
		for _, path := range slices.Backward(found) {
			if path, err := exec.LookPath(path); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s %w", name, errMissing)
}

// ownAddress returns a free port, on a loopback address of this process's own if the system has more than one, since no
// other process may get the port of a server that is down.
func ownAddress() (host, port string, err error) {
	pid := os.Getpid()
	host = net.IPv4(127, 128|byte(pid>>16), byte(pid>>8), byte(pid)).String()
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return "", "", err
	}
	defer listener.Close()
	return net.SplitHostPort(listener.Addr().String())
}

// folder creates a folder for the server's data, which is removed at the end.
func (s *server) folder(name string) (string, error) {
	dir, err := os.MkdirTemp("", name)
	if err != nil {
		return "", err
	}
	atExit(func() { _ = os.RemoveAll(dir) })
	if s.owner != nil {
		err = os.Chown(dir, int(s.owner.uid), int(s.owner.gid))
	}
	return dir, err
}

// start starts the server and waits until it accepts connections.
func (s *server) start() error {
	s.life.Lock()
	defer s.life.Unlock()
	return s.startLocked()
}

func (s *server) startLocked() error {
	out, in, err := os.Pipe()
	if err != nil {
		return err
	}
	s.cmd = s.command()
	s.cmd.Stdout, s.cmd.Stderr = in, in
	belong(s.cmd, s.last, s.owner)
	err = s.cmd.Start()
	_ = in.Close()
	if err != nil {
		_ = out.Close()
		return err
	}
	ready := make(chan struct{})
	s.gone = make(chan struct{})
	go s.follow(out, sync.OnceFunc(func() { close(ready) }), s.gone)
	select {
	case <-ready:
		return nil
	case <-s.gone:
		err := s.cmd.Wait()
		s.mu.Lock()
		defer s.mu.Unlock()
		return fmt.Errorf("%s did not start: %w\n%s", s.cmd.Path, err, strings.Join(s.log, ""))
	}
}

// logLines is how many lines of a server's log are kept, to show them if it does not start.
const logLines = 50

// follow reads the log until no process is left to write to it.
func (s *server) follow(out io.ReadCloser, ready func(), gone chan<- struct{}) {
	defer close(gone)
	defer out.Close()
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		if strings.Contains(line, s.ready) {
			ready()
		}
		s.mu.Lock()
		s.log = append(s.log[max(0, len(s.log)-logLines):], line)
		s.mu.Unlock()
	}
}

// stop sends the server a signal and waits until all of its processes have ended.
func (s *server) stop(signal syscall.Signal) {
	s.life.Lock()
	defer s.life.Unlock()
	s.stopLocked(signal)
}

func (s *server) stopLocked(signal syscall.Signal) {
	_ = s.cmd.Process.Signal(signal) // it may have ended already
	<-s.gone
	_ = s.cmd.Wait()
}

// restart stops the server with the signal and starts it again.
func (s *server) restart(signal syscall.Signal) error {
	s.life.Lock()
	defer s.life.Unlock()
	s.stopLocked(signal)
	return s.startLocked()
}
