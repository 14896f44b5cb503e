package retrysql

import (
	"reflect"
	"strings"
)

// said are the errors that can only be distinguished by their words, since their codes have several meanings.
type said struct {
	meaning
	codes string   // with spaces between them, or empty for any
	words []string // the whole text, in which "…" stands for any text
}

// postgresWords are errors with a SQLSTATE. Most come from a pooler or proxy between a client and PostgreSQL. Each
// comment names the source of the words.
var postgresWords = []said{
	// PostgreSQL has no code for it (plancache.c).
	{meaning{CachedPlan, refused}, "0A000", []string{"cached plan must not change result type"}},
	// BEGIN READ WRITE, as lib/pq sends it, to a standby (variable.c).
	{meaning{ReadOnlyServer, misplaced}, "0A000", []string{"cannot set transaction read-write mode during recovery"}},

	// PgBouncer (src/janitor.c, client.c, server.c, objects.c). No server has seen these.
	{meaning{TooManyConnections, refused}, "08P01", []string{
		"query_wait_timeout", "query_timeout", "no more connections allowed (max_client_conn)",
		"client connections exceeded (max_db_client_connections)", "client connections exceeded (max_user_client_connections)",
		"bouncer resources exhaustion",
	}},
	{meaning{CannotConnectNow, refused}, "08P01", []string{
		"client_login_timeout", "client_login_timeout (server down)", "server login has been failing, cached error: …",
		"server shutting down", "pooler is shutting down", "pause failed",
	}},
	{meaning{ConnectionLost, lost}, "08P01", []string{
		"query timeout", "server conn crashed?", "transaction timeout", "idle transaction timeout", "server connection closed",
		"client_idle_timeout",
	}},
	{meaning{UnknownDatabase, futile}, "08P01", []string{"no such database: …", `database "…" is disabled`, "bouncer config error"}},
	{meaning{AuthFailed, futile}, "08P01", []string{
		"no such user", "password authentication failed", "SASL authentication failed", "login rejected", "not allowed",
	}},
	{meaning{InvalidSource, futile}, "08P01", []string{"unsupported startup parameter: …"}},
	{meaning{TLSRefused, futile}, "08P01", []string{"SSL required"}},

	// Odyssey (sources/frontend.c). Its 53300 needs no words, and its other 08006 is a lost connection.
	{meaning{CannotConnect, refused}, "08006", []string{
		"failed to get remote server connection…", "failed to connect to remote server …", "can't find suitable host for tsa …",
		"replication lag too big (…",
	}},
	{meaning{UnknownDatabase, futile}, "58000", []string{"client routing failed…"}},

	// Supavisor (lib/supavisor/error.ex and errors/*.ex).
	{meaning{TooManyConnections, refused}, "XX000", []string{"(EMAXCONN) …", "(EMAXCONNSESSION) …", "(EMAXPOOLSREACHED) …"}},
	{meaning{CannotConnectNow, refused}, "XX000", []string{
		"(ECHECKOUTTIMEOUT) …", "(ECHECKOUTRETRIES) …", "(EPOOLCHECKOUT) …", "(ECIRCUITBREAKER) …", "(EWORKERNOTFOUND) …",
		"(ESUBSCRIBERETRIES) …", "(EPROXYSTARTFAILED) …", "(EPROXYSUPERVISORUNAVAILABLE) …", "(EAUTHTIMEOUT) …",
	}},
	{meaning{CannotConnect, refused}, "08006", []string{"Failed to connect to database: …"}},
	{meaning{ConnectionLost, lost}, "XX000", []string{"(EDBHANDLEREXITED) …"}},
	{meaning{UnknownDatabase, futile}, "XX000", []string{"(ENOTFOUND) …"}},
	{meaning{AuthFailed, futile}, "XX000", []string{"(EBANNED) …", "(EINVALIDUSERINFO) …", "(EADDRNOTALLOWED) …", "(ENOIDENTIFIER) …"}},
	{meaning{TLSRefused, futile}, "XX000", []string{"(ESSLREQUIRED) …"}},

	// RDS Proxy ("Troubleshooting for RDS Proxy" in Amazon's guide, which names no code).
	{meaning{TooManyConnections, refused}, "", []string{
		"Timed-out waiting to acquire database connection…", "Rate of connection to proxy exceeded …",
		"The maximum number of client connections to the proxy exceeded …",
		"The IAM authentication failed because of too many competing requests…",
	}},
}

// mysqlWords are errors with a number of MySQL.
var mysqlWords = []said{
	// RDS Proxy, as above. Its 1040 needs no words.
	{meaning{TooManyConnections, refused}, "9501", []string{"Timed-out waiting to acquire database connection…"}},
	{meaning{TLSRefused, futile}, "3159 1045", []string{"This RDS Proxy requires TLS connections…"}},

	// ProxySQL (lib/MySQL_Session.cpp). TiDB's 9006 is about its garbage collection.
	{meaning{SyntaxOrAccess, rejected}, "9006", []string{"ProxySQL Error: connection is locked to hostgroup …"}},

	// Vitess (go/mysql/sqlerror/sql_error.go). It has a code of gRPC in the text, and the transaction is gone. A commit
	// to several shards may have reached a part of them (release notes of version 19).
	{meaning{ConnectionLost, lost}, "1105 1317", []string{
		"…vttablet: rpc error: code = Unavailable…", "…vttablet: rpc error: code = Aborted…",
	}},
	{meaning{Overloaded, refused}, "1041", []string{"Transaction throttled…", "…: Transaction throttled…"}},

	// MaxScale (its protocol module, under numbers that differ between versions).
	{meaning{CannotConnectNow, refused}, "", []string{"Authentication with backend failed. Session will be closed."}},
}

// lookupWords returns the meaning of a text with a code, if a row has it.
func lookupWords(table []said, code, text string) finding {
	for _, row := range table {
		if row.codes != "" && !lists(row.codes, code) {
			continue
		}
		for _, words := range row.words {
			if matches(text, words) {
				return finding{row.meaning, code}
			}
		}
	}
	return finding{}
}

// lists reports whether a code is one of a row's.
func lists(codes, code string) bool {
	for listed := range strings.FieldsSeq(codes) {
		if listed == code {
			return true
		}
	}
	return false
}

// matches reports whether a text matches the words, in which "…" stands for any text.
func matches(text, words string) bool {
	beginning, rest, more := strings.Cut(words, "…")
	if !more {
		return text == words
	}
	text, ok := strings.CutPrefix(text, beginning)
	for ok {
		var part string
		if part, rest, more = strings.Cut(rest, "…"); !more {
			return strings.HasSuffix(text, part)
		}
		_, text, ok = strings.Cut(text, part)
	}
	return false
}

// messageOf returns the server's message in an error that is a struct with a field Message. The errors of pgx and
// lib/pq are, and their texts have more before and after the message.
func messageOf(err any) string {
	v := reflect.ValueOf(err)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return ""
	}
	if message := v.FieldByName("Message"); message.Kind() == reflect.String {
		return message.String()
	}
	return ""
}
