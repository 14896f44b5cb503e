package retrysql

import (
	"regexp"
	"slices"
	"strings"
)

// ending is a statement that begins or ends a transaction.
type ending struct {
	keyword string // empty if there is no such statement
	later   bool   // it is not the first statement of its text
}

// endings returns the statements in a text that begin or end a transaction. every is the first such statement of any
// server. mysql is the first of MySQL and MariaDB alone, of which many statements commit implicitly. endings looks at
// the beginning of each statement. It ignores savepoints and does not look into procedures.
//
// Databases read quotes and comments differently. If a text has one whose meaning depends on the database, each of its
// semicolons counts as the end of a statement, even one in quotes. So an innocent statement may be refused, but an
// ending is not missed. SQL Server also separates statements without semicolons, which endings does not see.
func endings(query string) (every, mysql ending) {
	plain := !several(query) || !strings.ContainsAny(query, "\\`[#") && !odd.MatchString(query)
	for later := false; query != ""; later = true {
		keyword, mysqlOnly := controls(query)
		switch {
		case keyword == "":
		case !mysqlOnly:
			return ending{keyword, later}, mysql
		case mysql.keyword == "":
			mysql = ending{keyword, later}
		}
		query, plain = next(query, plain)
	}
	return every, mysql
}

// several reports whether a text has a semicolon that does not end it.
func several(query string) bool { return strings.Contains(strings.TrimRight(query, "; \t\r\n"), ";") }

// odd matches the quotes and comments that only some databases read as such. They are $a$, --a, a comment that MySQL
// executes, and the end of a line that ends a comment in PostgreSQL only.
var odd = regexp.MustCompile(`\$[^0-9]|--[^\s]|/\*M?!|\r(?:[^\n]|$)`)

// next returns the text behind the next semicolon, outside of quotes and comments as long as plain is set. It clears
// plain at a nested comment, and at a quote or comment without an end.
func next(query string, plain bool) (rest string, stillPlain bool) {
	for i := 0; plain && i < len(query); {
		opening, closing := 1, ""
		switch c := query[i]; {
		case c == ';':
			return query[i+1:], true
		case c == '\'', c == '"':
			closing = query[i : i+1]
		case strings.HasPrefix(query[i:], "--"):
			opening, closing = 2, "\n"
		case strings.HasPrefix(query[i:], "/*"):
			opening, closing = 2, "*/"
		default:
			i++
			continue
		}
		inside, _, closed := strings.Cut(query[i+opening:], closing)
		i += opening + len(inside) + len(closing)
		nested := closing == "*/" && strings.Contains(inside, "/*")
		plain = (closed || closing == "\n") && !nested
	}
	if plain {
		return "", true
	}
	_, rest, _ = strings.Cut(query, ";")
	return rest, false
}

// controls returns the keyword with which the statement at the beginning of a text begins or ends a transaction, and
// whether it does so on MySQL and MariaDB only.
func controls(query string) (keyword string, mysql bool) {
	first, rest := word(query)
	switch first {
	case "SELECT", "INSERT", "UPDATE", "DELETE": // most statements, for which no second word is made
		return "", false
	}
	second, after := word(rest)
	switch first {
	case "COMMIT", "ABORT", "BEGIN", "END", unclear:
		return first, false
	case "ROLLBACK":
		third, _ := word(after)
		switch {
		case second == "TO", second == "WORK" && third == "TO", (second == "TRANSACTION" || second == "TRAN") && third != "":
			return "", false // to a savepoint, in SQLite and SQL Server by the last form
		}
		return first, false
	case "START", "PREPARE": // also START REPLICA, PREPARE name AS
		if second == "TRANSACTION" {
			return first + " " + second, false
		}
	}
	if commits(first, rest) {
		return first, true
	}
	return "", false
}

// implicit are the first words of the statements that commit on MySQL and MariaDB. They are from "Statements That Cause
// an Implicit Commit" in the manuals of both, and include MariaDB's blocks of statements and comments that are
// executed.
var implicit = []string{
	"ALTER", "BACKUP", "CACHE", "CHANGE", "CHECK", "FLUSH", "GRANT", "INSTALL", "LOCK",
	"OPTIMIZE", "RENAME", "REPAIR", "RESET", "REVOKE", "START", "STOP", "TRUNCATE", "UNINSTALL", "UNLOCK",
	"CASE", "FOR", "IF", "LOOP", "REPEAT", "WHILE", executed,
}

// analyzed are the words that may follow MariaDB's ANALYZE in place of a table.
var analyzed = []string{"SELECT", "WITH", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE", "FORMAT"}

// variable matches a setting that commits. A variable of the user begins with one @.
var variable = regexp.MustCompile(`(?i)^\s*default\b|(?:@@|[^@\w])(?:\w+\.)?(?:autocommit|password)\b`)

// commits reports whether a statement makes MySQL or MariaDB commit, by its first word and the rest of it.
func commits(first, rest string) bool {
	second, after := word(rest)
	switch first {
	case "ANALYZE": // MariaDB's explains the statement that follows, or executes it
		return !slices.Contains(analyzed, second)
	case "XA": // XA RECOVER lists
		return second != "RECOVER"
	case "CREATE":
		third, _ := word(after)
		return second != "TEMPORARY" || third == "SEQUENCE"
	case "DROP":
		return second != "TEMPORARY" && second != "PREPARE"
	case "LOAD": // also LOAD DATA
		return second == "INDEX"
	case "SET": // SET STATEMENT is followed by any statement
		return second == "STATEMENT" || variable.MatchString(rest)
	default:
		return slices.Contains(implicit, first)
	}
}

var into = regexp.MustCompile(`(?i)[^a-z_]into(?:\W|$)`)

// isRead reports whether a text only reads, by its first word. Any other text counts as a write. That includes a text
// that begins with WITH, which can contain a write, a SELECT with INTO, and a text with a semicolon that does not end
// it.
func isRead(query string) bool {
	switch first, rest := word(query); {
	case several(query):
		return false
	case first == "SELECT":
		return !into.MatchString(rest)
	default:
		return slices.Contains([]string{"SHOW", "VALUES", "TABLE", "DESCRIBE", "DESC"}, first)
	}
}

// The results of word for a comment that not every database reads alike.
const (
	unclear  = "a comment that databases read differently"
	executed = "/*!"
)

// word returns the first word of a text in upper case, and the rest. It skips space, comments, numbers and all else
// that is not a word.
func word(query string) (first, rest string) {
	for query != "" {
		c, skipped := query[0], 1
		switch {
		case c == '#', strings.HasPrefix(query, "--"):
			line, _, _ := strings.Cut(query, "\n")
			if strings.Contains(strings.TrimSuffix(line, "\r"), "\r") { // where a comment ends in PostgreSQL
				return unclear, ""
			}
			skipped = len(line)
		case strings.HasPrefix(query, "/*"):
			inside, after, _ := strings.Cut(query[2:], "*/")
			switch {
			case strings.HasPrefix(inside, "!"), strings.HasPrefix(inside, "M!"):
				return executed, after
			case strings.Contains(inside, "/*"):
				return unclear, after
			}
			skipped = len(query) - len(after)
		case strings.HasPrefix(query, "\ufeff"): // a byte order mark
			skipped = len("\ufeff")
		case letter(c) && !strings.Contains("0123456789$", query[:1]):
			n := 1
			for n < len(query) && letter(query[n]) {
				n++
			}
			return strings.ToUpper(query[:n]), query[n:]
		}
		query = query[skipped:]
	}
	return "", ""
}

// letter reports whether c can be in a name or keyword.
func letter(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	default:
		return c == '_' || c == '$' || c >= 0x80
	}
}
