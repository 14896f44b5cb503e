package retrysql

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestControl(t *testing.T) {
	for _, row := range []struct{ query, want string }{
		{"COMMIT", "COMMIT"},
		{"commit;", "COMMIT"},
		{"  \n\tCommit Work", "COMMIT"},
		{"-- done\nCOMMIT", "COMMIT"},
		{"# done\nCOMMIT", "COMMIT"},
		{"/* done */ COMMIT /* now */", "COMMIT"},
		{";commit", "COMMIT"},
		{"COMMIT PREPARED 'x'", "COMMIT"},
		{"END", "END"},
		{"END TRANSACTION", "END"},
		{"ABORT", "ABORT"},
		{"ROLLBACK", "ROLLBACK"},
		{"ROLLBACK WORK", "ROLLBACK"},
		{"ROLLBACK AND CHAIN", "ROLLBACK"},
		{"ROLLBACK TRANSACTION", "ROLLBACK"},
		{"BEGIN", "BEGIN"},
		{"begin immediate", "BEGIN"},
		{"BEGIN TRANSACTION", "BEGIN"},
		{"START TRANSACTION READ ONLY", "START TRANSACTION"},
		{"PREPARE TRANSACTION 'x'", "PREPARE TRANSACTION"},

		{"\ufeffCOMMIT", "COMMIT"},
		{"INSERT INTO t VALUES (1); COMMIT; BEGIN", "COMMIT"},
		{"INSERT INTO t VALUES (';'); -- ;\n ROLLBACK", "ROLLBACK"},
		{"SELECT $$;$$; COMMIT", "COMMIT"},
		{"SELECT 1; BEGIN", "BEGIN"},

		{"SELECT 1; SELECT 2", ""},
		{"SELECT 1; END", ""},
		{"SELECT ';COMMIT'", ""},
		{"SELECT $a$;COMMIT$a$", ""},
		{"SELECT $1; SELECT $2", ""},
		{"UPDATE t SET a = 1 -- ;COMMIT", ""},
		{"CREATE TRIGGER a AFTER INSERT ON t BEGIN UPDATE t SET a = 1; END", ""},
		{"CREATE PROCEDURE p() BEGIN INSERT INTO t VALUES (1); COMMIT; END", ""},
		{"DO $$ BEGIN COMMIT; END $$", ""},
		{"", ""},
		{"--", ""},
		{"/* never closed", ""},
		{"SELECT 1", ""},
		{"SELECT 'COMMIT'", ""},
		{"'COMMIT'", ""},
		{"commits", ""},
		{"commit_log", ""},
		{"UPDATE t SET a = 1 -- COMMIT", ""},
		{"ROLLBACK TO SAVEPOINT a", ""},
		{"ROLLBACK TO a", ""},
		{"ROLLBACK WORK TO SAVEPOINT a", ""},
		{"ROLLBACK TRANSACTION TO a", ""},
		{"ROLLBACK TRAN a", ""},
		{"SAVEPOINT a", ""},
		{"RELEASE SAVEPOINT a", ""},
		{"START SLAVE", ""},
		{"PREPARE q AS SELECT 1", ""},
		{"BEGIN UPDATE t SET a = 1; END", ""},
		{"END IF", ""},
	} {
		t.Run(row.query, func(t *testing.T) { require.Equal(t, row.want, control(row.query)) })
	}
}

func TestIsRead(t *testing.T) {
	for query, want := range map[string]bool{
		"SELECT 1":                           true,
		"select a from t":                    true,
		"(SELECT 1) UNION (SELECT 2)":        true,
		"-- why\nSELECT 1":                   true,
		"SELECT 'INTO'":                      true,
		"SELECT \"INTO\" FROM t":             true,
		"SELECT into_date FROM t":            true,
		"SHOW search_path":                   true,
		"VALUES (1)":                         true,
		"TABLE t":                            true,
		"DESCRIBE t":                         true,
		"SELECT a FROM t WHERE b = $1;":      true,
		"SELECT 1;DELETE FROM t":             false,
		"SELECT 1INTO b":                     false,
		"SELECT [a'] INTO b FROM t":          false,
		"SELECT $$ '$$ INTO b":               false,
		"SELECT $a$ '$a$ INTO b":             false,
		"SELECT E'\\'' INTO b, 'x":           false,
		"SELECT 1 /*! INTO b */":             false,
		"/*! DELETE FROM t */ SELECT 1":      false,
		"SELECT a INTO b FROM t":             false,
		"select * into outfile 'x' from t":   false,
		"INSERT INTO t VALUES (1)":           false,
		"INSERT INTO t SELECT 1 RETURNING a": false,
		"UPDATE t SET a = 1":                 false,
		"DELETE FROM t":                      false,
		"WITH x AS (SELECT 1) SELECT 1":      false,
		"CALL p()":                           false,
		"EXPLAIN ANALYZE DELETE FROM t":      false,
		"PRAGMA user_version = 1":            false,
		"TRUNCATE t":                         false,
		"":                                   false,
	} {
		t.Run(query, func(t *testing.T) { require.Equal(t, want, isRead(query)) })
	}
}

func FuzzWord(f *testing.F) {
	for _, seed := range []string{"SELECT 1", "/* */ a", "'a''b' c", "--\n#\nx", "\x00é", "\ufeff$a$b$a$;1c", "$", "'"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		first, rest := word(query)
		require.True(t, strings.HasSuffix(query, rest), "what follows is the end of the query")
		require.Less(t, len(rest), len(query)+1)
		if utf8.ValidString(query) && first != "" {
			require.Less(t, len(rest), len(query), "so that going on word by word ends")
		}
		if first == "" {
			require.Empty(t, rest)
		}
		statement, after := cut(query)
		require.LessOrEqual(t, len(statement)+len(after), len(query))
		_, _ = control(query), isRead(query)
	})
}
