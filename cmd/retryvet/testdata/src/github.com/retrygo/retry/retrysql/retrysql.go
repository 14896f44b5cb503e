package retrysql

import (
	"context"
	"database/sql"

	"github.com/retrygo/retry"
)

type Beginner interface {
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
}
type Options struct{}
type Txn struct{ *sql.Tx }

func (t *Txn) AfterCommit(hook func(context.Context)) {}

func DefaultPolicy() retry.Policy { return retry.Policy{} }

func Tx(ctx context.Context, db Beginner, p retry.Policy, opts *Options, fn func(context.Context, *Txn) error) error {
	return nil
}
