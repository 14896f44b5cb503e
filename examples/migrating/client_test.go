package migrating_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// client is the type that the call sites use.
type client struct {
	fetch func(context.Context) (string, error)
	logf  func(format string, args ...any)
}

var (
	errBusy     = errors.New("busy")
	errNotFound = errors.New("not found")
)

// busyError is a refusal that says when to come back.
type busyError struct{ after time.Duration }

func (e *busyError) Error() string { return "busy until later" }

// record describes one call.
type record struct {
	at    []time.Duration // when each attempt started
	took  time.Duration
	lines []string // what was logged
	value string
	err   error
}

// call is a call-site.
type call = func(c client, ctx context.Context) (string, error)

// script says how the attempt of that number, from 1, ends.
type script = func(n int) (string, error)

// always is a script of attempts that all fail with err.
func always(err error) script {
	return func(int) (string, error) { return "page 0", err }
}

// failing is a script of attempts that fail with these errors, in this order, and then succeed.
func failing(errs ...error) script {
	return func(n int) (string, error) {
		if n <= len(errs) {
			return "page 0", errs[n-1]
		}
		return "page 1", nil
	}
}

// watch makes the call in virtual time and returns its record.
func watch(t *testing.T, do call, s script) record {
	t.Helper()
	return watchIn(t, do, s, func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithCancel(ctx)
	})
}

// watchUntil is watch under a deadline.
func watchUntil(t *testing.T, deadline time.Duration, do call, s script) record {
	t.Helper()
	return watchIn(t, do, s, func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, deadline)
	})
}

// watchDone is watch with a context that is canceled before the call.
func watchDone(t *testing.T, do call, s script) record {
	t.Helper()
	return watchIn(t, do, s, func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx, cancel
	})
}

func watchIn(
	t *testing.T, do call, s script, derive func(context.Context) (context.Context, context.CancelFunc),
) (r record) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := derive(t.Context())
		defer cancel()
		start := time.Now()
		r.value, r.err = do(client{
			fetch: func(context.Context) (string, error) {
				r.at = append(r.at, time.Since(start))
				return s(len(r.at))
			},
			logf: func(format string, args ...any) { r.lines = append(r.lines, fmt.Sprintf(format, args...)) },
		}, ctx)
		r.took = time.Since(start)
	})
	return r
}

// waits returns the time between each attempt and the next.
func (r record) waits() []time.Duration {
	var waits []time.Duration
	for n := 1; n < len(r.at); n++ {
		waits = append(waits, r.at[n]-r.at[n-1])
	}
	return waits
}

// ms returns milliseconds as durations.
func ms(counts ...int) []time.Duration {
	durations := make([]time.Duration, len(counts))
	for i, n := range counts {
		durations[i] = time.Duration(n) * time.Millisecond
	}
	return durations
}
