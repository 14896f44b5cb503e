package retrysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"reflect"
	"strings"
	"syscall"

	"github.com/retrygo/retry"
)

// seeConnection recognizes the errors that no server sends. They are the errors of database/sql, the network and the
// context, and drivers' errors without a type.
func seeConnection(err error) finding {
	for _, s := range sentinels {
		if is(err, s.target) {
			return finding{meaning: s.meaning}
		}
	}
	if m := seeNetwork(err); m.reason != "" {
		return finding{meaning: m}
	}
	if reflect.TypeOf(err).String() == "*pgconn.ParseConfigError" {
		return finding{meaning: meaning{InvalidSource, futile}}
	}
	if _, joined := err.(interface{ Unwrap() []error }); joined { // its text is the texts of all
		return finding{}
	}
	text := err.Error()
	for _, opening := range openings {
		if strings.HasPrefix(text, opening) {
			text = opening
		}
	}
	return finding{meaning: sayings[text]}
}

var sentinels = []struct {
	target error
	meaning
}{
	{retry.ErrAttemptTimeout, meaning{AttemptTimeout, lost}}, // it is a timeout
	{context.Canceled, meaning{Canceled, interrupted}},
	{driver.ErrBadConn, meaning{ConnectionLost, lost}}, // drivers also return it after sending
	{sql.ErrConnDone, meaning{ConnectionLost, lost}},
	{io.EOF, meaning{ConnectionLost, lost}},
	{io.ErrUnexpectedEOF, meaning{ConnectionLost, lost}},
	{io.ErrClosedPipe, meaning{ConnectionLost, lost}},
	{net.ErrClosed, meaning{ConnectionLost, lost}},
	{sql.ErrTxDone, meaning{TransactionDone, over}},
	{sql.ErrNoRows, meaning{NoRows, unable}},
}

// openings are the beginnings of texts whose rest varies.
var openings = []string{"Invalid TDS stream: ", "tls: failed to verify certificate: ", "pq: wrong value for "}

// sayings are the texts of errors without a type, from pgx 5, lib/pq 1.12, go-sql-driver/mysql 1.10 and go-mssqldb
// 1.11. The tests of module drivers check them.
var sayings = map[string]meaning{
	"conn closed":        {ConnectionLost, lost}, // pgconn.ErrConnClosed
	"invalid connection": {ConnectionLost, lost}, // mysql.ErrInvalidConn
	"bad connection":     {ConnectionLost, lost}, // mysql, inside

	"SQL Server had internal error": {ServerFault, lost},    // mssql.ServerError, which severs the connection
	"Invalid TDS stream: ":          {ConnectionLost, lost}, // mssql.StreamError

	"tx is closed": {TransactionDone, over}, // pgx.ErrTxClosed
	"commit unexpectedly resulted in rollback":                 {TransactionAborted, aborted}, // pgx.ErrTxCommitRollback
	"pq: could not complete operation in a failed transaction": {TransactionAborted, aborted}, // pq.ErrInFailedTransaction
	"server refused TLS connection":                            {TLSRefused, futile},          // pgconn
	"pq: SSL is not enabled on the server":                     {TLSRefused, futile},
	"TLS requested but server does not support TLS":            {TLSRefused, futile}, // mysql.ErrNoTLS
	"tls: failed to verify certificate: ":                      {TLSRefused, futile}, // crypto/tls, which is not linked for this
	"tls: first record does not look like a TLS handshake":     {TLSRefused, futile},

	"sql: database is closed": {PoolClosed, futile}, // database/sql
	"closed pool":             {PoolClosed, futile}, // puddle.ErrClosedPool, of pgxpool
	"pq: wrong value for ":    {InvalidSource, futile},
}

// seeNetwork recognizes the errors of sockets and resolvers.
func seeNetwork(err error) meaning {
	switch e := err.(type) {
	case *net.OpError, *net.DNSError:
		op, _ := e.(*net.OpError)
		switch {
		case errors.Is(err, context.Canceled):
			return meaning{Canceled, interrupted}
		case op != nil && op.Op != "dial":
			return meaning{ConnectionLost, lost}
		default: // even if it timed out, since that need not be the caller's deadline
			return meaning{CannotConnect, refused}
		}
	case syscall.Errno: // a file's error is also a net.Error
		return seeErrno(e)
	}
	// After the cases above, whose timeouts are also deadlines exceeded.
	if is(err, context.DeadlineExceeded) {
		return meaning{Timeout, interrupted}
	}
	if e, ok := err.(net.Error); ok && errors.Unwrap(e) == nil {
		return meaning{ConnectionLost, lost}
	}
	return meaning{}
}

// seeErrno recognizes the errors of a socket. The numbers are the WSAE codes of Windows, which differ from its syscall
// constants. Other systems do not use them.
func seeErrno(errno syscall.Errno) meaning {
	switch errno {
	case syscall.ECONNREFUSED, 10061:
		return meaning{CannotConnect, refused}
	case syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE, syscall.ETIMEDOUT, syscall.ENOTCONN,
		syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.ENETRESET,
		10050, 10051, 10052, 10053, 10054, 10057, 10058, 10060, 10065:
		return meaning{ConnectionLost, lost}
	default:
		return meaning{}
	}
}

// is reports whether err itself is target, by identity or by its Is method. It does not look at the errors that Unwrap
// returns.
func is(err, target error) bool {
	if err == target { // all targets have comparable types
		return true
	}
	e, ok := err.(interface{ Is(error) bool })
	return ok && e.Is(target)
}
