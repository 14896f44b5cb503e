package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/retrygo/retry/retryjob"
)

// table is lines of cells. Each column is as wide as its widest cell.
type table struct {
	w     io.Writer
	width int  // of the terminal; 0 means none
	color bool // for statuses
	fit   bool // shortens the last column, so a line fits the terminal
	lines [][]string
}

const (
	flushed    = 1000 // lines after which a table is written, to bound memory; its widths are then computed again
	errorWidth = 60   // characters of an error in a list, without a terminal
	leastWidth = 20   // and with one, even if it is narrow
)

func (s *session) newTable(header ...string) *table {
	t := &table{w: s.out, width: s.Width, color: s.Color}
	if len(header) > 0 {
		t.line(header...)
	}
	return t
}

// line adds a line. An empty cell shows as "-".
func (t *table) line(cells ...string) {
	line := make([]string, len(cells))
	for i, cell := range cells {
		if line[i] = printable(cell); line[i] == "" {
			line[i] = "-"
		}
	}
	if t.lines = append(t.lines, line); len(t.lines) == flushed {
		t.flush()
	}
}

func (t *table) flush() {
	var widths []int // of all columns except the last of a line
	for _, line := range t.lines {
		for i, cell := range line[:len(line)-1] {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	last := errorWidth
	if t.width > 0 {
		last = t.width
		for _, width := range widths {
			last -= width + 2
		}
		last = max(last, leastWidth)
	}
	var b strings.Builder
	for _, line := range t.lines {
		for i, cell := range line {
			pad := 0
			if i < len(line)-1 {
				pad = widths[i] + 2 - utf8.RuneCountInString(cell)
			} else if t.fit {
				cell = shorten(cell, last)
			}
			if color := colors[cell]; t.color && color != "" {
				cell = "\x1b[" + color + "m" + cell + "\x1b[0m"
			}
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", pad))
		}
		b.WriteByte('\n')
	}
	_, _ = io.WriteString(t.w, b.String()) // the session's bufio.Writer keeps the error
	t.lines = t.lines[:0]
}

// colors are the colors of the statuses, in the terminal's own palette.
var colors = map[string]string{
	retryjob.Leased.String(): "34", retryjob.WaitingRetry.String(): "33", retryjob.Succeeded.String(): "32",
	retryjob.DeadLettered.String(): "31", retryjob.Expired.String(): "31", retryjob.Failed.String(): "31",
	retryjob.Canceled.String(): "35",
}

// printable returns s on one line, without characters that a terminal would interpret or reorder: white space becomes
// one space, after a semicolon if it breaks the line, and characters that are not printable are escaped like \u001b.
func printable(s string) string {
	var b strings.Builder
	for line := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune("\n\r\u0085\u2028\u2029", r) }) {
		words := strings.Join(strings.Fields(line), " ")
		if words != "" && b.Len() > 0 {
			b.WriteString("; ")
		}
		b.Write(escape([]byte(words)))
	}
	return strings.ReplaceAll(b.String(), ":; ", ": ")
}

// shorten returns s, or its beginning and an ellipsis, with n runes in all.
func shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	runes := []rune(s)
	return strings.TrimRight(string(runes[:n-1]), " ") + "…"
}

// escape writes characters that are not printable as \uXXXX, as JSON does in strings, and bytes that are not UTF-8 as
// U+FFFD. Line feeds stay.
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

// printInfo prints a job with its times in UTC, regardless of where it was recorded.
func (s *session) printInfo(info *retryjob.Info) error {
	shown := *info
	shown.FirstDue, shown.Enqueued, shown.Due, shown.Ended = info.FirstDue.UTC(), info.Enqueued.UTC(), info.Due.UTC(), info.Ended.UTC()
	shown.Earlier = slices.Clone(info.Earlier)
	for i := range shown.Earlier {
		l := &shown.Earlier[i]
		l.FirstDue, l.Ended = l.FirstDue.UTC(), l.Ended.UTC()
	}
	shown.History = slices.Clone(info.History)
	for i := range shown.History {
		a := &shown.History[i]
		a.Start, a.End, a.Due = a.Start.UTC(), a.End.UTC(), a.Due.UTC()
	}
	return s.printJSON(shown)
}

// stamp returns a time in UTC and RFC 3339 to the second, "" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// plural returns "1 job", "2 jobs".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
