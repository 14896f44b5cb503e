package retrytest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/internal/show"
)

// Timeline records runs as text, to compare with the expected text. The zero Timeline is ready to use:
//
//	var runs retrytest.Timeline
//	p.Observe = runs.Observe
type Timeline struct {
	mu    sync.Mutex
	lines []line
}

// Observe records e. Use it as retry.Policy.Observe.
func (t *Timeline) Observe(_ context.Context, e retry.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Outcome == nil {
		t.lines = append(t.lines, line{
			policy: e.Policy, at: e.Elapsed, who: attempt(e.Attempt.Number), what: text(e.Attempt.Err),
			note: note(e.Attempt.Duration, e.Decision.Delay, e.Decision.Status == retry.WaitingRetry),
		})
		return
	}
	if e.Decision.Status == retry.Succeeded {
		t.lines = append(t.lines, line{policy: e.Policy, at: e.Elapsed, who: attempt(e.Outcome.Attempts), what: "ok"})
	}
	t.lines = append(t.lines, line{policy: e.Policy, at: e.Elapsed, who: after(*e.Outcome)})
}

// String returns a line for each attempt, at the time of its end since its run began, and one for the end of each run:
//
//	0s      attempt 1  503 Service Unavailable   wait 50ms
//	50ms    attempt 2  connection reset          wait 87ms
//	137ms   attempt 3  ok
//	137ms   succeeded after 3 attempts
//
// A failed attempt that took time has "took 2s" before its wait. To keep the text the same everywhere, errors appear
// without the prefix of their package and without the addresses of a connection. Lines of concurrent runs come in the
// order in which they happened. If the runs have policies of different names, each line has its name, as in "orders:
// attempt 1".
func (t *Timeline) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := slices.Clone(t.lines)
	if slices.ContainsFunc(lines, func(l line) bool { return l.policy != lines[0].policy }) {
		for i, l := range lines {
			lines[i].who = strings.TrimPrefix(l.policy+": "+l.who, ": ")
		}
	}
	return format(lines)
}

// Check fails the test unless the lines of String are the given ones. Blanks count as one, however many there are, and
// empty lines do not count, so that the expected text needs no columns:
//
//	runs.Check(t,
//		"0s attempt 1 503 Service Unavailable wait 50ms",
//		"50ms attempt 2 ok",
//		"50ms succeeded after 2 attempts")
//
// An argument can have several lines.
func (t *Timeline) Check(tb testing.TB, lines ...string) {
	tb.Helper()
	text := t.String()
	want, got := bareLines(strings.Join(lines, "\n")), bareLines(text)
	for i := range max(len(want), len(got)) {
		wanted, had := "nothing", "nothing"
		if i < len(want) {
			wanted = want[i]
		}
		if i < len(got) {
			had = got[i]
		}
		if wanted != had {
			tb.Errorf("retrytest: line %d of the timeline differs:\n  want %s\n  got  %s\nThe whole:\n%s", i+1, wanted, had, text)
			return
		}
	}
}

// bareLines returns the lines of text that are not empty, with one blank where there are several.
func bareLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) > 0 {
			lines = append(lines, strings.Join(fields, " "))
		}
	}
	return lines
}

// after returns " after 3 attempts", preceded by the status if o has one.
func after(o retry.Outcome) string {
	s := o.String()
	return s[:strings.LastIndex(s, " in ")]
}

// CheckSchedule fails the test unless p is valid and waits for the given durations if every attempt fails at once. It
// ignores Jitter, TTL and Wait. If p is Unlimited, only the given waits are compared.
func CheckSchedule(tb testing.TB, p retry.Policy, waits ...time.Duration) {
	tb.Helper()
	if err := p.Validate(); err != nil {
		tb.Errorf("retrytest: no schedule: %v", err)
		return
	}
	var got []time.Duration
	for _, wait := range p.Schedule(nil) {
		if len(got) > len(waits) || len(got) == len(waits) && p.MaxAttempts == retry.Unlimited {
			break
		}
		got = append(got, wait)
	}
	if slices.Equal(got, waits) {
		return
	}
	diff := fmt.Sprintf("retrytest: the schedule of %s differs:\n              want      got", p)
	for i := range max(len(got), len(waits)) {
		want := nth(waits, i)
		have := nth(got, i)
		mark := ""
		if want != have {
			mark = "   <--"
		}
		diff += fmt.Sprintf("\n  wait %-6d  %-8s  %s%s", i+1, want, have, mark)
	}
	tb.Error(diff)
}

func nth(waits []time.Duration, i int) string {
	if i < len(waits) {
		return show.Duration(waits[i])
	}
	return "none"
}

type line struct {
	policy     string
	at         time.Duration
	who        string
	what, note string // empty at the end of a run
}

func format(lines []line) string {
	var at, who, what int
	for _, l := range lines {
		at = max(at, len(show.Duration(l.at)))
		if l.what != "" {
			who = max(who, len(l.who))
			what = max(what, utf8.RuneCountInString(l.what))
		}
	}
	var b strings.Builder
	for _, l := range lines {
		s := fmt.Sprintf("%-*s   %-*s  %-*s   %s", at, show.Duration(l.at), who, l.who, what, l.what, l.note)
		b.WriteString(strings.TrimRight(s, " ") + "\n")
	}
	return b.String()
}

func attempt(number int) string { return fmt.Sprintf("attempt %d", number) }

func note(took, wait time.Duration, waits bool) string {
	var parts []string
	if took > 0 {
		parts = append(parts, "took "+show.Duration(took))
	}
	if waits {
		parts = append(parts, "wait "+show.Duration(wait))
	}
	return strings.Join(parts, ", ")
}

var packagePrefix = regexp.MustCompile(`^retry[a-z]*: `)

// text returns the text of an error without the parts that differ between machines.
func text(err error) string {
	switch {
	case err == nil:
		return "no error"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	}
	s := err.Error()
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		s = strings.Replace(s, op.Error(), op.Err.Error(), 1)
	}
	return clean(s)
}

// clean returns s as one line, without the prefix of a package.
func clean(s string) string {
	return strings.ReplaceAll(packagePrefix.ReplaceAllString(s, ""), "\n", "; ")
}
