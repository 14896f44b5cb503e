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

// database creates a migrated database and returns its URL.
func database(t testing.TB, server *pgtest.Server, n int64) string {
	t.Helper()
	name := fmt.Sprintf("test%d", n)
	conn, err := pgx.Connect(t.Context(), server.DSN())
	require.NoError(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	dsn := strings.Replace(server.DSN(), "/postgres?", "/"+name+"?", 1)
	pool, err := pgxpool.New(t.Context(), dsn)
	require.NoError(t, err)
	defer pool.Close()
	require.NoError(t, retryriver.MigratePostgres(t.Context(), pool))
	return dsn
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
