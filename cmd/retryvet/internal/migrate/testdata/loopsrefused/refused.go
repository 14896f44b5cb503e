// Package refused has hand-written retry loops that stay.
package refused

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"math/rand"
	"net/http"
	"net/url"
	"os"
	"time"
)

var (
	errBusy = errors.New("busy")
	global  error
)

type client struct {
	retries int
	delay   time.Duration
	ctx     context.Context
}

func (c *client) get(context.Context) (string, error) { return "", errBusy }
func (c *client) ping() error                         { return errBusy }
func (c *client) wait() time.Duration                 { return c.delay }

func (c *client) number() (err error) {
	for i := 0; i < c.retries; i++ { // want `the number of attempts is not a constant`
		if err = c.ping(); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

func (c *client) field() (err error) {
	for range 3 { // want `the length of its wait is not followed`
		if err = c.ping(); err == nil {
			return nil
		}
		time.Sleep(c.delay)
	}
	return err
}

func (c *client) infinite() (err error) {
	for i := 0; i < 3; i++ { // want `the length of its wait is not followed`
		if err = c.ping(); err == nil {
			return nil
		}
		time.Sleep(time.Duration(math.Pow(10, float64(400*i))) * time.Second)
	}
	return err
}

func (c *client) overflow() (err error) {
	ms := int32(1 << 30)
	for range 4 { // want `the length of its wait is not followed`
		if err = c.ping(); err == nil {
			return nil
		}
		time.Sleep(time.Duration(ms) * time.Millisecond)
		ms *= 2
	}
	return err
}

func (c *client) method() (err error) {
	for range 3 { // want `the length of its wait is not followed`
		if err = c.ping(); err == nil {
			return nil
		}
		time.Sleep(c.wait())
	}
	return err
}

func (c *client) grows() (err error) {
	d := time.Millisecond
	for { // want `no Backoff has its waits`
		if err = c.ping(); err == nil {
			return nil
		}
		time.Sleep(d)
		d += time.Duration(rand.Int63n(int64(d)))
	}
}

func (c *client) logged() (err error) {
	d := time.Second
	for range 3 { // want `d is used for something else than the wait`
		if err = c.ping(); err == nil {
			return nil
		}
		log.Print("again in ", d)
		time.Sleep(d)
		d *= 2
	}
	return err
}

func (c *client) again() (string, error) {
	for range 3 { // want `it waits after the last attempt too`
		if s, err := c.get(c.ctx); err == nil {
			return s, nil
		}
		time.Sleep(time.Second)
	}
	return c.get(c.ctx)
}

func (c *client) stops(stop chan struct{}) (err error) {
	for { // want `a channel that is not a context's`
		if err = c.ping(); err == nil {
			return nil
		}
		select {
		case <-stop:
			return err
		case <-time.After(time.Second):
		}
	}
}

func (c *client) twice() (err error) {
	for range 3 { // want `it waits in 2 places`
		if err = c.ping(); err == nil {
			return nil
		}
		if errors.Is(err, errBusy) {
			time.Sleep(time.Minute)
			continue
		}
		time.Sleep(time.Second)
	}
	return err
}

func (c *client) sometimes() (err error) {
	for range 3 { // want `its wait depends on a condition`
		if err = c.ping(); err == nil {
			return nil
		}
		if errors.Is(err, errBusy) {
			time.Sleep(time.Minute)
		}
	}
	return err
}

func (c *client) skips() (err error) {
	for range 3 { // want `a turn can end without a wait`
		if err = c.ping(); err == nil {
			return nil
		}
		if errors.Is(err, errBusy) {
			continue
		}
		time.Sleep(time.Second)
	}
	return err
}

func (c *client) first() (err error) {
	for range 3 { // want `it waits before its first attempt`
		time.Sleep(time.Second)
		if err = c.ping(); err == nil {
			return nil
		}
	}
	return err
}

func status() (*http.Response, error) {
	for { // want `a turn is repeated without an error in one variable`
		resp, err := http.Get("http://test")
		if err == nil && resp.StatusCode < 300 {
			return resp, nil
		}
		time.Sleep(time.Second)
	}
}

func (c *client) before() (s string, err error) {
	s, err = c.get(c.ctx)
	for range 3 { // want `a turn looks at the error of the one before`
		if err == nil {
			break
		}
		s, err = c.get(c.ctx)
		time.Sleep(time.Second)
	}
	return s, err
}

func (c *client) packageLevel() error {
	for range 3 { // want `its error is a package-level variable`
		if global = c.ping(); global == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return global
}

func (c *client) compared() error {
	var err error
	for range 3 { // want `its error is compared by ==`
		if err = c.ping(); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	if err == errBusy {
		return nil
	}
	return err
}

func (c *client) deadline(ctx context.Context) error {
	var err error
	for range 3 { // want `where deadline is called: it is asked for context.DeadlineExceeded`
		if _, err = c.get(ctx); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

func (c *client) late(ctx context.Context) bool {
	return errors.Is(c.deadline(ctx), context.DeadlineExceeded)
}

func timedOut(err error) bool { return os.IsTimeout(err) }

func (c *client) helper() error {
	var err error
	for range 3 { // want `timedOut: its error is passed to os.IsTimeout`
		if err = c.ping(); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	if timedOut(err) {
		return nil
	}
	return fmt.Errorf("ping: %w", err)
}

func (c *client) start() {
	var ctx = context.Background()
	go func(ctx context.Context) {
		for { // want `its wait is inside of another statement`
			if _, err := c.get(ctx); err == nil {
				return
			} else {
				time.Sleep(time.Second)
			}
		}
	}(ctx)
}

func (c *client) labeled() (err error) {
retry:
	for range 3 { // want `it has a label`
		if err = c.ping(); err == nil {
			break retry
		}
		time.Sleep(time.Second)
	}
	return err
}

func (c *client) reconnect() {}

func (c *client) afterwards() (err error) {
	for range 3 { // want `its wait is not the last step of a turn`
		if err = c.ping(); err == nil {
			return nil
		}
		time.Sleep(time.Second)
		c.reconnect()
	}
	return err
}

func (c *client) beforehand() (err error) {
	for i := range 3 { // want `its wait is not the last step of a turn, or the first`
		c.reconnect()
		if i > 0 {
			time.Sleep(time.Second)
		}
		if err = c.ping(); err == nil {
			return nil
		}
	}
	return err
}

func (c *client) between() (err error) {
	for range 3 { // want `its wait is not the last step of a turn`
		err = c.ping()
		if err != nil {
			time.Sleep(time.Second)
		}
		c.reconnect()
		if err == nil {
			return nil
		}
	}
	return err
}

func (c *client) ended(ctx context.Context) error {
	for { // want `where ended is called: its error is compared by ==`
		err := c.ping()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (c *client) gone(ctx context.Context) bool { return c.ended(ctx) == context.Canceled }

func (c *client) joined(ctx context.Context) error {
	for { // want `its end has the error of the context beside its own`
		err := c.ping()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

func (c *client) deferred() (err error) {
	defer func() {
		if _, ok := err.(*os.PathError); ok {
			log.Print(err)
		}
	}()
	for i := range 3 { // want `its error's type is asserted`
		if err = c.ping(); err == nil {
			return nil
		}
		if i < 2 {
			time.Sleep(time.Second)
		}
	}
	return err
}

func generic[T any](ctx context.Context, c *client) (t T, _ error) {
	for { // want `cannot use nil as T value`
		_, err := c.get(ctx)
		if err == nil {
			return t, nil
		}
		time.Sleep(time.Second)
	}
}

func order(ctx context.Context, c *http.Client) error {
	for { // want `it repeats a POST without a key`
		req, err := http.NewRequestWithContext(ctx, "POST", "http://shop/orders", nil)
		if err != nil {
			return err
		}
		resp, err := c.Do(req)
		if err == nil {
			return resp.Body.Close()
		}
		time.Sleep(time.Second)
	}
}

func patch(ctx context.Context, c *http.Client) (err error) {
	for range 3 { // want `it repeats a PATCH without a key, or with one that is new`
		req, _ := http.NewRequestWithContext(ctx, http.MethodPatch, "http://shop/orders/1", nil)
		req.Header.Set("Idempotency-Key", fmt.Sprint(rand.Uint64()))
		var resp *http.Response
		if resp, err = c.Do(req); err == nil {
			return resp.Body.Close()
		}
		time.Sleep(time.Second)
	}
	return err
}

func form(values url.Values) (err error) {
	for range 3 { // want `it repeats a POST without a key`
		var resp *http.Response
		if resp, err = http.PostForm("http://shop/orders", values); err == nil {
			return resp.Body.Close()
		}
		time.Sleep(time.Second)
	}
	return err
}
