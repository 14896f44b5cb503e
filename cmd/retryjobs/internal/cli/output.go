package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/retrygo/retry/retryjob/jobsui"
)

// table is lines of cells. Each column is as wide as its widest cell.
type table struct {
	*tabwriter.Writer
	lines   int
	shorten bool // the last cell of each line
}

const (
	flushed    = 1000 // lines after which a table is written, to bound memory; its widths are then computed again
	errorWidth = 60   // characters of an error in a list
)

func (s *session) newTable(header ...string) *table {
	t := &table{Writer: tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)}
	if len(header) > 0 {
		t.line(header...)
	}
	return t
}

// line adds a line. An empty cell shows as "-".
func (t *table) line(cells ...string) {
	for i, cell := range cells {
		if cells[i] = printable(cell); cells[i] == "" {
			cells[i] = "-"
		}
	}
	if last := []rune(cells[len(cells)-1]); t.shorten && len(last) > errorWidth {
		cells[len(cells)-1] = strings.TrimRight(string(last[:errorWidth-1]), " ") + "…"
	}
	fmt.Fprintln(t, strings.Join(cells, "\t"))
	if t.lines++; t.lines%flushed == 0 {
		t.flush()
	}
}

// flush writes the table. The session's bufio.Writer keeps an error.
func (t *table) flush() { _ = t.Flush() }

// printable returns s on one line, as jobsui.Escape does: white space becomes one space, after a semicolon if it breaks
// the line.
func printable(s string) string {
	var b strings.Builder
	for line := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune("\n\r\u0085\u2028\u2029", r) }) {
		words := strings.Join(strings.Fields(line), " ")
		if words != "" && b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(jobsui.Escape(words))
	}
	return strings.ReplaceAll(b.String(), ":; ", ": ")
}

// printJSON prints v as one line of JSON that a terminal can show. Beyond ASCII, encoding/json leaves control characters
// as they are.
func (s *session) printJSON(v any) error {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := s.out.WriteString(jobsui.Escape(b.String()))
	return err
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
