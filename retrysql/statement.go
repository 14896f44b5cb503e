package retrysql

import "strings"

// control returns the keyword of a statement that begins or ends a transaction, "" for any other. It looks at how the
// text begins, and sees nothing of what follows a semicolon or stands in a procedure. Savepoints are not its business.
func control(query string) string {
	first, rest := word(query)
	second, rest := word(rest)
	switch first {
	case "COMMIT", "ABORT":
		return first
	case "ROLLBACK":
		third, _ := word(rest)
		switch {
		case second == "TO", second == "WORK" && third == "TO", (second == "TRANSACTION" || second == "TRAN") && third != "":
			return "" // to a savepoint; the last form is that of SQLite and SQL Server
		}
		return first
	case "START":
		if second == "TRANSACTION" {
			return first + " " + second
		}
	case "PREPARE":
		if second == "TRANSACTION" { // which PREPARE name AS is not
			return first + " " + second
		}
	case "BEGIN", "END": // which also begin and end a block of statements
		switch second {
		case "", "TRANSACTION", "TRAN", "WORK", "ISOLATION", "READ", "DEFERRED", "IMMEDIATE", "EXCLUSIVE", "CONCURRENT", "AND":
			return first
		}
	}
	return ""
}

// isRead reports whether a statement reads only, by how its text begins: one that does not begin as a read does counts as
// a write, WITH too, which can hold one, and so does a SELECT with INTO.
func isRead(query string) bool {
	first, rest := word(query)
	switch first {
	case "SELECT":
		for next := ""; rest != ""; {
			if next, rest = word(rest); next == "INTO" {
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

// word returns the first word of a statement in upper case, and what follows it. It passes over space, comments and
// whatever else is no word.
func word(query string) (first, rest string) {
	for query != "" {
		switch {
		case strings.HasPrefix(query, "--") || query[0] == '#':
			_, query, _ = strings.Cut(query, "\n")
		case strings.HasPrefix(query, "/*"):
			_, query, _ = strings.Cut(query[2:], "*/")
		case query[0] == '\'' || query[0] == '"' || query[0] == '`':
			_, query, _ = strings.Cut(query[1:], query[:1])
		case !letter(query[0]):
			query = query[1:]
		default:
			n := 1
			for n < len(query) && letter(query[n]) {
				n++
			}
			return strings.ToUpper(query[:n]), query[n:]
		}
	}
	return "", ""
}

// letter reports whether c can be in a name or keyword.
func letter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '$' || c >= 0x80
}
