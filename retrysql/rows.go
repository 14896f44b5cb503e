package retrysql

import (
	"database/sql"
	"errors"
)

// Rows are a *sql.Rows whose errors are noted.
type Rows struct {
	*sql.Rows
	log *failures
}

// Next is sql.Rows.Next.
func (r *Rows) Next() bool {
	more := r.Rows.Next()
	if !more {
		_ = r.log.note(r.Rows.Err())
	}
	return more
}

// NextResultSet is sql.Rows.NextResultSet.
func (r *Rows) NextResultSet() bool {
	more := r.Rows.NextResultSet()
	if !more {
		_ = r.log.note(r.Rows.Err())
	}
	return more
}

// Close is sql.Rows.Close.
func (r *Rows) Close() error {
	err := r.log.note(r.Rows.Close())
	_ = r.log.note(r.Rows.Err())
	return err
}

// Row is the one row of a QueryRow.
type Row struct {
	rows *Rows
	err  error
}

func row(rows *Rows, err error) *Row { return &Row{rows, err} }

// Scan is sql.Row.Scan: it returns sql.ErrNoRows if there is no row, and reads the first row if there are more.
func (r *Row) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	for _, d := range dest {
		if _, ok := d.(*sql.RawBytes); ok {
			return errors.New("retrysql: RawBytes isn't allowed on Row.Scan")
		}
	}
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return sql.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	return r.rows.Close()
}

// Err is sql.Row.Err: the error of the query, without reading the row.
func (r *Row) Err() error { return r.err }
