//go:build cgo

package drivers_test

import (
	"testing"

	"github.com/mattn/go-sqlite3"

	"github.com/retrygo/retry/retrysql"
)

// sqliteDrivers are the names of the drivers of SQLite.
var sqliteDrivers = []string{modernc.name, "sqlite3"}

// TestTheCodesOfMattnsSQLiteAreRead needs cgo, without which the driver has no errors.
func TestTheCodesOfMattnsSQLiteAreRead(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		err    sqlite3.Error
		reason retrysql.Reason
		code   string
		at     effects
	}{
		{"busy", sqlite3.Error{Code: sqlite3.ErrBusy}, retrysql.Busy, "5", undone},
		{"busy snapshot", sqlite3.Error{Code: sqlite3.ErrBusy, ExtendedCode: sqlite3.ErrBusySnapshot}, retrysql.BusySnapshot, "517", undone},
		{"locked", sqlite3.Error{Code: sqlite3.ErrLocked, ExtendedCode: sqlite3.ErrLockedSharedCache}, retrysql.Busy, "262", undone},
		{"unique", sqlite3.Error{Code: sqlite3.ErrConstraint, ExtendedCode: sqlite3.ErrConstraintUnique}, retrysql.UniqueViolation, "2067", rejected},
		{"full", sqlite3.Error{Code: sqlite3.ErrFull}, retrysql.DiskFull, "13", rejected},
	} {
		t.Run(row.name, func(t *testing.T) {
			requireJudged(t, row.err, row.at, row.reason, row.code)
			requireJudged(t, &row.err, row.at, row.reason, row.code)
		})
	}
}
