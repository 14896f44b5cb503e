package drivers_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrysql/allerrors"
)

// PostgreSQL's ways to stop: "Shutting Down the Server" in its manual.
const (
	fast      = syscall.SIGINT  // ends the sessions
	immediate = syscall.SIGQUIT // like a crash
	kill      = syscall.SIGKILL // of the postmaster only: its children notice
)

// postgres is the PostgreSQL server that tests share.
var postgres = sync.OnceValues(func() (*server, error) {
	c, err := newCluster()
	if err != nil {
		return nil, err
	}
	if err := c.run("initdb", "-D", c.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
		return nil, err
	}
	return c.serve("deadlock_timeout=10ms", "max_connections=200")
})

// cluster is a folder for the data of a PostgreSQL server, and its address.
type cluster struct {
	server
	bin, dir, data string
	host, port     string
}

// newCluster returns a cluster without data.
func newCluster() (*cluster, error) {
	initdb, err := program("initdb", "/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL: %w", err)
	}
	if initdb, err = filepath.EvalSymlinks(initdb); err != nil {
		return nil, err
	}
	c := &cluster{server: server{last: immediate, ready: "database system is ready to accept"}, bin: filepath.Dir(initdb)}
	if os.Getuid() == 0 { // which PostgreSQL refuses
		if c.owner, err = accountOf("postgres"); err != nil {
			return nil, fmt.Errorf("PostgreSQL %w: root needs an account to run it as: %w", errMissing, err)
		}
	}
	if c.dir, err = c.folder("postgres"); err != nil {
		return nil, err
	}
	c.data = filepath.Join(c.dir, "data")
	c.host, c.port, err = ownAddress()
	c.address = net.JoinHostPort(c.host, c.port)
	return c, err
}

// program returns the command for one of PostgreSQL's programs.
func (c *cluster) program(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Dir = c.dir
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	return cmd
}

// run runs one of PostgreSQL's programs to its end.
func (c *cluster) run(name string, args ...string) error {
	cmd := c.program(name, args...)
	belong(cmd, syscall.SIGKILL, c.owner)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// serve starts the server with settings, until all tests have ended.
func (c *cluster) serve(settings ...string) (*server, error) {
	args := []string{"-D", c.data, "-h", c.host, "-p", c.port}
	for _, setting := range append([]string{"unix_socket_directories=", "fsync=off", "full_page_writes=off", "shared_buffers=32MB"}, settings...) {
		args = append(args, "-c", setting)
	}
	c.command = func() *exec.Cmd { return c.program("postgres", args...) }
	if err := c.start(); err != nil {
		return nil, err
	}
	atExit(func() { c.stop(immediate) })
	return &c.server, nil
}

// databases counts the databases that tests have created.
var databases atomic.Int64

// newPostgres returns the server and the name of a database of the test's own.
func newPostgres(t *testing.T) (*server, string) {
	t.Helper()
	s := required(t, postgres)
	name := "test" + strconv.FormatInt(databases.Add(1), 10)
	admin := libpq.open(t, s.address, "postgres")
	exec1(t, admin, "create database "+name)
	t.Cleanup(func() { exec1(t, admin, "drop database "+name+" with (force)") })
	return s, name
}

// postgresURL returns the URL of a database for the user.
func postgresURL(user, address, database string) string {
	u := url.URL{Scheme: "postgres", User: url.User(user), Host: address, Path: database, RawQuery: "sslmode=disable"}
	return u.String()
}

// driver is a way to talk to a server.
type driver struct {
	name   string
	source func(user, address, database string) string
	commit string // the request that commits
}

// The drivers. "Q" is PostgreSQL's simple query, with its length; 3 is MySQL's COM_QUERY, after length and sequence.
var (
	libpq     = driver{"postgres", postgresURL, "Q\x00\x00\x00\x0bCOMMIT\x00"}
	pgxStdlib = driver{"pgx", postgresURL, "Q\x00\x00\x00\x0bcommit\x00"}
	goMySQL   = driver{"mysql", mariaSource, "\x07\x00\x00\x00\x03COMMIT"}
)

// serverDrivers are all of them.
var (
	postgresDrivers = []driver{libpq, pgxStdlib}
	serverDrivers   = []driver{libpq, pgxStdlib, goMySQL}
)

// site is a database of a test's own, by a driver.
type site struct {
	driver
	*server
	name string
	db   *sql.DB
}

// onEach runs a test in parallel with each driver, on a database in which the setup was executed.
func onEach(t *testing.T, drivers []driver, setup []string, test func(t *testing.T, s site)) {
	t.Helper()
	t.Parallel()
	for _, d := range drivers {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			test(t, newSite(t, d, setup...))
		})
	}
}

func newSite(t *testing.T, d driver, setup ...string) site {
	t.Helper()
	server, name := d.newDatabase(t)
	s := site{d, server, name, d.open(t, server.address, name)}
	exec1(t, s.db, setup...)
	return s
}

// behind opens another pool for the database, behind a proxy.
func (s site) behind(t *testing.T, judge func(request string) fault) (*sql.DB, *proxy) {
	t.Helper()
	p := newProxy(t, s.address, judge)
	return s.open(t, p.address, s.name), p
}

// newDatabase returns the driver's server and the name of a database of the test's own.
func (d driver) newDatabase(t *testing.T) (*server, string) {
	t.Helper()
	if d.name == goMySQL.name {
		return newMaria(t)
	}
	return newPostgres(t)
}

// open returns a pool for the database, which is closed with the test.
func (d driver) open(t *testing.T, address, database string) *sql.DB {
	t.Helper()
	return d.openAs(t, "postgres", address, database)
}

func (d driver) openAs(t *testing.T, user, address, database string) *sql.DB {
	t.Helper()
	return checked(t)(sql.Open(d.name, d.source(user, address, database)))
}

// watched is open for a database of allerrors.Open.
func (d driver) watched(t *testing.T, address, database string) *sql.DB {
	t.Helper()
	return checked(t)(allerrors.Open(d.name, d.source("postgres", address, database)))
}

// checked returns a pool that is closed with the test, after checking that all connections were returned.
func checked(t *testing.T) func(*sql.DB, error) *sql.DB {
	return func(db *sql.DB, err error) *sql.DB {
		t.Helper()
		require.NoError(t, err)
		t.Cleanup(func() {
			require.Zero(t, db.Stats().InUse)
			require.NoError(t, db.Close())
		})
		return db
	}
}

// exec1 executes statements that must succeed.
func exec1(t *testing.T, db *sql.DB, queries ...string) {
	t.Helper()
	for _, query := range queries {
		_, err := db.Exec(query)
		require.NoError(t, err, query)
	}
}

// execute executes statements in a transaction until one fails.
func execute(ctx context.Context, tx *retrysql.Txn, queries ...string) error {
	for _, query := range queries {
		if _, err := tx.ExecContext(ctx, query); err != nil {
			return err
		}
	}
	return nil
}

// number returns the one number that a query yields.
func number(t *testing.T, db *sql.DB, query string, args ...any) int {
	t.Helper()
	var n int
	require.NoError(t, db.QueryRow(query, args...).Scan(&n), query)
	return n
}

// text returns the one text that a query yields.
func text(t *testing.T, db *sql.DB, query string) (s string) {
	t.Helper()
	require.NoError(t, db.QueryRow(query).Scan(&s))
	return s
}
