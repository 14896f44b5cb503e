package retrysql

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/retrygo/retry"
)

// origin is the database of a run, from which each attempt takes a connection. A pool hands out the connection that was
// returned last. So an attempt that failed because of its connection must not return it, or the next attempt would have
// it again.
type origin struct {
	db   Beginner
	pool *sql.DB // db, or nil if it is one connection or of a type with its own BeginTx
	opts *sql.TxOptions
	last *Txn // the newest transaction. A Txn has no pointer to origin, which therefore stays on the stack.

	lost     bool // an attempt has lost its connection
	readOnly bool // an attempt has met a read-only server
	emptied  bool // the idle connections have been closed because of that
}

// elsewhere reports whether another connection may do better than one whose attempt failed for the reason.
func (r Reason) elsewhere() bool {
	switch r {
	case ReadOnlyServer, CannotConnectNow: // the latter is also a cluster's node that is not ready
		return true
	default:
		return r.disconnected()
	}
}

// disconnected reports whether the connection is gone.
func (r Reason) disconnected() bool {
	switch r {
	case ConnectionLost, AdminShutdown, IdleInTransaction, ServerFault:
		return true
	default:
		return false
	}
}

// note notes why an attempt failed.
func (o *origin) note(reason Reason) {
	o.lost = o.lost || reason.disconnected()
	o.readOnly = o.readOnly || reason == ReadOnlyServer
}

// connect takes a connection from the pool and calls use, which begins a transaction on it or pings. Connections that
// died in the pool fail there, before anything is sent, so connect takes the next one at once, as often as the pool has
// idle ones, and once more for a new one.
func (o *origin) connect(ctx context.Context, use func(context.Context, *sql.Conn) error) (*sql.Conn, error) {
	o.empty(ctx)
	dead, idle := 0, 0
	for {
		conn, err := o.pool.Conn(ctx)
		if err != nil {
			return nil, err
		}
		if err = use(ctx, conn); err == nil {
			return conn, nil
		}
		reason := ReasonOf(err)
		o.note(reason)
		giveBack(conn, reason)
		if dead == 0 {
			idle = o.pool.Stats().Idle
		}
		dead++
		if !reason.disconnected() || dead > idle+1 {
			return nil, err
		}
	}
}

// empty closes the idle connections of the pool, once in a run that has met a read-only server. They are probably to
// that server too, and each would cost an attempt.
func (o *origin) empty(ctx context.Context) {
	if !o.readOnly || o.emptied {
		return
	}
	o.emptied = true
	for range o.pool.Stats().Idle {
		if o.pool.Stats().Idle == 0 { // others have taken them
			return
		}
		conn, err := o.pool.Conn(ctx)
		if err != nil {
			return
		}
		giveBack(conn, ReadOnlyServer)
	}
}

// ping finds out whether a connection is alive, if the run has lost one.
func (o *origin) ping(ctx context.Context, conn *sql.Conn) error {
	if !o.lost {
		return nil
	}
	return conn.PingContext(ctx)
}

// giveBack returns a connection to its pool, or closes it if the reason for which it failed requires that.
func giveBack(conn *sql.Conn, reason Reason) {
	if reason.elsewhere() {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // which database/sql takes as closed
	}
	_ = conn.Close()
}

// begin begins the transaction of an attempt.
func (o *origin) begin(ctx context.Context) (txn, error) {
	if o.last != nil {
		o.note(o.last.bad)
	}
	o.last = &Txn{pooled: o.pool != nil}
	return txn{o.last}, o.last.begin(ctx, o)
}

// final marks the error of a begin on the caller's single connection that stays as it is.
func final(err error) error {
	switch {
	case is(err, sql.ErrConnDone), ReasonOf(err) == ReadOnlyServer:
		return retry.Permanent(err)
	default:
		return err
	}
}
