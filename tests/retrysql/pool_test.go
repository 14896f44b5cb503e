package retrysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
	"github.com/retrygo/retry/retrytest"
)

// silent is a server whose packets are lost for a while: a connection that is begun then never gets an answer. limit is
// that of the driver for connecting, 0 means none.
type silent struct {
	driver.Connector
	lost  atomic.Bool
	limit time.Duration
}

func (s *silent) Connect(ctx context.Context) (driver.Conn, error) {
	if !s.lost.Load() {
		return s.Connector.Connect(ctx)
	}
	if s.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.limit)
		defer cancel()
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestAPoolNeedsALimitForConnecting shows what the README says of connect_timeout. For callers that wait for a place in the
// pool, database/sql connects in one goroutine of its own, without a deadline.
func TestAPoolNeedsALimitForConnecting(t *testing.T) {
	for name, c := range map[string]struct {
		limit time.Duration
		want  error
	}{
		"without one, a full pool is blocked when the network is back": {0, context.DeadlineExceeded},
		"with one, it serves": {time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &silent{Connector: retrytest.NewConnector(t, nil, nil), limit: c.limit}
				db := sql.OpenDB(server)
				defer db.Close()
				db.SetMaxOpenConns(1)
				tx := func() error {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					return retrysql.Tx(ctx, db, retry.Policy{}, nil, func(context.Context, *retrysql.Txn) error { return nil })
				}
				server.lost.Store(true)
				var both sync.WaitGroup
				for range 2 { // the later one still waits when the first one gives up
					both.Go(func() { assert.Error(t, tx()) })
					time.Sleep(500 * time.Millisecond)
				}
				both.Wait()
				server.lost.Store(false)
				time.Sleep(time.Minute)
				err := tx()
				require.True(t, errors.Is(err, c.want), "%v", err)
			})
		})
	}
}
