package retrysql

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// control returns what a server that is MySQL, or is not, refuses.
func control(query string, mysql bool) string {
	every, implicit := endings(query)
	if every.keyword == "" && mysql {
		return implicit.keyword
	}
	return every.keyword
}

func TestControl(t *testing.T) {
	for _, row := range []struct{ query, want string }{
		{"COMMIT", "COMMIT"},
		{"commit;", "COMMIT"},
		{"  \n\tCommit Work", "COMMIT"},
		{"-- done\nCOMMIT", "COMMIT"},
		{"# done\nCOMMIT", "COMMIT"}, // of MySQL
		{"/* done */ COMMIT /* now */", "COMMIT"},
		{";commit", "COMMIT"},
		{"COMMIT PREPARED 'x'", "COMMIT"},
		{"END", "END"},
		{"ABORT", "ABORT"},
		{"ROLLBACK", "ROLLBACK"},
		{"ROLLBACK WORK", "ROLLBACK"},
		{"ROLLBACK TRANSACTION", "ROLLBACK"},
		{"BEGIN", "BEGIN"},
		{"begin immediate", "BEGIN"},
		{"START TRANSACTION READ ONLY", "START TRANSACTION"},
		{"PREPARE TRANSACTION 'x'", "PREPARE TRANSACTION"},

		{"INSERT OR ROLLBACK INTO t VALUES (1)", ""},
		{"update or /* undo */ rollback t SET a = 1", ""},
		{"WITH x AS (SELECT 1) INSERT OR ROLLBACK INTO t SELECT * FROM x", ""},
		{"SELECT 1 -- a\r; COMMIT", "COMMIT"}, // in PostgreSQL a comment ends here
		{"SELECT 1 --1; COMMIT", "COMMIT"},

		{"\ufeffCOMMIT", "COMMIT"},
		{"0 9 COMMIT", "COMMIT"}, // what is not a word is skipped
		{"INSERT INTO t VALUES (1); COMMIT; BEGIN", "COMMIT"},
		{"INSERT INTO t VALUES (';'); -- ;\n ROLLBACK", "ROLLBACK"},
		{"SELECT $$;$$; COMMIT", "COMMIT"},
		{"SELECT 'it''s'; COMMIT", "COMMIT"},
		{"SELECT 'a\\'; COMMIT; --'", "COMMIT"},
		{"SELECT type'a\\'; COMMIT; --'", "COMMIT"},
		{"/**/COMMIT", "COMMIT"},
		{"'a'; COMMIT", "COMMIT"},
		{"SELECT $; COMMIT; SELECT $;", "COMMIT"},
		{"DO $$ BEGIN NULL; END $$; COMMIT", "END"},
		{"/*/ a */ COMMIT", "COMMIT"},
		{"SELECT 1 -- a\n; COMMIT", "COMMIT"},
		{"SELECT a #> b; COMMIT", "COMMIT"},
		{"SELECT $é$;$é$; COMMIT", "COMMIT"},
		{"SELECT $1$;COMMIT;$1$", "COMMIT"},
		{"SELECT $; COMMIT", "COMMIT"},
		{"SELECT a$b; COMMIT; SELECT $b", "COMMIT"},

		{"; END", "END"},
		{"SELECT CASE WHEN true THEN 1 END; END", "END"},
		{"CREATE TABLE IF NOT EXISTS q (i int); COMMIT", "COMMIT"},
		{"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; $$; COMMIT", "COMMIT"},
		{"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; END; COMMIT", "END"},
		{"CREATE TRIGGER a AFTER INSERT ON t BEGIN UPDATE t SET a = CASE b WHEN 1 THEN 2 END; END; END", "END"},
		{"BEGIN UPDATE t SET a = 1; COMMIT; END", "BEGIN"}, // a block is executed
		{"SELECT 1 AS [a'b]; COMMIT; --']", "COMMIT"},      // as SQLite reads it
		{"SELECT a[1], 'x'; COMMIT", "COMMIT"},

		{"/* a /* b */ c */ COMMIT", unclear}, // PostgreSQL nests comments
		{"SELECT 1; /* a /* b */ c */ COMMIT", unclear},
		{"SELECT 1 /* a /* b */ ; COMMIT; /* */ */", "COMMIT"},
		{"SELECT 1 /* a /* b */ 'c */; COMMIT; --'", "COMMIT"},
		{"ROLLBACK /* /**/ TO */", "ROLLBACK"},
		{"SELECT E'a'\n'b\\''; COMMIT; --'", "COMMIT"}, // a continued string
		{"SELECT [end; commit]", "COMMIT"},
		{"SELECT ARRAY['; commit;']", "COMMIT"},
		{"-- a\rSELECT\nCOMMIT", unclear},
		{"-- name: End :exec\r\nSELECT 1", ""},
		{"SELECT 1; \ufeff COMMIT", "COMMIT"},
		{"SELECT $$; COMMIT; SELECT $$", "COMMIT"}, // variables of SQLite
		{"DO $$ BEGIN PERFORM 1; END $$", "END"},
		{"DO 'x$$y'; COMMIT; SELECT 'z$$'", "COMMIT"},
		{"CREATE OR REPLACE FUNCTION f(a int[]) RETURNS int LANGUAGE plpgsql AS $f$ BEGIN RETURN 1; END $f$", "END"},
		{"SELECT 1 -- it's; commit", ""},
		{"INSERT INTO t VALUES ('done; commit; x', \"it''s; end\")", ""},
		{"SELECT a -> 'b' ->> 'c' FROM t WHERE d = $1 AND e = '; commit'", ""},
		{"SELECT 1; SELECT '; commit'", ""},

		{"SELECT ARRAY['a', 'b'], a[1], ';COMMIT'", "COMMIT"},
		{"CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT CASE WHEN true THEN 1 END; COMMIT; END", "COMMIT"},
		{"CREATE DEFINER = root@localhost PROCEDURE p() BEGIN IF 1 THEN COMMIT; END IF; COMMIT; END", "END"},
		{"SELECT $a$;COMMIT;$a$", "COMMIT"},
		{"SELECT $$ never closed; COMMIT", "COMMIT"},
		{"SELECT 'never closed; COMMIT", "COMMIT"},
		{"SELECT E'it\\'s; COMMIT; x'", "COMMIT"},
		{"SELECT `;COMMIT;`", "COMMIT"},
		{"SELECT \";COMMIT;\"", ""},
		{"/*/ COMMIT */", ""},
		{"SELECT 1 /* ; COMMIT; */", ""},
		{"SELECT 1 /* ; COMMIT; never closed", "COMMIT"},
		{"/*!40000 commit */", ""}, // of MySQL, as what follows
		{"CREATE TABLE t (a int)", ""},
		{"SELECT $1; SELECT $2", ""},
		{"CREATE PROCEDURE p() BEGIN INSERT INTO t VALUES (1); COMMIT; END", "COMMIT"},
		{"INSERT OR REPLACE INTO t VALUES (1)", ""},
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
		{"'COMMIT'", "COMMIT"},
		{"commit_log", ""},
		{"ROLLBACK TO SAVEPOINT a", ""},
		{"ROLLBACK TO a", ""},
		{"ROLLBACK WORK TO SAVEPOINT a", ""},
		{"ROLLBACK TRANSACTION TO a", ""},
		{"ROLLBACK TRAN a", ""},
		{"SAVEPOINT a", ""},
		{"RELEASE SAVEPOINT a", ""},
		{"START SLAVE", ""},
	} {
		t.Run(row.query, func(t *testing.T) { require.Equal(t, row.want, control(row.query, false)) })
	}
}

func TestControlAsMySQLReadsIt(t *testing.T) {
	for _, row := range []struct{ query, want string }{
		{"COMMIT", "COMMIT"},
		{"# done\nCOMMIT", "COMMIT"},
		{"/*!40000 commit */", "/*!"},
		{"/*! COMMIT */", "/*!"},
		{"/*M!100100 commit */", "/*!"},
		{"SELECT 'a\\\\'; COMMIT", "COMMIT"},
		{"SELECT $$;COMMIT;$$", "COMMIT"},
		{"DO 1; COMMIT", "COMMIT"},
		{"START SLAVE", "START"},
		{"STOP SLAVE", "STOP"},
		{"TRUNCATE t", "TRUNCATE"},
		{"INSERT INTO t VALUES (1); TRUNCATE t", "TRUNCATE"},
		{"CREATE TABLE t (a int)", "CREATE"},
		{"CREATE OR REPLACE TABLE t (a int)", "CREATE"},
		{"CREATE PROCEDURE p() BEGIN SELECT 1; END", "END"},
		{"ALTER TABLE t ADD b int", "ALTER"},
		{"DROP TABLE t", "DROP"},
		{"RENAME TABLE t TO u", "RENAME"},
		{"ANALYZE SELECT 1", ""}, // MariaDB: explains, or executes without a commit
		{"ANALYZE FORMAT=JSON SELECT 1", ""},
		{"ANALYZE (SELECT 1)", ""},
		{"ANALYZE WITH x AS (SELECT 1) SELECT * FROM x", ""},
		{"ANALYZE INSERT INTO t VALUES (1)", ""},
		{"ANALYZE UPDATE t SET a = 1", ""},
		{"ANALYZE DELETE FROM t", ""},
		{"ANALYZE REPLACE INTO t VALUES (1)", ""},
		{"ANALYZE VALUES (1)", ""},
		{"XA RECOVER", ""}, // lists
		{"ANALYZE TABLE t", "ANALYZE"},
		{"ANALYZE LOCAL TABLE t", "ANALYZE"},
		{"OPTIMIZE TABLE t", "OPTIMIZE"},
		{"REPAIR TABLE t", "REPAIR"},
		{"CHECK TABLE t", "CHECK"},
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
		{"BACKUP STAGE END", "BACKUP"},
		{"CREATE TEMPORARY TABLE x (i int); TRUNCATE y", "TRUNCATE"},
		{"SET STATEMENT max_statement_time = 5 FOR COMMIT", "SET"},
		{"SET DEFAULT ROLE NONE", "SET"},
		{"CREATE TEMPORARY SEQUENCE s", "CREATE"},
		{"DROP /*!50701 TEMPORARY */ TABLE t", "DROP"},
		{"/*!80000 SELECT */ COMMIT", "/*!"},
		{"IF 1 THEN COMMIT; END IF", "END"},
		{"CASE 1 WHEN 1 THEN COMMIT; END CASE", "END"},
		{"REPEAT COMMIT; UNTIL 1 END REPEAT", "REPEAT"},
		{"FOR i IN 1..1 DO COMMIT; END FOR", "END"},
		{"LOOP COMMIT; END LOOP", "END"},
		{"WHILE 1 DO COMMIT; END WHILE", "END"},
		{"SELECT 1 --1; COMMIT", "COMMIT"},
		{"SELECT 1 --\t; COMMIT\n; TRUNCATE t", "TRUNCATE"},
		{"SET autocommit = 1", "SET"},
		{"SET @@autocommit = 1", "SET"},
		{"SET @a = 1, @@session.autocommit = 1", "SET"},
		{"SET PASSWORD = 'x'", "SET"},

		{"DO $$; COMMIT; $$", "COMMIT"},
		{"INSERT INTO t VALUES ('a; start; if')", ""},
		{"INSERT INTO t VALUES (\"it\\\"s; commit; x\")", "COMMIT"},
		{"SELECT 'a\\'; COMMIT; --'", "COMMIT"},
		{"SELECT `a\\`, `; COMMIT; `", "COMMIT"},
		{"SELECT 1 # ; COMMIT;", "COMMIT"},
		{"SELECT 1 /* ; COMMIT; */", ""},
		{"CREATE TEMPORARY TABLE t (a int)", ""},
		{"CREATE # it is small\nTEMPORARY TABLE t (a int)", ""},
		{"CREATE OR REPLACE TEMPORARY TABLE t (a int)", "CREATE"},
		{"DROP TEMPORARY TABLE t", ""},
		{"DROP PREPARE s", ""},
		{"LOAD DATA INFILE 'x' INTO TABLE t", ""},
		{"LOCK INSTANCE FOR BACKUP", "LOCK"},
		{"SET @a = 1", ""},
		{"SET @autocommit = 1", ""},
		{"SET @password = 'x', @a = @autocommit", ""},
		{"SELECT 1 --", ""},
		{"SELECT 1 -- ; COMMIT", ""},
		{"SELECT 1 /*!50701 + 1 */", ""},
		{"SAVEPOINT a", ""},
		{"REPLACE INTO t VALUES (1)", ""},
		{"CALL p()", ""},
	} {
		t.Run(row.query, func(t *testing.T) { require.Equal(t, row.want, control(row.query, true)) })
	}
}

func TestIsRead(t *testing.T) {
	for query, want := range map[string]bool{
		"SELECT 1":                         true,
		"(SELECT 1) UNION (SELECT 2)":      true,
		"-- why\nSELECT 1":                 true,
		"SELECT 'INTO'":                    false,
		"SELECT \"INTO\" FROM t":           false,
		"SELECT into_date FROM t":          true,
		"SHOW search_path":                 true,
		"VALUES (1)":                       true,
		"TABLE t":                          true,
		"DESCRIBE t":                       true,
		"SELECT a FROM t WHERE b = $1;":    true,
		"SELECT 1;DELETE FROM t":           false,
		"SELECT 1INTO b":                   false,
		"SELECT [a'] INTO b FROM t":        false,
		"SELECT $$ INTO b FROM $$":         false,
		";SELECT 1":                        false,
		"SELECT E'\\'' INTO b, 'x":         false,
		"SELECT 1 /*! INTO b */":           false,
		"SELECT a # '\nINTO b -- '":        false,
		"SELECT a # 1 FROM t":              true,
		"/*! DELETE FROM t */ SELECT 1":    false,
		"SELECT a INTO b FROM t":           false,
		"select * into outfile 'x' from t": false,
		"INSERT INTO t VALUES (1)":         false,
		"WITH x AS (SELECT 1) SELECT 1":    false,
		"CALL p()":                         false,
		"EXPLAIN ANALYZE DELETE FROM t":    false,
		"":                                 false,
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
		after, _ := next(query, true)
		require.True(t, strings.HasSuffix(query, after))
		_, _, _ = control(query, false), control(query, true), isRead(query)
	})
}
