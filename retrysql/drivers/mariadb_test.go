package drivers_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// mariadb is the MariaDB server. It creates its system tablespace in an empty folder, and needs no privilege tables.
var mariadb = sync.OnceValues(func() (*server, error) {
	path, err := program("mariadbd", "/usr/sbin", "/usr/libexec")
	if err != nil {
		return nil, fmt.Errorf("MariaDB: %w", err)
	}
	s := &server{last: syscall.SIGKILL, ready: "ready for connections"}
	dir, err := s.folder("mariadb")
	if err != nil {
		return nil, err
	}
	host, port, err := ownAddress()
	if err != nil {
		return nil, err
	}
	s.address = net.JoinHostPort(host, port)
	s.command = func() *exec.Cmd {
		args := []string{"--no-defaults", "--datadir=" + dir, "--socket=" + filepath.Join(dir, "s"),
			"--bind-address=" + host, "--port=" + port, "--skip-networking=0", "--skip-grant-tables",
			"--innodb-flush-log-at-trx-commit=0", "--innodb-use-native-aio=0", "--innodb-lock-wait-timeout=1"}
		if os.Getuid() == 0 {
			args = append(args, "--user=root")
		}
		return exec.Command(path, args...)
	}
	if err := s.start(); err != nil {
		return nil, err
	}
	atExit(func() { s.stop(syscall.SIGTERM) })
	return s, nil
})

// newMaria returns the server and the name of a database of the test's own.
func newMaria(t *testing.T) (*server, string) {
	t.Helper()
	s := required(t, mariadb)
	name := "test" + strconv.FormatInt(databases.Add(1), 10)
	admin := goMySQL.open(t, s.address, "")
	exec1(t, admin, "create database "+name)
	t.Cleanup(func() { exec1(t, admin, "drop database "+name) })
	return s, name
}

// mariaSource returns the data source name of a database.
func mariaSource(_, address, database string) string { return "root@tcp(" + address + ")/" + database }
