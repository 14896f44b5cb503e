// Package wire is the JSON of command retryplan: what --json prints and what the page is sent.
//
// Documents have text, as those of retryconf do: durations such as "1m30s". The output has numbers: durations are
// float64 seconds under keys that end in _seconds, probabilities and shares are in [0,1]. A time that never comes and one
// without a bound are null. A reason or a level is its name; success, which has no reason, is "succeeded".
// A trigger and a distribution are the text that flags take, such as "exponential 10ms".
package wire

import (
	"encoding"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryplan"
)

// JSON encodes v, structs as objects. Their keys are the names of the fields in snake_case. Fields that are nil and those
// whose zero value stands for none, as that of a text, a Reason or a Trigger does, are left out.
func JSON(v any) ([]byte, error) {
	var b strings.Builder
	encoder := stdjson.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(encode(reflect.ValueOf(v)))
	return []byte(b.String()), err
}

// encode returns v in a form for encoding/json.
func encode(v reflect.Value) any {
	for v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	switch x := v.Interface().(type) {
	case time.Duration:
		if x < 0 || x == math.MaxInt64 { // never, or without a bound
			return nil
		}
		return x.Seconds()
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) { // JSON has no such numbers
			return nil
		}
		return x
	case retry.Policy:
		return policy(x)
	case retry.Reason:
		return say.Reason(x)
	case retryplan.Trigger:
		return say.Trigger(x)
	case retryplan.Verdict:
		o := members(v)
		o["text"] = x.String()
		o["lost_at_least"], o["lost_at_most"] = x.Lost()
		return o
	case stdjson.Marshaler, encoding.TextMarshaler:
		return x
	case retryplan.Distribution:
		o := map[string]any{"mean_seconds": encode(reflect.ValueOf(x.Mean()))}
		for name, q := range map[string]float64{"min": 0, "p50": .5, "p90": .9, "p99": .99, "max": 1} {
			o[name+"_seconds"] = encode(reflect.ValueOf(x.Quantile(q)))
		}
		return o
	case fmt.Stringer:
		return x.String()
	}
	switch v.Kind() {
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
		if value.Kind() == reflect.Func || !field.IsExported() {
			continue
		}
		if field.Anonymous {
			maps.Copy(o, members(value))
			continue
		}
		switch value.Kind() {
		case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice, reflect.Struct, reflect.String, reflect.Uint8: // enumerations are of type uint8
			if value.IsZero() {
				continue
			}
		}
		key := Snake(field.Name)
		switch value.Type() {
		case reflect.TypeFor[time.Duration](), reflect.TypeFor[[]time.Duration]():
			key += "_seconds"
		}
		o[key] = encode(value)
	}
	return o
}

// policy returns a valid policy in every form in which it can be copied: the schedule on one line, an expression of Go,
// and the document that retryconf reads.
func policy(p retry.Policy) any {
	document, _ := retryconf.FromPolicy(p) // the error names the fields that are code
	o := map[string]any{"text": say.Schedule(p), "go": Go(p), "document": document}
	if p.Name != "" {
		o["name"] = p.Name
	}
	return o
}

// Read reads the JSON of a struct of retryplan into to, a pointer. Durations, triggers and policies are those of flags and
// documents. A key without a field is an error. Errors name the place in data.
func Read(data []byte, to any) error {
	return json.Unmarshal(data, to, json.MatchCaseInsensitiveNames(true), json.RejectUnknownMembers(true),
		json.WithUnmarshalers(json.JoinUnmarshalers(by(time.ParseDuration), by(say.ParseTrigger), by(retryconf.Spec.Policy))))
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

var words = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// Snake returns the key of a document for a field: "max_attempts" for "MaxAttempts".
func Snake(name string) string { return strings.ToLower(words.ReplaceAllString(name, "${1}_$2")) }

// Fields returns every bad field of err: errors.As would find only the first.
func Fields(err error) (found []*retry.FieldError) {
	all, ok := errors.AsType[retry.FieldErrors](err)
	if !ok {
		all = retry.FieldErrors{err}
	}
	for _, one := range all {
		if bad, ok := errors.AsType[*retry.FieldError](one); ok {
			found = append(found, bad)
		}
	}
	return found
}
