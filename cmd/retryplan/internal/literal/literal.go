// Package literal writes policies as code and as data, to be copied into a program or a file.
package literal

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

// Go returns p as a Go expression, formatted as by gofmt, that compiles in a file that imports the packages retry and
// time. Fields that are zero are left out. So are the fields of p that are code (Classify, Wait, Budget, Pay, Gate,
// Observe, Rand), since they cannot be written down.
func Go(p retry.Policy) string { return literal(reflect.ValueOf(p)) }

// Budget returns c as a Go expression, as Go does with a policy.
func Budget(c retry.BudgetConfig) string { return literal(reflect.ValueOf(c)) }

// literal returns a struct of package retry on one line if that is short, otherwise with a line for each field.
func literal(v reflect.Value) string {
	var fields []string
	for field, value := range v.Fields() {
		text := expression(value)
		if field.Name == "MaxAttempts" && value.Int() == retry.Unlimited {
			text = "retry.Unlimited"
		}
		if !value.IsZero() && text != "" {
			fields = append(fields, field.Name+": "+text)
		}
	}
	text := v.Type().String() + "{" + strings.Join(fields, ", ") + "}"
	if len(text) > 80 || strings.Contains(text, "\n") {
		text = v.Type().String() + "{\n" + strings.Join(fields, ",\n") + ",\n}"
	}
	formatted, err := format.Source([]byte(text))
	if err != nil {
		return text // a policy that does not validate; it reads all the same
	}
	return string(formatted)
}

// expression returns the value of a field, nothing for code and for what no literal can say, which is in no policy that
// validates.
func expression(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return Duration(x)
	case []time.Duration:
		delays := make([]string, len(x))
		for i, d := range x {
			delays[i] = Duration(d)
		}
		return "[]time.Duration{" + strings.Join(delays, ", ") + "}"
	case retry.Mode:
		return constant(int(x), "retry.Exponential", "retry.Linear", "retry.Fixed", "retry.List")
	case retry.JitterMode:
		return constant(int(x), "retry.FullJitter", "retry.EqualJitter", "retry.RatioJitter", "retry.DecorrelatedJitter")
	case retry.Backoff:
		if text := literal(v); text != "retry.Backoff{}" {
			return text
		}
	case float64:
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			return strconv.FormatFloat(x, 'g', -1, 64)
		}
	case string, int, bool:
		return fmt.Sprintf("%#v", x)
	}
	return ""
}

// constant returns the name of a value above 0.
func constant(value int, names ...string) string {
	if value < 1 || value > len(names) {
		return ""
	}
	return names[value-1]
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
	return string(text), err
}
