package forms

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

// scripts are what the work does: the errors of its calls, then success.
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
	{name: "work canceled", errs: []error{context.Canceled, fmt.Errorf("work: %w", context.Canceled), errBusy}},
	{name: "deadline of the work", errs: []error{context.DeadlineExceeded, errBusy}},
	{name: "slow", errs: slices.Repeat([]error{errBusy}, 40), takes: 4 * time.Minute},
	{name: "exact", errs: slices.Repeat([]error{errBusy}, 40), takes: 500 * time.Millisecond},
	{name: "canceled in a wait", errs: slices.Repeat([]error{errBusy}, 40), cancel: 237 * time.Millisecond},
	{name: "canceled in a call", errs: slices.Repeat([]error{errBusy}, 40), takes: time.Second, cancel: 2371 * time.Millisecond},
	{name: "deadline", errs: slices.Repeat([]error{errBusy}, 40), limit: 2347 * time.Millisecond},
}

// spread says for the forms with jitter where each wait must lie: from low to high of its nominal length.
var spread = map[string]struct {
	low, high float64
	waits     []time.Duration
}{
	"v4 jitter": {0.5, 1.5, []time.Duration{500e6, 750e6, 1125e6, 1687.5e6, 2531.25e6}},
}

func TestForms(t *testing.T) {
	var out strings.Builder
	forms := map[string]Form{}
	for _, m := range tables {
		maps.Copy(forms, m)
	}
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		for _, script := range scripts {
			jitter, jittered := spread[name]
			if jittered && (script.cancel > 0 || script.limit > 0) {
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
				start, ended := time.Now(), time.Time{}
				calls := 0
				work := func(context.Context) (string, error) {
					if jittered && calls > 0 {
						wait, nominal := time.Since(ended), float64(jitter.waits[calls-1])
						if w := float64(wait); w < jitter.low*nominal-1 || w > jitter.high*nominal+1 {
							t.Errorf("%s: wait %d is %v", name, calls, wait)
						}
						fmt.Fprint(&out, " call")
					} else {
						fmt.Fprint(&out, " ", time.Since(start))
					}
					calls++
					time.Sleep(script.takes)
					ended = time.Now()
					if calls <= len(script.errs) {
						return "", script.errs[calls-1]
					}
					return "value", nil
				}
				told := 0
				note := func(values ...any) {
					told++
					if script.limit == 0 { // what is reported of a wait past the deadline differs
						fmt.Fprint(&out, " (", fmt.Sprintln(values...)[:len(fmt.Sprintln(values...))-1], ")")
					}
				}
				value, err := forms[name](ctx, work, note)
				switch {
				case err == nil:
					fmt.Fprintf(&out, " -> %q", value)
				case script.limit > 0:
					fmt.Fprint(&out, " -> error")
				default:
					fmt.Fprint(&out, " -> error at ", pick(jittered, "some time", time.Since(start).String()),
						errors.Is(err, errBusy) && ctx.Err() == nil, errors.Is(err, errNotFound), errors.Is(err, context.Canceled))
				}
			})
			out.WriteString("\n")
		}
	}
	if err := os.WriteFile(os.Getenv("TIMELINE"), []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func pick(cond bool, a, b string) string {
	if cond {
		return a
	}
	return b
}
