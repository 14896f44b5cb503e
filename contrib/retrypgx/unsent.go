package retrypgx

import (
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
)

// unsent are rows, a row and the results of a batch that was not sent because of an error. pgx has them only
// since version 5.12, and the methods Tx and TypeMap are not in the interfaces of its older versions.
type unsent struct{ err error }

var (
	_ pgx.BatchResults = unsent{}
	_ pgx.Rows         = unsentRows{}
)

func (u unsent) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, u.err }
func (u unsent) Query() (pgx.Rows, error)         { return unsentRows{u}, u.err }
func (u unsent) QueryRow() pgx.Row                { return unsentRows{u} }
func (u unsent) Close() error                     { return u.err }
func (unsent) Tx() pgx.Tx                         { return nil }

// unsentRows are closed from the beginning.
type unsentRows struct{ unsent }

func (unsentRows) Close()                                       {}
func (u unsentRows) Err() error                                 { return u.err }
func (unsentRows) CommandTag() pgconn.CommandTag                { return pgconn.CommandTag{} }
func (unsentRows) FieldDescriptions() []pgconn.FieldDescription { return nil }
func (unsentRows) Next() bool                                   { return false }
func (u unsentRows) Scan(...any) error                          { return u.err }
func (u unsentRows) Values() ([]any, error)                     { return nil, u.err }
func (unsentRows) RawValues() [][]byte                          { return nil }
func (unsentRows) Conn() *pgx.Conn                              { return nil }
func (unsentRows) TypeMap() *pgtype.Map                         { return nil }

// errConnClosed has the text of pgconn.ErrConnClosed, which is exported since version 5.12 only.
var errConnClosed = errors.New("conn closed")
