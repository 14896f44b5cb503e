// Package txlog connects a transaction of package retrysql with the driver's connection of package allerrors.
package txlog

// Log notes the errors of a transaction's statements. It is the value of Key in the context in which the transaction
// begins.
type Log interface {
	// Watch is called if the connection notes all errors.
	Watch()
	// Allow returns an error for a statement that must not be sent.
	Allow(query string, server Server) error
	// Note notes the error of a statement.
	Note(err error, server Server)
	// Undone returns the first error that requires a new transaction, or nil.
	Undone() error
}

// Key is the key of a Log in a context.
type Key struct{}

// Server is the server, asked in the transaction.
type Server interface {
	// Ask returns the text in the only column of the first row. It returns an error if there is no row.
	Ask(query string) (string, error)
}
