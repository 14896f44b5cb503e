package replay

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"time"

	"github.com/retrygo/retry"
)

var errBusy = errors.New("busy")

func publish(context.Context) error { return nil }
func sign(*http.Request)            {}
func dial(error) bool               { return false }

func post(ctx context.Context, c *http.Client) error {
	return retry.Do(ctx, retry.Inline(), func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://x/orders", nil)
		if err != nil {
			return retry.Permanent(err)
		}
		req.Header.Set("Accept", "text/plain")
		resp, err := c.Do(req) // want `this POST without an Idempotency-Key is repeated after any error`
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

func patch(ctx context.Context, c *http.Client) (err error) {
	for ctx := range retry.Attempts(ctx, retry.Inline(), &err) {
		var req *http.Request
		req, err = http.NewRequestWithContext(ctx, "PATCH", "http://x/orders/1", nil)
		if err != nil {
			break
		}
		var resp *http.Response
		if resp, err = c.Do(req); err != nil { // want `this PATCH without an Idempotency-Key`
			continue
		}
		err = resp.Body.Close()
	}
	return err
}

func leavesAtOnce(ctx context.Context, c *http.Client) (err error) {
	for range retry.Attempts(ctx, retry.Inline(), &err) {
		var resp *http.Response
		if resp, err = c.Post("http://x", "", nil); err != nil {
			return err
		}
		err = resp.Body.Close()
	}
	return err
}

func byHand(c *http.Client) error {
	for i := 0; ; i++ {
		resp, err := c.Post("http://x", "", nil) // a loop of one's own is no call of this library
		if err == nil {
			return resp.Body.Close()
		}
		if i == 3 {
			return err
		}
		time.Sleep(time.Second)
	}
}

func newKeys(ctx context.Context, c *http.Client) error {
	return retry.Do(ctx, retry.Inline(), func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, "POST", "http://x/orders", nil)
		if err != nil {
			return retry.Permanent(err)
		}
		key := fmt.Sprint(rand.Uint64())
		req.Header.Set("Idempotency-Key", key) // want `this key is new in each attempt, and the POST is repeated after any error`
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

func newTimes(ctx context.Context, c *http.Client) (err error) {
	for ctx := range retry.Attempts(ctx, retry.Inline(), &err) {
		var req *http.Request
		if req, err = http.NewRequestWithContext(ctx, "POST", "http://x/orders", nil); err != nil {
			break
		}
		req.Header.Set("idempotency-key", time.Now().String()) // want `this key is new in each attempt`
		var resp *http.Response
		if resp, err = c.Do(req); err != nil {
			continue
		}
		err = resp.Body.Close()
	}
	return err
}

func keyOfTheRun(ctx context.Context, c *http.Client) error {
	key := fmt.Sprint(rand.Uint64())
	return retry.Do(ctx, retry.Inline(), func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, "POST", "http://x/orders", nil)
		if err != nil {
			return retry.Permanent(err)
		}
		req.Header.Set("Idempotency-Key", key)
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

func keyed(ctx context.Context, c *http.Client) error {
	return retry.Do(ctx, retry.Inline(), func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, "POST", "http://x/orders", nil)
		if err != nil {
			return retry.Permanent(err)
		}
		req.Header.Set("Idempotency-Key", "1")
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

func signed(ctx context.Context, c *http.Client) error {
	return retry.Do(ctx, retry.Inline(), func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, "POST", "http://x/orders", nil)
		if err != nil {
			return retry.Permanent(err)
		}
		sign(req)
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

func judged(ctx context.Context, c *http.Client) error {
	return retry.Do(ctx, retry.Inline(), func(ctx context.Context) error {
		resp, err := c.Post("http://x", "", nil)
		if err != nil && dial(err) {
			return err
		}
		if err != nil {
			return retry.Permanent(err)
		}
		return resp.Body.Close()
	})
}

func onlyOnAnswers(ctx context.Context, c *http.Client) error {
	return retry.Do(ctx, retry.Inline(), func(ctx context.Context) error {
		resp, err := c.Post("http://x", "", nil)
		if err != nil {
			return retry.Permanent(err)
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests {
			return errBusy
		}
		if resp.StatusCode == http.StatusNotFound {
			return nil
		}
		return publish(ctx)
	})
}

type caller struct{ http *http.Client }

func notReadYet(ctx context.Context, c *http.Client, upload io.Reader) error {
	return retry.Do(ctx, retry.Inline(), func(ctx context.Context) error {
		if err := publish(ctx); err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, "PUT", "http://x", upload)
		if err != nil {
			return retry.Permanent(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			return retry.Permanent(err)
		}
		defer resp.Body.Close()
		return nil
	})
}

func ignored(ctx context.Context, c *http.Client) error {
	return retry.Do(ctx, retry.Inline(), func(ctx context.Context) error {
		//retryvet:ignore replay it is a query
		resp, err := c.Post("http://x/search", "", nil)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

func insert(ctx context.Context, db *sql.DB) error {
	return retry.Do(ctx, retry.Inline(), func(ctx context.Context) error {
		if _, err := db.ExecContext(ctx, "INSERT INTO orders (name, total) VALUES ($1, $2)", "x", 1); err != nil { // want `this INSERT runs again if a later step fails, and its row is there twice: use retrysql.Tx, or a key`
			return err
		}
		return publish(ctx)
	})
}

func insertOnce(ctx context.Context, db *sql.DB, tx *sql.Tx) error {
	return retry.Do(ctx, retry.Inline(), func(ctx context.Context) error {
		if _, err := db.ExecContext(ctx, "INSERT INTO orders (id, total) VALUES ($1, $2)", "x", 1); err != nil {
			return err
		}
		if _, err := db.ExecContext(ctx, "INSERT INTO orders (name) VALUES ($1) ON CONFLICT DO NOTHING", "x"); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (name) VALUES ($1)", "x"); err != nil {
			return err
		}
		if err := publish(ctx); err != nil {
			return err
		}
		_, err := db.ExecContext(ctx, "INSERT INTO orders (name) VALUES ($1)", "last")
		return err
	})
}
