package retrypgx

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// journal records the errors and the end of one transaction. The mutex is for an fn that wrongly uses the transaction in
// several goroutines.
type journal struct {
	tx     pgx.Tx
	copies *copies     // of the run
	done   atomic.Bool // fn has returned

	mu               sync.Mutex
	first, retryable error // of the statements since the server last reported that the transaction is alive
	ended            error // fn has ended the transaction, or has tried to
	left             bool  // fn has called Rollback, perhaps deferred, which only the next statement shows
	gone             bool  // the server reports that the transaction has ended
}

// The server's transaction status after each statement, as of ReadyForQuery in "Message Formats" of PostgreSQL's manual.
const (
	none   = 'I' // no transaction
	alive  = 'T' // it can continue and be committed
	failed = 'E' // only a rollback is possible
)

// status returns the last transaction status, or 0 if it is not current because the connection is gone or in the middle
// of a result.
func (j *journal) status() byte {
	conn := j.tx.Conn()
	if conn == nil || conn.IsClosed() || conn.PgConn().IsBusy() {
		return 0
	}
	return conn.PgConn().TxStatus()
}

// controls are the server's answers to statements that begin and end a transaction, even if another one has begun by
// then, as after COMMIT AND CHAIN. ROLLBACK is not one of them, since it is also the answer to ROLLBACK TO SAVEPOINT.
var controls = []string{"COMMIT", "PREPARE TRANSACTION", "BEGIN", "START TRANSACTION"}

// note notes an error and returns it.
func (j *journal) note(err error) error { return j.executed(pgconn.CommandTag{}, err) }

// executed is note for a statement that the server answers with a tag. It also returns an error if a statement
// succeeded and ended the transaction.
func (j *journal) executed(tag pgconn.CommandTag, err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	status := j.status()
	if answer := tag.String(); status == none || slices.Contains(controls, answer) {
		err = cmp.Or(err, j.answered(answer))
	}
	switch {
	case status == alive:
		j.first, j.retryable = nil, nil // a savepoint has undone it, or the server did not fail
	case err == nil, errors.Is(err, pgx.ErrNoRows), errors.Is(err, pgx.ErrTxClosed): // of a savepoint, as from a deferred Rollback
	default:
		if j.first == nil {
			j.first = err
		}
		if j.retryable == nil && retrysql.Classify(err) == retry.Retryable {
			j.retryable = err
		}
	}
	return err
}

func (j *journal) rows(found pgx.Rows, err error) (pgx.Rows, error) {
	if err != nil {
		return found, j.note(err)
	}
	return &rows{Rows: found, log: j}, nil
}

// end records how fn ended the transaction, or tried to, and returns the error for it.
func (j *journal) end(how string) error {
	if j.ended == nil {
		j.ended = fmt.Errorf("%w: %s", retrysql.ErrTransactionEnded, how)
	}
	return j.ended
}

// answered is end for a transaction that the server's answer shows to have ended. If the answer is empty, its status
// shows it.
func (j *journal) answered(answer string) error {
	j.gone = true
	return j.end("the server has answered " + cmp.Or(answer, "that there is none any more"))
}

// refuse returns the error for fn's own Commit or Rollback.
func (j *journal) refuse(method string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.end(method + " is refused")
}

// leave returns the error for fn's own Rollback. A deferred one is fn's last call, and its error is dropped.
func (j *journal) leave() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.left = true
	return cmp.Or(j.ended, errRollback)
}

var errRollback = fmt.Errorf("%w: Rollback has no effect (return an error to roll back)", retrysql.ErrTransactionEnded)

// over returns the error for a statement after fn has ended the transaction, which would run outside any, or after
// Rollback, since fn assumes that it rolled back.
func (j *journal) over() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.left {
		return j.end("a statement after Rollback is refused")
	}
	return j.ended
}

// broken is over for calls that are allowed after Rollback.
func (j *journal) broken() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ended
}

func (j *journal) failures() (first, retryable error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.first, j.retryable
}

var errOpen = errors.New("retrypgx: fn left rows, a row or a batch open")

// conclude returns the error of an attempt whose fn returned err. Nil means that there is something to commit.
func (j *journal) conclude(err error) error {
	conn := j.tx.Conn()
	j.mu.Lock()
	defer j.mu.Unlock()
	switch status := j.status(); {
	case status == none:
		_ = j.answered("")
	case status == failed && j.first == nil && retrysql.Classify(err) == retry.Retryable:
		j.first, j.retryable = err, err // of LargeObjects, Conn or a function of a batch
	}
	if j.ended != nil {
		switch {
		case err == nil:
			err = j.ended
		case !errors.Is(err, j.ended):
			err = fmt.Errorf("%w (fn returned: %w)", j.ended, err)
		}
		if j.gone { // part of the work may have taken effect
			return retry.Ambiguous(err)
		}
		return retry.Permanent(err)
	}
	switch {
	case err != nil || conn == nil:
		return err
	case conn.IsClosed(): // a commit that cannot be sent is not ambiguous
		return fmt.Errorf("retrypgx: fn returned nil, but the connection is gone: %w", errConnClosed)
	case conn.PgConn().IsBusy():
		return errOpen
	default:
		return nil
	}
}
