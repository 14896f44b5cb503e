package retrysql_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

// state is an error with a SQLSTATE, like those of the PostgreSQL drivers.
type state string

func (s state) Error() string    { return "ERROR " + string(s) }
func (s state) SQLState() string { return string(s) }

const (
	conflict  = state("40001")
	duplicate = state("23505")
	aborted   = state("25P02")
)

var errBusiness = errors.New("insufficient funds")

// db is a fake database: it answers begins, commits and rollbacks from lists, and with nil after their ends, and logs
// the calls.
type db struct {
	begins, commits []error
	commit          func() // is called first
	rollback        func(context.Context) error
	elsewhere       bool // the next transaction has another connection
	log             []string
	discarded       []retrysql.Reason // of connections
}

func (d *db) begin(context.Context) (*tx, error) {
	err := pop(&d.begins)
	d.note("begin", err)
	if err != nil {
		return nil, err
	}
	return &tx{db: d}, nil
}

func (d *db) note(what string, err error) {
	if err != nil {
		what += "!"
	}
	d.log = append(d.log, what)
}

func pop(list *[]error) error {
	if len(*list) == 0 {
		return nil
	}
	err := (*list)[0]
	*list = (*list)[1:]
	return err
}

// tx is a transaction of db.
type tx struct {
	db               *db
	first, retryable error
}

func (t *tx) Commit(context.Context) error {
	if t.db.commit != nil {
		t.db.commit()
	}
	err := pop(&t.db.commits)
	t.db.note("commit", err)
	return err
}

func (t *tx) Rollback(ctx context.Context) error {
	var err error
	if t.db.rollback != nil {
		err = t.db.rollback(ctx)
	}
	t.db.note("rollback", err)
	return err
}

func (t *tx) Discard(reason retrysql.Reason) bool {
	t.db.discarded = append(t.db.discarded, reason)
	return t.db.elsewhere
}

func (t *tx) Failures() (first, retryable error) { return t.first, t.retryable }

func (t *tx) Ask(context.Context, []any, string, ...any) error { return nil }

// AskOutside answers like a server without the function VERSION.
func (t *tx) AskOutside(context.Context, []any, string, ...any) error { return state("42883") }

// exec is a statement that ends with err.
func (t *tx) exec(err error) error {
	if err != nil && t.first == nil {
		t.first = err
	}
	if err != nil && t.retryable == nil && retrysql.Classify(err) == retry.Retryable {
		t.retryable = err
	}
	return err
}

// statements is an fn whose attempts have one statement each, which fails with the next of errs, and which returns that
// error.
func statements(errs ...error) func(context.Context, *tx) error {
	return func(_ context.Context, t *tx) error {
		err := t.exec(pop(&errs))
		t.db.note("exec", err)
		return err
	}
}

// swallows is statements, but returns nil.
func swallows(errs ...error) func(context.Context, *tx) error {
	return func(_ context.Context, t *tx) error {
		t.db.note("exec", t.exec(pop(&errs)))
		return nil
	}
}

// idempotent returns a context of WithIdempotent if mark is set.
func idempotent(t *testing.T, mark bool) context.Context {
	if mark {
		return retrysql.WithIdempotent(t.Context())
	}
	return t.Context()
}

// atOnce is the default policy with negligible waits.
var atOnce = retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Mode: retry.Fixed, Base: 1}}

// reasons returns the phases and reasons of a history.
func reasons(t *testing.T, o retry.Outcome) []string {
	var list []string
	for _, a := range o.History {
		var failed *retrysql.AttemptError
		require.ErrorAs(t, a.Err, &failed)
		list = append(list, failed.Phase.String()+" "+string(failed.Reason))
	}
	return list
}

func TestRun(t *testing.T) {
	lost := db{commits: []error{driver.ErrBadConn}}
	confirm := func(committed bool, err error) retrysql.Options {
		return retrysql.Options{Confirm: func(context.Context) (bool, error) { return committed, err }}
	}
	for _, row := range []struct {
		name    string
		db      db
		opts    retrysql.Options
		mark    bool // WithIdempotent
		fn      func(context.Context, *tx) error
		log     []string
		want    retry.Reason // 0 is a success
		answer  error        // of a success
		is      []error
		reasons []string
	}{
		{name: "a success is one begin and one commit", fn: statements(), log: []string{"begin", "exec", "commit"}},
		{name: "a conflict rolls back and begins again", fn: statements(conflict),
			log: []string{"begin", "exec!", "rollback", "begin", "exec", "commit"}},
		{name: "a conflict that stays uses the attempts up", fn: statements(conflict, conflict, conflict),
			log:  []string{"begin", "exec!", "rollback", "begin", "exec!", "rollback", "begin", "exec!", "rollback"},
			want: retry.AttemptsExhausted, is: []error{conflict},
			reasons: []string{"statement serialization_failure", "statement serialization_failure", "statement serialization_failure"}},
		{name: "an error that fn makes up rolls back and ends the run", fn: statements(errBusiness), log: []string{"begin", "exec!", "rollback"},
			answer: errBusiness},
		{name: "unless it is marked", fn: statements(retry.Transient(errBusiness)), log: []string{"begin", "exec!", "rollback", "begin", "exec", "commit"}},
		{name: "a conflict that is marked permanent ends the run", fn: statements(retry.Permanent(conflict)), log: []string{"begin", "exec!", "rollback"},
			want: retry.TerminalError, is: []error{conflict}},
		{name: "a lost connection in a statement is repeated", fn: statements(driver.ErrBadConn), log: []string{"begin", "exec!", "rollback", "begin", "exec", "commit"}},
		{name: "a lost connection at begin is repeated", db: db{begins: []error{driver.ErrBadConn}}, fn: statements(), log: []string{"begin!", "begin", "exec", "commit"}},
		{name: "a refused statement at begin is no answer", db: db{begins: []error{state("42501")}}, fn: statements(), log: []string{"begin!"}, want: retry.TerminalError},
		{name: "a refused login is not", db: db{begins: []error{state("28P01")}}, fn: statements(), log: []string{"begin!"}, want: retry.TerminalError},
		{name: "a conflict that fn passes over is not committed", fn: swallows(conflict),
			log: []string{"begin", "exec!", "rollback", "begin", "exec", "commit"}},
		{name: "a conflict that fn passes over is named where it stays", fn: swallows(conflict, conflict, conflict), want: retry.AttemptsExhausted, is: []error{conflict},
			log:     []string{"begin", "exec!", "rollback", "begin", "exec!", "rollback", "begin", "exec!", "rollback"},
			reasons: []string{"statement serialization_failure", "statement serialization_failure", "statement serialization_failure"}},
		{name: "a conflict that fn makes another error of is repeated", fn: func(_ context.Context, t *tx) error {
			if len(t.db.log) == 1 && t.exec(conflict) != nil {
				return errBusiness
			}
			return nil
		}, log: []string{"begin", "rollback", "begin", "commit"}},
		{name: "what follows a conflict says nothing", fn: func(_ context.Context, t *tx) error {
			if len(t.db.log) == 1 {
				_ = t.exec(conflict)
				return t.exec(aborted)
			}
			return nil
		}, log: []string{"begin", "rollback", "begin", "commit"}},
		{name: "what follows a constraint takes its class", fn: func(_ context.Context, t *tx) error {
			_ = t.exec(duplicate)
			return t.exec(aborted)
		}, log: []string{"begin", "rollback"}, want: retry.TerminalError, is: []error{duplicate, aborted}},

		{name: "a conflict at the commit is repeated", db: db{commits: []error{conflict}}, fn: statements(),
			log: []string{"begin", "exec", "commit!", "rollback", "begin", "exec", "commit"}},
		{name: "a constraint at the commit ends the run", db: db{commits: []error{duplicate}}, fn: statements(),
			log: []string{"begin", "exec", "commit!", "rollback"}, answer: duplicate},
		{name: "driver.ErrBadConn at the commit is ambiguous", db: lost, fn: statements(),
			log: []string{"begin", "exec", "commit!", "rollback"}, want: retry.TerminalError,
			is: []error{retrysql.ErrCommitAmbiguous, driver.ErrBadConn}, reasons: []string{"commit connection_lost"}},
		{name: "an unknown error at the commit is ambiguous", db: db{commits: []error{errBusiness}}, fn: statements(),
			log: []string{"begin", "exec", "commit!", "rollback"}, want: retry.TerminalError, is: []error{retrysql.ErrCommitAmbiguous}},
		{name: "a read-only transaction is repeated then", db: lost, opts: retrysql.Options{ReadOnly: true}, fn: statements(),
			log: []string{"begin", "exec", "commit!", "rollback", "begin", "exec", "commit"}},
		{name: "an idempotent one too", db: lost, mark: true, fn: statements(),
			log: []string{"begin", "exec", "commit!", "rollback", "begin", "exec", "commit"}},
		{name: "an idempotent one that stays unknown says so", mark: true, fn: statements(),
			db:   db{commits: []error{io.EOF, io.EOF, io.EOF}},
			log:  []string{"begin", "exec", "commit!", "rollback", "begin", "exec", "commit!", "rollback", "begin", "exec", "commit!", "rollback"},
			want: retry.AttemptsExhausted, is: []error{retrysql.ErrCommitAmbiguous}},
		{name: "fn that has ended the transaction itself", db: db{commits: []error{sql.ErrTxDone}}, fn: statements(),
			log: []string{"begin", "exec", "commit!"}, want: retry.TerminalError, is: []error{retrysql.ErrTransactionEnded}},
		{name: "fn that has ended it and failed then, with whatever", db: db{rollback: func(context.Context) error { return sql.ErrTxDone }},
			fn: statements(conflict), log: []string{"begin", "exec!", "rollback!"}, want: retry.TerminalError,
			is: []error{retrysql.ErrTransactionEnded, conflict}, reasons: []string{"statement transaction_ended"}},
		{name: "a server that has nothing to roll back, after no error that it has undone all for",
			db: db{rollback: func(context.Context) error { return state("25P01") }}, fn: statements(retry.Transient(errBusiness)),
			log: []string{"begin", "exec!", "rollback!"}, want: retry.TerminalError, is: []error{retrysql.ErrTransactionEnded}},
		{name: "a server that has nothing to roll back, after a conflict", db: db{rollback: func(context.Context) error { return state("25P01") }},
			fn: statements(conflict), log: []string{"begin", "exec!", "rollback!", "begin", "exec", "commit"}},
		{name: "a connection that breaks at the rollback has rolled back", db: db{rollback: func(context.Context) error { return state("57P01") }},
			fn: statements(retry.Transient(errBusiness)), log: []string{"begin", "exec!", "rollback!", "begin", "exec", "commit"}},
		{name: "an idempotent one whose repetition fails still says so", mark: true, fn: statements(nil, duplicate),
			db: lost, log: []string{"begin", "exec", "commit!", "rollback", "begin", "exec!", "rollback"},
			want: retry.TerminalError, is: []error{retrysql.ErrCommitAmbiguous, duplicate, driver.ErrBadConn}},
		{name: "an idempotent one after which no other begins still says so", mark: true, fn: statements(),
			db:   db{begins: []error{nil, state("28P01")}, commits: []error{driver.ErrBadConn}},
			log:  []string{"begin", "exec", "commit!", "rollback", "begin!"},
			want: retry.TerminalError, is: []error{retrysql.ErrCommitAmbiguous}},
		{name: "a begin that is marked permanent is not repeated", db: db{begins: []error{retry.Permanent(sql.ErrConnDone)}}, fn: statements(),
			log: []string{"begin!"}, want: retry.TerminalError, is: []error{sql.ErrConnDone}, reasons: []string{"connect connection_lost"}},
		{name: "a rollback that fails is in the error", db: db{rollback: func(context.Context) error { return io.ErrClosedPipe }}, fn: statements(duplicate),
			log: []string{"begin", "exec!", "rollback!"}, want: retry.TerminalError, is: []error{duplicate, io.ErrClosedPipe}},
		{name: "a commit that the server has made a rollback of takes the class of the first error", db: db{commits: []error{errors.New("commit unexpectedly resulted in rollback")}},
			fn: swallows(duplicate), log: []string{"begin", "exec!", "commit!", "rollback"}, want: retry.TerminalError, is: []error{duplicate}},

		{name: "a Confirm that says it is committed makes it a success", db: lost, opts: confirm(true, nil), fn: statements(),
			log: []string{"begin", "exec", "commit!", "rollback"}},
		{name: "a Confirm that says it is not repeats the transaction", db: lost, opts: confirm(false, nil), fn: statements(),
			log: []string{"begin", "exec", "commit!", "rollback", "begin", "exec", "commit"}},
		{name: "a Confirm that fails leaves it unknown", db: lost, opts: confirm(true, io.EOF), fn: statements(),
			log: []string{"begin", "exec", "commit!", "rollback"}, want: retry.TerminalError, is: []error{retrysql.ErrCommitAmbiguous, io.EOF, driver.ErrBadConn}},
		{name: "a Confirm that fails does not matter to an idempotent one", db: lost, opts: confirm(false, io.EOF), mark: true, fn: statements(),
			log: []string{"begin", "exec", "commit!", "rollback", "begin", "exec", "commit"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := row.db
			err := retrysql.Run(idempotent(t, row.mark), atOnce, &row.opts, d.begin, row.fn)
			require.Equal(t, row.log, d.log)
			if row.want == 0 {
				require.Equal(t, row.answer, err)
				return
			}
			require.ErrorIs(t, err, row.want)
			for _, is := range row.is {
				require.ErrorIs(t, err, is)
			}
			ambiguous := len(row.is) > 0 && row.is[0] == retrysql.ErrCommitAmbiguous
			require.Equal(t, ambiguous, errors.Is(err, retrysql.ErrCommitAmbiguous))
			require.NotContains(t, err.Error(), "\n")
			var failed *retry.Error
			require.ErrorAs(t, err, &failed)
			if row.reasons != nil {
				require.Equal(t, row.reasons, reasons(t, failed.Outcome))
			}
		})
	}
}

func TestRollbackOfACommitThatFailed(t *testing.T) {
	for _, row := range []struct{ rollback, want error }{
		{nil, nil},
		{sql.ErrTxDone, nil}, // as database/sql does after any commit
		{io.ErrClosedPipe, io.ErrClosedPipe},
	} {
		d := db{commits: []error{driver.ErrBadConn}, rollback: func(context.Context) error { return row.rollback }}
		var failed *retrysql.AttemptError
		require.ErrorAs(t, retrysql.Run(t.Context(), atOnce, nil, d.begin, statements()), &failed)
		require.Equal(t, row.want, failed.RollbackErr)
	}
}

func TestConfirm(t *testing.T) {
	inBubble(t, "that says no when its time is over leaves it unknown", func(t *testing.T) {
		opts := retrysql.Options{Confirm: func(ctx context.Context) (bool, error) { <-ctx.Done(); return false, nil }}
		d := db{commits: []error{driver.ErrBadConn}}
		require.ErrorIs(t, retrysql.Run(t.Context(), atOnce, &opts, d.begin, statements()), retrysql.ErrCommitAmbiguous)
	})
	inBubble(t, "that says no of a commit that is under way is not believed, and that says yes is", func(t *testing.T) {
		for _, committed := range []bool{false, true} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			release := make(chan struct{})
			opts := retrysql.Options{Confirm: func(context.Context) (bool, error) { return committed, nil }}
			p := atOnce
			p.AttemptTimeout = time.Millisecond
			d := db{commit: func() { <-release }}
			err := retrysql.Run(ctx, p, &opts, d.begin, statements())
			require.Equal(t, committed, err == nil)
			require.Equal(t, !committed, errors.Is(err, retrysql.ErrCommitAmbiguous))
			var failed *retrysql.AttemptError
			if errors.As(err, &failed) {
				require.Equal(t, retry.Terminal, failed.Class)
			}
			close(release)
			cancel()
		}
	})
	inBubble(t, "is asked although the caller has gone, for a bounded time", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		opts := retrysql.Options{EndTimeout: time.Minute, Confirm: func(ctx context.Context) (bool, error) {
			require.NoError(t, ctx.Err())
			deadline, _ := ctx.Deadline()
			require.Equal(t, time.Minute, time.Until(deadline))
			return true, nil
		}}
		d := db{commit: cancel, commits: []error{context.Canceled}}
		require.NoError(t, retrysql.Run(ctx, atOnce, &opts, d.begin, statements()))
	})
}

// inBubble runs f as a subtest in virtual time.
func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

func TestRunAndTheCaller(t *testing.T) {
	t.Run("cancelled during fn: rolled back, with the cause", func(t *testing.T) {
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		var d db
		d.rollback = func(ctx context.Context) error { return ctx.Err() } // must be alive
		err := retrysql.Run(ctx, atOnce, nil, d.begin, func(ctx context.Context, _ *tx) error {
			cancel(why)
			return ctx.Err()
		})
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.ErrorIs(t, err, why)
		require.NotErrorIs(t, err, retrysql.ErrCommitAmbiguous)
		require.Equal(t, []string{"begin", "rollback"}, d.log)
	})
	t.Run("cancelled before the commit, which is not begun: rolled back", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var d db
		err := retrysql.Run(ctx, atOnce, nil, d.begin, func(context.Context, *tx) error {
			cancel()
			return nil
		})
		require.ErrorIs(t, err, retry.CallerCanceled)
		require.NotErrorIs(t, err, retrysql.ErrCommitAmbiguous)
		require.Equal(t, []string{"begin", "rollback"}, d.log)
	})
	for name, row := range map[string]struct {
		err error // of the commit
		is  error // in the error of the run
	}{
		"cancelled during the commit: ambiguous":                                    {context.Canceled, retrysql.ErrCommitAmbiguous},
		"cancelled and rolled back by the driver before the commit: it is canceled": {sql.ErrTxDone, retry.CallerCanceled},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			d := db{commit: cancel, commits: []error{row.err}}
			err := retrysql.Run(ctx, atOnce, nil, d.begin, statements())
			require.ErrorIs(t, err, retry.CallerCanceled)
			require.ErrorIs(t, err, row.is)
			require.Equal(t, row.is == retrysql.ErrCommitAmbiguous, errors.Is(err, retrysql.ErrCommitAmbiguous))
			require.NotErrorIs(t, err, retrysql.ErrTransactionEnded)
		})
	}
	for name, row := range map[string]struct {
		takes     time.Duration
		err       error
		ambiguous bool
	}{
		"a commit that succeeds after the caller has gone is a success": {takes: 3 * time.Second},
		"one that the server refuses then is known":                     {takes: 3 * time.Second, err: conflict},
		"one whose connection is lost then is in doubt":                 {takes: 3 * time.Second, err: io.EOF, ambiguous: true},
		"one that succeeds just before EndTimeout is a success":         {takes: 6*time.Second - 1},
		"one that succeeds after EndTimeout is in doubt":                {takes: 7 * time.Second, ambiguous: true},
	} {
		for _, canceled := range []bool{false, true} {
			inBubble(t, fmt.Sprintf("%s, canceled %v", name, canceled), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				if canceled {
					ctx, cancel = context.WithCancel(t.Context())
					time.AfterFunc(time.Second, cancel)
				}
				defer cancel()
				late := row.takes > 6*time.Second
				d := db{commit: func() { <-time.After(row.takes) }, rollback: func(context.Context) error {
					require.False(t, late, "the commit is under way")
					return nil
				}}
				if row.err != nil {
					d.commits = []error{row.err}
				}
				start := time.Now()
				err := retrysql.Run(ctx, atOnce, nil, d.begin, statements())
				require.Equal(t, min(row.takes, 6*time.Second), time.Since(start))
				require.Equal(t, row.ambiguous, errors.Is(err, retrysql.ErrCommitAmbiguous))
				if late {
					require.ErrorIs(t, err, ctx.Err())
					require.ErrorContains(t, err, "commit did not return within 5s after "+ctx.Err().Error())
				} else {
					require.ErrorIs(t, err, row.err)
				}
				<-time.After(10 * time.Second)
			})
		}
	}
	t.Run("an error of fn's own is not an attempt's timeout, though that has passed", func(t *testing.T) {
		p := atOnce
		p.AttemptTimeout = 1
		var d db
		err := retrysql.Run(t.Context(), p, nil, d.begin, func(ctx context.Context, _ *tx) error { <-ctx.Done(); return errBusiness })
		require.ErrorIs(t, err, retry.TerminalError)
	})
	inBubble(t, "an attempt's own timeout is repeated, whatever the driver makes of it", func(t *testing.T) {
		p := atOnce
		p.AttemptTimeout = time.Second
		for _, made := range []error{context.DeadlineExceeded, state("57014"), driver.ErrBadConn} {
			var d db
			n := 0
			err := retrysql.Run(t.Context(), p, nil, d.begin, func(ctx context.Context, _ *tx) error {
				if n++; n == 1 {
					<-ctx.Done()
					return made
				}
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, []string{"begin", "rollback", "begin", "commit"}, d.log)
		}
	})
	inBubble(t, "a rollback that hangs is not waited for longer than its timeout", func(t *testing.T) {
		release := make(chan struct{})
		d := db{rollback: func(context.Context) error { <-release; return nil }}
		start := time.Now()
		err := retrysql.Run(t.Context(), atOnce, nil, d.begin, statements(duplicate))
		require.ErrorContains(t, err, "rollback did not return within 5s")
		require.Equal(t, 5*time.Second, time.Since(start))
		close(release)
	})
	inBubble(t, "it waits between attempts, outside any transaction", func(t *testing.T) {
		var d db
		p := retry.Policy{Observe: func(_ context.Context, e retry.Event) {
			if e.Outcome == nil {
				d.log = append(d.log, "wait")
			}
		}, Rand: func() float64 { return 0.5 }}
		start := time.Now()
		require.NoError(t, retrysql.Run(t.Context(), p, nil, d.begin, statements(conflict, conflict)))
		require.Equal(t, []string{"begin", "exec!", "rollback", "wait", "begin", "exec!", "rollback", "wait", "begin", "exec", "commit"}, d.log)
		require.Equal(t, 15*time.Millisecond, time.Since(start), "the default policy: 10ms and 20ms, full jitter")
	})
	for name, row := range map[string]struct {
		end       func()
		recovered any
	}{"a panic": {func() { panic("boom") }, "boom"}, "runtime.Goexit": {runtime.Goexit, nil}} {
		t.Run(name+" in fn rolls back and goes on", func(t *testing.T) {
			var d db
			done := make(chan any)
			go func() {
				defer func() { done <- recover() }()
				_ = retrysql.Run(t.Context(), atOnce, nil, d.begin, func(context.Context, *tx) error { row.end(); return nil })
			}()
			require.Equal(t, row.recovered, <-done)
			require.Equal(t, []string{"begin", "rollback"}, d.log)
		})
	}
	t.Run("no classifier repeats a run in fn that may have committed", func(t *testing.T) {
		p, inner := atOnce, db{commits: []error{driver.ErrBadConn}}
		p.Classify = retry.Otherwise(retry.Retryable)
		var outer db
		err := retrysql.Run(t.Context(), p, nil, outer.begin, func(ctx context.Context, _ *tx) error {
			return retrysql.Run(ctx, atOnce, nil, inner.begin, statements())
		})
		require.ErrorIs(t, err, retrysql.ErrCommitAmbiguous)
		require.Equal(t, []string{"begin", "exec", "commit!", "rollback"}, inner.log)
		require.Equal(t, []string{"begin", "rollback"}, outer.log)
	})
	t.Run("a policy's own classifier is asked first", func(t *testing.T) {
		var d db
		p := atOnce
		p.Classify = retry.RetryOn(duplicate)
		require.NoError(t, retrysql.Run(t.Context(), p, nil, d.begin, statements(duplicate)))
		p.Classify = retry.Otherwise(retry.Retryable)
		d = db{commits: []error{io.EOF}}
		require.ErrorIs(t, retrysql.Run(t.Context(), p, nil, d.begin, statements()), retrysql.ErrCommitAmbiguous, "but not about that")
	})
}
