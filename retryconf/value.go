package retryconf

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// The types of a Spec's fields read and write themselves as text. So every decoder that uses encoding.TextUnmarshaler
// reads them alike, such as gopkg.in/yaml.v3, BurntSushi/toml and flag.TextVar. In JSON each is only a string, a number
// or a bool. The zero value of each type except Delay means "not given". A text or number that means zero is refused,
// because a user who writes 0 would get the default. Tag fields of your own with omitempty, or omitzero in JSON.

// longestText is the longest text that is parsed. Every valid value is far shorter.
const longestText = 64

// Duration is a duration above 0, written like "30s" or "1h30m". Zero means not given.
type Duration time.Duration

// MarshalText returns the duration as text, and an empty text for zero.
func (d Duration) MarshalText() ([]byte, error) {
	if d == 0 {
		return nil, nil
	}
	return []byte(time.Duration(d).String()), nil
}

// UnmarshalText reads a duration with its unit, above 0.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err == nil && parsed == 0 && len(text) <= longestText {
		return valueError(string(text), "is not above 0 (leave it out for the default)")
	}
	if parsed, err = parseDuration(string(text)); err != nil {
		return err
	}
	*d = Duration(parsed)
	return nil
}

// UnmarshalJSON reads a JSON string as UnmarshalText does.
func (d *Duration) UnmarshalJSON(data []byte) error { return durationJSON(data, d.UnmarshalText) }

// String returns the duration as text, "" for zero.
func (d Duration) String() string { return textOf(d) }

// Delay is one wait of a list, a duration of 0 or more that is written like "0s" or "1h30m".
type Delay time.Duration

// MarshalText returns the delay as text.
func (d Delay) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads a duration with its unit, 0 or more.
func (d *Delay) UnmarshalText(text []byte) error {
	parsed, err := parseDuration(string(text))
	if err != nil {
		return err
	}
	*d = Delay(parsed)
	return nil
}

// UnmarshalJSON reads a JSON string as UnmarshalText does.
func (d *Delay) UnmarshalJSON(data []byte) error { return durationJSON(data, d.UnmarshalText) }

// String returns the delay as text.
func (d Delay) String() string { return textOf(d) }

func parseDuration(text string) (time.Duration, error) {
	if len(text) > longestText {
		return 0, valueError(text, "is too long for a duration")
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		if text != "" && strings.Trim(text, "0123456789.") == "" {
			return 0, valueError(text, fmt.Sprintf("has no unit (write it as a string such as %q)", text+"s"))
		}
		return 0, valueError(text, `is not a duration such as "30s" or "1h30m"`)
	case d < 0:
		return 0, valueError(text, "is negative")
	case d == 0 && text == "0":
		return 0, valueError(text, `has no unit (write it as a string such as "0s")`)
	default:
		return d, nil
	}
}

// Attempts is a number of attempts, 1 or more, or retry.Unlimited, written "unlimited". Zero means not given.
type Attempts int

const unlimited = "unlimited"

// MarshalText returns the number or "unlimited" as text, and an empty text for zero.
func (a Attempts) MarshalText() ([]byte, error) {
	switch a {
	case 0:
		return nil, nil
	case retry.Unlimited:
		return []byte(unlimited), nil
	default:
		return []byte(strconv.Itoa(int(a))), nil
	}
}

// UnmarshalText reads a whole number of 1 or more, or "unlimited".
func (a *Attempts) UnmarshalText(text []byte) error {
	if string(text) == unlimited {
		*a = retry.Unlimited
		return nil
	}
	n, err := strconv.ParseInt(string(text), 10, strconv.IntSize)
	if err != nil || n < 1 || len(text) > longestText {
		return valueError(string(text), `is not a whole number of 1 or more, nor "unlimited" (leave it out for the default)`)
	}
	*a = Attempts(n)
	return nil
}

// MarshalJSON returns a JSON number, or "unlimited".
func (a Attempts) MarshalJSON() ([]byte, error) {
	if a == retry.Unlimited {
		return []byte(`"` + unlimited + `"`), nil
	}
	return strconv.AppendInt(nil, int64(a), 10), nil
}

// MarshalYAML returns a number, or "unlimited".
func (a Attempts) MarshalYAML() (any, error) {
	if a == retry.Unlimited {
		return unlimited, nil
	}
	return int(a), nil
}

// UnmarshalJSON reads a JSON number, or the string "unlimited".
func (a *Attempts) UnmarshalJSON(data []byte) error {
	if text, isString := jsonString(data); isString && text == unlimited {
		return a.UnmarshalText([]byte(text))
	}
	if !isNumber(data) {
		return fault("", shownJSON(data), `is not a whole number of 1 or more, nor "unlimited"`)
	}
	if plain := plainWhole(data); plain != "" && plain != string(data) {
		return fault("", shownJSON(data), "is not a whole number of 1 or more (write "+plain+")")
	}
	return unquoted(a.UnmarshalText(data), data)
}

// plainWhole returns a number from 1 to 1e15 without point and exponent, and "" for any other number.
func plainWhole(number []byte) string {
	f, err := strconv.ParseFloat(string(number), 64)
	if err != nil || f != math.Trunc(f) {
		return ""
	}
	if f < 1 || f >= 1e15 {
		return ""
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// String returns the number or "unlimited", "" for zero.
func (a Attempts) String() string { return textOf(a) }

// Number is a finite number above 0. Zero means not given.
type Number float64

// MarshalText returns the shortest text that reads back as the same number, and an empty text for zero.
func (n Number) MarshalText() ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', -1, 64), nil
}

// UnmarshalText reads a finite number above 0 in decimal notation.
func (n *Number) UnmarshalText(text []byte) error {
	f, err := strconv.ParseFloat(string(text), 64)
	if errors.Is(err, strconv.ErrRange) && f > 0 {
		return valueError(string(text), "is too large")
	}
	if len(text) > longestText {
		return valueError(string(text), "is too long for a number")
	}
	isFinite := f > 0 && f <= math.MaxFloat64
	isDecimal := !strings.ContainsAny(string(text), "xXpP_")
	if err != nil || !isFinite || !isDecimal {
		return valueError(string(text), "is not a number above 0 (leave it out for the default)")
	}
	*n = Number(f)
	return nil
}

// MarshalJSON returns a JSON number.
func (n Number) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(n), 'g', -1, 64), nil
}

// MarshalYAML returns a number.
func (n Number) MarshalYAML() (any, error) { return float64(n), nil }

// UnmarshalJSON reads a JSON number.
func (n *Number) UnmarshalJSON(data []byte) error {
	if !isNumber(data) {
		return fault("", shownJSON(data), "is not a number")
	}
	return unquoted(n.UnmarshalText(data), data)
}

// UnmarshalTOML reads a number of BurntSushi/toml, which passes at most six decimals to UnmarshalText.
func (n *Number) UnmarshalTOML(value any) error { return n.UnmarshalText([]byte(fmt.Sprint(value))) }

// String returns the number as text, "" for zero.
func (n Number) String() string { return textOf(n) }

// Mode is a formula, "exponential", "linear", "fixed" or "list". It reads "constant" as fixed. Zero means not given.
type Mode retry.Mode

// MarshalText returns the mode's name, and an empty text for zero.
func (m Mode) MarshalText() ([]byte, error) { return retry.Mode(m).MarshalText() }

// UnmarshalText reads a mode's name.
func (m *Mode) UnmarshalText(text []byte) error {
	var mode retry.Mode
	if string(text) == "constant" {
		mode = retry.Fixed
	} else if err := mode.UnmarshalText(text); err != nil || mode == 0 {
		return valueError(string(text), `is not one of "exponential", "linear", "fixed" and "list"`)
	}
	*m = Mode(mode)
	return nil
}

// UnmarshalJSON reads a JSON string as UnmarshalText does.
func (m *Mode) UnmarshalJSON(data []byte) error { return fromJSON(data, m.UnmarshalText) }

// String returns the mode's name, "" for zero.
func (m Mode) String() string { return textOf(m) }

// Jitter is the name of a kind of jitter. The empty Jitter means not given. That is not the same as NoJitter, because a
// given NoJitter replaces the jitter that a policy would otherwise have.
type Jitter string

// The kinds of jitter, each for the retry.JitterMode of the same name.
const (
	NoJitter           Jitter = "none"
	FullJitter         Jitter = "full"
	EqualJitter        Jitter = "equal"
	RatioJitter        Jitter = "ratio"
	DecorrelatedJitter Jitter = "decorrelated"
)

func jitterOf(mode retry.JitterMode) Jitter { return Jitter(mode.String()) }

// mode returns the jitter mode, which is NoJitter if j is not given, and an error if j is an unknown kind.
func (j Jitter) mode() (mode retry.JitterMode, err error) {
	if j != "" {
		err = mode.UnmarshalText([]byte(j))
	}
	return mode, err
}

// MarshalText returns the jitter's name, an empty text if it is not given, and an error if it is an unknown kind.
func (j Jitter) MarshalText() ([]byte, error) {
	_, err := j.mode()
	return []byte(j), err
}

// UnmarshalText reads a jitter's name.
func (j *Jitter) UnmarshalText(text []byte) error {
	var mode retry.JitterMode
	if err := mode.UnmarshalText(text); err != nil {
		return valueError(string(text), `is not one of "none", "full", "equal", "ratio" and "decorrelated"`)
	}
	*j = Jitter(text)
	return nil
}

// UnmarshalJSON reads a JSON string as UnmarshalText does.
func (j *Jitter) UnmarshalJSON(data []byte) error { return fromJSON(data, j.UnmarshalText) }

// String returns the jitter's name, "" if it is not given.
func (j Jitter) String() string { return string(j) }

// Switch is true, false or not given, which is zero.
type Switch uint8

// The given values of a Switch.
const (
	On  Switch = iota + 1 // true
	Off                   // false
)

// MarshalText returns "true" or "false", and an empty text for zero.
func (s Switch) MarshalText() ([]byte, error) {
	switch s {
	case On:
		return []byte("true"), nil
	case Off:
		return []byte("false"), nil
	default:
		return nil, nil
	}
}

// UnmarshalText reads "true" or "false".
func (s *Switch) UnmarshalText(text []byte) error {
	switch string(text) {
	case "true":
		*s = On
	case "false":
		*s = Off
	default:
		return valueError(string(text), "is neither true nor false")
	}
	return nil
}

// MarshalJSON returns true or false, null for zero.
func (s Switch) MarshalJSON() ([]byte, error) {
	if text, _ := s.MarshalText(); text != nil {
		return text, nil
	}
	return []byte("null"), nil
}

// MarshalYAML returns true or false, nil for zero.
func (s Switch) MarshalYAML() (any, error) {
	if s == 0 {
		return nil, nil
	}
	return s == On, nil
}

// UnmarshalJSON reads true or false.
func (s *Switch) UnmarshalJSON(data []byte) error {
	if string(data) != "true" && string(data) != "false" {
		return fault("", shownJSON(data), "is neither true nor false")
	}
	return s.UnmarshalText(data)
}

// String returns "true" or "false", "" for zero.
func (s Switch) String() string { return textOf(s) }

// durationJSON reads a JSON string with the given UnmarshalText. The error for any other value shows the string form.
func durationJSON(data []byte, unmarshalText func([]byte) error) error {
	if isNumber(data) {
		return fault("", shownJSON(data), `is a number (write it as a string with its unit, such as "30s")`)
	}
	if _, isString := jsonString(data); !isString {
		return fault("", shownJSON(data), `is not a string such as "30s"`)
	}
	return fromJSON(data, unmarshalText)
}

func fromJSON(data []byte, unmarshalText func([]byte) error) error {
	text, isString := jsonString(data)
	if !isString {
		return fault("", shownJSON(data), "is not a string")
	}
	return unmarshalText([]byte(text))
}

// unquoted returns the error of a text as the error of a JSON number, whose value is shown without quotes.
func unquoted(err error, data []byte) error {
	if err == nil {
		return nil
	}
	return fault("", shownJSON(data), err.(*retry.FieldError).Rule)
}

func jsonString(value []byte) (string, bool) {
	var text string
	if len(value) == 0 || value[0] != '"' || json.Unmarshal(value, &text) != nil {
		return "", false
	}
	return text, true
}

func isNumber(value []byte) bool {
	return len(value) > 0 && (value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

func textOf(v interface{ MarshalText() ([]byte, error) }) string {
	text, _ := v.MarshalText()
	return string(text)
}
