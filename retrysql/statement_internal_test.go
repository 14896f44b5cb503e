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
		{"# done\nCOMMIT", ""}, // of MySQL
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
		{"BEGIN DEFERRED", "BEGIN"},
		{"BEGIN IMMEDIATE TRANSACTION", "BEGIN"},
		{"BEGIN EXCLUSIVE", "BEGIN"},
		{"BEGIN CONCURRENT", "BEGIN"},
		{"BEGIN WORK", "BEGIN"},
		{"BEGIN TRAN", "BEGIN"},
		{"BEGIN ISOLATION LEVEL SERIALIZABLE", "BEGIN"},
		{"BEGIN READ ONLY", "BEGIN"},
		{"END AND CHAIN", "END"},

		{"\ufeffCOMMIT", "COMMIT"},
		{"INSERT INTO t VALUES (1); COMMIT; BEGIN", "COMMIT"},
		{"INSERT INTO t VALUES (';'); -- ;\n ROLLBACK", "ROLLBACK"},
		{"SELECT $$;$$; COMMIT", "COMMIT"},
		{"SELECT 1; BEGIN", "BEGIN"},
		{"SELECT ''; COMMIT", "COMMIT"},
		{"SELECT \"\"; COMMIT", "COMMIT"},
		{"SELECT ``; COMMIT", "COMMIT"},
		{"SELECT 'a'; COMMIT", "COMMIT"},
		{"SELECT 'it''s'; COMMIT", "COMMIT"},
		{"SELECT 'a\\'; COMMIT; --'", "COMMIT"},
		{"SELECT E'a'; COMMIT", "COMMIT"},
		{"SELECT type'a\\'; COMMIT; --'", "COMMIT"},
		{"/**/COMMIT", "COMMIT"},
		{"'a'; COMMIT", "COMMIT"},
		{"SELECT $$$$; COMMIT", "COMMIT"},
		{"SELECT $; COMMIT; SELECT $;", "COMMIT"},
		{"SELECT $0$;COMMIT;$0$", "COMMIT"},
		{"SELECT $9$;COMMIT;$9$", "COMMIT"},
		{"DO $$ BEGIN NULL; END $$; COMMIT", "COMMIT"},
		{"/*/ a */ COMMIT", "COMMIT"},
		{"SELECT 1 -- a\n; COMMIT", "COMMIT"},
		{"SELECT a #> b; COMMIT", "COMMIT"},
		{"SELECT $$a$$; COMMIT", "COMMIT"},
		{"SELECT $é$;$é$; COMMIT", "COMMIT"},
		{"SELECT $1$;COMMIT;$1$", "COMMIT"},
		{"SELECT $; COMMIT", "COMMIT"},
		{"SELECT a$b; COMMIT; SELECT $b", "COMMIT"},

		{"SELECT 1; SELECT 2", ""},
		{"SELECT 1; END", ""},
		{"SELECT ';COMMIT'", ""},
		{"SELECT $a$;COMMIT;$a$", ""},
		{"SELECT $a1$; COMMIT;$a1$", ""},
		{"SELECT $a$ $b$; COMMIT; $a$", ""},
		{"SELECT $$ never closed; COMMIT", ""},
		{"SELECT 'never closed; COMMIT", ""},
		{"SELECT E'it\\'s; COMMIT; x'", ""},
		{"SELECT e'it\\'s; COMMIT; x'", ""},
		{"SELECT `;COMMIT;`", ""},
		{"SELECT \";COMMIT;\"", ""},
		{"/*/ COMMIT */", ""},
		{"SELECT 1 /* ; COMMIT; */", ""},
		{"SELECT 1 /* ; COMMIT; never closed", ""},
		{"DECLARE @a int; COMMIT", ""},
		{"DECLARE c CURSOR FOR SELECT 1", ""},
		{"ALTER PROCEDURE p AS BEGIN SELECT 1; COMMIT; END", ""},
		{"/*!40000 commit */", ""}, // of MySQL, as what follows
		{"TRUNCATE t", ""},
		{"CREATE TABLE t (a int)", ""},
		{"ANALYZE t", ""},
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
		{"COMMIT0", ""},
		{"COMMIT9", ""},
		{"COMMITa", ""},
		{"COMMITz", ""},
		{"COMMITA", ""},
		{"COMMITZ", ""},
		{"COMMITé", ""},
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
		t.Run(row.query, func(t *testing.T) { require.Equal(t, row.want, control(row.query, false)) })
	}
}

func TestControlAsMySQLReadsIt(t *testing.T) {
	for _, row := range []struct{ query, want string }{
		{"COMMIT", "COMMIT"},
		{"# done\nCOMMIT", "COMMIT"},
		{"/*!40000 commit */", "COMMIT"},
		{"/*! COMMIT */", "COMMIT"},
		{"/*M!100100 commit */", "COMMIT"},
		{"SELECT 1; /*!40000 commit */", "COMMIT"},
		{"SELECT 'a\\\\'; COMMIT", "COMMIT"},
		{"SELECT $$;COMMIT;$$", "COMMIT"},
		{"DO 1; COMMIT", "COMMIT"},
		{"START SLAVE", "START"},
		{"STOP SLAVE", "STOP"},
		{"TRUNCATE t", "TRUNCATE"},
		{"truncate table t", "TRUNCATE"},
		{"INSERT INTO t VALUES (1); TRUNCATE t", "TRUNCATE"},
		{"CREATE TABLE t (a int)", "CREATE"},
		{"CREATE OR REPLACE TABLE t (a int)", "CREATE"},
		{"CREATE INDEX i ON t (a)", "CREATE"},
		{"CREATE PROCEDURE p() BEGIN SELECT 1; END", "CREATE"},
		{"ALTER TABLE t ADD b int", "ALTER"},
		{"DROP TABLE t", "DROP"},
		{"RENAME TABLE t TO u", "RENAME"},
		{"ANALYZE TABLE t", "ANALYZE"},
		{"ANALYZE LOCAL TABLE t", "ANALYZE"},
		{"ANALYZE NO_WRITE_TO_BINLOG TABLE t", "ANALYZE"},
		{"OPTIMIZE TABLE t", "OPTIMIZE"},
		{"REPAIR TABLE t", "REPAIR"},
		{"CHECK TABLE t", "CHECK"},
		{"LOCK TABLES t WRITE", "LOCK"},
		{"LOCK TABLE t WRITE", "LOCK"},
		{"UNLOCK TABLES", "UNLOCK"},
		{"LOAD INDEX INTO CACHE t", "LOAD"},
		{"CACHE INDEX t IN c", "CACHE"},
		{"FLUSH TABLES", "FLUSH"},
		{"RESET MASTER", "RESET"},
		{"CHANGE MASTER TO MASTER_HOST = 'x'", "CHANGE"},
		{"GRANT SELECT ON t TO u", "GRANT"},
		{"REVOKE SELECT ON t FROM u", "REVOKE"},
		{"INSTALL PLUGIN p SONAME 'x'", "INSTALL"},
		{"UNINSTALL PLUGIN p", "UNINSTALL"},
		{"XA COMMIT 'x'", "XA"},
		{"SET autocommit = 1", "SET"},
		{"SET @a = 1, @@session.autocommit = 1", "SET"},
		{"SET PASSWORD = 'x'", "SET"},

		{"INSERT INTO t VALUES ('it\\'s; commit; x')", ""},
		{"INSERT INTO t VALUES (\"it\\\"s; commit; x\")", ""},
		{"SELECT 'a\\'; COMMIT; --'", ""},
		{"SELECT `a\\`, `; COMMIT; `", ""},
		{"SELECT 1 # ; COMMIT;", ""},
		{"SELECT 1 /* ; COMMIT; */", ""},
		{"CREATE TEMPORARY TABLE t (a int)", ""},
		{"CREATE # it is small\nTEMPORARY TABLE t (a int)", ""},
		{"CREATE OR REPLACE TEMPORARY TABLE t (a int)", ""},
		{"DROP TEMPORARY TABLE t", ""},
		{"DROP PREPARE s", ""},
		{"ANALYZE SELECT 1", ""},
		{"ANALYZE FORMAT=JSON SELECT 1", ""},
		{"LOAD DATA INFILE 'x' INTO TABLE t", ""},
		{"LOCK INSTANCE FOR BACKUP", ""},
		{"CHECK PERMISSION", ""},
		{"SET @a = 1", ""},
		{"SET NAMES utf8mb4", ""},
		{"SAVEPOINT a", ""},
		{"REPLACE INTO t VALUES (1)", ""},
		{"SELECT truncate(1, 2)", ""},
		{"CALL p()", ""},
	} {
		t.Run(row.query, func(t *testing.T) { require.Equal(t, row.want, control(row.query, true)) })
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
		"SELECT $$ INTO b FROM $$":           false,
		"SELECT a FROM t WHERE b = $":        false,
		"SELECT a FROM t WHERE b = $0":       true,
		"SELECT a FROM t WHERE b = $9":       true,
		"SELECT $a$ '$a$ INTO b":             false,
		"SELECT $a$ 1 $a$ b":                 false,
		"SELECT a $ b":                       false,
		";SELECT 1":                          false,
		"SELECT 0INTO b":                     false,
		"SELECT 9INTO b":                     false,
		"SELECT E'\\'' INTO b, 'x":           false,
		"SELECT 1 /*! INTO b */":             false,
		"SELECT 1 /*M! INTO b */":            false,
		"SELECT a # '\nINTO b -- '":          false,
		"SELECT a # 1 FROM t":                false,
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
		first, rest := word(query, false)
		require.True(t, strings.HasSuffix(query, rest), "what follows is the end of the query")
		require.Less(t, len(rest), len(query)+1)
		if utf8.ValidString(query) && first != "" {
			require.Less(t, len(rest), len(query), "so that going on word by word ends")
		}
		if first == "" {
			require.Empty(t, rest)
		}
		statement, after := cut(query, false)
		require.LessOrEqual(t, len(statement)+len(after), len(query))
		_, _, _ = control(query, false), control(query, true), isRead(query)
	})
}
