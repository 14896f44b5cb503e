package retry

import (
	"fmt"
	"strconv"
	"strings"
)

// name returns the text of the value i of an enumeration whose texts start at 0, or "Type(9)" beyond them.
func name(i int, typ string, texts ...string) string {
	if i < len(texts) {
		return texts[i]
	}
	return fmt.Sprintf("%s(%d)", typ, i)
}

// MarshalText returns the text of String, and an error for a value without a name.
func (s Status) MarshalText() ([]byte, error) { return format(s, Canceled, Status.String) }

// UnmarshalText sets s to the Status with the given text. It returns a *FieldError if no Status has it.
func (s *Status) UnmarshalText(b []byte) error { return parse(s, b, Canceled, Status.String) }

// MarshalText returns the text of Error, and an error for a value without a name.
func (r Reason) MarshalText() ([]byte, error) { return format(r, CallerCanceled, Reason.Error) }

// UnmarshalText sets r to the Reason with the given text. It returns a *FieldError if no Reason has it.
func (r *Reason) UnmarshalText(b []byte) error { return parse(r, b, CallerCanceled, Reason.Error) }

// MarshalText returns the text of String, and an error for a value without a name.
func (c Class) MarshalText() ([]byte, error) { return format(c, Terminal, Class.String) }

// UnmarshalText sets c to the Class with the given text. It returns a *FieldError if no Class has it.
func (c *Class) UnmarshalText(b []byte) error { return parse(c, b, Terminal, Class.String) }

// MarshalText returns the text of String, and an error for a value without a name.
func (m Mode) MarshalText() ([]byte, error) { return format(m, List, Mode.String) }

// UnmarshalText sets m to the Mode with the given text. It returns a *FieldError if no Mode has it.
func (m *Mode) UnmarshalText(b []byte) error { return parse(m, b, List, Mode.String) }

// MarshalText returns the text of String, and an error for a value without a name.
func (j JitterMode) MarshalText() ([]byte, error) {
	return format(j, DecorrelatedJitter, JitterMode.String)
}

// UnmarshalText sets j to the JitterMode with the given text. It returns a *FieldError if no JitterMode has it.
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
