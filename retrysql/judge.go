package retrysql

import (
	"context"
	"fmt"
	"reflect"

	"github.com/retrygo/retry"
)

// Step is where an error came from: the same error means something else at another step. The zero Step is none.
type Step uint8

// The steps.
const (
	Connect    Step = iota + 1 // making a connection or beginning a transaction: none of the work has been sent
	Statement                  // a statement inside a transaction: nothing takes effect before the commit
	Commit                     // the commit
	Autocommit                 // a single statement outside a transaction, which commits itself
)

// String returns "connect", "statement", "commit" or "autocommit".
func (s Step) String() string {
	switch s {
	case Connect:
		return "connect"
	case Statement:
		return "statement"
	case Commit:
		return "commit"
	case Autocommit:
		return "autocommit"
	default:
		return fmt.Sprintf("Step(%d)", uint8(s))
	}
}

// Verdict is what is made of an error at a step. The zero Verdict is that of no error.
type Verdict struct {
	// Class is Retryable where the work, all of it from the transaction's beginning, may be done again; Terminal where
	// that is no use or no good; Unknown where the error says neither.
	Class retry.Class
	// Reason is why. It does not depend on the step. Empty means that nothing is known of the error.
	Reason Reason
	// Code is the server's own: a SQLSTATE ("40001"), or a number ("1213", SQLite's extended "517"). Empty means that
	// the server has sent none.
	Code string
	// Ambiguous means that the work may have taken effect: to do it again could do it twice. Class is then Terminal.
	Ambiguous bool
	// Definite means, at Commit only, that the server itself said that the transaction is not committed.
	Definite bool
	// Unsent means that the server has certainly not seen the work.
	Unsent bool
}

// Judge returns what is to be made of an error of database/sql, a driver or this package at a step. For nil it is the zero
// Verdict. It knows PostgreSQL and its kin, MySQL and MariaDB, SQLite and SQL Server by what their drivers' errors look
// like and imports no driver. Of several errors joined, the first one known counts, in the order of errors.As; of a
// run inside it is the last failure; an error that this package calls ambiguous stays so.
//
//   - At Connect an error of the connection, or of a server that is busy, is Retryable. Every error is Unsent but one that
//     says of itself that it is Ambiguous.
//   - At Statement an error is Retryable where a new transaction may succeed, a lost connection included.
//   - At Commit only a server's code for a rollback is believed, and Definite. Every other error is Ambiguous, and
//     so Terminal: a lost connection, driver.ErrBadConn, a driver's "safe to retry" and the context's errors too. It is
//     Terminal without being Ambiguous for sql.ErrTxDone, which comes before anything is sent.
//   - At Autocommit an error is Retryable where the server says that it has done nothing, or was not reached. A lost
//     connection is Ambiguous, and so is what would be at Commit because of what the code means.
//
// What the caller's context has to do with it is for the caller to look at: its errors, and the code of a server that was
// told to cancel, do not say who gave up, and are Unknown, where they are not Ambiguous. A Step that is none is judged as Commit.
func Judge(step Step, err error) Verdict {
	if err == nil {
		return Verdict{}
	}
	f := find(err)
	v := f.effect.at(step)
	v.Reason, v.Code = f.reason, f.code
	return v
}

// Classify is a retry.Classifier for the errors of statements in a transaction: the Class that Judge returns at Statement.
// It is for work that nothing else commits: outside a transaction a lost connection is no reason to repeat a write.
func Classify(err error) retry.Class { return Judge(Statement, err).Class }

// finding is what an error is, whatever the step.
type finding struct {
	reason Reason
	effect effect
	code   string
}

// effect is what an error tells about the work. It decides what an error means at each step.
type effect uint8

const (
	unknown     effect = iota // nothing is known of the error
	undone                    // the server has rolled the transaction back, and a new one may succeed
	refused                   // the server has not executed the statement, and may later
	unreached                 // there was no session yet
	lost                      // the connection, or the server's mind, is gone
	uncertain                 // the server says that it does not know, in a transaction too
	rejected                  // the server will never accept the transaction
	futile                    // the statement has failed, and would again
	stopped                   // the statement was ended from outside, or the server is at fault
	aborted                   // the transaction is undone because of an earlier error
	interrupted               // a context is done
	over                      // the transaction was over before
)

// at returns what an effect means at a step. It is the tables of the package in one.
func (e effect) at(step Step) Verdict {
	var (
		again     = Verdict{Class: retry.Retryable}
		never     = Verdict{Class: retry.Terminal}
		ambiguous = Verdict{Class: retry.Terminal, Ambiguous: true}
	)
	switch step {
	case Connect:
		switch e {
		case undone, refused, unreached, lost:
			return Verdict{Class: retry.Retryable, Unsent: true}
		case uncertain: // of something before
			return ambiguous
		case unknown, aborted, interrupted:
			return Verdict{Unsent: true}
		default:
			return Verdict{Class: retry.Terminal, Unsent: true}
		}
	case Statement:
		switch e {
		case undone, refused, unreached, lost:
			return again
		case uncertain:
			return ambiguous
		case unknown, aborted, interrupted:
			return Verdict{}
		default:
			return never
		}
	case Autocommit:
		switch e {
		case undone, refused:
			return again
		case unreached:
			return Verdict{Class: retry.Retryable, Unsent: true}
		case lost, uncertain, stopped, interrupted:
			return ambiguous
		case aborted:
			return Verdict{}
		default: // an error that is not known may be anything, so that to repeat a write is not for it to allow
			return never
		}
	default: // Commit
		switch e {
		case undone:
			return Verdict{Class: retry.Retryable, Definite: true}
		case rejected:
			return Verdict{Class: retry.Terminal, Definite: true}
		case aborted:
			return Verdict{Definite: true} // the class is that of the error that undid it
		case over:
			return never
		default:
			return ambiguous
		}
	}
}

// find returns what an error is.
func find(err error) finding {
	if f, ok := findOwn(err); ok {
		return f
	}
	var f finding
	for _, look := range []func(error) (finding, bool){see, seeTimeout} { // the latter only where nothing inside is known
		if each(err, func(err error) (ok bool) { f, ok = look(err); return ok }) {
			break
		}
	}
	if f.reason == QueryCanceled {
		// A driver whose context is done asks the server to cancel, and may report both.
		each(err, func(err error) bool {
			switch {
			case is(err, context.Canceled):
				f.reason, f.effect = Canceled, interrupted
			case is(err, context.DeadlineExceeded):
				f.reason, f.effect = Timeout, interrupted
			}
			return f.effect == interrupted
		})
	}
	return f
}

// findOwn returns what this package has made of an error already, wherever that is: beside it is the driver's error, which
// says less.
func findOwn(err error) (f finding, ok bool) {
	ok = each(err, func(err error) bool {
		switch e, _ := err.(*AttemptError); {
		case e != nil && !(e.Class == retry.Terminal && e.Ambiguous):
			f = e.finding()
		case e != nil:
			f.code = e.Code
			return false // its sentinel follows
		case err == ErrCommitAmbiguous:
			f.reason, f.effect = CommitAmbiguous, uncertain
		case err == ErrAmbiguous:
			f.reason, f.effect = StatementAmbiguous, uncertain
		case err == ErrTransactionEnded:
			f.reason, f.effect = TransactionEnded, futile
		default:
			return false
		}
		return true
	})
	return f, ok
}

// finding returns what was made of an attempt, which may have depended on its options.
func (e *AttemptError) finding() finding {
	switch e.Class {
	case retry.Retryable:
		return finding{e.Reason, refused, e.Code}
	case retry.Terminal:
		return finding{e.Reason, futile, e.Code}
	default:
		return finding{e.Reason, unknown, e.Code}
	}
}

// each calls visit for the errors of err's tree, in the order of errors.As, until one call is true, and reports whether one
// was. It passes over nil pointers, whose methods may panic, and over the Reason of a *retry.Error, which is about its run.
func each(err error, visit func(error) bool) bool {
	switch {
	case err == nil, isNil(err):
		return false
	case visit(err):
		return true
	}
	switch e := err.(type) {
	case *retry.Error:
		return each(e.Last, visit) || each(e.Cause, visit)
	case interface{ Unwrap() error }:
		return each(e.Unwrap(), visit)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if each(inner, visit) {
				return true
			}
		}
	}
	return false
}

// isNil reports whether err is a nil pointer in an interface, whose methods would panic.
func isNil(err any) bool {
	v := reflect.ValueOf(err)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// see returns what err itself is, without what it wraps.
func see(err error) (finding, bool) {
	for _, look := range looks {
		if f, ok := look(err); ok {
			return f, true
		}
	}
	return finding{}, false
}

// looks are the ways to know an error, a server's code first.
var looks = []func(error) (finding, bool){seePostgres, seeMySQL, seeSQLite, seeSQLServer, seeConnection}

// meaning is what a table says of a code.
type meaning struct {
	reason Reason
	effect effect
}

// finding returns m as what an error with a code is, or one without, whose code is empty.
func (m meaning) finding(code string) (finding, bool) {
	return finding{m.reason, m.effect, code}, true
}

// as returns err itself as a T, or what its As method gives, without what it wraps.
func as[T any](err error) (T, bool) {
	if e, ok := err.(T); ok {
		return e, true
	}
	var found T
	e, ok := err.(interface{ As(any) bool })
	ok = ok && e.As(&found) && any(found) != nil && !isNil(found)
	return found, ok
}

// textOf returns what err says, "" for several errors joined, which say only what each does.
func textOf(err error) string {
	if _, ok := err.(interface{ Unwrap() []error }); ok {
		return ""
	}
	return err.Error()
}
