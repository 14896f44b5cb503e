package retrysql_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// pgError has the method and the field that pgconn.PgError and pq.Error have.
type pgError struct{ state, Message string }

func (e *pgError) Error() string    { return "ERROR: " + e.Message + " (SQLSTATE " + e.state + ")" }
func (e *pgError) SQLState() string { return e.state }

// mysqlError has the shape of mysql.MySQLError.
type mysqlError struct {
	Number   uint16
	SQLState [5]byte
	Message  string
}

func (e *mysqlError) Error() string { return e.Message }

// The classes at Connect, Statement, Commit and Autocommit, in this order. A is terminal and ambiguous.
const (
	ifRefused   = "RRAR"
	ifUnreached = "RRAR"
	ifMisplaced = "RRRR"
	ifLost      = "RRAA"
	ifRejected  = "TTTT"
	ifUnable    = "RTAT"
	ifFutile    = "TTAT"
)

var letters = map[retrysql.Verdict]byte{
	{Class: retry.Retryable}:                 'R',
	{Class: retry.Terminal}:                  'T',
	{Class: retry.Terminal, Ambiguous: true}: 'A',
}

// TestWhatStandsBetween is about what servers, poolers and proxies say beside a code that has several meanings.
func TestWhatStandsBetween(t *testing.T) {
	for _, row := range []struct {
		from, code, text string
		reason           retrysql.Reason
		want             string
	}{
		{"PostgreSQL", "0A000", "cached plan must not change result type", retrysql.CachedPlan, ifRefused},
		{"PostgreSQL's standby", "0A000", "cannot set transaction read-write mode during recovery", retrysql.ReadOnlyServer, ifMisplaced},

		{"PgBouncer", "08P01", "query_wait_timeout", retrysql.TooManyConnections, ifUnreached},
		{"PgBouncer", "08P01", "query_timeout", retrysql.TooManyConnections, ifUnreached},
		{"PgBouncer", "08P01", "no more connections allowed (max_client_conn)", retrysql.TooManyConnections, ifUnreached},
		{"PgBouncer", "08P01", "client connections exceeded (max_db_client_connections)", retrysql.TooManyConnections, ifUnreached},
		{"PgBouncer", "08P01", "client connections exceeded (max_user_client_connections)", retrysql.TooManyConnections, ifUnreached},
		{"PgBouncer", "08P01", "bouncer resources exhaustion", retrysql.TooManyConnections, ifUnreached},
		{"PgBouncer", "08P01", "client_login_timeout", retrysql.CannotConnectNow, ifUnreached},
		{"PgBouncer", "08P01", "client_login_timeout (server down)", retrysql.CannotConnectNow, ifUnreached},
		{"PgBouncer", "08P01", "server login has been failing, cached error: connect failed (server_login_retry)", retrysql.CannotConnectNow, ifUnreached},
		{"PgBouncer", "08P01", "server shutting down", retrysql.CannotConnectNow, ifUnreached},
		{"PgBouncer", "08P01", "pooler is shutting down", retrysql.CannotConnectNow, ifUnreached},
		{"PgBouncer", "08P01", "pause failed", retrysql.CannotConnectNow, ifUnreached},
		{"PgBouncer", "08P01", "query timeout", retrysql.ConnectionLost, ifLost},
		{"PgBouncer", "08P01", "server conn crashed?", retrysql.ConnectionLost, ifLost},
		{"PgBouncer", "08P01", "transaction timeout", retrysql.ConnectionLost, ifLost},
		{"PgBouncer", "08P01", "idle transaction timeout", retrysql.ConnectionLost, ifLost},
		{"PgBouncer", "08P01", "server connection closed", retrysql.ConnectionLost, ifLost},
		{"PgBouncer", "08P01", "client_idle_timeout", retrysql.ConnectionLost, ifLost},
		{"PgBouncer", "08P01", "no such database: shop", retrysql.UnknownDatabase, ifFutile},
		{"PgBouncer", "08P01", `database "shop" is disabled`, retrysql.UnknownDatabase, ifFutile},
		{"PgBouncer", "08P01", "bouncer config error", retrysql.UnknownDatabase, ifFutile},
		{"PgBouncer", "08P01", "no such user", retrysql.AuthFailed, ifFutile},
		{"PgBouncer", "08P01", "password authentication failed", retrysql.AuthFailed, ifFutile},
		{"PgBouncer", "08P01", "SASL authentication failed", retrysql.AuthFailed, ifFutile},
		{"PgBouncer", "08P01", "login rejected", retrysql.AuthFailed, ifFutile},
		{"PgBouncer", "08P01", "not allowed", retrysql.AuthFailed, ifFutile},
		{"PgBouncer", "08P01", "unsupported startup parameter: search_path", retrysql.InvalidSource, ifFutile},
		{"PgBouncer", "08P01", "SSL required", retrysql.TLSRefused, ifFutile},

		{"Odyssey", "53300", "too many tcp connections (global client_max 10)", retrysql.TooManyConnections, ifUnreached},
		{"Odyssey", "08006", "failed to get remote server connection", retrysql.CannotConnect, ifUnreached},
		{"Odyssey", "08006", "failed to connect to remote server s1", retrysql.CannotConnect, ifUnreached},
		{"Odyssey", "08006", "can't find suitable host for tsa read-write", retrysql.CannotConnect, ifUnreached},
		{"Odyssey", "08006", "replication lag too big (10 s)", retrysql.CannotConnect, ifUnreached},
		{"Odyssey", "08006", "remote server read/write error s1: no", retrysql.ConnectionLost, ifLost},
		{"Odyssey", "3D000", "route for 'shop.me' is not found", retrysql.UnknownDatabase, ifFutile},
		{"Odyssey", "58000", "client routing failed", retrysql.UnknownDatabase, ifFutile},

		{"Supavisor", "XX000", "(EMAXCONN) max clients reached", retrysql.TooManyConnections, ifUnreached},
		{"Supavisor", "XX000", "(EMAXCONNSESSION) max clients reached in session mode", retrysql.TooManyConnections, ifUnreached},
		{"Supavisor", "XX000", "(EMAXPOOLSREACHED) no", retrysql.TooManyConnections, ifUnreached},
		{"Supavisor", "XX000", "(ECHECKOUTTIMEOUT) unable to check out", retrysql.CannotConnectNow, ifUnreached},
		{"Supavisor", "XX000", "(ECHECKOUTRETRIES) no", retrysql.CannotConnectNow, ifUnreached},
		{"Supavisor", "XX000", "(EPOOLCHECKOUT) no", retrysql.CannotConnectNow, ifUnreached},
		{"Supavisor", "XX000", "(ECIRCUITBREAKER) no", retrysql.CannotConnectNow, ifUnreached},
		{"Supavisor", "XX000", "(EWORKERNOTFOUND) no", retrysql.CannotConnectNow, ifUnreached},
		{"Supavisor", "XX000", "(ESUBSCRIBERETRIES) no", retrysql.CannotConnectNow, ifUnreached},
		{"Supavisor", "XX000", "(EPROXYSTARTFAILED) no", retrysql.CannotConnectNow, ifUnreached},
		{"Supavisor", "XX000", "(EPROXYSUPERVISORUNAVAILABLE) no", retrysql.CannotConnectNow, ifUnreached},
		{"Supavisor", "XX000", "(EAUTHTIMEOUT) no", retrysql.CannotConnectNow, ifUnreached},
		{"Supavisor", "08006", "Failed to connect to database: econnrefused", retrysql.CannotConnect, ifUnreached},
		{"Supavisor", "XX000", "(EDBHANDLEREXITED) no", retrysql.ConnectionLost, ifLost},
		{"Supavisor", "XX000", "(ENOTFOUND) tenant or user not found", retrysql.UnknownDatabase, ifFutile},
		{"Supavisor", "XX000", "(EBANNED) no", retrysql.AuthFailed, ifFutile},
		{"Supavisor", "XX000", "(EINVALIDUSERINFO) no", retrysql.AuthFailed, ifFutile},
		{"Supavisor", "XX000", "(EADDRNOTALLOWED) no", retrysql.AuthFailed, ifFutile},
		{"Supavisor", "XX000", "(ENOIDENTIFIER) no", retrysql.AuthFailed, ifFutile},
		{"Supavisor", "XX000", "(ESSLREQUIRED) no", retrysql.TLSRefused, ifFutile},

		{"RDS Proxy", "53300", "Timed-out waiting to acquire database connection", retrysql.TooManyConnections, ifUnreached},
		{"RDS Proxy", "XX000", "Rate of connection to proxy exceeded the limit.", retrysql.TooManyConnections, ifUnreached},
		{"RDS Proxy", "08P01", "The maximum number of client connections to the proxy exceeded the number allowed.", retrysql.TooManyConnections, ifUnreached},
		{"RDS Proxy", "28000", "The IAM authentication failed because of too many competing requests.", retrysql.TooManyConnections, ifUnreached},
		{"RDS Proxy", "9501", "Timed-out waiting to acquire database connection", retrysql.TooManyConnections, ifUnreached},
		{"RDS Proxy", "1040", "Connections rate limit exceeded", retrysql.TooManyConnections, ifUnreached},
		{"RDS Proxy", "3159", "This RDS Proxy requires TLS connections.", retrysql.TLSRefused, ifFutile},
		{"ProxySQL", "9001", "Max connect timeout reached while reaching hostgroup 1 after 10000ms", retrysql.Overloaded, ifRefused},
		{"ProxySQL", "9006", "ProxySQL Error: connection is locked to hostgroup 1 but trying to reach hostgroup 2", retrysql.SyntaxOrAccess, ifRejected},
		{"Vitess", "1105", "target: shop.0.primary: vttablet: rpc error: code = Unavailable desc = not serving", retrysql.ConnectionLost, ifLost},
		{"Vitess", "1317", "target: shop.0.primary: vttablet: rpc error: code = Aborted desc = transaction 1: ended at 1 (killed)", retrysql.ConnectionLost, ifLost},
		{"Vitess", "1041", "Transaction throttled", retrysql.Overloaded, ifRefused},
		{"Vitess", "1041", "target: shop.0.primary: Transaction throttled", retrysql.Overloaded, ifRefused},
		{"Vitess", "1203", "transaction pool connection limit exceeded", retrysql.TooManyConnections, ifUnreached},
		{"MaxScale", "1815", "Authentication with backend failed. Session will be closed.", retrysql.CannotConnectNow, ifUnreached},
		{"MaxScale", "1290", "The MariaDB server is running with the --read-only option so it cannot execute this statement", retrysql.ReadOnlyServer, ifMisplaced},

		{"Vitess, another code", "1105", "target: shop.0.primary: vttablet: rpc error: code = InvalidArgument desc = no", retrysql.ServerError, ifUnable},
		{"MySQL", "1041", "Out of memory", retrysql.ServerError, ifUnable},
		{"MySQL", "1317", "Query execution was interrupted", retrysql.QueryCanceled, ifUnable},
	} {
		t.Run(row.from+": "+row.text, func(t *testing.T) {
			var err error = &pgError{row.code, row.text}
			if len(row.code) == 4 {
				number, _ := strconv.Atoi(row.code)
				err = &mysqlError{uint16(number), [5]byte([]byte("HY000")), row.text}
			}
			got := ""
			for phase := retrysql.Connect; phase <= retrysql.Autocommit; phase++ {
				v := retrysql.Judge(phase, err)
				require.Equal(t, []string{string(row.reason), row.code}, []string{string(v.Reason), v.Code})
				got += string(letters[retrysql.Verdict{Class: v.Class, Ambiguous: v.Ambiguous}])
			}
			require.Equal(t, row.want, got)
		})
	}
}
