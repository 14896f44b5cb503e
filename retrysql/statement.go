package retrysql

import "strings"

// control returns the keyword of a statement that begins or ends a transaction, or "" if the text has none. It looks at how
// each statement of the text begins, unless the first one defines or is a block, whose statements are its own. It passes
// over savepoints and does not see what a procedure does.
func control(query string) string {
	statement, rest := cut(query)
	if keyword := controls(statement); keyword != "" {
		return keyword
	}
	switch first, _ := word(query); first {
	case "CREATE", "ALTER", "DO", "DECLARE", "BEGIN":
		return ""
	}
	for rest != "" {
		statement, rest = cut(rest)
		if keyword := controls(statement); keyword != "" && keyword != "END" {
			return keyword
		}
	}
	return ""
}

// controls is control for one statement.
func controls(query string) string {
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

// isRead reports whether a text only reads, by how it begins. Any other text counts as a write: one that begins with WITH,
// which can contain a write; a SELECT with INTO; several statements; and quotes that only one make of database knows.
func isRead(query string) bool {
	statement, rest := cut(query)
	if more, _ := word(rest); more != "" || strings.Contains(query, "/*!") || strings.ContainsAny(query, "[\\") || dollarQuoted(query) {
		return false
	}
	first, rest := word(statement)
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

// dollarQuoted reports whether the text has a $ that does not begin a parameter such as $1.
func dollarQuoted(query string) bool {
	for _, after := range strings.Split(query, "$")[1:] {
		if after == "" || after[0] < '0' || after[0] > '9' {
			return true
		}
	}
	return false
}

// cut returns the text up to the first semicolon that is not in quotes or a comment, and what follows it.
func cut(query string) (statement, rest string) {
	for i := 0; i < len(query); {
		if query[i] == ';' {
			return query[:i], query[i+1:]
		}
		i += skip(query[i:])
	}
	return query, ""
}

// skip returns the length of what the text begins with: a comment, something in quotes, or one byte.
func skip(query string) int {
	length := func(opened int, closing string) int {
		if n := strings.Index(query[opened:], closing); n >= 0 {
			return opened + n + len(closing)
		}
		return len(query)
	}
	switch c := query[0]; {
	case strings.HasPrefix(query, "--"), c == '#':
		return length(0, "\n")
	case strings.HasPrefix(query, "/*"):
		return length(2, "*/")
	case c == '\'', c == '"', c == '`':
		return length(1, query[:1])
	case c == '$':
		n := 1
		for n < len(query) && letter(query[n]) && query[n] != '$' {
			n++
		}
		if n < len(query) && query[n] == '$' && (n == 1 || query[1] < '0' || query[1] > '9') {
			return length(n+1, query[:n+1])
		}
		return 1
	default:
		return 1
	}
}

// word returns the first word of a text in upper case, and what follows it. It passes over everything that is
// not a word: space, comments, numbers.
func word(query string) (first, rest string) {
	query = strings.TrimPrefix(query, "\ufeff") // a byte order mark
	for query != "" {
		if c := query[0]; !letter(c) || '0' <= c && c <= '9' || c == '$' {
			query = query[skip(query):]
			continue
		}
		n := 1
		for n < len(query) && letter(query[n]) {
			n++
		}
		return strings.ToUpper(query[:n]), query[n:]
	}
	return "", ""
}

// letter reports whether c can be in a name or keyword.
func letter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '$' || c >= 0x80
}
