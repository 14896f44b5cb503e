package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/retrygo/retry/retryjob"
)

// table is lines of cells, of which each column is as wide as its widest cell.
type table struct {
	w     *tabwriter.Writer
	lines int
}

// flushed is after how many lines a table is written: its widths are found anew then, and memory is bounded.
const flushed = 1000

func newTable(w io.Writer, header ...string) *table {
	t := &table{w: tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)}
	if len(header) > 0 {
		t.line(header...)
	}
	return t
}

// line adds a line. An empty cell shows as "-".
func (t *table) line(cells ...string) {
	for i, cell := range cells {
		if cell = printable(cell); cell == "" {
			cell = "-"
		}
		if i > 0 {
			cell = "\t" + cell
		}
		_, _ = io.WriteString(t.w, cell) // the session's bufio.Writer keeps the error
	}
	_, _ = io.WriteString(t.w, "\n")
	if t.lines++; t.lines%flushed == 0 {
		t.flush()
	}
}

func (t *table) flush() { _ = t.w.Flush() }

// printable returns s on one line, without what a terminal would obey or show out of order: line breaks become "; ", or a
// space after a colon; other runs of white space become one space; and what does not print is written as \u001b is.
func printable(s string) string {
	var b strings.Builder
	for line := range strings.FieldsFuncSeq(s, breaksLine) {
		words := strings.Join(strings.Fields(line), " ")
		switch {
		case words == "" || b.Len() == 0:
		case strings.HasSuffix(b.String(), ":"):
			b.WriteString(" ")
		default:
			b.WriteString("; ")
		}
		b.Write(escape([]byte(words)))
	}
	return b.String()
}

func breaksLine(r rune) bool {
	return r == '\n' || r == '\r' || r == 0x85 || r == 0x2028 || r == 0x2029
}

// shorten returns s, or its beginning with an ellipsis that makes n runes in all.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return strings.TrimRight(string(runes[:n-1]), " ") + "…"
}

// escape writes what does not print as \uXXXX, as JSON does within its strings, and bytes that are no UTF-8 as U+FFFD.
// Line feeds stay.
func escape(text []byte) []byte {
	out := make([]byte, 0, len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == '\n' || unicode.IsPrint(r) || unicode.Is(unicode.Zs, r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		text = text[size:]
	}
	return out
}

// printJSON prints v as one line of JSON that a terminal can show. Beyond ASCII, encoding/json leaves control characters
// as they are.
func (s *session) printJSON(v any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := s.out.Write(escape(b.Bytes()))
	return err
}

// printInfo prints a job with its times in UTC, wherever the program was that recorded it.
func (s *session) printInfo(info *retryjob.Info) error {
	shown := *info
	shown.First, shown.Due, shown.Ended = info.First.UTC(), info.Due.UTC(), info.Ended.UTC()
	shown.History = slices.Clone(info.History)
	for i := range shown.History {
		a := &shown.History[i]
		a.Start, a.End, a.Due = a.Start.UTC(), a.End.UTC(), a.Due.UTC()
	}
	return s.printJSON(shown)
}

// stamp returns a time in UTC and RFC 3339 to the second, "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// fineStamp is stamp to the millisecond.
func fineStamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// span returns a duration to the millisecond, a shorter one to the microsecond.
func span(d time.Duration) string {
	if d.Abs() < time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// plural returns "1 job", "2 jobs".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
