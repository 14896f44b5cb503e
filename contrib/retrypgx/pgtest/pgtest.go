// Package pgtest starts a PostgreSQL server for tests.
//
// This package may change until it says otherwise.
package pgtest

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Server is a PostgreSQL server of one test, on a loopback address. Its superuser is postgres, without a password. Its
// data does not survive a crash of the machine: fsync is off.
type Server struct {
	host, port string
	command    func() *exec.Cmd // makes the command for one start
	running    *process         // nil while it is down
}

// Start starts a server, which ends with tb, or with the test binary if that dies. settings are lines of
// postgresql.conf, such as "deadlock_timeout=10ms". Start looks for PostgreSQL's programs in PATH and in the folders of
// Debian and Red Hat, and skips tb if they are not installed. If the test runs as root, the server runs as the user
// postgres.
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	bin, err := folder()
	if err != nil {
		tb.Skipf("pgtest: skipped: %v", err)
	}
	as, err := account()
	if err != nil {
		tb.Skipf("pgtest: skipped: %v", err)
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := as.own(dir); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	s := &Server{}
	if s.host, s.port, err = freeAddress(); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	data := filepath.Join(dir, "data")
	made := as.command(dir, filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if out, err := made.CombinedOutput(); err != nil {
		tb.Fatalf("pgtest: initdb: %v\n%s", err, out)
	}
	args := []string{"-D", data, "-h", s.host, "-p", s.port}
	for _, setting := range append([]string{"unix_socket_directories=", "fsync=off", "full_page_writes=off", "shared_buffers=32MB"}, settings...) {
		args = append(args, "-c", setting)
	}
	s.command = func() *exec.Cmd {
		return as.command(dir, "sh", append([]string{"-c", guard, dir, filepath.Join(bin, "postgres")}, args...)...)
	}
	tb.Cleanup(s.close)
	s.Up(tb)
	return s
}

// guard runs the server until it reads the name of a signal, which it sends to the server. At the end of its input,
// which means that the test binary is gone, it also removes the data.
const guard = `"$@" & server=$!
exec >/dev/null 2>&1
if read -r signal; then kill -"$signal" $server; wait $server
else kill -QUIT $server; wait $server; rm -rf "$0"; fi`

// Addr returns the address as host:port. A restart does not change it.
func (s *Server) Addr() string { return net.JoinHostPort(s.host, s.port) }

// DSN returns the URL to connect to the database postgres as the superuser.
func (s *Server) DSN() string { return DSN(s.Addr()) }

// DSN returns the URL for a server that is reached at another address, such as that of a proxy.
func DSN(addr string) string { return "postgres://postgres@" + addr + "/postgres?sslmode=disable" }

// Up starts the server if it is down and waits until it accepts connections.
func (s *Server) Up(tb testing.TB) {
	tb.Helper()
	if s.running != nil {
		return
	}
	var err error
	if s.running, err = start(s.command()); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
}

// Kill ends the server as a crash does, without notice to its clients, and waits until all of its processes have ended.
func (s *Server) Kill() { s.stop("QUIT") }

// Restart shuts the server down as an administrator does, which ends all sessions, and starts it again.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.stop("INT")
	s.Up(tb)
}

func (s *Server) stop(signal string) {
	if s.running != nil {
		_, _ = io.WriteString(s.running.stdin, signal+"\n")
		s.close()
	}
}

func (s *Server) close() {
	if s.running != nil {
		_ = s.running.stdin.Close()
		<-s.running.gone
		s.running = nil
	}
}

// process is a running server.
type process struct {
	stdin io.WriteCloser
	gone  chan struct{} // closed when it has ended
}

// logLines is how many lines of the log are kept, to show them if the server does not start.
const logLines = 50

// start starts the command and waits until the server logs that it is ready.
func start(cmd *exec.Cmd) (*process, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{stdin, make(chan struct{})}
	ready, failed := make(chan struct{}), make(chan string, 1)
	isReady := sync.OnceFunc(func() { close(ready) })
	go func() {
		defer close(p.gone)
		var log []string
		for lines := bufio.NewReader(stderr); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				break
			}
			if strings.Contains(line, "database system is ready to accept connections") {
				isReady()
			}
			log = append(log[max(0, len(log)-logLines+1):], line)
		}
		failed <- strings.Join(log, "") // the server has closed its log
		_ = stdin.Close()
		_ = cmd.Wait()
	}()
	select {
	case <-ready:
		return p, nil
	case log := <-failed:
		<-p.gone
		return nil, fmt.Errorf("the server did not start:\n%s", log)
	}
}

// folder returns the folder of PostgreSQL's programs.
func folder() (string, error) {
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/initdb", "/usr/pgsql-*/bin/initdb"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // the pattern is well formed
			return filepath.Dir(found[len(found)-1]), nil
		}
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", fmt.Errorf("PostgreSQL is not installed: %w", err)
	}
	path, err = filepath.EvalSymlinks(path)
	return filepath.Dir(path), err
}

// freeAddress returns a free port, on a loopback address of this process's own if the system has more than one, since
// no other process may get the port of a server that is down.
func freeAddress() (host, port string, err error) {
	pid := os.Getpid()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 64|pid>>16&63, pid>>8&255, pid&255))
	if err != nil {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return "", "", err
	}
	defer listener.Close()
	return net.SplitHostPort(listener.Addr().String())
}

// owner is the user that runs the server. Nil means the current user.
type owner struct {
	uid, gid int
	runuser  string // the program that runs another as postgres
}

// account returns the user that can run the server, which refuses root.
func account() (*owner, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	runuser, err := exec.LookPath("runuser")
	if err != nil {
		return nil, fmt.Errorf("root cannot run PostgreSQL: %w", err)
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("root cannot run PostgreSQL: %w", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	return &owner{uid, gid, runuser}, err
}

// own gives the folder to the owner.
func (o *owner) own(dir string) error {
	if o == nil {
		return nil
	}
	return os.Chown(dir, o.uid, o.gid)
}

// command returns the command to run a program as the owner, in the folder.
func (o *owner) command(dir, name string, args ...string) *exec.Cmd {
	if o != nil {
		args = append([]string{"-u", "postgres", "--", name}, args...)
		name = o.runuser
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	return cmd
}
