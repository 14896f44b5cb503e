package drivers_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrypgx"
	"github.com/retrygo/retry/retrysql"
)

// pair is a PostgreSQL server and its hot standby, which confirms each commit.
type pair struct{ primary, standby *cluster }

// newPair starts both.
func newPair(t *testing.T) pair {
	t.Helper()
	start := func() (p pair, err error) {
		if p.primary, err = newCluster(); err != nil {
			return p, err
		}
		if p.standby, err = newCluster(); err != nil {
			return p, err
		}
		if err = p.primary.run("initdb", "-D", p.primary.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"); err != nil {
			return p, err
		}
		if _, err = p.primary.serve("max_connections=200"); err != nil {
			return p, err
		}
		if err = p.standby.run("pg_basebackup", "-D", p.standby.data, "-h", p.primary.host, "-p", p.primary.port, "-U", "postgres",
			"-R", "-N", "-c", "fast", "-X", "stream"); err != nil {
			return p, err
		}
		_, err = p.standby.serve("max_connections=200")
		return p, err
	}
	p := required(t, start)
	db := libpq.open(t, p.primary.address, "postgres")
	// Only now: the standby must not inherit it, or its commits would wait for ever once it is the primary.
	exec1(t, db, "alter system set synchronous_standby_names = '*'", "select pg_reload_conf()")
	require.Eventually(t, func() bool {
		return number(t, db, "select count(*) from pg_stat_replication where sync_state = 'sync'") == 1
	}, time.Minute, 10*time.Millisecond)
	return p
}

// fail ends the primary as a machine does that loses its power: the backends too, which would survive the postmaster.
func (p pair) fail() error {
	process := p.primary.cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil { // it must not start others
		return err
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", process.Pid))
	if err != nil {
		return err
	}
	for _, child := range strings.Fields(string(children)) {
		pid, err := strconv.Atoi(child)
		if err != nil {
			return err
		}
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	p.primary.stop(syscall.SIGKILL)
	return nil
}

// source returns the data source name for any of the two, in the form that both drivers read.
func (p pair) source(database string) string {
	return fmt.Sprintf("host=%s,%s port=%s,%s user=postgres dbname=%s sslmode=disable connect_timeout=2",
		p.primary.host, p.standby.host, p.primary.port, p.standby.port, database)
}

// patient outlives a failover, however long it takes on a busy machine.
var patient = retry.Policy{
	MaxAttempts: retry.Unlimited, TTL: time.Minute,
	Backoff: retry.Backoff{Base: 20 * time.Millisecond, Cap: 250 * time.Millisecond, Jitter: retry.EqualJitter},
}

// teller makes the transfers of a bank, by one driver.
type teller struct {
	move func(retry.Policy, transfer) error
	fill func() // leaves the pool with idle connections, one for each worker
}

// tellers are the ways to work: the drivers of database/sql, and the pool of pgx.
var tellers = map[string]func(t *testing.T, source string) teller{
	"pgx":    func(t *testing.T, source string) teller { return newTeller(t, pgxStdlib, source) },
	"lib_pq": func(t *testing.T, source string) teller { return newTeller(t, libpq, source) },
	"pgxpool": func(t *testing.T, source string) teller {
		config, err := pgxpool.ParseConfig(source)
		require.NoError(t, err)
		config.MaxConns = workers
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		return teller{
			move: func(p retry.Policy, order transfer) error {
				return retrypgx.Tx(t.Context(), pool, p, nil, func(ctx context.Context, tx pgx.Tx) error {
					return move(order, func(query string, args ...any) error {
						_, err := tx.Exec(ctx, query, args...)
						return err
					})
				})
			},
			fill: func() {
				held := make([]*pgxpool.Conn, workers)
				for i := range held {
					held[i], err = pool.Acquire(t.Context())
					require.NoError(t, err)
				}
				for _, conn := range held {
					conn.Release()
				}
			},
		}
	},
}

func newTeller(t *testing.T, d driver, source string) teller {
	db := checked(t)(sql.Open(d.name, source))
	db.SetMaxIdleConns(workers)
	return teller{
		move: func(p retry.Policy, order transfer) error {
			return retrysql.Tx(t.Context(), db, p, nil, func(ctx context.Context, tx *retrysql.Txn) error {
				return move(order, func(query string, args ...any) error {
					_, err := tx.ExecContext(ctx, query, args...)
					return err
				})
			})
		},
		fill: func() { fill(t, db, workers) },
	}
}

// move makes a transfer. Transfers lock accounts in one order, so none conflicts with another.
func move(order transfer, exec func(query string, args ...any) error) error {
	if err := exec("insert into ledger values ($1, $2, $3, $4)", order.id, order.source, order.target, order.amount); err != nil {
		return err
	}
	changes := []struct{ id, amount int }{{order.source, -order.amount}, {order.target, order.amount}}
	if order.source > order.target {
		slices.Reverse(changes)
	}
	for _, change := range changes {
		if err := exec("update accounts set balance = balance + $2 where id = $1", change.id, change.amount); err != nil {
			return err
		}
	}
	return nil
}

const workers, transfers = 16, 2000

// order returns the transfer of a number.
func order(id int) transfer { return transfer{id, id % 10, (id%10 + 1 + id%9) % 10, 1 + id%5} }

// TestTheRetryGoesToAnotherConnection: the connections of a pool lead to a standby that stays one, while new ones reach
// the primary.
func TestTheRetryGoesToAnotherConnection(t *testing.T) {
	p := newPair(t)
	for name, open := range tellers {
		for _, row := range []struct {
			name           string
			workers, moves int
			most           int // attempts
		}{{"of many runs", workers, transfers, transfers + workers}, {"of a single run", 1, 1, 2}} {
			t.Run(name+"/"+row.name, func(t *testing.T) {
				b, database := p.newBank(t)
				proxy := newProxy(t, p.standby.address, func(string) fault { return pass })
				teller := open(t, postgresURL("postgres", proxy.address, database))
				teller.fill()
				proxy.server.Store(&p.primary.address)
				policy, count := counted(retry.Policy{Backoff: patient.Backoff})

				for id, err := range inParallel(row.workers, row.moves, func(id int) error { return teller.move(policy, order(id)) }) {
					require.NoError(t, err, id)
				}

				t.Log(count)
				require.LessOrEqual(t, count.attempts, row.most)
				require.Equal(t, row.moves, number(t, b.direct, "select count(*) from ledger"))
				b.requireConserved(t)
			})
		}
	}
}

// newBank makes a bank in a database of its own on the primary, and waits until the standby has it.
func (p pair) newBank(t *testing.T) (*bank, string) {
	t.Helper()
	name := "test" + strconv.FormatInt(databases.Add(1), 10)
	exec1(t, libpq.open(t, p.primary.address, "postgres"), "create database "+name)
	b := newBank(t, libpq, libpq.open(t, p.primary.address, name), 10)
	standby := libpq.open(t, p.standby.address, "postgres")
	require.Eventually(t, func() bool {
		return number(t, standby, "select (pg_last_wal_replay_lsn() >= $1::pg_lsn)::int", text(t, b.direct, "select pg_current_wal_lsn()")) == 1
	}, time.Minute, 10*time.Millisecond)
	return b, name
}

// TestAFailoverLosesAndDoublesNothing ends the primary in the middle, and promotes the standby.
func TestAFailoverLosesAndDoublesNothing(t *testing.T) {
	for name, open := range tellers {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			b, database := p.newBank(t)
			teller := open(t, p.source(database))
			policy, count := counted(patient)
			longest := make([]time.Duration, transfers)

			outcomes := inParallel(workers, transfers, func(id int) error {
				if id == transfers/2 { // in one worker, while the others go on
					if err := p.fail(); err != nil {
						return err
					}
					for count.of(func(failure) bool { return true }) == 0 { // until another worker has met it
						runtime.Gosched()
					}
					if err := p.standby.run("pg_ctl", "promote", "-w", "-D", p.standby.data); err != nil {
						return err
					}
				}
				began := time.Now()
				err := teller.move(policy, order(id))
				longest[id] = time.Since(began)
				return err
			})

			b.direct = libpq.open(t, p.standby.address, database)
			ambiguous, applied := requireExactlyOnce(t, b.direct, "ledger", outcomes)
			require.LessOrEqual(t, ambiguous, workers)
			b.requireConserved(t)
			t.Logf("%v; %d in doubt, %d of them applied; longest %v", count, ambiguous, applied, slices.Max(longest))
		})
	}
}
