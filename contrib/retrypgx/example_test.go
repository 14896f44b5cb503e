package retrypgx_test

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retrypgx"
)

// A transfer that reads before it writes. At PostgreSQL's default isolation one of two concurrent transfers could be
// lost. Under SERIALIZABLE the later one fails, and runs again.
func ExampleTx() {
	transfer := func(ctx context.Context, pool *pgxpool.Pool, from, to, cents int64) error {
		opts := &retrypgx.Options{TxOptions: pgx.TxOptions{IsoLevel: pgx.Serializable}}
		return retrypgx.Tx(ctx, pool, retry.Policy{}, opts, func(ctx context.Context, tx pgx.Tx) error {
			var balance int64
			if err := tx.QueryRow(ctx, "select cents from accounts where id = $1", from).Scan(&balance); err != nil {
				return err
			}
			if balance < cents {
				return errors.New("insufficient funds") // an error of fn's own is not retried
			}
			if _, err := tx.Exec(ctx, "update accounts set cents = $1 where id = $2", balance-cents, from); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "update accounts set cents = cents + $1 where id = $2", cents, to)
			return err
		})
	}
	_ = transfer
}

// The new row's id is from the attempt that was committed.
func ExampleTxValue() {
	create := func(ctx context.Context, pool *pgxpool.Pool, name string) (int64, error) {
		return retrypgx.TxValue(ctx, pool, retry.Policy{}, nil, func(ctx context.Context, tx pgx.Tx) (id int64, err error) {
			err = tx.QueryRow(ctx, "insert into users (name) values ($1) returning id", name).Scan(&id)
			return id, err
		})
	}
	_ = create
}

// The answer to a commit is lost, so Probe asks PostgreSQL.
func ExampleOptions_probe() {
	pay := func(ctx context.Context, pool *pgxpool.Pool, order int64) error {
		return retrypgx.Tx(ctx, pool, retry.Policy{}, &retrypgx.Options{Probe: true}, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "update orders set paid = true where id = $1", order)
			return err
		})
	}
	_ = pay
}
