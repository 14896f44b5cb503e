package retryriver_test

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/contrib/retryriver"
)

// TestASQLiteStatementIsCompiledOnce: a connection keeps its compiled statements, and they work as if newly compiled.
func TestASQLiteStatementIsCompiledOnce(t *testing.T) {
	conn, err := newSQLite(t).Conn(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	kept := func() (n int) {
		require.NoError(t, conn.Raw(func(c any) error { n = retryriver.KeptStatements(c); return nil }))
		return n
	}
	exec := func(text string, args ...any) error {
		_, err := conn.ExecContext(t.Context(), text, args...)
		return err
	}
	values := func(text string, args ...any) (all []string) {
		rows, err := conn.QueryContext(t.Context(), text, args...)
		require.NoError(t, err)
		defer rows.Close()
		for rows.Next() {
			var v string
			require.NoError(t, rows.Scan(&v))
			all = append(all, v)
		}
		require.NoError(t, rows.Err())
		return all
	}
	require.NoError(t, exec("CREATE TABLE things (name text UNIQUE)"))
	const insert, list = "INSERT INTO things VALUES (?)", "SELECT name FROM things WHERE name >= ? ORDER BY name"
	before := kept()
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, exec(insert, name))
	}
	require.Equal(t, before+1, kept())

	t.Run("a failure leaves the statement usable", func(t *testing.T) {
		require.ErrorContains(t, exec(insert, "a"), "UNIQUE")
		require.ErrorContains(t, exec(insert), "missing argument")
		require.ErrorContains(t, exec("INSERT INTO nowhere VALUES (1)"), "no such table")
		require.NoError(t, exec(insert, "d"))
	})
	t.Run("a statement takes other arguments", func(t *testing.T) {
		require.Equal(t, []string{"b", "c", "d"}, values(list, "b"))
		require.Empty(t, values(list, "e"))
		require.Equal(t, []string{"d"}, values(list, "d"))
	})
	t.Run("a statement whose rows are being read is compiled again", func(t *testing.T) {
		outer, err := conn.QueryContext(t.Context(), list, "c")
		require.NoError(t, err)
		defer outer.Close()
		var name string
		require.True(t, outer.Next())
		require.NoError(t, outer.Scan(&name))
		require.Equal(t, "c", name)
		require.Equal(t, []string{"a", "b", "c", "d"}, values(list, "a"))
		require.NoError(t, exec(list, "a"))
		require.True(t, outer.Next())
		require.NoError(t, outer.Scan(&name))
		require.Equal(t, "d", name)
		require.False(t, outer.Next())
	})
	t.Run("rows that were not read to their end leave the statement usable", func(t *testing.T) {
		var name string
		require.NoError(t, conn.QueryRowContext(t.Context(), list, "b").Scan(&name))
		require.Equal(t, "b", name)
		require.ErrorIs(t, conn.QueryRowContext(t.Context(), list, "e").Scan(&name), sql.ErrNoRows)
		require.Equal(t, []string{"c", "d"}, values(list, "c"))
	})
	t.Run("a changed schema compiles the statement again", func(t *testing.T) {
		require.Equal(t, []string{"d"}, values("SELECT * FROM things WHERE name = 'd'"))
		require.NoError(t, exec("CREATE TRIGGER twice AFTER INSERT ON things WHEN length(new.name) = 1 BEGIN INSERT INTO things VALUES (new.name || new.name); END"))
		require.NoError(t, exec(insert, "e"))
		require.Equal(t, []string{"e", "ee"}, values(list, "e"))
		require.NoError(t, exec("DROP TRIGGER twice; ALTER TABLE things RENAME COLUMN name TO title"))
		require.NoError(t, exec(insert, "f"))
		_, err := conn.QueryContext(t.Context(), list, "e")
		require.ErrorContains(t, err, "no such column")
	})
	t.Run("a connection keeps 128 statements at most", func(t *testing.T) {
		open, err := conn.QueryContext(t.Context(), "SELECT title FROM things ORDER BY title")
		require.NoError(t, err)
		defer open.Close()
		for i := range 300 {
			require.Equal(t, []string{fmt.Sprint(i)}, values(fmt.Sprintf("SELECT %d", i)))
		}
		require.Equal(t, 128, kept())
		require.True(t, open.Next(), "one that is read is kept")
	})
}
