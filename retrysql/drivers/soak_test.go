package drivers_test

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retrysql"
)

// random returns a judge that finds each fault in one of the given number of requests, and else passes them. The same seed
// draws the same numbers, which meet what goroutines happen to send.
func random(seed uint64, oneIn int) func(request string) fault {
	var mu sync.Mutex
	source := rand.New(rand.NewPCG(seed, 0))
	return func(string) fault {
		mu.Lock()
		defer mu.Unlock()
		if drawn := source.IntN(oneIn); drawn < int(tearReply) {
			return fault(drawn + 1)
		}
		return pass
	}
}

// TestABankWhoseConnectionsAreKilledAtRandomLosesNothing makes transfers under SERIALIZABLE by many workers, of which half
// use one driver and half the other, while a proxy cuts connections before a request, before its reply or within that:
// at the connect, in the middle of a transaction, at the commit.
func TestABankWhoseConnectionsAreKilledAtRandomLosesNothing(t *testing.T) {
	const workers, accounts, oneIn, seed = 16, 400, 200, 20261121
	for _, test := range []struct {
		name      string
		transfers int
		probe     bool
	}{
		{name: "without a probe", transfers: 5000},
		{name: "with a probe", transfers: 1000, probe: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			transfers := test.transfers
			if testing.Short() {
				transfers /= 10
			}
			s, name := newPostgres(t)
			direct := libpq.open(t, s.address, name)
			b := newBank(t, libpq, direct, accounts)
			// So that a transaction locks the rows that it reads, and not all of a small table.
			exec1(t, direct, "alter database "+name+" set enable_seqscan = off")
			p := newProxy(t, s.address, random(seed, oneIn))
			pools := []*sql.DB{libpq.open(t, p.address, name), pgxStdlib.open(t, p.address, name)}
			for _, pool := range pools {
				pool.SetMaxOpenConns(workers)
				pool.SetMaxIdleConns(workers)
			}
			policy, count := counted(contended)
			var turn atomic.Int64

			began := time.Now()
			outcomes := inParallel(workers, transfers, func(id int) error {
				draw := rand.New(rand.NewPCG(seed, uint64(id)))
				source := draw.IntN(accounts)
				order := transfer{id, source, (source + 1 + draw.IntN(accounts-1)) % accounts, 1 + draw.IntN(100)}
				opts := &retrysql.Options{Isolation: sql.LevelSerializable}
				if test.probe {
					opts.Committed = b.applied(id)
				}
				return retrysql.Tx(t.Context(), pools[turn.Add(1)%2], policy, opts, func(ctx context.Context, tx *retrysql.Txn) error {
					return b.apply(ctx, tx, order)
				})
			})
			took := time.Since(began)

			ambiguous, applied := requireExactlyOnce(t, direct, "ledger", outcomes)
			b.requireConserved(t)
			require.Positive(t, p.cuts.Load())
			if test.probe {
				require.Zero(t, ambiguous)
			}
			conflicts := count.of(func(f failure) bool { return f.Reason == retrysql.SerializationFailure })
			t.Logf("%d transfers in %v: %d attempts, %d conflicts, %d connections killed, %d ambiguous of which %d applied",
				transfers, took.Round(time.Millisecond), count.attempts, conflicts, p.cuts.Load(), ambiguous, applied)
			t.Log(count)
		})
	}
}
