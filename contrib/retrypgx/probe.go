package retrypgx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// asker is a pool, which can open a connection besides that of the transaction.
type asker interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// askerOf returns db if opts asks for a probe, otherwise nil.
func askerOf(db Beginner, opts Options) (asker, error) {
	if !opts.Probe {
		return nil, nil
	}
	pool, ok := db.(asker)
	if _, single := db.(*pgx.Conn); single || !ok {
		return nil, fmt.Errorf("retrypgx: Options.Probe needs a *pgxpool.Pool, not a %T", db)
	}
	return pool, nil
}

// record identifies a transaction whose status PostgreSQL records.
type record struct {
	pool      asker
	xid, life string // of the transaction, and of the server
}

// life is SQL for a text that changes with each start of the server and with each recovery from a crash, after which
// PostgreSQL resets its statistics. It also changes if an administrator resets those.
const life = `extract(epoch from pg_catalog.pg_postmaster_start_time())::text || '/' ||
	coalesce(extract(epoch from pg_catalog.pg_stat_get_bgwriter_stat_reset_time()), 0)::text`

var _ retrysql.Recorded = transaction{}

// Track gives the transaction an id if it does not have one: a transaction that has only called NOTIFY gets its id at
// the commit.
func (t transaction) Track(ctx context.Context) error {
	row := t.tx.QueryRow(ctx, "select pg_catalog.pg_current_xact_id()::text, "+life)
	if err := t.log.note(row.Scan(&t.record.xid, &t.record.life)); err != nil {
		return fmt.Errorf("retrypgx: Options.Probe, which needs PostgreSQL 13 or later: %w", err)
	}
	return nil
}

// patience is how Committed waits for a transaction in progress, or for a server that does not answer: until its
// context ends. A server takes milliseconds to notice that its client is gone.
var patience = retry.Policy{
	Name:        "probe",
	MaxAttempts: retry.Unlimited,
	Backoff:     retry.Backoff{Base: 5 * time.Millisecond, Cap: 500 * time.Millisecond, Jitter: retry.FullJitter},
	Classify:    retry.FirstOf(retrysql.Classify, retry.Otherwise(retry.Terminal)),
}

// Committed asks again while the transaction is in progress or the server does not answer, until ctx ends.
func (t transaction) Committed(ctx context.Context) (bool, error) {
	return retry.DoValue(ctx, patience, func(ctx context.Context) (bool, error) {
		var (
			same   bool
			status *string
		)
		const query = "select life = $1, case life when $1 then pg_catalog.pg_xact_status($2::text::xid8) end from (select " + life + ") now (life)"
		err := t.record.pool.QueryRow(ctx, query, t.record.life, t.record.xid).Scan(&same, &status)
		switch {
		case err != nil:
			return false, err
		case !same:
			return false, errors.New("retrypgx: the server was restarted or replaced and does not know the transaction")
		case status == nil:
			return false, fmt.Errorf("retrypgx: the server no longer knows transaction %s", t.record.xid)
		case *status == "in progress":
			return false, retry.Transient(fmt.Errorf("retrypgx: transaction %s is in progress", t.record.xid))
		default:
			return *status == "committed", nil
		}
	})
}
