package retryslog_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryslog"
)

type panics struct{ with any }

func (p panics) Error() string { panic(p.with) }

type spent struct{ text string }

func (s *spent) Error() string { return s.text } // a nil one panics

// speaks counts the calls of its Error method.
type speaks struct{ times int }

func (s *speaks) Error() string {
	s.times++
	return "once"
}

// failing is a retry after err.
func failing(err error) retry.Event {
	e := retried
	e.Attempt.Err = err
	return e
}

// errorText returns the text of err that a handler gets.
func errorText(t *testing.T, err error, limit int) string {
	var k kept
	retryslog.Observe(slog.New(&k), retryslog.Options{MaxErrorText: limit})(t.Context(), failing(err))
	list := k.attrs(t)
	a := list[len(list)-1]
	require.Equal(t, retryslog.KeyError, a.Key)
	return a.Value.Any().(error).Error()
}

func TestErrorTexts(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for _, row := range []struct {
		name  string
		err   error
		limit int
		want  string
	}{
		{"short", errDown, 0, "503"},
		{"empty", errors.New(""), 0, ""},
		{"marks do not show", retry.Permanent(errDown), 0, "503"},
		{"joined errors become one line", errors.Join(errDown, errors.New("504")), 0, "503; 504"},
		{"line breaks of Unicode", errors.New("a\u2028b\u2029c\u0085d\ve\ff"), 0, "a; b; c; d; e; f"},
		{"bytes that are not text", errors.New("a\xff\xfeb\xc3"), 0, "a\uFFFDb\uFFFD"},
		{"exactly the default length", errors.New(long[:1024]), 0, long[:1024]},
		{"one more than the default length", errors.New(long[:1025]), 0, long[:1024] + "... (1025 bytes)"},
		{"long", errors.New(long), 0, long[:1024] + "... (5000 bytes)"},
		{"a length of one's own", errors.New(long), 3, "xxx... (5000 bytes)"},
		{"no limit", errors.New(long), retry.Unlimited, long},
		{"no limit by any negative number", errors.New(long), -5, long},
		{"an Error method that panics", panics{"boom"}, 0, "!PANIC: boom"},
		{"a nil pointer in an error", (*spent)(nil), 0, "<nil>"},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, errorText(t, row.err, row.limit))
		})
	}
}

func TestAPolicysNameIsOneLineOfBoundedLength(t *testing.T) {
	long := strings.Repeat("x", 60_000)
	for name, want := range map[string]string{
		"a\nb\u2028c\xffd":                "a; b; c\uFFFDd",
		long[:128]:                        long[:128],
		long[:129]:                        long[:128] + "... (129 bytes)",
		long:                              long[:128] + "... (60000 bytes)",
		long[:126] + "é\n":                long[:126] + "é... (129 bytes)",
		long[:127] + "\n":                 long[:127],
		strings.Repeat("\xffa", 64)[:127]: strings.Repeat("\uFFFDa", 32) + "... (127 bytes)",
	} {
		var k kept
		e := retried
		e.Policy = name
		retryslog.Observe(slog.New(&k), retryslog.Options{MaxErrorText: retry.Unlimited})(t.Context(), e)
		require.Equal(t, slog.String(retryslog.KeyPolicy, want), k.attrs(t)[0])
	}
}

func TestAnErrorMethodThatPanicsDoesNotEndTheRun(t *testing.T) {
	for _, err := range []error{panics{errors.New("boom")}, (*spent)(nil)} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(err)
		o := retry.Outcome{Status: retry.Canceled, Reason: retry.CallerCanceled, Attempts: 2}
		for _, e := range []retry.Event{failing(err), {Outcome: &o, Err: retry.Policy{}.NewError(ctx, o, err)}} {
			var b bytes.Buffer
			observe := retryslog.Observe(slog.New(slog.NewJSONHandler(&b, nil)), retryslog.Options{})
			require.NotPanics(t, func() { observe(t.Context(), e) })
			require.Equal(t, 1, strings.Count(b.String(), "\n"))
		}
	}
}

func TestTheErrorIsReachedByReplaceAttr(t *testing.T) {
	var b bytes.Buffer
	var path string
	logger := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		var at *fs.PathError
		if err, ok := a.Value.Any().(error); ok && errors.As(err, &at) {
			path = at.Path
			return slog.String(a.Key, "withheld")
		}
		return a
	}}))
	observe := retryslog.Observe(logger, retryslog.Options{})
	observe(t.Context(), failing(&fs.PathError{Op: "open", Path: "/secret", Err: fs.ErrPermission}))
	require.Equal(t, "/secret", path)
	require.Contains(t, b.String(), " error=withheld\n")
	require.NotContains(t, b.String(), "/secret")
}

func TestAnErrorIsAskedForItsTextOnce(t *testing.T) {
	var err speaks
	var k kept
	retryslog.Observe(slog.New(&k), retryslog.Options{})(t.Context(), failing(&err))
	var a, b bytes.Buffer
	for _, h := range []slog.Handler{textTo(&a).Handler(), slog.NewJSONHandler(&b, nil)} { // later, like asynchronous handlers
		require.NoError(t, h.Handle(t.Context(), k.records[0]))
	}
	require.Contains(t, a.String(), "error=once")
	require.Contains(t, b.String(), `"error":"once"`)
	require.Equal(t, 1, err.times)
}
