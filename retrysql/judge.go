package retrysql

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/retrygo/retry"
)

// Phase is when an error came: the same error has different meanings in different phases. The zero Phase is not valid
// in an AttemptError; Judge treats it as Commit.
type Phase uint8

// The phases.
const (
	Connect    Phase = iota + 1 // making a connection or beginning a transaction: no work has been sent
	Statement                   // a statement inside a transaction: nothing takes effect before the commit
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

// Verdict is what an error means in its phase. The zero Verdict is the verdict on a nil error.
type Verdict struct {
	// Class is Retryable if all of the work, from the beginning of the transaction, may be repeated; Terminal if
	// repeating it cannot help or could do harm; Unknown if the error says neither.
	Class retry.Class
	// Reason is why. It does not depend on the phase. Empty means that the error is not recognized.
	Reason Reason
	// Code is the server's own code: a SQLSTATE ("40001"), or a number ("1213", SQLite's extended "517"). Empty means
	// that the server sent none.
	Code string
	// Ambiguous means that the work may have taken effect. Class is then Terminal.
	Ambiguous bool
}

// Judge returns what an error of database/sql, a driver or this package means in a phase, and the zero Verdict for nil.
// It recognizes the errors of PostgreSQL and databases that speak its protocol, MySQL and MariaDB, SQLite and SQL
// Server by their form. Of several joined errors the first recognized one counts, in the order of errors.As; of a nested
// run, its last failure. An error that this package calls ambiguous remains ambiguous.
//
//   - At Connect nothing has been sent, so every error is Retryable, even an unknown one or that of a driver's own time
//     limit. The exceptions are errors that another attempt cannot mend: a refused user or password, an unknown database,
//     TLS, a closed pool, a wrong data source name, a statement or setting that the server does not accept.
//   - At Statement an error is Retryable if a new transaction may succeed, as after a lost connection.
//   - At Commit only a server's code for a rollback counts as a rollback. Every other error is Ambiguous: a lost
//     connection, driver.ErrBadConn, a driver's "safe to retry", an error of the context. The exception is sql.ErrTxDone,
//     which is returned before anything is sent: it is Terminal and not Ambiguous.
//   - At Autocommit an error is Retryable if the server says that it did nothing, or was not reached. A lost connection
//     is Ambiguous, and so is a code that leaves the outcome open.
//
// An error of the context, or the code of a server that was asked to cancel, does not say which context ended. After
// Connect it is Unknown unless it is Ambiguous, and the caller checks its own context.
//
// ReadOnlyServer is Retryable on another connection only: see Reason. Judge treats any other Phase as Commit.
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
// at Statement. Do not use it outside a transaction: it returns Retryable for a write whose connection was lost.
func Classify(err error) retry.Class { return Judge(Statement, err).Class }

// finding is what an error is, independent of the phase. Without a reason it is not recognized. The code may be empty.
type finding struct {
	meaning
	code string
}

// effect is what an error says about the work. It determines what the error means in each phase.
type effect uint8

const (
	unknown     effect = iota // the error is not recognized
	undone                    // the server has rolled the transaction back, and a new one may succeed
	misplaced                 // as undone, but only on another connection
	refused                   // the server was not reached, or has not executed the statement, and may later
	lost                      // the connection is gone, or the server failed without saying how
	uncertain                 // the server says that it does not know, even in a transaction
	rejected                  // the server will never accept the transaction
	unable                    // the statement failed, and would fail again; a connection may be made later
	futile                    // the statement failed, and would fail again; no connection will be made either
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

// verdicts are what each effect means at Connect, Statement, Commit and Autocommit.
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
	aborted:     {again, open, open, open}, // at Commit, the class is that of the error that undid the transaction
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

// find returns what an error is.
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

// decided are the effects of what was decided about an attempt, which may have depended on Options.
var decided = map[retry.Class]effect{retry.Retryable: refused, retry.Terminal: futile, retry.Unknown: unknown}

// findOwn returns what this package has already decided about an error. It asks the As and Is of each error, since
// retryshell.MarkTimeout hides what it wraps from Unwrap.
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

// see returns what err itself is, without what it wraps: a server's code comes first.
func see(err error) (f finding) {
	for _, look := range []func(error) finding{seePostgres, seeMySQL, seeSQLite, seeSQLServer, seeConnection} {
		if f = look(err); f.reason != "" {
			break
		}
	}
	return f
}

// meaning is what a table says about a code.
type meaning struct {
	reason Reason
	effect effect
}

// coded are codes of one meaning, with spaces between them.
type coded struct {
	meaning
	codes string
}

// lookup returns the meaning of a code, or else that of its class. A code that is in no table is ServerError.
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

// as returns err itself as a T, or what its As method finds, but nothing that Unwrap leads to.
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
