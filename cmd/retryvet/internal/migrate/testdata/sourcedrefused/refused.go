// Package refused has loops that ask other libraries how long to wait, and that stay.
package refused

import (
	"context"
	"errors"
	"log"
	"time"

	backoff4 "github.com/cenkalti/backoff/v4"
	backoff5 "github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/cockroach/pkg/util/retry"
	"github.com/grafana/dskit/backoff"
	"k8s.io/apimachinery/pkg/util/wait"
)

var errBusy = errors.New("busy")

type client struct {
	config backoff.Config
	b      *backoff4.ExponentialBackOff
	closer chan struct{}
}

func (c *client) ping() error { return errBusy }

func (c *client) elapsed() (err error) {
	b := backoff4.NewExponentialBackOff()
	for range 5 { // want `it does not look for Stop`
		if err = c.ping(); err == nil {
			return nil
		}
		time.Sleep(b.NextBackOff())
	}
	return err
}

func (c *client) begun() error {
	b := backoff4.NewExponentialBackOff()
	if err := work(); err != nil {
		return err
	}
	for { // want `MaxElapsedTime begins before the loop`
		err := c.ping()
		if err == nil {
			return nil
		}
		d := b.NextBackOff()
		if d == backoff4.Stop {
			return err
		}
		time.Sleep(d)
	}
}

func (c *client) field() (err error) {
	for range 5 { // want `is not a local variable`
		if err = c.ping(); err == nil {
			return nil
		}
		time.Sleep(c.b.NextBackOff())
	}
	return err
}

func (c *client) shared(b backoff4.BackOff) (err error) {
	for { // want `b is not made by a statement before it`
		if err = c.ping(); err == nil {
			return nil
		}
		time.Sleep(b.NextBackOff())
	}
}

func (c *client) again() {
	b := backoff5.NewExponentialBackOff()
	for {
		for { // want `b is not made by a statement before it, in the same block`
			if err := c.ping(); err == nil {
				break
			}
			time.Sleep(b.NextBackOff())
		}
	}
}

func (c *client) logs() (err error) {
	b := backoff5.NewExponentialBackOff()
	for range 5 { // want `d is used for something else than the wait`
		if err = c.ping(); err == nil {
			return nil
		}
		d := b.NextBackOff()
		log.Print("again in ", d)
		time.Sleep(d)
	}
	return err
}

func (c *client) adds() (err error) {
	b := backoff5.NewExponentialBackOff()
	for range 5 { // want `no Backoff has its waits`
		if err = c.ping(); err == nil {
			return nil
		}
		time.Sleep(time.Second + b.NextBackOff())
	}
	return err
}

func (c *client) other() (err error) {
	b := backoff5.NewExponentialBackOff()
	for range 5 { // want `its wait is not what it asks for`
		if err = c.ping(); err == nil {
			return nil
		}
		log.Print(b.NextBackOff())
		time.Sleep(time.Second)
	}
	return err
}

func (c *client) resets() (err error) {
	b := backoff5.NewExponentialBackOff()
	for range 5 { // want `b is used for something else too`
		if err = c.ping(); err == nil {
			return nil
		}
		if errors.Is(err, errBusy) {
			b.Reset()
		}
		time.Sleep(b.NextBackOff())
	}
	return err
}

func (c *client) polls() {
	b := backoff5.NewExponentialBackOff()
	for { // want `it is not only failure that repeats it`
		if err := c.ping(); err != nil {
			log.Print(err)
		}
		time.Sleep(b.NextBackOff())
	}
}

func (c *client) ends(ctx context.Context) error {
	b := backoff4.WithContext(backoff4.NewExponentialBackOff(), ctx)
	for { // want `it ends in several ways`
		err := c.ping()
		if err == nil {
			return nil
		}
		d := b.NextBackOff()
		if d == backoff4.Stop {
			return errors.New("stopped")
		}
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *client) configured(ctx context.Context) error {
	b := backoff.New(ctx, c.config)
	for b.Ongoing() { // want `the waits are not made here`
		if err := c.ping(); err == nil {
			return nil
		}
		b.Wait()
	}
	return b.Err()
}

func (c *client) variable(ctx context.Context, least time.Duration) error {
	b := backoff.New(ctx, backoff.Config{MinBackoff: least, MaxBackoff: time.Minute, MaxRetries: 3})
	for b.Ongoing() { // want `MinBackoff is not a constant`
		if err := c.ping(); err == nil {
			return nil
		}
		b.Wait()
	}
	return b.Err()
}

func (c *client) capped(ctx context.Context) error {
	b := backoff.New(ctx, backoff.Config{MinBackoff: 100 * time.Millisecond, MaxBackoff: time.Second})
	for b.Ongoing() { // want `no Backoff has its waits`
		if err := c.ping(); err == nil {
			return nil
		}
		b.Wait()
	}
	return b.Err()
}

func (c *client) blind(ctx context.Context) error {
	b := backoff.New(ctx, backoff.Config{MinBackoff: time.Second, MaxBackoff: time.Second, MaxRetries: 3})
	for { // want `it does not ask Ongoing`
		if err := c.ping(); err == nil {
			return nil
		}
		b.Wait()
	}
}

func (c *client) reasons(ctx context.Context) error {
	b := backoff.New(ctx, backoff.Config{MinBackoff: time.Second, MaxBackoff: time.Second, MaxRetries: 3})
	for b.Ongoing() { // want `what follows asks its context`
		if err := c.ping(); err == nil {
			return nil
		}
		b.Wait()
	}
	return ctx.Err()
}

func (c *client) broken(ctx context.Context) error {
	b := backoff.New(ctx, backoff.Config{MinBackoff: time.Second, MaxBackoff: time.Second, MaxRetries: 3})
	for b.Ongoing() { // want `what follows asks why it ended`
		err := c.ping()
		if err == nil || errors.Is(err, errBusy) {
			break
		}
		b.Wait()
	}
	return b.Err()
}

func (c *client) silent(ctx context.Context) (err error) {
	for r := retry.StartWithCtx(ctx, retry.Options{MaxRetries: 3}); r.Next(); { // want `where silent is called: it is asked for context.Canceled`
		if err = c.ping(); err == nil {
			return nil
		}
	}
	return err
}

func (c *client) asked(ctx context.Context) bool { return errors.Is(c.silent(ctx), context.Canceled) }

func (c *client) closed() (err error) {
	for r := retry.Start(retry.Options{Closer: c.closer}); r.Next(); { // want `Closer has no counterpart`
		if err = c.ping(); err == nil {
			return nil
		}
	}
	return err
}

func (c *client) unlimited(opts retry.Options) (err error) {
	for r := retry.Start(opts); r.Next(); { // want `opts is not made by a statement before it`
		if err = c.ping(); err == nil {
			return nil
		}
	}
	return err
}

func (c *client) steps(b wait.Backoff) (err error) {
	for b.Steps > 0 { // want `b is not made by a statement before it`
		if err = c.ping(); err == nil {
			return nil
		}
		time.Sleep(b.Step())
	}
	return err
}

func (c *client) left() (err error) {
	b := wait.Backoff{Duration: time.Second, Steps: 3}
	for { // want `b is used for something else too`
		if err = c.ping(); err == nil {
			return nil
		}
		if b.Steps == 0 {
			return err
		}
		time.Sleep(b.Step())
	}
}

func bare(ctx context.Context) error {
	b := backoff.New(ctx, backoff.Config{MinBackoff: time.Second, MaxBackoff: time.Second, MaxRetries: 3})
	for b.Ongoing() { // want `it is not only failure that repeats it`
		if work() == nil {
			return nil
		}
		b.Wait()
	}
	return b.Err()
}

func work() error { return errBusy }
