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
		{"postgres", fmt.Errorf("insert: %w", &pgError{"40001", ""})},
		{"mysql", &mysqlError{Number: 1213}},
		{"sqlite", &sqliteError{517}},
		{"sqlserver", mssqlError(1205)},
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
func (e *sqliteError) Code() int     { return e.code }

// mssqlError resembles that of github.com/microsoft/go-mssqldb.
type mssqlError int32

func (e mssqlError) Error() string         { return "mssql: " + strconv.Itoa(int(e)) }
func (e mssqlError) SQLErrorNumber() int32 { return int32(e) }
