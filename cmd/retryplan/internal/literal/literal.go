// Package literal writes values of package retry as Go source, to be copied into a program.
package literal

import (
	"fmt"
	"go/format"
	"reflect"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// Go returns a policy or the configuration of a budget as a Go expression, formatted as by gofmt, that compiles in a file
// that imports the packages retry and time. Fields that are zero are left out. So are the fields of a policy that are code
// (Classify, Wait, Budget, Pay, Gate, Observe, Rand), since they cannot be written down.
func Go(p any) string { return literal(reflect.ValueOf(p)) }

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
	formatted, _ := format.Source([]byte(text)) // which is Go
	return string(formatted)
}

// expression returns the value of a field. It returns "" for code.
func expression(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Duration:
		return duration(x)
	case []time.Duration:
		delays := make([]string, len(x))
		for i, d := range x {
			delays[i] = duration(d)
		}
		return "[]time.Duration{" + strings.Join(delays, ", ") + "}"
	case retry.Mode, retry.JitterMode:
		return constants[x]
	case retry.Backoff:
		if text := literal(v); text != "retry.Backoff{}" {
			return text
		}
	case float64, string, int, bool:
		return fmt.Sprintf("%#v", x)
	}
	return ""
}

var constants = map[any]string{
	retry.Exponential: "retry.Exponential", retry.Linear: "retry.Linear", retry.Fixed: "retry.Fixed", retry.List: "retry.List",
	retry.FullJitter: "retry.FullJitter", retry.EqualJitter: "retry.EqualJitter", retry.RatioJitter: "retry.RatioJitter",
	retry.DecorrelatedJitter: "retry.DecorrelatedJitter",
}

// duration returns d as a Go expression in the largest unit that divides it: "90 * time.Second".
func duration(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{
		{time.Hour, "time.Hour"}, {time.Minute, "time.Minute"}, {time.Second, "time.Second"},
		{time.Millisecond, "time.Millisecond"}, {time.Microsecond, "time.Microsecond"}, {time.Nanosecond, "time.Nanosecond"},
	} {
		switch {
		case d == 0:
			return "0"
		case d == u.unit:
			return u.name
		case d%u.unit == 0:
			return fmt.Sprintf("%d * %s", int64(d/u.unit), u.name)
		}
	}
	return ""
}
