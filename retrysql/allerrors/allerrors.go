// Package allerrors opens databases whose connections show every error of a statement to the transaction of
// retrysql.Tx. A retrysql.Txn alone does not see the errors of a row's Scan, of a *sql.Stmt and of libraries that use
// Txn.Unwrap, such as sqlx. In a transaction of Tx a connection of this package notes them too. After an error that
// requires a new transaction it sends no more statements, and it refuses the statements that a Txn refuses. Outside Tx
// it only passes calls on. In Tx a sql.ColumnType has no Length, Nullable and DecimalSize.
//
// This package is of the stable core. Its names are meant for v1.
package allerrors

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/retrygo/retry/retrysql/internal/txlog"
)

// Open is sql.Open with such connections. If you have a driver.Connector, pass it to Connector instead.
func Open(driverName, dataSourceName string) (*sql.DB, error) {
	db, err := sql.Open(driverName, dataSourceName)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	var c driver.Connector = named{db.Driver(), dataSourceName}
	if d, ok := db.Driver().(driver.DriverContext); ok {
		if c, err = d.OpenConnector(dataSourceName); err != nil {
			return nil, err
		}
	}
	return sql.OpenDB(Connector(c)), nil
}

// named is the connector of a driver that does not have one.
type named struct {
	driver driver.Driver
	name   string
}

func (n named) Connect(context.Context) (driver.Conn, error) { return n.driver.Open(n.name) }
func (n named) Driver() driver.Driver                        { return n.driver }

// Connector returns a connector for sql.OpenDB that makes its connections by c. A call fails if the driver's
// connections do not implement driver.ConnBeginTx and driver.ConnPrepareContext, or its statements
// driver.StmtExecContext and driver.StmtQueryContext, as current drivers do. sql.Conn.Raw passes the connection of this
// package to its function. Its method Unwrap() driver.Conn returns the driver's own.
func Connector(c driver.Connector) driver.Connector { return connector{c} }

type connector struct{ driver.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: inner}, nil
}

// Close is for sql.DB.Close.
func (c connector) Close() error {
	if closer, ok := c.Connector.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}

// conn is a driver's connection. Without an optional interface, conn does as database/sql does.
type conn struct {
	driver.Conn
	log txlog.Log       // of the transaction, or nil outside one of Tx
	ctx context.Context // in which the transaction began
}

func (c *conn) Unwrap() driver.Conn { return c.Conn }

// note notes err and returns it.
func (c *conn) note(err error) error {
	if c.log != nil && err != nil && !errors.Is(err, driver.ErrSkip) && !errors.Is(err, io.EOF) {
		c.log.Note(err, server{c})
	}
	return err
}

// allow returns an error for a statement that must not be sent.
func (c *conn) allow(query string) error {
	if c.log == nil {
		return nil
	}
	return c.log.Allow(query, server{c})
}

// server asks the driver directly, since database/sql holds the connection.
type server struct{ *conn }

func (s server) Ask(query string) (string, error) {
	q, ok := s.Conn.(driver.QueryerContext)
	if !ok {
		return "", driver.ErrSkip
	}
	rows, err := q.QueryContext(s.ctx, query, nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	row := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(row); err != nil || len(row) == 0 {
		return "", err
	}
	return fmt.Sprintf("%s", row[0]), nil // a string or []byte
}

// missing returns an error for a driver that does not implement an interface.
func missing(name string) error {
	return fmt.Errorf("allerrors: the driver does not implement driver.%s", name)
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	b, ok := c.Conn.(driver.ConnBeginTx)
	if !ok {
		return nil, missing("ConnBeginTx")
	}
	begun, err := b.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	if log, ok := ctx.Value(txlog.Key{}).(txlog.Log); ok {
		log.Watch()
		c.log = log
		c.ctx = ctx
	}
	return tx{begun, c}, nil
}

// tx is a transaction on a conn.
type tx struct {
	driver.Tx
	conn *conn
}

// Commit rolls back if rows that database/sql closed for the commit had a conflict.
func (t tx) Commit() error {
	log := t.conn.log
	t.conn.log = nil
	if log != nil && log.Undone() != nil {
		_ = t.Tx.Rollback()
		return sql.ErrTxDone
	}
	return t.Tx.Commit()
}

func (t tx) Rollback() error { t.conn.log = nil; return t.Tx.Rollback() }

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	e, ok := c.Conn.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	if err := c.allow(query); err != nil {
		return nil, err
	}
	result, err := e.ExecContext(ctx, query, args)
	return result, c.note(err)
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	q, ok := c.Conn.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	if err := c.allow(query); err != nil {
		return nil, err
	}
	return c.noted(q.QueryContext(ctx, query, args))
}

func (c *conn) noted(found driver.Rows, err error) (driver.Rows, error) {
	if err != nil || c.log == nil {
		return found, c.note(err)
	}
	return &rows{found, c}, nil
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	p, ok := c.Conn.(driver.ConnPrepareContext)
	if !ok {
		return nil, missing("ConnPrepareContext")
	}
	if err := c.allow(query); err != nil {
		return nil, err
	}
	s, err := p.PrepareContext(ctx, query)
	if err != nil {
		return nil, c.note(err)
	}
	return &stmt{s, c, query}, nil
}

func (c *conn) Ping(ctx context.Context) error {
	if p, ok := c.Conn.(driver.Pinger); ok {
		return p.Ping(ctx)
	}
	return nil
}

func (c *conn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *conn) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !ok || v.IsValid()
}

func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// stmt is a prepared statement on a conn.
type stmt struct {
	driver.Stmt
	conn  *conn
	query string
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	e, ok := s.Stmt.(driver.StmtExecContext)
	if !ok {
		return nil, missing("StmtExecContext")
	}
	if err := s.conn.allow(s.query); err != nil {
		return nil, err
	}
	result, err := e.ExecContext(ctx, args)
	return result, s.conn.note(err)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	q, ok := s.Stmt.(driver.StmtQueryContext)
	if !ok {
		return nil, missing("StmtQueryContext")
	}
	if err := s.conn.allow(s.query); err != nil {
		return nil, err
	}
	return s.conn.noted(q.QueryContext(ctx, args))
}

func (s *stmt) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return s.conn.CheckNamedValue(v)
}

// rows are the rows of a statement on a conn.
type rows struct {
	driver.Rows
	conn *conn
}

func (r *rows) Close() error                   { return r.conn.note(r.Rows.Close()) }
func (r *rows) Next(dest []driver.Value) error { return r.conn.note(r.Rows.Next(dest)) }

func (r *rows) HasNextResultSet() bool {
	n, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && n.HasNextResultSet()
}

func (r *rows) NextResultSet() error {
	if n, ok := r.Rows.(driver.RowsNextResultSet); ok {
		return r.conn.note(n.NextResultSet())
	}
	return io.EOF
}

func (r *rows) ColumnTypeScanType(column int) reflect.Type {
	if c, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return c.ColumnTypeScanType(column)
	}
	return reflect.TypeFor[any]()
}

func (r *rows) ColumnTypeDatabaseTypeName(column int) string {
	if c, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return c.ColumnTypeDatabaseTypeName(column)
	}
	return ""
}
