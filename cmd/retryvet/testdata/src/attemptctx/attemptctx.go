package attemptctx

import (
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retrysql"
)

func call(context.Context) error { return nil }
func number(context.Context) int { return 0 }

type client struct {
	ctx    context.Context
	policy retry.Policy
	db     *sql.DB
	http   *http.Client
}

var timed = retry.Policy{AttemptTimeout: time.Second}

func blank(ctx context.Context) error {
	return retry.Do(ctx, timed, func(_ context.Context) error {
		return call(ctx) // want `the attempt uses ctx from outside: it does not end with the attempt`
	})
}

func unnamed(ctx context.Context) error {
	return retry.Do(ctx, timed, func(context.Context) error {
		if err := call(ctx); err != nil { // want `uses ctx from outside`
			return err
		}
		return call(ctx)
	})
}

func otherName(ctx context.Context) (int, error) {
	return retry.DoValue(ctx, timed, func(attempt context.Context) (int, error) {
		if err := call(attempt); err != nil {
			return 0, err
		}
		return 1, call(ctx) // want `uses ctx from outside`
	})
}

func sameName(ctx context.Context) error {
	return retry.Do(ctx, timed, func(ctx context.Context) error { return call(ctx) })
}

func (c *client) field(ctx context.Context) error {
	return retry.Do(ctx, c.policy, func(ctx context.Context) error {
		return call(c.ctx) // want `uses c.ctx from outside`
	})
}

func derived(ctx context.Context) error {
	return retry.Do(ctx, timed, func(attempt context.Context) error {
		limited, cancel := context.WithTimeout(ctx, time.Second) // want `uses ctx from outside`
		defer cancel()
		return call(limited)
	})
}

func withoutTimeout(ctx context.Context) error {
	p := retry.Inline()
	p.Name = "x"
	if err := retry.Do(ctx, p, func(context.Context) error { return call(ctx) }); err != nil {
		return err
	}
	return retry.Do(ctx, retry.Policy{MaxAttempts: 3}, func(context.Context) error { return call(ctx) })
}

func timeoutLater(ctx context.Context) error {
	p := retry.Inline()
	p.AttemptTimeout = time.Second
	return retry.Do(ctx, p, func(context.Context) error {
		return call(ctx) // want `uses ctx from outside`
	})
}

func onPurpose(ctx context.Context) error {
	return retry.Do(ctx, timed, func(attempt context.Context) error {
		slog.InfoContext(ctx, "attempt")
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_ = number(ctx)
		go call(ctx)
		defer call(ctx)
		if err := call(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		return call(attempt)
	})
}

func ignored(ctx context.Context) error {
	return retry.Do(ctx, timed, func(attempt context.Context) error {
		//retryvet:ignore attemptctx the lease must outlive the attempt
		return call(ctx)
	})
}

func wrapped(ctx context.Context) func(context.Context, int) (int, error) {
	return retry.Wrap(retry.Inline(), func(_ context.Context, n int) (int, error) {
		return n, call(ctx) // want `uses ctx from outside`
	})
}

func (c *client) requestWithoutBody(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://x", nil)
	if err != nil {
		return err
	}
	if err := retry.Do(ctx, retry.Inline(), func(ctx context.Context) error {
		_, err := c.http.Do(req)
		return err
	}); err != nil {
		return err
	}
	if err := retry.Do(ctx, timed, func(ctx context.Context) error {
		_, err := c.http.Do(req.Clone(ctx))
		return err
	}); err != nil {
		return err
	}
	return retry.Do(ctx, timed, func(ctx context.Context) error {
		_, err := c.http.Do(req) // want `the attempt sends req, built outside: it does not end with the attempt`
		return err
	})
}

func (c *client) transaction(ctx context.Context) error {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := retry.Do(ctx, retry.Inline(), func(ctx context.Context) error {
		_, err := tx.ExecContext(ctx, "UPDATE x") // want `the attempt uses the transaction tx from outside`
		return err
	}); err != nil {
		return err
	}
	return retrysql.Tx(ctx, c.db, retrysql.DefaultPolicy(), nil, func(ctx context.Context, tx *retrysql.Txn) error {
		if _, err := tx.ExecContext(ctx, "UPDATE x"); err != nil {
			return err
		}
		if _, err := c.db.ExecContext(ctx, "UPDATE y"); err != nil { // want `this runs on c.db, outside of the transaction, and is not rolled back with it`
			return err
		}
		tx.AfterCommit(func(ctx context.Context) { _, _ = c.db.ExecContext(ctx, "UPDATE z") })
		return c.db.PingContext(ctx)
	})
}

func loops(ctx context.Context, p retry.Policy, load func(context.Context) error) (err error) {
	for c := range retry.Attempts(ctx, p, &err) {
		if err = load(ctx); err == nil { // want `the attempt uses ctx from outside: it does not end with the attempt`
			err = load(c)
		}
	}
	for range retry.Attempts(ctx, p, &err) {
		err = load(ctx) // want `the attempt uses ctx from outside: it does not end with the attempt`
	}
	for _ = range retry.Attempts(ctx, p, &err) {
		err = load(ctx) // want `the attempt uses ctx from outside`
	}
	for ctx := range retry.Attempts(ctx, p, &err) {
		err = load(ctx)
	}
	for range retry.Attempts(ctx, retry.Inline(), &err) {
		err = load(ctx)
	}
	return err
}

func named(ctx context.Context, c *client) (int, error) {
	work := func(attempt context.Context) (int, error) {
		return 1, call(ctx) // want `uses ctx from outside`
	}
	if _, err := retry.DoValue(ctx, timed, work); err != nil {
		return 0, err
	}
	return retry.DoValue(ctx, timed, c.load)
}

func (c *client) load(ctx context.Context) (int, error) {
	if err := call(ctx); err != nil {
		return 0, err
	}
	return 1, call(c.ctx) // want `uses c.ctx from outside`
}

func (c *client) save(ctx context.Context) error {
	return retrysql.Tx(ctx, c.db, retrysql.DefaultPolicy(), nil, c.insert)
}

func (c *client) insert(ctx context.Context, tx *retrysql.Txn) error {
	if _, err := tx.ExecContext(ctx, "UPDATE x"); err != nil {
		return err
	}
	_, err := c.db.ExecContext(ctx, "UPDATE y") // want `this runs on c.db, outside of the transaction`
	return err
}

func (c *client) notRetried(ctx context.Context) error { return call(c.ctx) }
