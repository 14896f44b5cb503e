package wire

import (
	"bytes"
	"encoding"
	stdjson "encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/literal"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryplan"
)

// JSON encodes a struct of retryplan as an object. Its keys are the names of the fields in snake_case. Fields that are
// nil and those whose zero value stands for none, as that of a Reason or a Trigger does, are left out.
func JSON(v any) stdjson.Marshaler { return later{v} }

// later is encoded only if it is printed: a time series can be long.
type later struct{ v any }

func (l later) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	encoder := stdjson.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // the caller of MarshalJSON decides about that
	err := encoder.Encode(encode(reflect.ValueOf(l.v)))
	return b.Bytes(), err
}

// encode returns v in a form for encoding/json.
func encode(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Duration:
		return seconds(x)
	case float64:
		return finite(x)
	case retry.Policy:
		return Policy(x)
	case retry.Reason:
		return Reason(x)
	case encoding.TextMarshaler:
		return x
	case interface {
		Mean() time.Duration
		Quantile(q float64) time.Duration
	}:
		return map[string]any{
			"min_seconds": seconds(x.Quantile(0)), "mean_seconds": seconds(x.Mean()), "p50_seconds": seconds(x.Quantile(.5)),
			"p90_seconds": seconds(x.Quantile(.9)), "p99_seconds": seconds(x.Quantile(.99)), "max_seconds": seconds(x.Quantile(1)),
		}
	case fmt.Stringer:
		return x.String()
	}
	switch v.Kind() {
	case reflect.Pointer:
		return encode(v.Elem())
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = encode(v.Index(i))
		}
		return list
	case reflect.Map:
		named := map[string]any{}
		for key, value := range v.Seq2() {
			named[fmt.Sprint(encode(key))] = encode(value)
		}
		return named
	case reflect.Struct:
		return members(v)
	}
	return v.Interface()
}

// members returns the fields of a struct.
func members(v reflect.Value) map[string]any {
	o := map[string]any{}
	for field, value := range v.Fields() {
		key := Snake(field.Name)
		if value.Type() == reflect.TypeFor[time.Duration]() {
			key += "_seconds"
		}
		if value.Kind() == reflect.Func || !field.IsExported() {
			continue
		}
		if field.Anonymous {
			maps.Copy(o, members(value))
			continue
		}
		switch value.Kind() {
		case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Struct, reflect.String, reflect.Uint8: // enumerations are of type uint8
			if value.IsZero() {
				continue
			}
		}
		o[key] = encode(value)
		if field.Name == "HiddenCapacity" && value.IsZero() {
			o[key] = nil // no capacity is known
		}
	}
	switch x := v.Interface().(type) {
	case retryplan.ChainCertificate:
		delete(o, "tipping_seconds")
		if o["weakest"] = x.Weakest + 1; x.Stability == 0 {
			o["weakest"], o["recovery_seconds"], o["margin"] = nil, nil, nil
		}
	case retryplan.Result:
		if !x.Judged {
			o["recovered"] = nil
		}
		if !x.Judged || !x.Recovered {
			o["recovery_seconds"] = nil
		}
	}
	return o
}

// Read reads the JSON of a struct of retryplan into to, a pointer. Durations, kinds of triggers and policies are those of
// flags and documents. A key without a field is an error. Errors name the place in data.
func Read(data []byte, to any) error {
	return json.Unmarshal(data, to, json.MatchCaseInsensitiveNames(true), json.RejectUnknownMembers(true),
		json.WithUnmarshalers(json.JoinUnmarshalers(
			by(func(d Duration) (time.Duration, error) { return time.Duration(d), nil }),
			by(func(name string) (retryplan.TriggerKind, error) {
				return Parse(retryplan.Stall, retryplan.Failing, name)
			}),
			by(retryconf.Spec.Policy),
		)))
}

// by reads a B as an A that is converted.
func by[A, B any](convert func(A) (B, error)) *json.Unmarshalers {
	return json.UnmarshalFunc(func(data []byte, to *B) (err error) {
		var from A
		if err = json.Unmarshal(data, &from); err == nil {
			*to, err = convert(from)
		}
		return err
	})
}

// Policy returns a valid policy in every form in which it can be copied: the schedule on one line, an expression of Go,
// and the document that retryconf reads.
func Policy(p retry.Policy) any {
	document, _ := retryconf.FromPolicy(p) // the error names the fields that are code
	o := map[string]any{"text": Schedule(p), "go": literal.Go(p), "document": document}
	if p.Name != "" {
		o["name"] = p.Name
	}
	return o
}

// seconds returns the seconds of d, or nil if d is negative, which means never, or the largest, which means unbounded.
func seconds(d time.Duration) any {
	if d < 0 || d == math.MaxInt64 {
		return nil
	}
	return d.Seconds()
}

// finite returns x, or nil if x is not finite, since JSON has no such numbers.
func finite(x float64) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return x
}

var words = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// Snake returns the key of a document for a field: "max_attempts" for "MaxAttempts".
func Snake(name string) string { return strings.ToLower(words.ReplaceAllString(name, "${1}_$2")) }
