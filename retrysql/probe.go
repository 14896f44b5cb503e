package retrysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/retrygo/retry"
)

// asker is a pool, which can open a connection besides that of the transaction.
type asker interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// askerOf returns db if opts asks for a probe, otherwise nil.
func askerOf(db Beginner, opts *Options) (asker, error) {
	if opts == nil || !opts.Probe {
		return nil, nil
	}
	pool, ok := db.(asker)
	if _, single := db.(*sql.Conn); single || !ok {
		return nil, fmt.Errorf("retrysql: Options.Probe needs a *sql.DB, not a %T", db)
	}
	return pool, nil
}

// record identifies a transaction of which PostgreSQL records the status.
type record struct {
	pool      asker
	xid, life string // of the transaction, and of the server
}

// life is SQL for a text that changes with each start of the server and with each recovery from a crash, after which
// PostgreSQL resets its statistics. It also changes if an administrator resets those.
const life = `extract(epoch from pg_catalog.pg_postmaster_start_time())::text || '/' ||
	coalesce(extract(epoch from pg_catalog.pg_stat_get_bgwriter_stat_reset_time()), 0)::text`

var _ Recorded = txn{}

// Track gives the transaction an id if it does not have one: a transaction that has only called NOTIFY gets its id at
// the commit.
func (t txn) Track(ctx context.Context) error {
	row := t.tx.QueryRowContext(ctx, "select pg_catalog.pg_current_xact_id()::text, "+life)
	if err := t.log.note(row.Scan(&t.record.xid, &t.record.life)); err != nil {
		return fmt.Errorf("retrysql: Options.Probe, which needs PostgreSQL 13 or later: %w", err)
	}
	return nil
}

// patience is how Committed waits for a transaction in progress, or for a server that does not answer: until its
// context ends. A server takes milliseconds to notice that its client is gone.
var patience = retry.Policy{
	Name:        "probe",
	MaxAttempts: retry.Unlimited,
	Backoff:     retry.Backoff{Base: 5 * time.Millisecond, Cap: 500 * time.Millisecond, Jitter: retry.FullJitter},
	Classify:    retry.FirstOf(Classify, retry.Otherwise(retry.Terminal)),
}

// Committed asks again while the transaction is in progress or the server does not answer, until ctx ends.
func (t txn) Committed(ctx context.Context) (bool, error) {
	return retry.DoValue(ctx, patience, func(ctx context.Context) (bool, error) {
		var (
			same   bool
			status *string
		)
		const query = "select life = $1, case life when $1 then pg_catalog.pg_xact_status($2::text::xid8) end from (select " + life + ") now (life)"
		err := t.record.pool.QueryRowContext(ctx, query, t.record.life, t.record.xid).Scan(&same, &status)
		switch {
		case err != nil:
			return false, err
		case !same:
			return false, errors.New("retrysql: the server was restarted or replaced and does not know the transaction")
		case status == nil:
			return false, fmt.Errorf("retrysql: the server no longer knows transaction %s", t.record.xid)
		case *status == "in progress":
			return false, retry.Transient(fmt.Errorf("retrysql: transaction %s is in progress", t.record.xid))
		default:
			return *status == "committed", nil
		}
	})
}
