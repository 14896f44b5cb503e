package carried

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"carried/store"

	sethvargo "github.com/sethvargo/go-retry"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/retrygo/retry"
)

func resetFirst(ctx context.Context, db store.DB) (all []string, n int, err error) {
	err = db.Update(ctx, func(tx *store.Tx) error {
		all, n = all[:0], 0
		all = append(all, "x")
		n += len(all)
		return tx.Put(ctx)
	})
	return all, n, err
}

func resetByArgument(ctx context.Context) (all []string, err error) {
	err = update(ctx, func() error {
		all = append(all, "begun")
		return send("begun")
	}, func() { all = nil })
	return all, err
}

func loadedAnew(ctx context.Context, db store.DB) (r report, err error) {
	err = db.Update(ctx, func(tx *store.Tx) error {
		if err := load(&r); err != nil {
			return err
		}
		r.rows = append(r.rows, "x")
		return tx.Put(ctx, r)
	})
	return r, err
}

func lastThing(ctx context.Context) (all []string, err error) {
	err = retry.Do(ctx, policy, func(context.Context) error {
		items, _, err := list(1)
		if err != nil {
			return err
		}
		all = append(all, items...)
		return nil
	})
	return all, err
}

func onlyIfNil(ctx context.Context) (all []string, total int, err error) {
	err = retry.Do(ctx, policy, func(context.Context) error {
		items, _, err := list(1)
		if err != nil {
			log.Println(err)
		} else {
			all = append(all, items...)
		}
		return err
	})
	err = errors.Join(err, retry.Do(ctx, policy, func(context.Context) error {
		n, err := size()
		total += n
		return err
	}))
	return all, total, err
}

func permanentAfter(ctx context.Context) (all []string, err error) {
	err = retry.Do(ctx, policy, func(context.Context) error {
		all = append(all, "x")
		return retry.Permanent(send("x"))
	})
	return all, err
}

func unmarked(ctx context.Context) (all []string, err error) {
	err = sethvargo.Do(ctx, sethvargo.NewConstant(1), func(context.Context) error {
		if err := send("x"); err != nil {
			return sethvargo.RetryableError(err)
		}
		all = append(all, "x")
		return send("y")
	})
	return all, err
}

func polledToTheEnd(ctx context.Context) (all []string, err error) {
	err = wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(context.Context) (bool, error) {
		items, next, err := list(1)
		if err != nil || next != 0 {
			return false, nil
		}
		all = append(all, items...)
		if err := send(items...); err != nil {
			return false, err
		}
		return true, nil
	})
	return all, err
}

func progress(ctx context.Context, data []byte) (sent int, all []string, err error) {
	err = retry.Do(ctx, policy, func(context.Context) error {
		for sent < len(data) {
			n, err := os.Stdout.Write(data[sent:])
			sent += n
			if err != nil {
				return err
			}
		}
		items, _, err := list(len(all))
		all = append(all, items...)
		if err != nil {
			return err
		}
		return send()
	})
	return sent, all, err
}

func distinct(ctx context.Context) (all []string, err error) {
	err = retry.Do(ctx, policy, func(context.Context) error {
		items, _, err := list(1)
		if err != nil {
			return err
		}
		for _, item := range items {
			if !slices.Contains(all, item) {
				all = append(all, item)
			}
		}
		return send()
	})
	return all, err
}

func purpose(ctx context.Context) (errs []error, failedNames []string, tries int, err error) {
	err = retry.Do(ctx, policy, func(context.Context) error {
		tries++
		failedNames = append(failedNames, "x")
		err := send("x")
		errs = append(errs, err)
		return err
	})
	return errs, failedNames, tries, err
}

func onlyLogged(ctx context.Context) error {
	var seen []string
	err := retry.Do(ctx, policy, func(context.Context) error {
		seen = append(seen, "x")
		return send("x")
	})
	log.Println(seen)
	return err
}

func planned(ctx context.Context, r io.Reader) error {
	var plan []byte
	return retry.Do(ctx, policy, func(context.Context) (err error) {
		if plan == nil {
			if plan, err = io.ReadAll(r); err != nil {
				return retry.Permanent(err)
			}
		}
		return send(string(plan))
	})
}

func rewoundFirst(ctx context.Context, file *os.File, c *http.Client) error {
	req, err := http.NewRequest("PUT", "http://x", bytes.NewReader(nil))
	if err != nil {
		return err
	}
	return retry.Do(ctx, policy, func(ctx context.Context) (err error) {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if req.Body, err = req.GetBody(); err != nil {
			return err
		}
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		resp.Body.Close()
		return upload(ctx, "name", file)
	})
}

func withoutBody(ctx context.Context, c *http.Client) error {
	req, err := http.NewRequest("GET", "http://x", nil)
	if err != nil {
		return err
	}
	return retry.Do(ctx, policy, func(ctx context.Context) (err error) {
		resp, err := c.Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
}

func endlessReaders(ctx context.Context) error {
	random := rand.Reader
	return retry.Do(ctx, policy, func(ctx context.Context) error {
		if err := upload(ctx, "a", random); err != nil {
			return err
		}
		use(sign(os.Stdin))
		return upload(ctx, "b", os.Stdin)
	})
}

func inside(ctx context.Context, part []byte) error {
	return retry.Do(ctx, policy, func(ctx context.Context) error {
		var b strings.Builder
		b.Write(part)
		body := bytes.NewReader(part)
		return upload(ctx, b.String(), body)
	})
}

func once(ctx context.Context, db store.DB) (all []string, err error) {
	err = store.RetryTx(ctx, func(*store.Tx) error {
		all = append(all, "x")
		return send("x")
	})
	err = errors.Join(err, db.View(ctx, func(*store.Tx) error {
		all = append(all, "x")
		return send("x")
	}))
	err = errors.Join(err, store.ForEach(nil, func(string) error {
		all = append(all, "x")
		return send("x")
	}))
	go func() {
		_ = store.Retry(ctx, func() error {
			go func() { all = append(all, "x") }()
			return send("x")
		})
	}()
	return all, err
}
