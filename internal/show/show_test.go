package show_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/internal/show"
)

func TestDurations(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                            "0s",
		1:                            "1ns",
		30 * time.Second:             "30s",
		5 * time.Minute:              "5m",
		2 * time.Hour:                "2h",
		time.Hour + time.Second:      "1h0m1s",
		1_587_345_678:                "1.587345678s",
		time.Hour + time.Millisecond: "1h0m0.001s",
		math.MaxInt64:                "2562047h47m16.854775807s",
	} {
		require.Equal(t, want, show.Duration(d))
	}
	require.Equal(t, "-1m", show.Duration(-time.Minute))
}

type broken struct{}

func (*broken) Error() string { panic("no text") }

type typed struct{ text string }

func (t *typed) Error() string { return t.text }

func TestErrors(t *testing.T) {
	same := func(s string) string { return s }
	for name, row := range map[string]struct {
		err   error
		limit int
		clean func(string) string
		want  string
	}{
		"a text that fits":                   {errors.New("abc"), 3, same, "abc"},
		"a longer one":                       {errors.New("abcd"), 3, same, "abc... (4 bytes)"},
		"no limit":                           {errors.New("abcd"), -1, same, "abcd"},
		"a character is not cut":             {errors.New("aé"), 2, same, "a... (3 bytes)"},
		"a wide character is not cut":        {errors.New("ab🙂c"), 5, same, "ab... (7 bytes)"},
		"a wide character that just fits":    {errors.New("a🙂bc"), 5, same, "a🙂... (7 bytes)"},
		"a wide character and no other text": {errors.New("🙂🙂"), 1, same, "... (8 bytes)"},
		"bytes that are no text are cut":     {errors.New(strings.Repeat("\x80", 20)), 9, show.OneLine, "\uFFFD... (20 bytes)"},
		"line breaks push the end out":       {errors.New("a\nbc"), 4, show.OneLine, "a; b... (4 bytes)"},
		"each line break of Unicode":         {errors.New("a\r\nb\rc\u2028d\u2029e\u0085f\vg\fh"), -1, show.OneLine, "a; b; c; d; e; f; g; h"},
		"control characters but a tab": {errors.New("NUL \x00, red \x1b[31m, DEL \x7f, CSI \u009b31m, BEL \a, \ttab"), -1, show.OneLine,
			"NUL \uFFFD, red \uFFFD[31m, DEL \uFFFD, CSI \uFFFD31m, BEL \uFFFD, \ttab"},
		"bad UTF-8, and text that stays": {errors.New("bad \xff UTF-8, 'quotes', \\x1b as text, é €"), -1, show.OneLine,
			"bad \uFFFD UTF-8, 'quotes', \\x1b as text, é €"},
		"a panic's text is cut too":           {&broken{}, 5, same, "!PANI... (15 bytes)"},
		"what is cleaned may be longer":       {errors.New("a\xffb"), 3, show.OneLine, "a... (3 bytes)"},
		"and may fit":                         {errors.New("a\xff"), 9, show.OneLine, "a\uFFFD"},
		"what is left over is not cleaned":    {errors.New("ab" + strings.Repeat("\xff", 9)), 2, show.OneLine, "ab... (11 bytes)"},
		"a method that panics":                {&broken{}, -1, same, "!PANIC: no text"},
		"a nil pointer whose method needs it": {(*typed)(nil), -1, same, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, row.want, show.Error(row.err, row.limit, row.clean)) })
	}
}
