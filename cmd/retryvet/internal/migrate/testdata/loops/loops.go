// Package loops has hand-written retry loops in the forms of published modules, with constants for their settings.
package loops

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"time"
)

// client calls what is retried.
type client struct {
	fetch func(context.Context) (string, error)
	note  func(...any)
}

func (c *client) get(ctx context.Context) (string, error) { return c.fetch(ctx) }

func (c *client) ping() error {
	_, err := c.fetch(context.Background())
	return err
}

var (
	errBusy     = errors.New("busy")
	errNotFound = errors.New("not found")
)

// A form is a loop. Its calls under a context that ends are compared only if it watches the context.
type form struct {
	loop    func(context.Context, *client) (string, error)
	watches bool
	late    bool       // it sleeps after the last attempt
	jitter  []interval // of the waits, if they are random
}

type interval struct{ from, to time.Duration }

var forms = map[string]form{
	// A connection pool of gocql: a break for success and for errors that are not temporary.
	"break": {loop: func(ctx context.Context, c *client) (string, error) {
		var s string
		var err error
		for i := 0; i < 3; i++ {
			s, err = c.get(ctx)
			if err == nil {
				break
			}
			if errors.Is(err, errNotFound) {
				break
			}
			c.note("failed:", err)
			time.Sleep(time.Second)
		}
		if err != nil {
			return "", err
		}
		return s, nil
	}, late: true},
	// The webhook of alertmanager's event recorder: a shifted delay with a cap, and none after the last attempt.
	"shift": {loop: func(ctx context.Context, c *client) (string, error) {
		for attempt := range 5 {
			s, err := c.get(ctx)
			if err == nil {
				return s, nil
			}
			c.note("failed", "attempt", attempt+1, "err", err)
			if attempt < 4 {
				backoff := min(100*time.Millisecond<<attempt, 300*time.Millisecond)
				select {
				case <-time.After(backoff):
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}
		}
		return "", errors.New("dropped")
	}, watches: true},
	// The writer of kafka-go: the wait is at the top, but for the first turn.
	"top": {loop: func(ctx context.Context, c *client) (s string, err error) {
		for attempt := 0; attempt < 4; attempt++ {
			if attempt != 0 {
				delay := time.Duration(attempt*attempt) * 100 * time.Millisecond
				if delay > 500*time.Millisecond {
					delay = 500 * time.Millisecond
				}
				time.Sleep(delay)
			}
			s, err = c.get(ctx)
			if err == nil {
				break
			}
		}
		return s, err
	}},
	// The retrying publisher of watermill: a variable that doubles.
	"doubled": {loop: func(_ context.Context, c *client) (string, error) {
		var err error
		next := 250 * time.Millisecond
		for i := 0; i < 5; i++ {
			err = c.ping()
			if err == nil {
				return "value", nil
			}
			time.Sleep(next)
			next *= 2
		}
		return "", err
	}, late: true},
	// The certificates of the Cloud SQL proxy: a switch that ends the loop for some errors.
	"switch": {loop: func(_ context.Context, c *client) (string, error) {
		var err error
		for i := 0; i < 5; i++ {
			err = c.ping()
			switch {
			case err == nil:
				return "value", nil
			case errors.Is(err, errNotFound):
				return "", fmt.Errorf("make sure that there is no typo: %w", err)
			}
			c.note("failed:", err)
			time.Sleep(time.Duration(float64(200*time.Millisecond) * math.Pow(1.5, float64(i))))
		}
		return "", err
	}, late: true},
	// The loader of libopenapi: a continue after the wait, a break instead of the last one, and a count from 1.
	"continue": {loop: func(_ context.Context, c *client) (string, error) {
		const maxRetries = 3
		const retryDelay = time.Second
		var lastErr error
		for attempt := 1; attempt <= maxRetries; attempt++ {
			c.note("attempt", attempt)
			err := c.ping()
			if err == nil {
				return "value", nil
			}
			lastErr = err
			if attempt == maxRetries {
				break
			}
			time.Sleep(retryDelay)
		}
		return "", fmt.Errorf("failed to fetch after %d attempts: %w", maxRetries, lastErr)
	}},
	// The federation client of the Oracle SDK: powers of two as floats.
	"power": {loop: func(ctx context.Context, c *client) (string, error) {
		var s string
		var err error
		for n := 0; n < 3; n++ {
			if s, err = c.get(ctx); err == nil {
				break
			}
			time.Sleep(time.Duration(1000.0*(math.Pow(2.0, float64(n)))) * time.Millisecond)
		}
		if err != nil {
			return "", fmt.Errorf("failed to call: %w", err)
		}
		return s, nil
	}, late: true},
	// The certificate requests of client-go: no limit, and a turn asks the context.
	"asks": {loop: func(ctx context.Context, c *client) (string, error) {
		for {
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			s, err := c.get(ctx)
			if err == nil {
				return s, nil
			}
			time.Sleep(time.Second)
		}
	}},
	// The dialer of go-redis: no wait after the last attempt, which the counter shows beforehand.
	"before last": {loop: func(ctx context.Context, c *client) (string, error) {
		var lastErr error
		for attempt := 0; attempt < 5; attempt++ {
			s, err := c.get(ctx)
			if err == nil {
				return s, nil
			}
			lastErr = err
			if attempt+1 < 5 {
				select {
				case <-ctx.Done():
					return "", ctx.Err()
				case <-time.After(100 * time.Millisecond * time.Duration(attempt+1)):
				}
			}
		}
		return "", lastErr
	}, watches: true},
	// The ordered consumer of nats.go: a factor and a cap, and the counter ends the loop.
	"factor": {loop: func(ctx context.Context, c *client) (string, error) {
		interval := time.Second
		for i := 0; ; i++ {
			s, err := c.get(ctx)
			if err == nil {
				return s, nil
			}
			if i >= 6-1 {
				return "", err
			}
			select {
			case <-ctx.Done():
				return "", ctx.Err()
			case <-time.After(interval):
			}
			interval = time.Duration(float64(interval) * 2)
			if interval >= 4*time.Second {
				interval = 4 * time.Second
			}
		}
	}, watches: true},
	// A delay in seconds, not whole ones.
	"seconds": {loop: func(_ context.Context, c *client) (string, error) {
		seconds := 0.5
		var err error
		for range 5 {
			if err = c.ping(); err == nil {
				return "value", nil
			}
			time.Sleep(time.Duration(seconds * float64(time.Second)))
			seconds *= 1.5
		}
		return "", err
	}, late: true},
	// The retries of an agent of serf: a fixed wait without a limit, and a log line.
	"endless": {loop: func(_ context.Context, c *client) (string, error) {
		for {
			err := c.ping()
			if err == nil {
				return "value", nil
			}
			c.note("retrying:", err)
			time.Sleep(30 * time.Second)
		}
	}},
	// The admin client of sarama: one condition for success, the counter and the error.
	"one condition": {loop: func(_ context.Context, c *client) (string, error) {
		for attempt := 1; ; attempt++ {
			err := c.ping()
			if err == nil || attempt >= 4 {
				return "value", err
			}
			if errors.Is(err, errNotFound) {
				return "", err
			}
			time.Sleep(100 * time.Millisecond)
		}
	}},
	"linear": {loop: func(ctx context.Context, c *client) (s string, err error) {
		for i := range 4 {
			s, err = c.get(ctx)
			if err == nil || errors.Is(err, errNotFound) {
				return s, err
			}
			time.Sleep(time.Duration(i+1) * 200 * time.Millisecond)
		}
		return s, err
	}, late: true},
	"parameter": {loop: func(_ context.Context, c *client) (string, error) { return every(c, 700*time.Millisecond) }, late: true},
	"zero":      {loop: func(_ context.Context, c *client) (string, error) { return every(c, 0) }},
	"negative":  {loop: func(_ context.Context, c *client) (string, error) { return every(c, -time.Second) }},
	"else": {loop: func(_ context.Context, c *client) (string, error) {
		for {
			err := c.ping()
			if err != nil {
				c.note(err)
				time.Sleep(2 * time.Second)
				continue
			}
			return "value", nil
		}
	}},
	"goes on": {loop: func(ctx context.Context, c *client) (string, error) {
		var s string
		for {
			var err error
			s, err = c.get(ctx)
			if err != nil {
				select {
				case <-ctx.Done():
					return "", fmt.Errorf("no answer: %w", ctx.Err())
				case <-time.After(time.Second):
				}
				continue
			}
			break
		}
		return s + "!", nil
	}, watches: true},
	"another end": {loop: func(ctx context.Context, c *client) (string, error) {
		var err error
		for i := range 3 {
			var s string
			s, err = c.get(ctx)
			if err == nil {
				return s, nil
			}
			if i == 2 {
				break
			}
			select {
			case <-ctx.Done():
				return "", fmt.Errorf("ended: %w", ctx.Err())
			case <-time.After(time.Second):
			}
		}
		return "", fmt.Errorf("three times: %w", err)
	}, watches: true},
	"full jitter": {loop: func(_ context.Context, c *client) (string, error) {
		var err error
		for i := range 4 {
			if err = c.ping(); err == nil {
				return "value", nil
			}
			if i < 3 {
				time.Sleep(time.Duration(rand.Int63n(int64(100 * time.Millisecond << i))))
			}
		}
		return "", err
	}, jitter: []interval{{0, 100e6}, {0, 200e6}, {0, 400e6}}},
	"half jitter": {loop: func(_ context.Context, c *client) (string, error) {
		var err error
		d := 100 * time.Millisecond
		for i := 0; i < 4; i++ {
			if err = c.ping(); err == nil {
				return "value", nil
			}
			if i == 3 {
				break
			}
			time.Sleep(d/2 + time.Duration(rand.Int63n(int64(d/2))))
			d = min(d*2, 300*time.Millisecond)
		}
		return "", err
	}, jitter: []interval{{50e6, 100e6}, {100e6, 200e6}, {150e6, 300e6}}},
	"tenth more or less": {loop: func(_ context.Context, c *client) (string, error) {
		var err error
		for i := 0; i < 4; i++ {
			if err = c.ping(); err == nil {
				return "value", nil
			}
			if i < 3 {
				time.Sleep(time.Duration((0.9 + 0.2*rand.Float64()) * float64(time.Second)))
			}
		}
		return "", err
	}, jitter: []interval{{900e6, 1100e6}, {900e6, 1100e6}, {900e6, 1100e6}}},
	"list": {loop: func(_ context.Context, c *client) (s string, err error) {
		for i := 0; i < 4; i++ {
			if err = c.ping(); err == nil {
				return "value", nil
			}
			if i == 3 {
				return "", err
			}
			time.Sleep(time.Duration(i) * time.Second)
		}
		return "", errors.New("never")
	}},
	"goroutine": {loop: func(ctx context.Context, c *client) (string, error) { // its work outlives ctx
		errs := make(chan error)
		go func() {
			for {
				err := c.ping()
				if err == nil {
					close(errs)
					return
				}
				time.Sleep(time.Second)
			}
		}()
		return "value", <-errs
	}},
	"array": {loop: func(_ context.Context, c *client) (string, error) {
		value, err := until(c)
		return string(value[:]), err
	}},
	"shadowed": {loop: func(ctx context.Context, c *client) (string, error) {
		for range 3 {
			if s, err := c.get(ctx); err == nil {
				return s, nil
			}
			time.Sleep(500 * time.Millisecond)
		}
		return "", errNotFound
	}, late: true},
}

func every(c *client, delay time.Duration) (string, error) {
	var err error
	for range 4 {
		if err = c.ping(); err == nil {
			return "value", nil
		}
		time.Sleep(delay)
	}
	return "", err
}

func until(c *client) ([2]byte, error) {
	for {
		err := c.ping()
		if err == nil {
			return [2]byte{'o', 'k'}, nil
		}
		time.Sleep(time.Second)
	}
}
