package retrysql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// record identifies a transaction of which PostgreSQL records the status.
type record struct{ xid, life string } // of the transaction, and of the server

// life is SQL for a text that changes with each start of the server and with each recovery from a crash, after which
// PostgreSQL resets its statistics. It also changes if an administrator resets those.
const life = `extract(epoch from pg_catalog.pg_postmaster_start_time())::text || '/' ||
	coalesce(extract(epoch from pg_catalog.pg_stat_get_bgwriter_stat_reset_time()), 0)::text`

// track gives the transaction an id if it does not have one. A transaction that has only called NOTIFY, for example,
// would get its id at the commit.
func track(ctx context.Context, tx Transaction) (*record, error) {
	var r record
	err := tx.Ask(ctx, []any{&r.xid, &r.life}, "select pg_catalog.pg_current_xact_id()::text, "+life)
	if ReasonOf(err) == SyntaxOrAccess { // there is no such function
		return nil, fmt.Errorf("retrysql: Options.Probe, which needs PostgreSQL 13 or later: %w", err)
	}
	return &r, err
}

// patience is the policy for a transaction in progress and for a server that does not answer. It waits until the
// context ends. A server takes milliseconds to notice that its client is gone. A question has no effect, so it is also
// asked again after an error that is not recognized, or of a driver's own time limit.
var patience = retry.Policy{
	Name:        "probe",
	MaxAttempts: retry.Unlimited,
	Backoff:     retry.Backoff{Base: 5 * time.Millisecond, Cap: 500 * time.Millisecond, Jitter: retry.FullJitter},
	Classify:    retry.FirstOf(Classify, retry.Otherwise(retry.Retryable)),
}

// committed reports whether the record shows that the transaction is committed. False is certain. An error means that
// there is no record. committed asks again while the transaction is in progress or the server does not answer, until
// ctx ends.
func (r *record) committed(ctx context.Context, tx Transaction) (bool, error) {
	return retry.DoValue(ctx, patience, func(ctx context.Context) (bool, error) {
		var (
			same   bool
			status *string
		)
		const query = "select life = $1, case life when $1 then pg_catalog.pg_xact_status($2::text::xid8) end from (select " + life + ") now (life)"
		err := tx.AskOutside(ctx, []any{&same, &status}, query, r.life, r.xid)
		switch {
		case err != nil:
			return false, err
		case !same:
			return false, retry.Permanent(errors.New("retrysql: the server was restarted or replaced and does not know the transaction"))
		case status == nil:
			return false, retry.Permanent(fmt.Errorf("retrysql: the server no longer knows transaction %s", r.xid))
		case *status == "in progress":
			return false, retry.Transient(fmt.Errorf("retrysql: transaction %s is in progress", r.xid))
		default:
			return *status == "committed", nil
		}
	})
}

// waits returns an error unless a SELECT of the server can wait for a commit in progress, so that an Options.Confirm
// that has not found a row is right.
func waits(ctx context.Context, tx Transaction) error {
	return retry.Do(ctx, patience, func(ctx context.Context) error {
		var version string
		err := tx.AskOutside(ctx, []any{&version}, selectVersion)
		switch {
		case strings.HasPrefix(version, "PostgreSQL"):
			return retry.Permanent(errors.New("retrysql: no SELECT of PostgreSQL waits for a commit, so a false of Options.Confirm is not certain: set Options.Probe"))
		case lacksFunction(err):
			return nil
		default:
			return err
		}
	})
}
