package retrysql

import (
	"regexp"
	"strings"
)

// control returns the keyword of a statement that begins or ends a transaction, or "" if the text has none. It looks at
// the beginning of each statement of the text, except for those in the body of a trigger or procedure that the text
// creates. It ignores savepoints and does not see what a procedure does. If mysql is set, the text is read as MySQL and
// MariaDB read it: in quotes a backslash escapes, some comments are executed, and many statements commit implicitly.
// Which comments are executed depends on the version, so the text is read with and without them. Brackets are quotes in
// SQLite and SQL Server only, so the text is read with and without them, too.
func control(query string, mysql bool) string {
	keyword := read(query, mysql)
	if keyword == "" && mysql && executed(query) {
		keyword = read(strings.NewReplacer("/*!", "/*", "/*M!", "/*").Replace(query), true)
	}
	if keyword == "" && !mysql && strings.Contains(query, "[") {
		keyword = read(bracketed.ReplaceAllString(query, " "), false)
	}
	return keyword
}

// bracketed is a name in brackets.
var bracketed = regexp.MustCompile(`\[[^\]]*\]`)

// read is control for one reading of the text.
func read(query string, mysql bool) string {
	depth, defined := 0, false // of blocks, which are the body of something that is defined
	for statement, rest := cut(query, mysql); statement != "" || rest != ""; statement, rest = cut(rest, mysql) {
		if depth == 0 {
			defined = defines(statement, mysql)
		}
		if keyword := controls(statement, mysql); keyword != "" && (depth == 0 || !defined && keyword != "END") {
			return keyword
		}
		if rest != "" {
			depth = max(depth+blocks(statement, mysql), 0)
		}
	}
	return ""
}

// defines reports whether a statement creates something that may have statements in its body.
func defines(statement string, mysql bool) bool {
	first, rest := word(statement, mysql)
	if first != "CREATE" && first != "ALTER" {
		return false
	}
	for definer := false; rest != ""; {
		switch first, rest = word(rest, mysql); first {
		case "PROCEDURE", "PROC", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE":
			return true
		case "OR", "REPLACE", "ALTER", "TEMP", "TEMPORARY", "CONSTRAINT", "AGGREGATE":
		case "DEFINER": // = user@host
			definer = true
		default:
			if !definer {
				return false
			}
		}
	}
	return false
}

// blocks returns how many blocks a statement begins, less those that it ends.
func blocks(statement string, mysql bool) (n int) {
	for keyword, rest := word(statement, mysql); keyword != ""; keyword, rest = word(rest, mysql) {
		switch keyword {
		case "BEGIN", "CASE":
			n++
		case "END":
			switch next, after := word(rest, mysql); next {
			case "IF", "LOOP", "WHILE", "REPEAT", "FOR":
			case "CASE":
				n, rest = n-1, after
			default:
				n--
			}
		}
	}
	return n
}

// controls is control for one statement.
func controls(query string, mysql bool) string {
	first, rest := word(query, mysql)
	switch first {
	case "COMMIT", "ABORT":
		return first
	case "ROLLBACK":
		second, rest := word(rest, mysql)
		third, _ := word(rest, mysql)
		switch {
		case second == "TO", second == "WORK" && third == "TO", (second == "TRANSACTION" || second == "TRAN") && third != "":
			return "" // to a savepoint; SQLite and SQL Server use the last form
		}
		return first
	case "START", "PREPARE": // also START REPLICA, PREPARE name AS
		if second, _ := word(rest, mysql); second == "TRANSACTION" {
			return first + " " + second
		}
	case "INSERT", "UPDATE", "WITH": // SQLite's INSERT OR ROLLBACK
		for second, rest := token(rest, mysql); second != ""; second, rest = token(rest, mysql) {
			if third, _ := token(rest, mysql); strings.EqualFold(second, "OR") && strings.EqualFold(third, "ROLLBACK") {
				return "OR ROLLBACK"
			}
			if first != "WITH" {
				break
			}
		}
	case "SET":
		if second, rest := word(rest, mysql); mysql && second == "STATEMENT" { // MariaDB's SET STATEMENT a = 1 FOR SELECT
			for second != "FOR" && second != "" {
				second, rest = word(rest, mysql)
			}
			return controls(rest, mysql)
		}
	case "BEGIN", "END": // which also delimit a block of statements
		switch second, _ := word(rest, mysql); second {
		case "", "TRANSACTION", "TRAN", "WORK", "ISOLATION", "READ", "DEFERRED", "IMMEDIATE", "EXCLUSIVE", "CONCURRENT", "AND":
			return first
		}
	}
	if mysql && commits(first, rest) {
		return first
	}
	return ""
}

// commits reports whether a statement makes MySQL or MariaDB commit, by its first word and what follows: "Statements
// That Cause an Implicit Commit" in the manuals of both.
func commits(first, rest string) bool {
	next := func() (second string) {
		second, rest = word(rest, true)
		return second
	}
	switch first {
	case "ALTER", "CACHE", "CHANGE", "FLUSH", "GRANT", "INSTALL", "OPTIMIZE", "RENAME", "REPAIR", "RESET", "REVOKE",
		"START", "STOP", "TRUNCATE", "UNINSTALL",
		"CASE", "FOR", "IF", "LOOP", "REPEAT", "WHILE": // MariaDB's blocks of statements
		return true
	case "XA":
		return next() != "RECOVER"
	case "BACKUP": // MariaDB's BACKUP STAGE
		return next() == "STAGE"
	case "CREATE":
		second := next()
		if second == "OR" { // REPLACE
			next()
			second = next()
		}
		return second != "TEMPORARY" || next() == "SEQUENCE"
	case "DROP":
		second := next()
		return second != "TEMPORARY" && second != "PREPARE"
	case "ANALYZE": // ANALYZE SELECT is MariaDB's EXPLAIN
		second := next()
		return second == "TABLE" || second == "TABLES" || second == "LOCAL" || second == "NO_WRITE_TO_BINLOG"
	case "CHECK", "LOCK", "UNLOCK":
		second := next()
		return second == "TABLE" || second == "TABLES"
	case "LOAD":
		return next() == "INDEX"
	case "SET":
		if second, _ := word(rest, true); second == "DEFAULT" { // ROLE
			return true
		}
		for before := rest; before != ""; before = rest {
			second := next()
			at := before[:len(before)-len(rest)-len(second)]
			own := strings.HasSuffix(at, "@") && !strings.HasSuffix(at, "@@") // a variable of the user
			if !own && (second == "AUTOCOMMIT" || second == "PASSWORD") {
				return true
			}
		}
	}
	return false
}

// isRead reports whether a text only reads, by its first word. Any other text counts as a write: one that begins with
// WITH, which can contain a write; a SELECT with INTO; several statements; and text with quotes that only one kind of
// database recognizes.
func isRead(query string) bool { return reads(query, false) && reads(query, true) }

// reads is isRead for one reading of the text.
func reads(query string, mysql bool) bool {
	statement, rest := cut(query, mysql)
	if more, _ := word(rest, mysql); more != "" || executed(query) || strings.ContainsAny(query, "[\\#") || dollarQuoted(query) {
		return false
	}
	first, rest := word(statement, mysql)
	switch first {
	case "SELECT":
		for next := ""; rest != ""; {
			if next, rest = word(rest, mysql); next == "INTO" {
				return false
			}
		}
		return true
	case "SHOW", "VALUES", "TABLE", "DESCRIBE", "DESC":
		return true
	default:
		return false
	}
}

// dollarQuoted reports whether the text has a $ that does not begin a parameter such as $1.
func dollarQuoted(query string) bool {
	for _, after := range strings.Split(query, "$")[1:] {
		if after == "" || after[0] < '0' || after[0] > '9' {
			return true
		}
	}
	return false
}

// executed reports whether the text has a comment that MySQL or MariaDB executes.
func executed(query string) bool {
	return strings.Contains(query, "/*!") || strings.Contains(query, "/*M!")
}

// cut returns the text up to the first semicolon that is not in quotes or a comment, and what follows it.
func cut(query string, mysql bool) (statement, rest string) {
	for i := 0; i < len(query); {
		switch c := query[i]; {
		case c == ';':
			return query[:i], query[i+1:]
		case letter(c) && c != '$':
			start := i
			for i < len(query) && letter(query[i]) {
				i++
			}
			if i < len(query) && query[i] == '\'' && strings.EqualFold(query[start:i], "E") { // PostgreSQL's E'it\'s'
				i += quoted(query[i:], true)
			}
		default:
			i += skip(query[i:], mysql)
		}
	}
	return query, ""
}

// skip returns the length of what the text begins with: a comment, something in quotes, or one byte.
func skip(query string, mysql bool) int {
	length := func(opened int, closing string) int {
		if n := strings.Index(query[opened:], closing); n >= 0 {
			return opened + n + len(closing)
		}
		return len(query)
	}
	switch c := query[0]; {
	case c == '#' && mysql, strings.HasPrefix(query, "--") && mysql && (len(query) == 2 || query[2] <= ' '):
		return length(0, "\n")
	case strings.HasPrefix(query, "--") && !mysql:
		if n := strings.IndexAny(query, "\r\n"); n >= 0 { // \r as in PostgreSQL
			return n + 1
		}
		return len(query)
	case mysql && strings.HasPrefix(query, "/*!"): // its content is executed
		return len("/*!")
	case mysql && strings.HasPrefix(query, "/*M!"):
		return len("/*M!")
	case strings.HasPrefix(query, "/*"):
		return length(2, "*/")
	case c == '\'', c == '"':
		return quoted(query, mysql)
	case c == '`':
		return quoted(query, false)
	case c == '$' && !mysql:
		n := 1
		for n < len(query) && letter(query[n]) && query[n] != '$' {
			n++
		}
		if n < len(query) && query[n] == '$' && (query[1] < '0' || query[1] > '9') {
			return length(n+1, query[:n+1])
		}
		return 1
	default:
		return 1
	}
}

// quoted returns the length of the quoted text at the beginning of s, in which a backslash may escape.
func quoted(query string, escapes bool) int {
	for i := 1; i < len(query); i++ {
		switch {
		case query[i] == query[0]:
			return i + 1
		case escapes && query[i] == '\\':
			i++
		}
	}
	return len(query)
}

// word returns the first word of a text in upper case, and the rest. It skips everything that is not a word: space,
// comments, numbers.
func word(query string, mysql bool) (first, rest string) {
	first, rest = token(query, mysql)
	return strings.ToUpper(first), rest
}

// token is word as it is written.
func token(query string, mysql bool) (first, rest string) {
	query = strings.TrimPrefix(query, "\ufeff") // a byte order mark
	for query != "" {
		if c := query[0]; !letter(c) || '0' <= c && c <= '9' || c == '$' {
			query = query[skip(query, mysql):]
			continue
		}
		n := 1
		for n < len(query) && letter(query[n]) {
			n++
		}
		return query[:n], query[n:]
	}
	return "", ""
}

// letter reports whether c can be in a name or keyword.
func letter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '$' || c >= 0x80
}
