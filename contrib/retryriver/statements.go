package retryriver

import (
	"context"
	"database/sql/driver"
)

// connector opens connections that keep their compiled statements. The driver compiles a statement each time it is
// executed, and with it the expressions of each index, which took most of the time of a statement that writes a job.
type connector struct{ driver.Connector }

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &keepingConn{sqliteConn: conn.(sqliteConn), kept: map[string]*statement{}}, nil
}

// sqliteConn is the part of the driver's connection that database/sql uses.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// keepingConn is a connection with its compiled statements. database/sql does not call two of its methods at once.
type keepingConn struct {
	sqliteConn
	kept map[string]*statement // by their text
}

// mostStatements bounds the statements of a connection: River and this package have about fifty.
const mostStatements = 128

type statement struct {
	driver.Stmt
	busy bool // its rows are being read
}

// statement returns the compiled statement, or nil if it is in use.
func (c *keepingConn) statement(ctx context.Context, text string) (*statement, error) {
	if s := c.kept[text]; s != nil {
		if s.busy {
			s = nil
		}
		return s, nil
	}
	compiled, err := c.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	for other, s := range c.kept { // any one
		if len(c.kept) < mostStatements {
			break
		}
		if !s.busy {
			delete(c.kept, other)
			_ = s.Close()
		}
	}
	s := &statement{Stmt: compiled}
	c.kept[text] = s
	return s, nil
}

func (c *keepingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.statement(ctx, text)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return c.sqliteConn.ExecContext(ctx, text, args)
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (c *keepingConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.statement(ctx, text)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return c.sqliteConn.QueryContext(ctx, text, args)
	}
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.busy = true
	return &keptRows{rows.(sqliteRows), s}, nil
}

// sqliteRows is the part of the driver's rows that database/sql uses.
type sqliteRows interface {
	driver.Rows
	driver.RowsColumnTypeDatabaseTypeName
	driver.RowsColumnTypeLength
	driver.RowsColumnTypeNullable
	driver.RowsColumnTypePrecisionScale
	driver.RowsColumnTypeScanType
}

type keptRows struct {
	sqliteRows
	of *statement
}

func (r *keptRows) Close() error {
	r.of.busy = false
	return r.sqliteRows.Close()
}

func (c *keepingConn) Close() error {
	for _, s := range c.kept {
		_ = s.Close()
	}
	return c.sqliteConn.Close()
}
