package carried

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"carried/store"

	sethvargo "github.com/sethvargo/go-retry"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/retrygo/retry"
)

var policy retry.Policy

func list(page int) ([]string, int, error)            { return nil, 0, nil }
func size() (int, error)                              { return 0, nil }
func send(...string) error                            { return nil }
func upload(context.Context, string, io.Reader) error { return nil }
func sign(io.Reader) string                           { return "" }
func load(*report) error                              { return nil }
func use(...any)                                      {}

// The pages of a list are read again from the first one.
func pages(ctx context.Context) (all []string, err error) {
	err = retry.Do(ctx, policy, func(context.Context) error {
		for page := 1; page != 0; {
			items, next, err := list(page)
			if err != nil {
				return err
			}
			all = append(all, items...) // want `^a failed attempt leaves what it appended to all, and the next one appends it again: reset all first, or collect in a variable of the attempt \(\w+\)$`
			page = next
		}
		return nil
	})
	return all, err
}

// A commit fails after the rows were read.
func rows(ctx context.Context, db store.DB) ([]string, error) {
	var names []string
	err := db.Update(ctx, func(tx *store.Tx) error {
		found, err := tx.Rows("SELECT name FROM users")
		if err != nil {
			return err
		}
		for _, name := range found {
			names = append(names, strings.ToLower(name)) // want `leaves what it appended to names.*: declare names \(line 52\) inside of what runs again, or reset it there`
		}
		return nil
	})
	return names, err
}

// A callback collects, inside of what another function runs again.
func collected(ctx context.Context, db store.DB) (n int, err error) {
	var trash []string
	err = store.ReadAll(ctx, db, func(name string) error {
		trash = append(trash, name) // want `appended to trash`
		return nil
	})
	return len(trash), err
}

// The batch that is written has the element of the attempt before, too.
func batch(ctx context.Context, db store.DB, items []any, last any) error {
	return db.Update(ctx, func(tx *store.Tx) error {
		items = append(items, last) // want `items is passed on with what a failed attempt appended`
		return tx.Put(ctx, items...)
	})
}

// Counts of rows, in a transaction that then writes.
func counts(ctx context.Context, db store.DB) (total int, err error) {
	err = db.Update(ctx, func(tx *store.Tx) error {
		found, err := tx.Rows("DELETE ... RETURNING id")
		if err != nil {
			return err
		}
		total += len(found) // want `a failed attempt leaves what it added to total, and the next one adds it again`
		return tx.Put(ctx, "log")
	})
	return total, err
}

type report struct {
	rows []string
	sums map[string]int
	text strings.Builder
	db   store.DB
}

func (r *report) fill(ctx context.Context) error {
	return store.Retry(ctx, func() error {
		items, _, err := list(1)
		if err != nil {
			return err
		}
		r.rows = append(r.rows, items...) // want `appended to r.rows.*: reset r.rows first`
		r.sums["all"] += len(items)       // want `added to r.sums\["all"\]`
		fmt.Fprintln(&r.text, items)      // want `wrote to r.text`
		return send(items...)
	})
}

func (r *report) named(ctx context.Context) error { return store.Retry(ctx, r.attempt) }

func (r *report) attempt() error {
	r.rows = append(r.rows, "begun") // want `appended to r.rows`
	return send("begun")
}

// The request of a chunk is made before the retry.
func chunk(ctx context.Context, c *http.Client, part []byte) error {
	req, err := http.NewRequestWithContext(ctx, "PUT", "http://x", bytes.NewReader(part))
	if err != nil {
		return err
	}
	return retry.Do(ctx, policy, func(context.Context) error {
		resp, err := c.Do(req) // want `a failed attempt has read the body of req, and the next one has none: make req \(line 126\) inside of what runs again`
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

// The second attempt sends 0 bytes.
func put(ctx context.Context, c *http.Client, body io.Reader) error {
	return retry.Do(ctx, policy, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, "PUT", "http://x", body) // want `a failed attempt has read body, and the next one gets only what is left, without an error: make body \(line 140\) inside`
		if err != nil {
			return err
		}
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

func stream(ctx context.Context, file io.Reader) (err error) {
	for ctx := range retry.Attempts(ctx, policy, &err) {
		err = upload(ctx, "name", io.LimitReader(file, 100)) // want `a failed attempt has read file`
	}
	return err
}

func decoded(ctx context.Context, r io.Reader) error {
	return retry.Do(ctx, policy, func(context.Context) error {
		var v any
		if err := json.NewDecoder(r).Decode(&v); err != nil { // want `has read r`
			return err
		}
		return send()
	})
}

func written(ctx context.Context) (string, []byte, error) {
	var b strings.Builder
	h := sha256.New()
	err := retry.Do(ctx, policy, func(context.Context) error {
		items, _, err := list(1)
		if err != nil {
			return err
		}
		for _, item := range items {
			b.WriteString(item)   // want `wrote to b, and the next one writes it again: declare b`
			h.Write([]byte(item)) // want `wrote to h`
		}
		return send(items...)
	})
	return b.String(), h.Sum(nil), err
}

func download(ctx context.Context, get func() (io.Reader, error), to *os.File) error { // want download:"runs a parameter again"
	return retry.Do(ctx, policy, func(context.Context) error {
		from, err := get()
		if err != nil {
			return err
		}
		_, err = io.Copy(to, from) // want `wrote to to`
		return err
	})
}

// What was cut off before it was sent is lost.
func queue(ctx context.Context, items []string) error {
	return retry.Do(ctx, policy, func(context.Context) error {
		part := items[:min(10, len(items))]
		items = items[len(part):] // want `a failed attempt has cut items, and what it did not deliver is lost: cut items once the part is delivered`
		return send(part...)
	})
}

func scanned(ctx context.Context, rows *sql.Rows) error {
	return retry.Do(ctx, policy, func(context.Context) error {
		for rows.Next() { // want `has advanced rows`
			if err := send("row"); err != nil {
				return err
			}
		}
		return nil
	})
}

func polled(ctx context.Context) (all []string, err error) {
	err = wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(context.Context) (bool, error) {
		items, next, err := list(1)
		if err != nil {
			return false, err // this ends it
		}
		all = append(all, items...) // want `appended to all`
		return next == 0, nil
	})
	return all, err
}

func marked(ctx context.Context) (all []string, err error) {
	err = sethvargo.Do(ctx, sethvargo.NewConstant(1), func(context.Context) error {
		all = append(all, "begun") // want `appended to all`
		if err := send("begun"); err != nil {
			return sethvargo.RetryableError(err)
		}
		return nil
	})
	return all, err
}

func variable(ctx context.Context) (all []string, err error) {
	op := func() error {
		all = append(all, "begun") // want `appended to all`
		return send("begun")
	}
	return all, store.Retry(ctx, op)
}

func emptyReset(ctx context.Context) (all []string, err error) {
	noop := func() {}
	err = update(ctx, func() error {
		all = append(all, "begun") // want `appended to all`
		return send("begun")
	}, noop)
	return all, err
}

func update(ctx context.Context, f func() error, reset func()) error { // want update:"runs a parameter again"
	return store.Retry(ctx, func() error {
		reset()
		return f()
	})
}

func checked(ctx context.Context) (all []string, err error) {
	_, err = retry.DoValue(ctx, policy, retry.Checked(func(context.Context) (int, error) {
		all = append(all, "x") // want `appended to all`
		return size()
	}, func(n int) error { return nil }))
	return all, err
}

func ifNil(ctx context.Context) (all []string, err error) {
	for range retry.Attempts(ctx, policy, &err) {
		var items []string
		items, _, err = list(1)
		if err == nil {
			all = append(all, items...) // want `appended to all`
			err = send(items...)
		}
	}
	return all, err
}

func sentText(ctx context.Context) error {
	var b strings.Builder
	return retry.Do(ctx, policy, func(context.Context) error {
		b.WriteString("x") // want `wrote to b`
		return send(b.String())
	})
}
