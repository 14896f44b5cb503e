package retry

import (
	"fmt"
	"strconv"

	"github.com/retrygo/retry/internal/show"
)

// errorText returns the text of err, also if its Error method panics.
func errorText(err error) string {
	return show.Error(err, -1, func(text string) string { return text })
}

func counted(attempts int) string {
	if attempts == 1 {
		return "1 attempt"
	}
	return strconv.Itoa(attempts) + " attempts"
}

// maxText is the number of bytes of a text that oneLine keeps, enough for an error with its causes, and little for a
// log line.
const maxText = 4000

// oneLine returns s as show.OneLine does. The middle of a long text is left out, since the cause is at its end.
func oneLine(s string) string {
	if cut := len(s) - maxText; cut > 0 {
		s = s[:maxText/2] + fmt.Sprintf(" ... (%d bytes) ... ", cut) + s[len(s)-maxText/2:]
	}
	return show.OneLine(s)
}
