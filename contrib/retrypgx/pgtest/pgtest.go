// Package pgtest starts a PostgreSQL server for tests.
//
// This package may change until it says otherwise.
package pgtest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Server is a PostgreSQL server of one test, on a loopback address. Its superuser is postgres, without a password. Its
// data does not survive a crash of the machine: fsync is off.
type Server struct {
	host, port string
	bin, dir   string
	up         bool
}

// Start starts a server, which ends with tb, or with the test binary if that dies. settings are lines of
// postgresql.conf, such as "deadlock_timeout=10ms". Start looks for PostgreSQL's programs in PATH and in the folders of
// Debian and Red Hat, and skips tb if they are not installed. If the test runs as root, the server runs as the user
// postgres.
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	bin, err := folder()
	if err != nil {
		tb.Skipf("pgtest: skipped: PostgreSQL is not installed: %v", err)
	}
	dir, err := command("mktemp", "-d", filepath.Join(os.TempDir(), "pgtest.XXXXXX")).Output()
	if err != nil {
		tb.Skipf("pgtest: skipped: the user that would run PostgreSQL cannot run mktemp: %v", err)
	}
	s := &Server{bin: bin, dir: strings.TrimSpace(string(dir))}
	s.guard(tb)
	if s.host, s.port, err = freeAddress(); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	s.run(tb, "initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	settings = append([]string{
		"", "listen_addresses='" + s.host + "'", "port=" + s.port, "unix_socket_directories=''",
		"fsync=off", "full_page_writes=off", "shared_buffers=32MB",
	}, settings...)
	conf, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	defer conf.Close()
	if _, err := conf.WriteString(strings.Join(settings, "\n") + "\n"); err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	s.Up(tb)
	return s
}

// guard starts a process that waits for the end of its input, at the latest when the test binary is gone. Then it ends
// the server and removes the data.
func (s *Server) guard(tb testing.TB) {
	const script = `trap '' INT TERM HUP; cat; "$0" -D "$1/data" -m immediate stop; rm -rf "$1"`
	cmd := command("sh", "-c", script, filepath.Join(s.bin, "pg_ctl"), s.dir)
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		tb.Fatalf("pgtest: %v", err)
	}
	tb.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// run runs a program of PostgreSQL with the server's data, and fails tb if that fails.
func (s *Server) run(tb testing.TB, program string, args ...string) {
	tb.Helper()
	out, err := command(filepath.Join(s.bin, program), append([]string{"-D", s.data()}, args...)...).CombinedOutput()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		tb.Fatalf("pgtest: %s: %v\n%s%s", program, err, out, log)
	}
}

// control runs pg_ctl, which waits for ten minutes at most: a machine under load can be slow.
func (s *Server) control(tb testing.TB, args ...string) {
	tb.Helper()
	s.run(tb, "pg_ctl", append(args, "-w", "-t", "600", "-l", filepath.Join(s.dir, "log"))...)
}

// Addr returns the address as host:port. A restart does not change it.
func (s *Server) Addr() string { return net.JoinHostPort(s.host, s.port) }

// DSN returns the URL to connect to the database postgres as the superuser.
func (s *Server) DSN() string { return DSN(s.Addr()) }

// DSN returns the URL for a server that is reached at another address, such as that of a proxy.
func DSN(addr string) string { return "postgres://postgres@" + addr + "/postgres?sslmode=disable" }

// Up starts the server if it is down and waits until it accepts connections.
func (s *Server) Up(tb testing.TB) {
	tb.Helper()
	if !s.up {
		s.control(tb, "start")
		s.up = true
	}
}

// Kill ends the server as a crash does, without notice to its clients, and waits until all of its processes have ended.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	if s.up {
		s.control(tb, "stop", "-m", "immediate")
		s.up = false
	}
}

// Restart shuts the server down as an administrator does, which ends all sessions, and starts it again.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.control(tb, "restart", "-m", "fast")
	s.up = true
}

// folder returns the folder of PostgreSQL's programs.
func folder() (string, error) {
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/initdb", "/usr/pgsql-*/bin/initdb"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 { // the pattern is well formed
			return filepath.Dir(found[len(found)-1]), nil
		}
	}
	path, err := exec.LookPath("initdb")
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

// command returns the command to run a program as a user that PostgreSQL accepts, which root is not.
func command(name string, args ...string) *exec.Cmd {
	if os.Getuid() == 0 {
		name, args = "runuser", append([]string{"-u", "postgres", "--", name}, args...)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = os.TempDir()
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	return cmd
}
