package retrysql

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/retrygo/retry"
)

// Phase is the phase of the work in which an error came. The same error has different meanings in different phases. The
// zero Phase is not valid in an AttemptError. Judge treats it as Commit.
type Phase uint8

// The phases.
const (
	Connect    Phase = iota + 1 // making a connection or beginning a transaction, before any work is sent
	Statement                   // a statement inside a transaction, which has no effect before the commit
	Commit                      // the commit
	Autocommit                  // a single statement outside a transaction, which commits by itself
)

// String returns "connect", "statement", "commit" or "autocommit".
func (p Phase) String() string {
	texts := [...]string{Connect: "connect", Statement: "statement", Commit: "commit", Autocommit: "autocommit"}
	if p == 0 || int(p) >= len(texts) {
		return fmt.Sprintf("Phase(%d)", uint8(p))
	}
	return texts[p]
}

// Verdict is the meaning of an error in its phase. The zero Verdict is the verdict on a nil error.
type Verdict struct {
	// Class is Retryable if all of the work, from the beginning of the transaction, may be repeated. It is Terminal if
	// repeating it cannot help or could do harm, and Unknown if the error decides neither.
	Class retry.Class
	// Reason is why. It does not depend on the phase. Empty means that the error is not recognized.
	Reason Reason
	// Code is the server's own code. It is a SQLSTATE ("40001") or a number ("1213", SQLite's extended "517"). Empty
	// means that the server sent no code.
	Code string
	// Ambiguous means that the work may have taken effect. Class is then Terminal.
	Ambiguous bool
}

// Judge returns the meaning of an error of database/sql, a driver or this package in a phase, and the zero Verdict for
// nil. It recognizes the errors of PostgreSQL and databases that speak its protocol, MySQL and MariaDB, SQLite and SQL
// Server by their form. Of several joined errors the first recognized one counts, in the order of errors.As. Of a
// nested run the last failure counts. An error that this package calls ambiguous remains ambiguous.
//
//   - At Connect no work has been sent, so every error is Retryable, even an unknown one or a driver's own timeout.
//     The exceptions are errors that another attempt cannot mend, such as a refused user or password, an unknown
//     database, TLS, a closed pool, a wrong data source name, and a statement or setting that the server does not
//     accept.
//   - At Statement an error is Retryable if a new transaction may succeed, as after a lost connection.
//   - At Commit only a server's code for a rollback counts as a rollback. Every other error is Ambiguous, also a lost
//     connection, driver.ErrBadConn, a driver's "safe to retry", and an error of the context. The exception is
//     sql.ErrTxDone, which is Terminal and not Ambiguous, because it is returned before anything is sent.
//   - At Autocommit an error is Retryable if it means that the statement had no effect or that the server was not
//     reached. A lost connection is Ambiguous, and so is a code that leaves the outcome open.
//
// An error of the context, or the code of a server that was asked to cancel, does not show which context ended. After
// Connect it is Unknown unless it is Ambiguous, and the caller checks its own context.
//
// ReadOnlyServer is Retryable on another connection only (see Reason). Judge treats any other Phase as Commit.
func Judge(phase Phase, err error) Verdict {
	if err == nil {
		return Verdict{}
	}
	f := find(err)
	v := f.effect.at(phase)
	v.Reason, v.Code = f.reason, f.code
	return v
}

// Classify is a retry.Classifier for the errors of statements in a transaction. It returns the Class that Judge returns
// at Statement. Do not use it outside a transaction, because it returns Retryable for a write whose connection was
// lost.
func Classify(err error) retry.Class { return Judge(Statement, err).Class }

// finding is the meaning of an error, independent of the phase. Without a reason it is not recognized. The code may be
// empty.
type finding struct {
	meaning
	code string
}

// effect is the effect that the work has had, as far as an error shows it. It determines the verdict in each phase.
type effect uint8

const (
	unknown     effect = iota // the error is not recognized
	undone                    // the server has rolled the transaction back, and a new one may succeed
	misplaced                 // as undone, but only on another connection
	refused                   // the server was not reached, or has not executed the statement, and may later
	lost                      // the connection is gone, or the server failed without saying how
	uncertain                 // the server does not know, even in a transaction
	rejected                  // the server will never accept the transaction
	unable                    // the statement failed, and would fail again, but a connection may be made later
	futile                    // the statement failed, and would fail again, and no connection will be made either
	stopped                   // the statement was ended from outside, or the server is at fault
	aborted                   // the transaction is undone because of an earlier error
	interrupted               // a context is done
	over                      // the transaction was over before
)

// The verdicts of the table below.
var (
	open      = Verdict{}
	again     = Verdict{Class: retry.Retryable}
	never     = Verdict{Class: retry.Terminal}
	ambiguous = Verdict{Class: retry.Terminal, Ambiguous: true}
)

// verdicts are the verdicts on each effect at Connect, Statement, Commit and Autocommit.
var verdicts = [...][4]Verdict{
	unknown:     {again, open, ambiguous, never}, // it may be anything, so it does not allow a write to be repeated
	undone:      {again, again, again, again},
	misplaced:   {again, again, again, again},
	refused:     {again, again, ambiguous, again},
	lost:        {again, again, ambiguous, ambiguous},
	uncertain:   {ambiguous, ambiguous, ambiguous, ambiguous}, // at Connect, of something before
	rejected:    {never, never, never, never},
	unable:      {again, never, ambiguous, never},
	futile:      {never, never, ambiguous, never},
	stopped:     {again, never, ambiguous, ambiguous},
	aborted:     {again, open, open, open}, // at Commit, the class is from the error that undid the transaction
	interrupted: {again, open, ambiguous, ambiguous},
	over:        {never, never, never, never},
}

// at returns the meaning of an effect in a phase.
func (e effect) at(phase Phase) Verdict {
	if phase < Connect || phase > Autocommit {
		phase = Commit
	}
	return verdicts[e][phase-Connect]
}

// find returns the finding on an error.
func find(err error) finding {
	if f, ok := findOwn(err); ok {
		return f
	}
	var f finding
	each(err, func(err error) bool { f = see(err); return f.reason != "" })
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

// decided are the effects of the classes that were given to an attempt, perhaps because of Options.
var decided = map[retry.Class]effect{retry.Retryable: refused, retry.Terminal: futile, retry.Unknown: unknown}

// findOwn returns the finding that this package has already made on an error. It asks the As and Is of each error,
// since retryshell.MarkTimeout hides the errors that it wraps from Unwrap.
func findOwn(err error) (f finding, ok bool) {
	ok = each(err, func(err error) bool {
		failed, own := as[*AttemptError](err)
		if own && failed.Class == retry.Terminal && failed.Ambiguous { // its sentinel follows
			f.code, own = failed.Code, false
		}
		switch {
		case own:
			f = finding{meaning{failed.Reason, decided[failed.Class]}, failed.Code}
		case is(err, ErrCommitAmbiguous):
			f.reason, f.effect = CommitAmbiguous, uncertain
		case is(err, ErrStatementAmbiguous):
			f.reason, f.effect = StatementAmbiguous, uncertain
		case is(err, ErrTransactionEnded):
			f.reason, f.effect = TransactionEnded, futile
		default:
			return false
		}
		return true
	})
	return f, ok
}

// each calls visit for the errors of err's tree, in the order of errors.As, until a call returns true, and reports
// whether one did. Unlike errors.As it recognizes errors by text and shape, passes over nil pointers, which may panic,
// and the Reason of a nested run.
func each(err error, visit func(error) bool) bool {
	switch {
	case err == nil, isNil(err):
		return false
	case visit(err):
		return true
	}
	switch e := err.(type) {
	case *retry.Error:
		return each(e.Last, visit)
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

// isNil reports whether err is a nil pointer of any type, whose methods may panic.
func isNil(err any) bool {
	v := reflect.ValueOf(err)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// see returns the finding on err itself, without the errors that it wraps. A server's code comes first.
func see(err error) (f finding) {
	for _, look := range []func(error) finding{seePostgres, seeMySQL, seeSQLite, seeSQLServer, seeConnection} {
		if f = look(err); f.reason != "" {
			break
		}
	}
	return f
}

// meaning is the reason and the effect of a code, by a table.
type meaning struct {
	reason Reason
	effect effect
}

// coded are codes of one meaning, with spaces between them.
type coded struct {
	meaning
	codes string
}

// lookup returns the meaning of a code, or else of its class. A code that is in no table is ServerError.
func lookup(table []coded, code, class string) finding {
	found := meaning{ServerError, unable}
	for _, row := range table {
		for listed := range strings.FieldsSeq(row.codes) {
			switch listed {
			case code:
				return finding{row.meaning, code}
			case class:
				found = row.meaning
			}
		}
	}
	return finding{found, code}
}

// as returns err itself as a T, or the T that its As method finds, but never a T to which Unwrap leads.
func as[T any](err error) (T, bool) {
	if e, ok := err.(T); ok {
		return e, true
	}
	var found T
	if e, ok := err.(interface{ As(any) bool }); !ok || !e.As(&found) {
		return found, false
	}
	return found, any(found) != nil && !isNil(found)
}
