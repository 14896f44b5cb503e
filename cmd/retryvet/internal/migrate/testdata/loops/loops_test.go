package loops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// scripts are what the calls return, and then success.
var scripts = []struct {
	name   string
	errs   []error
	takes  time.Duration // a call
	cancel time.Duration // when the caller's context is canceled
	limit  time.Duration // the caller's deadline
}{
	{name: "success"},
	{name: "two refusals", errs: []error{errBusy, errBusy}},
	{name: "refusals", errs: slices.Repeat([]error{errBusy}, 40)},
	{name: "not found", errs: []error{errBusy, errNotFound, errBusy, errNotFound}},
	{name: "canceled work", errs: []error{context.Canceled, fmt.Errorf("work: %w", context.Canceled), errBusy}},
	{name: "slow", errs: slices.Repeat([]error{errBusy}, 40), takes: 4 * time.Minute},
	{name: "canceled in a wait", errs: slices.Repeat([]error{errBusy}, 40), cancel: 237 * time.Millisecond},
	{name: "deadline", errs: slices.Repeat([]error{errBusy}, 40), limit: 2347 * time.Millisecond},
}

// callError is the nth error of a script.
type callError struct {
	n   int
	err error
}

func (e *callError) Error() string { return fmt.Sprintf("call %d: %v", e.n, e.err) }
func (e *callError) Unwrap() error { return e.err }

// TestLoops writes what each loop does: when it calls, what it notes, when it ends, and with which error.
func TestLoops(t *testing.T) {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		f := forms[name]
		for _, script := range scripts {
			if !f.watches && script.cancel+script.limit > 0 {
				continue
			}
			fmt.Fprintf(&out, "%s, %s:", name, script.name)
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if script.cancel > 0 {
					defer time.AfterFunc(script.cancel, cancel).Stop()
				}
				if script.limit > 0 {
					ctx, cancel = context.WithTimeout(ctx, script.limit)
					defer cancel()
				}
				start, ended, calls := time.Now(), time.Time{}, 0
				c := &client{note: func(values ...any) { fmt.Fprint(&out, " ", values) }}
				c.fetch = func(context.Context) (string, error) {
					if wait := time.Since(ended); f.jitter != nil && calls > 0 && calls <= len(f.jitter) {
						if in := f.jitter[calls-1]; wait < in.from || wait > in.to {
							t.Errorf("%s: wait %d is %v", name, calls, wait)
						}
					}
					at := time.Since(start).String()
					if f.jitter != nil {
						at = "call"
					}
					fmt.Fprint(&out, " ", at)
					calls++
					time.Sleep(script.takes)
					ended = time.Now()
					if calls <= len(script.errs) {
						return "", &callError{calls, script.errs[calls-1]}
					}
					return "value", nil
				}
				value, err := f.loop(ctx, c)
				took := time.Since(start).String()
				if f.late || f.jitter != nil || script.limit > 0 {
					took = "its time"
				}
				var last *callError
				number := 0
				if errors.As(err, &last) && ctx.Err() == nil {
					number = last.n
				}
				prefix, _, _ := strings.Cut(fmt.Sprint(err), ": ")
				if _, bare := err.(*callError); bare || strings.HasPrefix(prefix, "retry") || err == ctx.Err() {
					prefix = ""
				}
				if script.limit > 0 { // the end is no wait that the deadline forbids
					number = 0
				}
				fmt.Fprintf(&out, " -> %q, error %t %q of call %d, canceled %t, after %s\n", value, err != nil, prefix, number,
					errors.Is(err, context.Canceled), took)
			})
		}
	}
	if err := os.WriteFile(os.Getenv("TIMELINE"), []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
