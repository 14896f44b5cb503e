package retrysql

import (
	"context"
	"database/sql"
	"reflect"
	"sync"
	"time"
)

// idleTime is how long a connection may be unused and still count as alive, as in pgx.
const idleTime = time.Second

// alive returns a connection of db that was used recently or answers a ping. It drops at most as many dead ones as the
// pool has.
func alive(ctx context.Context, db *sql.DB) (*sql.Conn, error) {
	for left := db.Stats().OpenConnections; ; left-- {
		conn, err := db.Conn(ctx)
		if err != nil || used.lately(conn) {
			return conn, err
		}
		err = conn.PingContext(ctx)
		if err == nil {
			return conn, nil
		}
		_ = conn.Close()
		if left <= 0 || ctx.Err() != nil || Judge(Connect, err).Reason != ConnectionLost {
			return nil, err
		}
	}
}

// used are the connections that Do has used within about idleTime. database/sql does not report how long a connection
// was idle.
var used = uses{last: map[uintptr]time.Time{}}

// uses are the times at which connections were last used, by the address of the driver's connection. A new connection
// may get the address of an old one; it is alive too.
type uses struct {
	mu    sync.Mutex
	last  map[uintptr]time.Time
	swept time.Time // when the old ones were deleted
}

// note notes that conn has been used.
func (u *uses) note(conn *sql.Conn) {
	address := addressOf(conn)
	if address == 0 {
		return
	}
	now := time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last[address] = now
	if now.Sub(u.swept) >= idleTime {
		u.swept = now
		for address, at := range u.last {
			if now.Sub(at) >= idleTime {
				delete(u.last, address)
			}
		}
	}
}

// lately reports whether conn was used within idleTime. It reports true for a driver whose connections are not
// pointers, since it cannot recognize them.
func (u *uses) lately(conn *sql.Conn) bool {
	address := addressOf(conn)
	u.mu.Lock()
	defer u.mu.Unlock()
	at, ok := u.last[address]
	idle := time.Since(at) // negative if noted by another clock, as that of a test in virtual time
	return address == 0 || ok && 0 <= idle && idle < idleTime
}

// addressOf returns the address of the driver's connection, or 0.
func addressOf(conn *sql.Conn) (address uintptr) {
	_ = conn.Raw(func(driverConn any) error {
		if v := reflect.ValueOf(driverConn); v.Kind() == reflect.Pointer {
			address = v.Pointer()
		}
		return nil
	})
	return address
}
