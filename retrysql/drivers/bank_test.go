package drivers_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// bank is a database with accounts and a ledger of the transfers between them. The ledger has no key, so that a transfer
// which is applied twice shows instead of failing.
type bank struct {
	direct   *sql.DB // without a proxy
	accounts int
	postgres bool
	bind     func(query string) string // puts in a driver's placeholders for "?"
	lock     string                    // what a SELECT that waits for other transactions ends with
}

// deposit is what each account begins with.
const deposit = 1000

// newBank creates the tables.
func newBank(t *testing.T, d driver, direct *sql.DB, accounts int) *bank {
	t.Helper()
	b := &bank{direct: direct, accounts: accounts, bind: func(query string) string { return query }}
	switch d.name {
	case goMySQL.name:
		b.lock = " for update" // which waits for a commit in progress
	case libpq.name, pgxStdlib.name:
		b.bind, b.postgres = dollars, true
	}
	exec1(t, direct,
		"create table accounts (id integer primary key, balance integer not null)",
		"create table ledger (id integer not null, source integer not null, target integer not null, amount integer not null)",
		"create index ledger_id on ledger (id)")
	rows := make([]string, accounts)
	for id := range rows {
		rows[id] = fmt.Sprintf("(%d, %d)", id, deposit)
	}
	exec1(t, direct, "insert into accounts values "+strings.Join(rows, ", "))
	return b
}

// dollars replaces each "?" by $1, $2, ... in turn.
func dollars(query string) string {
	parts := strings.Split(query, "?")
	for i := range parts[1:] {
		parts[i] += fmt.Sprintf("$%d", i+1)
	}
	return strings.Join(parts, "")
}

// transfer is an order to the bank.
type transfer struct{ id, source, target, amount int }

// apply makes a transfer in a transaction. It reads before it writes.
func (b *bank) apply(ctx context.Context, tx *retrysql.Txn, order transfer) error {
	if _, err := tx.ExecContext(ctx, b.bind("insert into ledger values (?, ?, ?, ?)"),
		order.id, order.source, order.target, order.amount); err != nil {
		return err
	}
	for _, change := range []struct{ id, amount int }{{order.source, -order.amount}, {order.target, order.amount}} {
		var balance int
		if err := tx.QueryRowContext(ctx, b.bind("select balance from accounts where id = ?"), change.id).Scan(&balance); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, b.bind("update accounts set balance = ? where id = ?"), balance+change.amount, change.id); err != nil {
			return err
		}
	}
	return nil
}

// applied is a probe: it reports whether a transfer was applied.
func (b *bank) applied(id int) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		var n int
		err := b.direct.QueryRowContext(ctx, b.bind("select count(*) from ledger where id = ?"), id).Scan(&n)
		return n > 0, err
	}
}

// appliedOnceOver is a probe that waits for a commit in progress. No SELECT of PostgreSQL does.
func (b *bank) appliedOnceOver(id int) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		p := retry.Policy{MaxAttempts: retry.Unlimited, Backoff: contended.Backoff, Classify: retrysql.Classify}
		return retry.DoValue(ctx, p, func(ctx context.Context) (bool, error) {
			var found int
			err := b.direct.QueryRowContext(ctx, b.bind("select id from ledger where id = ?")+b.lock, id).Scan(&found)
			if errors.Is(err, sql.ErrNoRows) {
				return false, nil
			}
			return err == nil, err
		})
	}
}

// requireConserved requires that the total is unchanged, and that each account agrees with the ledger.
func (b *bank) requireConserved(t *testing.T) {
	t.Helper()
	require.Equal(t, b.accounts*deposit, number(t, b.direct, "select sum(balance) from accounts"))
	require.Equal(t, 0, number(t, b.direct, b.bind(`
		select count(*) from accounts where balance <> ?
			+ (select coalesce(sum(amount), 0) from ledger where target = accounts.id)
			- (select coalesce(sum(amount), 0) from ledger where source = accounts.id)`), deposit))
}
