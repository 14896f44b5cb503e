package retryriver_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retrypgx/pgtest"
	"github.com/retrygo/retry/contrib/retryriver"
)

// shared is the server of all tests but those that stop theirs. The first one starts it, and TestMain ends it.
var shared struct {
	mu     sync.Mutex
	server *pgtest.Server
	made   int // databases
	end    []func()
}

// outliving is a test that leaves its cleanup to TestMain.
type outliving struct{ testing.TB }

func (outliving) Cleanup(f func()) { shared.end = append(shared.end, f) }

// newDatabase returns the URL of a new and empty database.
func newDatabase(t testing.TB) string {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil {
		shared.server = pgtest.Start(outliving{t}, "max_connections=500")
	}
	shared.made++
	name := fmt.Sprintf("test%d", shared.made)
	conn, err := pgx.Connect(t.Context(), shared.server.DSN())
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	return strings.Replace(shared.server.DSN(), "/postgres?", "/"+name+"?", 1)
}

// newPostgres returns a new database that is migrated.
func newPostgres(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), newDatabase(t))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	require.NoError(t, retryriver.MigratePostgres(t.Context(), pool))
	return pool
}

// wires is the connections of a pool, which can all be cut at once.
type wires struct {
	mu   sync.Mutex
	cut  bool
	open []net.Conn
}

func (w *wires) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return nil, fmt.Errorf("this process is dead: %w", context.Canceled) // River retries any other error forever
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err == nil {
		w.open = append(w.open, conn)
	}
	return conn, err
}

func (w *wires) die() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for _, conn := range w.open {
		_ = conn.Close()
	}
}
