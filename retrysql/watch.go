package retrysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// Open is sql.Open with the connections of Watch. If you have a driver.Connector, pass it to Watch instead.
func Open(driverName, dataSourceName string) (*sql.DB, error) {
	db, err := sql.Open(driverName, dataSourceName)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	d, ok := db.Driver().(driver.DriverContext)
	if !ok {
		return sql.OpenDB(Watch(named{db.Driver(), dataSourceName})), nil
	}
	c, err := d.OpenConnector(dataSourceName)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(Watch(c)), nil
}

// named is the connector of a driver that does not have one.
type named struct {
	driver driver.Driver
	name   string
}

func (n named) Connect(context.Context) (driver.Conn, error) { return n.driver.Open(n.name) }
func (n named) Driver() driver.Driver                        { return n.driver }

// Watch returns a connector for sql.OpenDB. In a transaction of Tx its connections note every error of a statement,
// including those that only the Scan of a *sql.Row returns, those of a *sql.Stmt and those of Txn.Unwrap. After an
// error that requires a new transaction they send nothing more, and they refuse what a Txn refuses. Outside Tx they
// only pass calls on.
//
// sql.Conn.Raw passes the watched connection to its function; the method Unwrap() driver.Conn returns the driver's own.
func Watch(c driver.Connector) driver.Connector { return connector{c} }

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

// conn is a connection of Watch. If its driver does not implement an interface, conn returns driver.ErrSkip, or does as
// database/sql does.
type conn struct {
	driver.Conn
	log *failures // of the transaction; nil outside one of Tx
}

func (c *conn) Unwrap() driver.Conn { return c.Conn }

// note notes err and returns it.
func (c *conn) note(err error) error {
	if c.log != nil && !errors.Is(err, driver.ErrSkip) && !errors.Is(err, io.EOF) {
		_ = c.log.note(err)
	}
	return err
}

// allow returns an error for a statement that must not be sent.
func (c *conn) allow(query string) error {
	if c.log == nil {
		return nil
	}
	return c.log.forbid(query, c.version)
}

// version asks the driver directly, since database/sql holds the connection.
func (c *conn) version() (string, error) {
	q, ok := c.Conn.(driver.QueryerContext)
	if !ok {
		return "", nil
	}
	rows, err := q.QueryContext(c.log.ctx, askVersion, nil)
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

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (tx driver.Tx, err error) {
	if b, ok := c.Conn.(driver.ConnBeginTx); ok {
		tx, err = b.BeginTx(ctx, opts)
	} else if opts != (driver.TxOptions{}) {
		err = errors.New("sql: driver does not support transactions with an isolation level or read-only")
	} else {
		//lint:ignore SA1019 it is all that an old driver has
		tx, err = c.Conn.Begin()
	}
	if err != nil {
		return nil, err
	}
	if log, ok := ctx.Value(begunKey{}).(*failures); ok {
		log.watched, c.log = true, log
	}
	return watchedTx{tx, c}, nil
}

// watchedTx is a transaction on a conn.
type watchedTx struct {
	driver.Tx
	conn *conn
}

// Commit rolls back if rows that database/sql closed for the commit had a conflict.
func (t watchedTx) Commit() error {
	log := t.conn.log
	t.conn.log = nil
	if log != nil && log.now().undone != nil {
		_ = t.Tx.Rollback()
		return sql.ErrTxDone
	}
	return t.Tx.Commit()
}

func (t watchedTx) Rollback() error { t.conn.log = nil; return t.Tx.Rollback() }

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
	return c.rows(q.QueryContext(ctx, query, args))
}

func (c *conn) rows(found driver.Rows, err error) (driver.Rows, error) {
	if err != nil || c.log == nil {
		return found, c.note(err)
	}
	return &watchedRows{found, c}, nil
}

func (c *conn) PrepareContext(ctx context.Context, query string) (s driver.Stmt, err error) {
	if err := c.allow(query); err != nil {
		return nil, err
	}
	if p, ok := c.Conn.(driver.ConnPrepareContext); ok {
		s, err = p.PrepareContext(ctx, query)
	} else {
		s, err = c.Conn.Prepare(query)
	}
	if err != nil {
		return nil, c.note(err)
	}
	watched := &stmt{s, c, query}
	//lint:ignore SA1019 drivers have it
	if _, ok := s.(driver.ColumnConverter); ok {
		return convertingStmt{watched}, nil
	}
	return watched, nil
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
	if err := s.conn.allow(s.query); err != nil {
		return nil, err
	}
	if e, ok := s.Stmt.(driver.StmtExecContext); ok {
		result, err := e.ExecContext(ctx, args)
		return result, s.conn.note(err)
	}
	values, err := positional(ctx, args)
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 it is all that an old driver has
	result, err := s.Stmt.Exec(values)
	return result, s.conn.note(err)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.conn.allow(s.query); err != nil {
		return nil, err
	}
	if q, ok := s.Stmt.(driver.StmtQueryContext); ok {
		return s.conn.rows(q.QueryContext(ctx, args))
	}
	values, err := positional(ctx, args)
	if err != nil {
		return nil, err
	}
	//lint:ignore SA1019 it is all that an old driver has
	return s.conn.rows(s.Stmt.Query(values))
}

func (s *stmt) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := s.Stmt.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return s.conn.CheckNamedValue(v)
}

// convertingStmt is a stmt whose driver converts arguments by column.
type convertingStmt struct{ *stmt }

func (s convertingStmt) ColumnConverter(column int) driver.ValueConverter {
	//lint:ignore SA1019 drivers have it
	return s.Stmt.(driver.ColumnConverter).ColumnConverter(column)
}

// positional returns the arguments for a driver without context methods, as database/sql does.
func positional(ctx context.Context, args []driver.NamedValue) ([]driver.Value, error) {
	values := make([]driver.Value, len(args))
	for i, a := range args {
		if a.Name != "" {
			return nil, errors.New("sql: driver does not support the use of Named Parameters")
		}
		values[i] = a.Value
	}
	return values, ctx.Err()
}

// watchedRows are the rows of a statement on a conn.
type watchedRows struct {
	driver.Rows
	conn *conn
}

func (r *watchedRows) Close() error                   { return r.conn.note(r.Rows.Close()) }
func (r *watchedRows) Next(dest []driver.Value) error { return r.conn.note(r.Rows.Next(dest)) }

func (r *watchedRows) HasNextResultSet() bool {
	n, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && n.HasNextResultSet()
}

func (r *watchedRows) NextResultSet() error {
	if n, ok := r.Rows.(driver.RowsNextResultSet); ok {
		return r.conn.note(n.NextResultSet())
	}
	return io.EOF
}

func (r *watchedRows) ColumnTypeScanType(column int) reflect.Type {
	if c, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return c.ColumnTypeScanType(column)
	}
	return reflect.TypeFor[any]()
}

func (r *watchedRows) ColumnTypeDatabaseTypeName(column int) string {
	if c, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return c.ColumnTypeDatabaseTypeName(column)
	}
	return ""
}

func (r *watchedRows) ColumnTypeLength(column int) (length int64, ok bool) {
	if c, ok := r.Rows.(driver.RowsColumnTypeLength); ok {
		return c.ColumnTypeLength(column)
	}
	return 0, false
}

func (r *watchedRows) ColumnTypeNullable(column int) (nullable, ok bool) {
	if c, ok := r.Rows.(driver.RowsColumnTypeNullable); ok {
		return c.ColumnTypeNullable(column)
	}
	return false, false
}

func (r *watchedRows) ColumnTypePrecisionScale(column int) (precision, scale int64, ok bool) {
	if c, ok := r.Rows.(driver.RowsColumnTypePrecisionScale); ok {
		return c.ColumnTypePrecisionScale(column)
	}
	return 0, 0, false
}
