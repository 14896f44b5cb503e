package drivers_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrytest"
)

// random returns a judge that finds each fault in one of the given number of requests and passes the others. The same
// seed draws the same numbers, but goroutines send their requests in any order.
func random(seed uint64, oneIn int) func(request string) fault {
	var mu sync.Mutex
	source := rand.New(rand.NewPCG(seed, 0))
	return func(string) fault {
		mu.Lock()
		defer mu.Unlock()
		if drawn := source.IntN(oneIn); drawn < int(cutInFlight) {
			return fault(drawn + 1)
		}
		return pass
	}
}

// TestABankWhoseConnectionsAreKilledAtRandomLosesNothing makes transfers under SERIALIZABLE in many goroutines, while a
// proxy cuts connections before a request, during it, before its reply or within the reply: at the connect, in the
// middle of a transaction, at the commit. SQLite has no connection to cut, so its driver drops the same messages, and its
// disk is full.
func TestABankWhoseConnectionsAreKilledAtRandomLosesNothing(t *testing.T) {
	const workers, accounts, oneIn, seed = 8, 400, 200, 20261121
	transfers := 3000
	if testing.Short() {
		transfers /= 12
	}
	for _, d := range append(serverDrivers, modernc) {
		for name, probe := range map[string]bool{"without a probe": false, "with a probe": true} {
			t.Run(d.name+"/"+name, func(t *testing.T) {
				var (
					direct, pool *sql.DB
					cuts         func() int
				)
				if d.name == modernc.name {
					direct, pool, cuts = newChaoticSQLite(t, seed)
				} else {
					s, name := d.newDatabase(t)
					direct = d.open(t, s.address, name)
					if d.name != goMySQL.name {
						// Without it a transaction would lock all rows of a small table, not only those that it reads.
						exec1(t, direct, "alter database "+name+" set enable_seqscan = off")
					}
					p := newProxy(t, s.address, random(seed, oneIn))
					pool, cuts = d.open(t, p.address, name), func() int { return int(p.cuts.Load()) }
				}
				pool.SetMaxOpenConns(workers)
				pool.SetMaxIdleConns(workers)
				b := newBank(t, d, direct, accounts)
				policy, count := counted(contended)

				began := time.Now()
				outcomes := inParallel(workers, transfers, func(id int) error {
					draw := rand.New(rand.NewPCG(seed, uint64(id)))
					source := draw.IntN(accounts)
					order := transfer{id, source, (source + 1 + draw.IntN(accounts-1)) % accounts, 1 + draw.IntN(100)}
					opts := &retrysql.Options{Isolation: sql.LevelSerializable}
					if probe {
						opts.Probe = b.postgres
						if !opts.Probe {
							opts.Confirm = b.appliedOnceOver(id)
						}
					}
					return retrysql.Tx(t.Context(), pool, policy, opts, func(ctx context.Context, tx *retrysql.Txn) error {
						if d.name == modernc.name && id%fullEvery == 0 {
							_, _ = tx.ExecContext(ctx, fullDisk) // what follows must not be committed
						}
						return b.apply(ctx, tx, order)
					})
				})
				took := time.Since(began)

				full := 0
				for _, err := range outcomes {
					if retrysql.ReasonOf(err) == retrysql.DiskFull {
						full++
					}
				}
				require.Equal(t, d.name == modernc.name, full > transfers/fullEvery/2)
				ambiguous, applied := requireExactlyOnce(t, direct, "ledger", outcomes)
				b.requireConserved(t)
				require.Positive(t, cuts())
				if probe {
					require.Zero(t, ambiguous)
				}
				conflicts := count.of(func(f failure) bool {
					return f.Reason == retrysql.SerializationFailure || f.Reason == retrysql.Deadlock
				})
				t.Logf("%d transfers in %v: %d attempts, %d conflicts, %d connections killed, %d full disks, %d ambiguous of which %d applied",
					transfers, took.Round(time.Millisecond), count.attempts, conflicts, cuts(), full, ambiguous, applied)
				t.Log(count)
			})
		}
	}
}

// On a disk of SQLite there is no room for fullDisk, which each fullEvery-th transfer begins with.
const (
	fullDisk  = "insert into filler values (zeroblob(20000000))"
	fullEvery = 50
)

// modernc is SQLite, for the soak only: it has no server.
var modernc = driver{name: "sqlite"}

// newChaoticSQLite returns two pools for a new file. The second one loses connections, and the work in progress on
// them.
func newChaoticSQLite(t *testing.T, seed uint64) (direct, pool *sql.DB, cuts func() int) {
	t.Helper()
	source := "file:" + filepath.ToSlash(filepath.Join(t.TempDir(), "test.db")) +
		"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)&_pragma=synchronous(off)&_pragma=max_page_count(2000)"
	direct, err := sql.Open("sqlite", source)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, direct.Close()) })
	exec1(t, direct, "create table filler (content blob)")
	c := retrytest.Chaos{Seed: seed, Rate: 0.01}.Connector(t, sourceConnector{direct.Driver(), source}, []retrytest.SQLFault{
		{Err: sqldriver.ErrBadConn, Lost: true}, {On: retrytest.Begin, Lost: true},
		{On: retrytest.Commit, Lost: true}, {On: retrytest.Commit, Lost: true, Late: true},
	})
	pool = c.OpenDB()
	return direct, pool, func() int {
		return len(slices.DeleteFunc(c.Calls(), func(call retrytest.SQLCall) bool { return call.Err == nil }))
	}
}

// sourceConnector opens connections of a driver that does not have a connector.
type sourceConnector struct {
	driver sqldriver.Driver
	source string
}

func (s sourceConnector) Connect(context.Context) (sqldriver.Conn, error) {
	return s.driver.Open(s.source)
}
func (s sourceConnector) Driver() sqldriver.Driver { return s.driver }
