package loops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	backoff4 "github.com/cenkalti/backoff/v4"
	backoff5 "github.com/cenkalti/backoff/v5"
	"github.com/cockroachdb/cockroach/pkg/util/retry"
	"github.com/grafana/dskit/backoff"
	"k8s.io/apimachinery/pkg/util/wait"
)

func init() { maps.Copy(forms, sourced) }

var errEnded = errors.New("ended")

// sourced are loops that ask another library how long to wait.
var sourced = map[string]form{
	// A change of a cloud policy in Vault: it looks for Stop, and the elapsed time is limited.
	"v4 elapsed": {loop: func(_ context.Context, c *client) (string, error) {
		b := backoff4.NewExponentialBackOff()
		b.MaxInterval = 2 * time.Second
		b.RandomizationFactor = 0
		b.MaxElapsedTime = 5 * time.Second
		for {
			err := c.ping()
			if err == nil {
				return "value", nil
			}
			if errors.Is(err, errNotFound) {
				return "", err
			}
			d := b.NextBackOff()
			if d == backoff4.Stop {
				return "", errEnded
			}
			time.Sleep(d)
		}
	}},
	// The hook of a log for syslog: no limit.
	"v4 endless": {loop: func(_ context.Context, c *client) (string, error) {
		b := backoff4.NewExponentialBackOff(backoff4.WithRandomizationFactor(0), backoff4.WithMultiplier(2), backoff4.WithMaxElapsedTime(0))
		for {
			s, err := c.get(context.Background())
			if err != nil {
				time.Sleep(b.NextBackOff())
				continue
			}
			return s, nil
		}
	}},
	// The transaction of a store that has a pool of encrypted databases: a context, a number of retries and Stop.
	"v4 retries": {loop: func(ctx context.Context, c *client) (string, error) {
		b := backoff4.WithContext(backoff4.WithMaxRetries(backoff4.NewConstantBackOff(100*time.Millisecond), 4), ctx)
		for {
			s, err := c.get(ctx)
			if err == nil {
				return s, nil
			}
			next := b.NextBackOff()
			if next == backoff4.Stop {
				return "", err
			}
			select {
			case <-time.After(next):
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
	}, watches: true},
	"v4 jitter": {loop: func(_ context.Context, c *client) (s string, err error) {
		b := backoff4.NewExponentialBackOff()
		b.MaxElapsedTime = 0
		for i := 0; i < 4; i++ {
			if err = c.ping(); err == nil {
				return "value", nil
			}
			time.Sleep(b.NextBackOff())
		}
		return "", err
	}, late: true, jitter: []interval{{250e6, 750e6}, {375e6, 1125e6}, {562.5e6, 1687.5e6}}},
	// A client that asks for its address: five attempts.
	"v5 counted": {loop: func(ctx context.Context, c *client) (string, error) {
		b := backoff5.NewExponentialBackOff()
		b.RandomizationFactor, b.Multiplier = 0, 3
		for i := 0; i < 5; i++ {
			s, err := c.get(ctx)
			if err != nil {
				time.Sleep(b.NextBackOff())
				continue
			}
			return s, nil
		}
		return "", errors.New("failed to reach it")
	}, late: true},
	// The commits of Loki's index builder: ranges that end at a cap.
	"dskit commits": {loop: func(ctx context.Context, c *client) (string, error) {
		b := backoff.New(ctx, backoff.Config{
			MinBackoff: 100 * time.Millisecond,
			MaxBackoff: 700 * time.Millisecond,
			MaxRetries: 5,
		})
		var lastErr error
		b.Reset()
		for b.Ongoing() {
			err := c.ping()
			if err == nil {
				return "value", nil
			}
			c.note("failed", err, "retries", b.NumRetries())
			lastErr = err
			b.Wait()
		}
		return "", lastErr
	}, jitter: []interval{{100e6, 200e6}, {200e6, 400e6}, {400e6, 700e6}, {400e6, 700e6}}},
	// The scheduler's worker of Loki, without its loop inside: the configuration in a variable, and no limit.
	"dskit endless": {loop: func(ctx context.Context, c *client) (string, error) {
		config := backoff.Config{MinBackoff: 500 * time.Millisecond, MaxBackoff: 4 * time.Second}
		b := backoff.New(ctx, config)
		for b.Ongoing() {
			s, err := c.get(ctx)
			if err != nil {
				c.note("failed:", err)
				b.Wait()
				continue
			}
			return s, nil
		}
		return "", b.Err()
	}, jitter: []interval{{500e6, 1000e6}, {1000e6, 2000e6}, {2000e6, 4000e6}, {2000e6, 4000e6}}},
	// The lifecycler of dskit: the wait is in the first line.
	"dskit post": {loop: func(ctx context.Context, c *client) (string, error) {
		b := backoff.New(ctx, backoff.Config{MinBackoff: 100 * time.Millisecond, MaxBackoff: 100 * time.Millisecond, MaxRetries: 5})
		for ; b.Ongoing(); b.Wait() {
			if _, err := c.get(ctx); err != nil {
				c.note("retry", b.NumRetries()+1)
				continue
			}
			return "value", nil
		}
		if b.Err() != nil {
			return "", errEnded
		}
		return "none", nil
	}, watches: true},
	// A column family of CockroachDB's tests.
	"cockroach": {loop: func(_ context.Context, c *client) (s string, err error) {
		for r := retry.Start(retry.Options{InitialBackoff: 100 * time.Millisecond, MaxBackoff: 300 * time.Millisecond, MaxRetries: 4}); r.Next(); {
			c.note("attempt", r.CurrentAttempt())
			if err = c.ping(); err == nil {
				return "value", nil
			}
		}
		return "", err
	}, jitter: []interval{{85e6, 115e6}, {170e6, 230e6}, {255e6, 345e6}, {255e6, 345e6}}},
	"cockroach default": {loop: func(_ context.Context, c *client) (string, error) {
		r := retry.Start(retry.Options{})
		for r.Next() {
			s, err := c.get(context.Background())
			if err != nil {
				c.note(err)
				continue
			}
			return s, nil
		}
		panic("never")
	}, jitter: []interval{{42.5e6, 57.5e6}, {85e6, 115e6}, {170e6, 230e6}, {340e6, 460e6}, {680e6, 920e6}, {1360e6, 1840e6}, {1700e6, 2300e6}, {1700e6, 2300e6}}},
	"cockroach context": {loop: func(ctx context.Context, c *client) (string, error) {
		opts := retry.Options{InitialBackoff: 100 * time.Millisecond, Multiplier: 1, RandomizationFactor: 0.1, MaxRetries: 3}
		var err error
		for r := retry.StartWithCtx(ctx, opts); r.Next(); {
			var s string
			s, err = c.get(ctx)
			if err == nil {
				return s, nil
			}
			if errors.Is(err, errNotFound) {
				break
			}
		}
		return "", fmt.Errorf("gave up: %v", err != nil)
	}, watches: true, jitter: []interval{{90e6, 110e6}, {90e6, 110e6}, {90e6, 110e6}}},
	// A controller that waits for a resource: steps, which the cap ends.
	"steps": {loop: func(_ context.Context, c *client) (s string, err error) {
		b := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Steps: 10, Cap: time.Second}
		for b.Steps > 0 {
			if err = c.ping(); err == nil {
				return "value", nil
			}
			time.Sleep(b.Step())
		}
		return "", err
	}, late: true},
	"step": {loop: func(ctx context.Context, c *client) (string, error) {
		b := &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 1.5, Steps: 3}
		for {
			s, err := c.get(ctx)
			if err == nil {
				return s, nil
			}
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(b.Step()):
			}
		}
	}, watches: true},
	"step jitter": {loop: func(_ context.Context, c *client) (s string, err error) {
		b := wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 4}
		for i := range 5 {
			if err = c.ping(); err == nil {
				return "value", nil
			}
			if i < 4 {
				time.Sleep(b.Step())
			}
		}
		return "", err
	}, jitter: []interval{{100e6, 110e6}, {200e6, 220e6}, {400e6, 440e6}, {800e6, 880e6}}},
}
