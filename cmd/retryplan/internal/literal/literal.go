// Package literal writes policies as code and as data, to be copied into a program or a file.
package literal

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

// Go returns p as a Go expression, formatted as by gofmt, that compiles in a file that imports the packages retry and
// time. Fields that are zero are left out. So are the fields of p that are code (Classify, Wait, Budget, Pay, Gate,
// Observe, Rand), since they cannot be written down.
func Go(p retry.Policy) string {
	var outer, inner fields
	outer.text("Name", p.Name)
	switch p.MaxAttempts {
	case retry.Unlimited:
		outer.add("MaxAttempts", "retry.Unlimited")
	default:
		outer.integer("MaxAttempts", p.MaxAttempts)
	}
	inner.constant("Mode", int(p.Mode), "", "retry.Exponential", "retry.Linear", "retry.Fixed", "retry.List")
	inner.duration("Base", p.Base)
	inner.number("Factor", p.Factor)
	inner.duration("Cap", p.Cap)
	if p.Delays != nil {
		delays := make([]string, len(p.Delays))
		for i, d := range p.Delays {
			delays[i] = Duration(d)
		}
		inner.add("Delays", "[]time.Duration{"+strings.Join(delays, ", ")+"}")
	}
	inner.constant("Jitter", int(p.Jitter), "retry.NoJitter", "retry.FullJitter", "retry.EqualJitter", "retry.RatioJitter", "retry.DecorrelatedJitter")
	inner.number("JitterRatio", p.JitterRatio)
	if len(inner) > 0 {
		outer.add("Backoff", inner.literal("retry.Backoff"))
	}
	outer.duration("AttemptTimeout", p.AttemptTimeout)
	outer.duration("TTL", p.TTL)
	outer.duration("MaxHint", p.MaxHint)
	outer.duration("ResetAfter", p.ResetAfter)
	if p.Disabled {
		outer.add("Disabled", "true")
	}
	return outer.literal("retry.Policy")
}

// Budget returns c as a Go expression, as Go does with a policy.
func Budget(c retry.BudgetConfig) string {
	var f fields
	f.number("Ratio", c.Ratio)
	f.integer("Burst", c.Burst)
	f.integer("Initial", c.Initial)
	f.duration("Trickle", c.Trickle)
	return f.literal("retry.BudgetConfig")
}

// Duration returns d as a Go expression in the largest unit that divides it: "90 * time.Second".
func Duration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	unit, name := time.Nanosecond, "time.Nanosecond"
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "time.Hour"}, {time.Minute, "time.Minute"}, {time.Second, "time.Second"}, {time.Millisecond, "time.Millisecond"}, {time.Microsecond, "time.Microsecond"}} {
		if d%u.unit == 0 {
			unit, name = u.unit, u.name
			break
		}
	}
	if d == unit {
		return name
	}
	return fmt.Sprintf("%d * %s", int64(d/unit), name)
}

// Document returns p as the JSON document that retryconf reads, indented, without a line feed at its end. What is code
// in p is left out. The error is that of retryconf.FromPolicy for a policy that does not validate.
func Document(p retry.Policy) (string, error) {
	spec, err := retryconf.FromPolicy(p)
	if _, code := errors.AsType[*retryconf.CodeError](err); err != nil && !code {
		return "", err
	}
	text, err := json.MarshalIndent(spec, "", "  ")
	return CompactJSON(string(text)), err
}

// fields are the fields of a composite literal, as "Name: value".
type fields []string

func (f *fields) add(name, value string) { *f = append(*f, name+": "+value) }

func (f *fields) text(name, value string) {
	if value != "" {
		f.add(name, strconv.Quote(value))
	}
}

func (f *fields) integer(name string, value int) {
	if value != 0 {
		f.add(name, strconv.Itoa(value))
	}
}

// number leaves out what no literal can say; such a number is in no policy that validates.
func (f *fields) number(name string, value float64) {
	if value != 0 && !math.IsNaN(value) && !math.IsInf(value, 0) {
		f.add(name, strconv.FormatFloat(value, 'g', -1, 64))
	}
}

func (f *fields) duration(name string, value time.Duration) {
	if value != 0 {
		f.add(name, Duration(value))
	}
}

// constant leaves out a value that has no name; such a value is in no policy that validates.
func (f *fields) constant(name string, value int, names ...string) {
	if value != 0 && value < len(names) {
		f.add(name, names[value])
	}
}

// literal returns one line if that is short, otherwise a line for each field.
func (f fields) literal(typ string) string {
	var text string
	switch short := typ + "{" + strings.Join(f, ", ") + "}"; {
	case len(short) <= 80 && !strings.Contains(short, "\n"):
		text = short
	default:
		text = typ + "{\n" + strings.Join(f, ",\n") + ",\n}"
	}
	formatted, err := format.Source([]byte(text))
	if err != nil {
		return text // a policy that does not validate; it reads all the same
	}
	return string(formatted)
}
