package retry

import (
	"fmt"
	"strings"
	"time"
)

// name returns the text of the value i of an enumeration whose texts start at 0, or "Type(9)" beyond them.
func name(i int, typ string, texts ...string) string {
	if i < len(texts) {
		return texts[i]
	}
	return fmt.Sprintf("%s(%d)", typ, i)
}

// compact prints d without the zero units that Duration.String ends with: "1h" for "1h0m0s", "5m" for "5m0s".
func compact(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-len("0s")]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-len("0m")]
	}
	return s
}

// oneLine puts "; " for each line break, so that one error is one line of a log.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n") {
		return s
	}
	return strings.NewReplacer("\r\n", "; ", "\n", "; ", "\r", "; ").Replace(s)
}
