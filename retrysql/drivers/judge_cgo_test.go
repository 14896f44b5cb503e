//go:build cgo

package drivers_test

import (
	"testing"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"
)

// sqliteDrivers are the names of the drivers of SQLite.
var sqliteDrivers = []string{modernc.name, "sqlite3"}

// TestTheCodesOfMattnsSQLiteAreRead needs cgo, without which the driver has no errors.
func TestTheCodesOfMattnsSQLiteAreRead(t *testing.T) {
	t.Parallel()
	snapshot := sqlite3.Error{Code: sqlite3.ErrBusy, ExtendedCode: sqlite3.ErrBusySnapshot}
	require.Equal(t, "busy 5", judged(sqlite3.Error{Code: sqlite3.ErrBusy}))
	require.Equal(t, "busy_snapshot 517", judged(snapshot))
	require.Equal(t, "busy_snapshot 517", judged(&snapshot))
}
