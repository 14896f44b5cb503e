package retrypgx

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// asker is a pool, which can open a connection besides that of the transaction.
type asker interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// askerOf returns db as a pool, or nil. It returns an error if opts needs a pool.
func askerOf(db Beginner, opts Options) (asker, error) {
	pool, ok := db.(asker)
	if _, single := db.(*pgx.Conn); !single && ok {
		return pool, nil
	}
	if opts.Probe {
		return nil, fmt.Errorf("retrypgx: Options.Probe needs a *pgxpool.Pool, not a %T", db)
	}
	return nil, nil
}

// Ask is for Options.Probe, as AskOutside.
func (t transaction) Ask(ctx context.Context, dest []any, query string, args ...any) error {
	return t.log.note(t.tx.QueryRow(ctx, query, args...).Scan(dest...))
}

func (t transaction) AskOutside(ctx context.Context, dest []any, query string, args ...any) error {
	if t.pool == nil {
		return errors.New("retrypgx: there is no other connection to ask on")
	}
	return t.pool.QueryRow(ctx, query, args...).Scan(dest...)
}
