package retrysql

import (
	"context"
	"errors"
	"strings"

	"github.com/retrygo/retry"
)

// ErrCommitAmbiguous is in the error of a run whose commit has failed in such a way that it may have taken effect: the
// connection was lost, the driver gave up, the server did not say. Nobody can tell without looking. errors.As finds the
// driver's error beside it.
var ErrCommitAmbiguous = errors.New("retrysql: the transaction may or may not be committed")

// ErrAmbiguous is in the error of a run of Do that has failed in such a way that its statement may have taken effect.
var ErrAmbiguous = errors.New("retrysql: the statement may or may not have taken effect")

// ErrTransactionEnded is in the error of a run whose fn has committed or rolled back the transaction by itself, and whether
// that took effect is for fn to know; or has tried to with a statement that was refused, and then it did not.
var ErrTransactionEnded = errors.New("retrysql: to begin and end the transaction is for Tx, not for fn")

// AttemptError is why one attempt failed: the Err of each retry.Attempt in a run's history. Find it with errors.As.
type AttemptError struct {
	Step    Step // at which it failed
	Verdict      // what was made of it
	// Err is what failed: fn's error, or that of begin or commit. Nil where fn returned nil although a statement in it
	// had failed.
	Err error
	// Swallowed is a statement's error that is not in Err, though it undid the transaction. Nil means none.
	Swallowed error
	// RollbackErr is what the rollback failed with. Nil means that it did not.
	RollbackErr error
	// ProbeErr is what Options.Committed failed with. Nil means that it did not, or was not asked.
	ProbeErr error
}

// failure returns the AttemptError for an error of one step. ctx is the attempt's: where its own timeout has ended it, an
// error that comes of that is one, whatever the driver makes of it.
func failure(ctx context.Context, step Step, err error) *AttemptError {
	failed := &AttemptError{Step: step, Verdict: Judge(step, err), Err: err}
	if step != Commit && context.Cause(ctx) == retry.ErrAttemptTimeout && failed.interrupted() {
		failed.Verdict = Verdict{Class: retry.Retryable, Reason: AttemptTimeout, Code: failed.Code}
	}
	return failed
}

// blame names the error that undid the transaction, where e says only that one has.
func (e *AttemptError) blame(first error) {
	if e.Reason == TransactionAborted && first != nil && !errors.Is(e.Err, first) {
		e.Class, e.Swallowed = Judge(Statement, first).Class, first
	}
}

// interrupted reports whether the error can come of a context that is done.
func (e *AttemptError) interrupted() bool {
	switch e.Reason {
	case ConnectionLost, QueryCanceled, Canceled, Timeout, TransactionDone:
		return true
	default:
		return errors.Is(e.Err, context.DeadlineExceeded) || errors.Is(e.Err, context.Canceled)
	}
}

// Error returns one line: "retrysql: statement: serialization_failure (40001): ERROR: could not serialize access".
func (e *AttemptError) Error() string {
	if e == nil {
		return "<nil>"
	}
	var b strings.Builder
	b.WriteString("retrysql: " + e.Step.String())
	if e.Reason != "" {
		b.WriteString(": " + string(e.Reason))
	}
	if e.Code != "" {
		b.WriteString(" (" + e.Code + ")")
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Swallowed != nil {
		b.WriteString("; fn passed over: " + e.Swallowed.Error())
	}
	if e.ambiguity() != nil && !errors.Is(e.Err, e.ambiguity()) {
		b.WriteString("; " + strings.TrimPrefix(e.ambiguity().Error(), "retrysql: "))
	}
	if e.ProbeErr != nil {
		b.WriteString("; the probe failed: " + e.ProbeErr.Error())
	}
	if e.RollbackErr != nil {
		b.WriteString("; the rollback failed: " + e.RollbackErr.Error())
	}
	return b.String()
}

// ambiguity returns the sentinel for what is not known, nil where all is.
func (e *AttemptError) ambiguity() error {
	switch {
	case e.Reason == TransactionEnded:
		return ErrTransactionEnded
	case !e.Ambiguous:
		return nil
	case e.Step == Commit:
		return ErrCommitAmbiguous
	default:
		return ErrAmbiguous
	}
}

// Unwrap returns what there is of Err, Swallowed, the sentinel for what is not known, ProbeErr and RollbackErr.
func (e *AttemptError) Unwrap() []error {
	if e == nil {
		return nil
	}
	var parts []error
	for _, err := range []error{e.Err, e.Swallowed, e.ambiguity(), e.ProbeErr, e.RollbackErr} {
		if err != nil {
			parts = append(parts, err)
		}
	}
	return parts
}
