package main

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryslog"
	"github.com/retrygo/retry/retrysql"
)

// Whatever protocols are between a user and a database, a failure of the database is one error in the logs of all
// services: that of the service that calls the database. The others warn that a layer below has given up.
func TestAFailureIsOneErrorInTheLogsOfAChain(t *testing.T) {
	for _, row := range []struct {
		name   string
		db     broken
		doubts int // records of failed runs with in_doubt=true
	}{
		{"the answer to a COMMIT is lost", broken{lost: io.ErrUnexpectedEOF}, 4},
		{"the database refuses connections", broken{refused: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, 0},
	} {
		for _, order := range [][]string{{"HTTP", "gRPC", "Connect"}, {"gRPC", "Connect", "HTTP"}, {"Connect", "HTTP", "gRPC"}} {
			t.Run(row.name+", under "+strings.Join(order, " > "), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var log bytes.Buffer
					logged := twice
					logged.Observe = retryslog.Observe(slog.New(slog.NewTextHandler(&log, nil)), retryslog.Options{})
					row.db.connections = new(int)
					db := sql.OpenDB(row.db)
					defer db.Close()
					call := func(ctx context.Context) error {
						return retrysql.Tx(ctx, db, logged, nil, func(context.Context, *retrysql.Txn) error { return nil })
					}
					for i := range order {
						call = protocols[order[len(order)-1-i]](t, logged, call)
					}
					require.Error(t, call(t.Context()))

					var ends []string
					for line := range strings.Lines(log.String()) {
						if !strings.Contains(line, "status=waiting_retry") {
							ends = append(ends, line)
						}
					}
					require.Len(t, ends, 4, "one record for each layer: %s", &log)
					require.Contains(t, ends[0], `level=ERROR msg="retry: gave up"`)
					require.NotContains(t, ends[0], "below=")
					for _, line := range ends[1:] {
						require.Contains(t, line, `level=WARN msg="retry: not retried"`)
						require.Contains(t, line, "inner_gave_up=true")
					}
					require.Equal(t, row.doubts, strings.Count(log.String(), "in_doubt=true"), &log)
				})
			})
		}
	}
}
