package drivers_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// newSilent returns the address of a server that accepts connections and never says anything.
func newSilent(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, listener.Close()) })
	return listener.Addr().String() // the kernel accepts
}

// limited returns the driver with a limit of one second for the answers of a server that it connects to.
func limited(d driver) driver {
	source, setting := d.source, "&connect_timeout=1"
	if d.name == goMySQL.name {
		setting = "?readTimeout=1s" // its timeout is that of the dial alone
	}
	d.source = func(user, address, database string) string { return source(user, address, database) + setting }
	return d
}

// TestAServerThatStaysSilentIsTriedAgain: the limit is the driver's own, and the caller still waits.
func TestAServerThatStaysSilentIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, d := range serverDrivers {
		for name, call := range map[string]func(context.Context, *sql.DB, retry.Policy) error{
			"Tx": func(ctx context.Context, db *sql.DB, p retry.Policy) error {
				return retrysql.Tx(ctx, db, p, nil, func(context.Context, *retrysql.Txn) error { return nil })
			},
			"Do": func(ctx context.Context, db *sql.DB, p retry.Policy) error {
				return retrysql.Do(ctx, db, p, func(context.Context, *retrysql.Single) error { return nil })
			},
		} {
			t.Run(d.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				p, last := observed(2, nil)
				err := call(ctx, limited(d).open(t, newSilent(t), "test"), p)
				require.ErrorIs(t, err, retry.AttemptsExhausted)
				require.Equal(t, 2, last.Attempts)
				for _, failed := range last.Failures {
					require.Equal(t, retrysql.Connect, failed.Phase)
				}
			})
		}
	}
}

// pgError returns PostgreSQL's message for an error that ends the session.
func pgError(state, text string) string {
	fields := "SFATAL\x00VFATAL\x00C" + state + "\x00M" + text + "\x00\x00"
	return "E" + string(binary.BigEndian.AppendUint32(nil, uint32(4+len(fields)))) + fields
}

// TestAPoolersNotNowIsRepeated sends the words of PgBouncer in place of the server's answer.
func TestAPoolersNotNowIsRepeated(t *testing.T) {
	t.Parallel()
	const startup = "user\x00postgres"
	for _, row := range []struct {
		name   string
		driver driver
		at     string // the request that is refused
		words  string
		want   failure
		alone  bool // by Do instead of Tx
	}{
		{name: "lib/pq, at the login", driver: libpq, at: startup, words: "no more connections allowed (max_client_conn)",
			want: failure{retrysql.Connect, retrysql.TooManyConnections, "08P01"}},
		{name: "pgx, at the login", driver: pgxStdlib, at: startup, words: "no more connections allowed (max_client_conn)",
			want: failure{retrysql.Connect, retrysql.TooManyConnections, "08P01"}},
		{name: "pgx, a server that cannot be reached", driver: pgxStdlib, at: startup,
			words: "server login has been failing, cached error: connect failed (server_login_retry)",
			want:  failure{retrysql.Connect, retrysql.CannotConnectNow, "08P01"}},
		{name: "pgx, at the begin", driver: pgxStdlib, at: "begin", words: "query_wait_timeout", want: failure{retrysql.Connect, retrysql.TooManyConnections, "08P01"}},
		{name: "lib/pq, at the begin, as a lost connection, which costs no attempt", driver: libpq, at: "BEGIN", words: "query_wait_timeout"},
		{name: "pgx, in a transaction", driver: pgxStdlib, at: "insert", words: "query timeout", want: failure{retrysql.Statement, retrysql.ConnectionLost, "08P01"}},
		{name: "pgx, a write outside a transaction that no server saw, which is not in doubt", driver: pgxStdlib, at: "insert", words: "query_wait_timeout",
			want: failure{retrysql.Autocommit, retrysql.TooManyConnections, "08P01"}, alone: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, row.driver, ledger)
			db, proxy := s.behind(t, at(row.at, refuse))
			proxy.refusal = pgError("08P01", row.words)
			p, last := observed(3, nil)
			if row.alone {
				require.NoError(t, retrysql.Do(t.Context(), db, p, enterAlone))
			} else {
				require.NoError(t, retrysql.Tx(t.Context(), db, p, nil, enter))
			}
			require.EqualValues(t, 1, proxy.cuts.Load())
			if row.want != (failure{}) {
				require.Equal(t, []failure{row.want}, last.Failures)
			}
			require.Equal(t, 1, number(t, s.db, entries))
		})
	}
}
