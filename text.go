package retry

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/retrygo/retry/internal/show"
)

// name returns the text of the value i of an enumeration whose texts start at 0, or "Type(9)" beyond them.
func name(i int, typ string, texts ...string) string {
	if i < len(texts) {
		return texts[i]
	}
	return fmt.Sprintf("%s(%d)", typ, i)
}

// MarshalText and UnmarshalText of the enumerations use the texts of String and Error. What has no text is an error.

func (s Status) MarshalText() ([]byte, error)  { return format(s, Canceled, Status.String) }
func (s *Status) UnmarshalText(b []byte) error { return parse(s, b, Canceled, Status.String) }
func (r Reason) MarshalText() ([]byte, error)  { return format(r, CallerCanceled, Reason.Error) }
func (r *Reason) UnmarshalText(b []byte) error { return parse(r, b, CallerCanceled, Reason.Error) }
func (c Class) MarshalText() ([]byte, error)   { return format(c, Terminal, Class.String) }
func (c *Class) UnmarshalText(b []byte) error  { return parse(c, b, Terminal, Class.String) }
func (m Mode) MarshalText() ([]byte, error)    { return format(m, List, Mode.String) }
func (m *Mode) UnmarshalText(b []byte) error   { return parse(m, b, List, Mode.String) }
func (j JitterMode) MarshalText() ([]byte, error) {
	return format(j, DecorrelatedJitter, JitterMode.String)
}
func (j *JitterMode) UnmarshalText(b []byte) error {
	return parse(j, b, DecorrelatedJitter, JitterMode.String)
}

func format[T ~uint8](v, last T, text func(T) string) ([]byte, error) {
	if v > last {
		return nil, fmt.Errorf("retry: %s has no text", text(v))
	}
	return []byte(text(v)), nil
}

func parse[T ~uint8](v *T, b []byte, last T, text func(T) string) error {
	for c := T(0); c <= last; c++ {
		if text(c) == string(b) {
			*v = c
			return nil
		}
	}
	_, typ, _ := strings.Cut(fmt.Sprintf("%T", *v), ".")
	return &FieldError{Field: typ, Value: strconv.Quote(string(b)), Rule: "is not the text of one"}
}

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

// maxText is how many bytes of a text oneLine keeps: enough for an error with its causes, and little for a log line.
const maxText = 4000

// oneLine returns s as show.OneLine does. The middle of a long text is left out, since the cause is at its end.
func oneLine(s string) string {
	if cut := len(s) - maxText; cut > 0 {
		s = s[:maxText/2] + fmt.Sprintf(" ... (%d bytes) ... ", cut) + s[len(s)-maxText/2:]
	}
	return show.OneLine(s)
}
