package retrypgx

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// Probe finds out from PostgreSQL's own record whether a transaction is committed, for Options.Committed. It is for one
// call of Tx, whose fn calls Track:
//
//	probe := retrypgx.Probe{Pool: pool}
//	err := retrypgx.Tx(ctx, pool, p, &retrypgx.Options{Committed: probe.Committed}, func(ctx context.Context, tx pgx.Tx) error {
//		if err := probe.Track(ctx, tx); err != nil {
//			return err
//		}
//		...
//
// It costs a round trip for each attempt, and needs PostgreSQL 13 or later, not CockroachDB or its like. It has no answer if
// the server was restarted, has crashed or was replaced since Track: a server that has lost its last transactions uses their
// numbers again.
type Probe struct {
	// Pool connects to the server of the transaction. It needs a connection besides that of the transaction.
	Pool *pgxpool.Pool

	xid, life string // of the transaction, and of the server
	attempt   int    // that has it
}

// life is SQL for a text that changes with each start of the server and with each recovery from a crash, after which
// PostgreSQL starts its statistics anew. An administrator who resets those changes it too.
const life = `extract(epoch from pg_postmaster_start_time())::text || '/' ||
	coalesce(extract(epoch from pg_stat_get_bgwriter_stat_reset_time()), 0)::text`

// Track notes the transaction of an attempt. fn calls it in each attempt, with its own context, before or after its work.
func (p *Probe) Track(ctx context.Context, tx pgx.Tx) error {
	p.attempt = retry.AttemptNumber(ctx)
	return tx.QueryRow(ctx, "select pg_current_xact_id()::text, "+life).Scan(&p.xid, &p.life)
}

// patience is how Committed waits for a transaction that is under way, or for a server that cannot be asked: as long as its
// context lives. A server takes milliseconds to see that its client is gone.
var patience = retry.Policy{
	Name:        "probe",
	MaxAttempts: retry.Unlimited,
	Backoff:     retry.Backoff{Base: 5 * time.Millisecond, Cap: 500 * time.Millisecond, Jitter: retry.FullJitter},
	Classify:    retry.FirstOf(retrysql.Classify, retry.Otherwise(retry.Terminal)),
}

// Committed reports whether the transaction that was tracked last is committed. While that is under way, or the server
// cannot be asked, it asks again until ctx ends. It returns an error if the server does not know, or cannot know because it
// is another one or was restarted.
func (p *Probe) Committed(ctx context.Context) (bool, error) {
	if p.xid == "" || p.attempt != retry.AttemptNumber(ctx) {
		return false, errors.New("retrypgx: fn has not called Probe.Track in this attempt")
	}
	return retry.DoValue(ctx, patience, func(ctx context.Context) (bool, error) {
		var (
			same   bool
			status *string
		)
		const query = "select life = $1, case life when $1 then pg_xact_status($2::text::xid8) end from (select " + life + ") now (life)"
		err := p.Pool.QueryRow(ctx, query, p.life, p.xid).Scan(&same, &status)
		switch {
		case err != nil:
			return false, err
		case !same:
			return false, errors.New("retrypgx: the server has been restarted or replaced, and does not know the transaction")
		case status == nil:
			return false, fmt.Errorf("retrypgx: the server has forgotten transaction %s", p.xid)
		case *status == "in progress":
			return false, retry.Transient(fmt.Errorf("retrypgx: transaction %s is in progress", p.xid))
		default:
			return *status == "committed", nil
		}
	})
}
