package retrysql

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/retrygo/retry"
)

// ErrCommitAmbiguous is in the error of a run whose commit failed but may have taken effect. The connection was lost,
// the driver gave up, or the server did not report the outcome. Only the data can show it. errors.As finds the driver's
// error too.
//
// Such an error carries the mark of retry.Ambiguous, unless the transaction is read-only or declared idempotent. So it
// also ends each run of package retry around it, unless the fn of that run wraps it in retry.Transient.
var ErrCommitAmbiguous = errors.New("retrysql: the transaction may or may not be committed")

// ErrStatementAmbiguous is in the error of a run of Do that failed although a statement may have taken effect, or after a
// statement took effect (PartlyDone). It is marked like an error with ErrCommitAmbiguous.
var ErrStatementAmbiguous = errors.New("retrysql: the statement may or may not have taken effect")

// ErrTransactionEnded is in the error of a run whose fn committed or rolled back the transaction itself, so that only
// fn knows whether that took effect, or tried to with a statement that was refused, which had no effect.
var ErrTransactionEnded = errors.New("retrysql: fn must not begin or end the transaction")

// AttemptError describes the failure of one attempt. It is the Err of each retry.Attempt in a run's history. Find it
// with errors.As.
type AttemptError struct {
	Phase   Phase // the phase in which it failed, never zero
	Verdict       // the class that it was given
	// Err is the error of fn, of begin or of the commit. Nil if fn returned nil although a statement in it had failed.
	Err error
	// Swallowed is an error of a statement that fn ignored. It is not in Err although it undid the transaction. Nil
	// means that there was no such error.
	Swallowed error
	// RollbackErr is the error of the rollback. Nil means that it did not fail.
	RollbackErr error
	// ProbeErr is the error of Options.Probe or Options.Confirm. Nil means that neither failed.
	ProbeErr error
}

// failure returns the AttemptError for an error of one phase. ctx is the attempt's. Drivers report an ended context in
// their own ways, so an error that the attempt's own timeout can cause counts as a timeout.
func failure(ctx context.Context, phase Phase, err error) *AttemptError {
	failed := &AttemptError{Phase: phase, Verdict: Judge(phase, err), Err: err}
	switch {
	case context.Cause(ctx) != retry.ErrAttemptTimeout || !failed.interrupted():
	case phase != Commit:
		failed.Verdict = Verdict{Class: retry.Retryable, Reason: AttemptTimeout, Code: failed.Code}
	case failed.Reason.stops():
		failed.Reason = AttemptTimeout
	}
	return failed
}

// answer splits err, which contains e, into an answer, which makes the run a success, and an error of the attempt. An
// answer is an error of fn's own, sql.ErrNoRows, or the server's refusal of a statement that it will never accept. An
// error that classify would repeat, a timeout and a failure of the server are not answers. ctx is the attempt's.
func (e *AttemptError) answer(ctx context.Context, classify retry.Classifier, err error) (answer, rest error) {
	switch e.Reason {
	case NoRows, UniqueViolation, ConstraintViolation, InvalidData, SyntaxOrAccess, RaisedException:
	case "":
		if ctx.Err() != nil {
			return nil, err
		}
	default:
		return nil, err
	}
	switch {
	case e.Phase == Connect, e.Ambiguous, e.Class == retry.Retryable, e.Swallowed != nil, e.RollbackErr != nil:
		return nil, err
	}
	if class, _ := (retry.Policy{Classify: classify}).Judge(err); class == retry.Retryable {
		return nil, retry.Transient(err) // so that classify is not called again
	}
	return e.Err, nil
}

// foreign reports whether an error that no statement has noted can come from something else that fn does, with a file
// or another database. If the rollback fails too, the lost connection is the transaction's.
func (e *AttemptError) foreign() bool {
	switch {
	case e.Class != retry.Retryable, e.Reason == AttemptTimeout:
		return false
	case e.Code != "":
		return true
	default:
		return e.RollbackErr == nil && (e.Reason == ConnectionLost || e.Reason == CannotConnect)
	}
}

// blame names the error that undid the transaction, if e does not name it.
func (e *AttemptError) blame(first error) {
	if e.Reason == TransactionAborted && first != nil && !errors.Is(e.Err, first) {
		e.Class, e.Swallowed = Judge(Statement, first).Class, first
	}
}

// interrupted reports whether an ended context can have caused the error.
func (e *AttemptError) interrupted() bool {
	return slices.Contains([]Reason{ConnectionLost, QueryCanceled, Canceled, Timeout, TransactionDone}, e.Reason) ||
		errors.Is(e.Err, context.DeadlineExceeded) || errors.Is(e.Err, context.Canceled)
}

// Error returns one line, such as "retrysql: statement: serialization_failure (40001): ERROR: could not serialize
// access". The other errors of the attempt follow in parentheses.
func (e *AttemptError) Error() string {
	var b strings.Builder
	b.WriteString("retrysql: " + e.Phase.String())
	if e.Reason != "" {
		b.WriteString(": " + string(e.Reason))
	}
	if e.Code != "" {
		b.WriteString(" (" + e.Code + ")")
	}
	add := func(before string, err error, after string) {
		if err != nil {
			b.WriteString(before + err.Error() + after)
		}
	}
	add(": ", e.Err, "")
	add(" (fn ignored: ", e.Swallowed, ")")
	if e.ambiguity() != nil && e.Reason != PartlyDone && !errors.Is(e.Err, e.ambiguity()) {
		b.WriteString(" (" + strings.TrimPrefix(e.ambiguity().Error(), "retrysql: ") + ")")
	}
	add(" (the probe failed: ", e.ProbeErr, ")")
	add(" (the rollback failed: ", e.RollbackErr, ")")
	return b.String()
}

// ambiguity returns the sentinel for an unknown outcome, or nil.
func (e *AttemptError) ambiguity() error {
	switch {
	case e.Reason == TransactionEnded:
		return ErrTransactionEnded
	case !e.Ambiguous:
		return nil
	case e.Phase == Commit:
		return ErrCommitAmbiguous
	default:
		return ErrStatementAmbiguous
	}
}

// Unwrap returns Err, Swallowed, the sentinel for an unknown outcome, ProbeErr and RollbackErr, except those that are
// nil.
func (e *AttemptError) Unwrap() []error {
	parts := []error{e.Err, e.Swallowed, e.ambiguity(), e.ProbeErr, e.RollbackErr}
	return slices.DeleteFunc(parts, func(err error) bool { return err == nil })
}
