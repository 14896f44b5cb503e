package retrysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// pinged is a database whose connections can be pinged, and can be dead without showing it.
type pinged struct {
	base
	made, pings int
	dead        map[*pingedConn]bool
	conns       []*pingedConn
	err         error // of each ping
}

type pingedConn struct {
	baseConn
	of *pinged
}

func (p *pinged) Connect(context.Context) (driver.Conn, error) {
	p.made++
	c := &pingedConn{baseConn{&p.base}, p}
	p.conns = append(p.conns, c)
	return c, nil
}

func (c *pingedConn) Close() error { return nil }
func (c *pingedConn) Ping(context.Context) error {
	c.of.pings++
	if c.of.dead[c] {
		return driver.ErrBadConn
	}
	return c.of.err
}

// kill makes all connections opened so far dead.
func (p *pinged) kill() {
	p.dead = map[*pingedConn]bool{}
	for _, c := range p.conns {
		p.dead[c] = true
	}
}

func TestDoPingsAConnectionThatWasIdle(t *testing.T) {
	insert := func(db *sql.DB) error {
		return retrysql.Do(context.Background(), db, retry.Policy{MaxAttempts: 1}, func(ctx context.Context, c *retrysql.Conn) error {
			_, err := c.ExecContext(ctx, "INSERT")
			return err
		})
	}
	var all []*pinged // so that a new connection does not get an old address
	inBubble(t, "for a second", func(t *testing.T) {
		p := &pinged{}
		all = append(all, p)
		db := sql.OpenDB(p)
		defer db.Close()
		for _, row := range []struct {
			after time.Duration
			pings int
		}{{0, 1}, {0, 1}, {999 * time.Millisecond, 1}, {999 * time.Millisecond, 1}, {time.Second, 2}, {time.Hour, 3}, {0, 3}} {
			time.Sleep(row.after)
			require.NoError(t, insert(db))
			require.Equal(t, row.pings, p.pings)
		}
		require.Equal(t, 1, p.made)
	})
	inBubble(t, "and replaces all that are dead, in one attempt", func(t *testing.T) {
		p := &pinged{}
		all = append(all, p)
		db := sql.OpenDB(p)
		defer db.Close()
		db.SetMaxIdleConns(9)
		var held []*sql.Conn
		for range 9 {
			conn, err := db.Conn(t.Context())
			require.NoError(t, err)
			held = append(held, conn)
		}
		for _, conn := range held {
			require.NoError(t, conn.Close())
		}
		p.kill()
		require.NoError(t, insert(db))
		require.Equal(t, 10, p.pings)
		require.Equal(t, 10, p.made)
		require.Equal(t, 1, db.Stats().OpenConnections)
	})
	inBubble(t, "but gives up if new ones are dead as well", func(t *testing.T) {
		p := &pinged{err: driver.ErrBadConn}
		all = append(all, p)
		db := sql.OpenDB(p)
		defer db.Close()
		err := insert(db)
		require.ErrorIs(t, err, driver.ErrBadConn)
		var failed *retrysql.AttemptError
		require.ErrorAs(t, err, &failed)
		require.Equal(t, retrysql.Connect, failed.Phase)
		require.Equal(t, retry.Retryable, failed.Class)
		require.Equal(t, 1, p.pings)
		require.Zero(t, db.Stats().InUse)
	})
	inBubble(t, "and what else it fails with ends the attempt", func(t *testing.T) {
		p := &pinged{}
		all = append(all, p)
		db := sql.OpenDB(p)
		defer db.Close()
		conn, err := db.Conn(t.Context())
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		p.err = state("57P03")
		require.ErrorIs(t, insert(db), state("57P03"))
		require.Equal(t, 1, p.pings)
		require.Zero(t, db.Stats().InUse)
	})
	t.Run("not one whose driver has no pointers, which it does not know again", func(t *testing.T) {
		db := sql.OpenDB(&base{})
		defer db.Close()
		require.NoError(t, insert(db))
	})
	runtime.KeepAlive(all)
}
