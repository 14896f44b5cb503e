package retrypgx

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// origin is the database of a run, from which each attempt takes a connection. A pool hands out the connection that was
// returned last, so an attempt that failed because of its connection must not return it. The next attempt would have it
// again.
type origin struct {
	db     Beginner
	pool   *pgxpool.Pool // db, or nil if it is a *pgx.Conn or of a type with its own BeginTx
	opts   pgx.TxOptions
	asker  asker // can be nil
	copies copies

	readOnly bool // an attempt has met a read-only server
	emptied  bool // the idle connections have been closed because of that
}

// begin begins the transaction of an attempt. Connections that died in the pool fail there, before anything is sent, so
// begin takes the next one at once, as often as the pool has idle ones, and once more for a new one.
func (o *origin) begin(ctx context.Context) (transaction, error) {
	if o.pool == nil {
		tx, err := o.db.BeginTx(ctx, o.opts)
		return o.transaction(tx, nil), o.final(err)
	}
	o.empty(ctx)
	dead, idle := 0, 0
	for {
		conn, err := o.pool.Acquire(ctx)
		if err != nil {
			return transaction{}, err
		}
		tx, err := conn.BeginTx(ctx, o.opts)
		if err == nil {
			return o.transaction(tx, conn), nil
		}
		conn.Release() // pgx has closed it
		reason := retrysql.ReasonOf(err)
		o.note(reason)
		if dead == 0 {
			idle = int(o.pool.Stat().IdleConns())
		}
		dead++
		if !disconnected(reason) || dead > idle+1 {
			return transaction{}, err
		}
	}
}

func (o *origin) transaction(tx pgx.Tx, conn *pgxpool.Conn) transaction {
	return transaction{&txn{tx, &journal{tx: tx, copies: &o.copies}}, o, &held{conn: conn}}
}

// disconnected reports whether a begin failed because the connection is gone.
func disconnected(reason retrysql.Reason) bool {
	return reason == retrysql.ConnectionLost || reason == retrysql.AdminShutdown
}

// note notes why an attempt failed, and reports whether the next one has another connection.
func (o *origin) note(reason retrysql.Reason) bool {
	o.readOnly = o.readOnly || reason == retrysql.ReadOnlyServer
	return o.pool != nil
}

// empty closes the idle connections of the pool, once in a run that has met a read-only server. They are probably to
// that server too, and each would cost an attempt.
func (o *origin) empty(ctx context.Context) {
	if !o.readOnly || o.emptied {
		return
	}
	o.emptied = true
	for _, conn := range o.pool.AcquireAllIdle(ctx) {
		(&held{conn, true}).release()
	}
}

// held is the connection of an attempt, which its pool must get back. The zero held has no connection.
type held struct {
	conn *pgxpool.Conn
	bad  bool // it must not be used again
}

// release returns the connection, which is closed before that if it is bad, so that the pool drops it. It does not wait for
// the server.
func (h *held) release() {
	if h.conn == nil {
		return
	}
	if h.bad {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = h.conn.Conn().Close(ended)
	}
	h.conn.Release()
	h.conn = nil
}

// final marks the error of a begin on a *pgx.Conn that is closed, as pgx closes it if a begin fails.
func (o *origin) final(err error) error {
	conn, ok := o.db.(*pgx.Conn)
	switch {
	case err == nil:
		return nil
	case ok && conn.IsClosed(), retrysql.ReasonOf(err) == retrysql.ReadOnlyServer:
		return retry.Permanent(err)
	default:
		return err
	}
}
