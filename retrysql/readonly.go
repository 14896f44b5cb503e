package retrysql

// writes returns the keyword of the first statement that writes, or "". It recognizes the statements of SQLite, whose
// drivers ignore sql.TxOptions.ReadOnly; other servers enforce it.
func writes(query string) string {
	for query != "" {
		var statement string
		statement, query = cut(query, false)
		keyword, rest := word(statement, false)
		switch keyword {
		case "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "TRUNCATE", "CREATE", "ALTER", "DROP", "REINDEX", "VACUUM":
			return keyword
		case "WITH":
			for rest != "" {
				switch keyword, rest = word(rest, false); keyword {
				case "INSERT", "UPDATE", "DELETE":
					return keyword
				case "REPLACE": // also a function
					if next, _ := word(rest, false); next == "INTO" {
						return keyword
					}
				}
			}
		}
	}
	return ""
}
