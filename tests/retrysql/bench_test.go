package retrysql_test

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/retrygo/retry/retrysql"
)

func BenchmarkJudge(b *testing.B) {
	for _, row := range []struct {
		name string
		err  error
	}{
		{"postgres", fmt.Errorf("insert: %w", pg("40001"))},
		{"mysql", my(1213, "40001")},
		{"sqlite", &sqliteError{517}},
		{"sqlserver", mssqlError{Number: 1205}},
		{"badconn", driver.ErrBadConn},
		{"unknown", fmt.Errorf("transfer: %w", errors.New("insufficient funds"))},
	} {
		b.Run(row.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				retrysql.Judge(retrysql.Statement, row.err)
			}
		})
	}
}

// sqliteError resembles that of modernc.org/sqlite.
type sqliteError struct{ code int }

func (e *sqliteError) Error() string { return "sqlite " + strconv.Itoa(e.code) }

func (e *sqliteError) Code() int { return e.code }
