package wire

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/literal"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryplan"
)

// object is an object of JSON, whose keys have an order.
type object []member

type member struct {
	key   string
	value any
}

// MarshalJSON returns the object as JSON.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // that is for the caller to choose
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:", m.key)
		if err := encoder.Encode(m.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// set gives a key another value.
func (o object) set(key string, value any) {
	o[slices.IndexFunc(o, func(m member) bool { return m.key == key })].value = value
}

// drop removes a key.
func (o *object) drop(key string) {
	*o = slices.DeleteFunc(*o, func(m member) bool { return m.key == key })
}

// JSON encodes a struct of retryplan with the keys of tags, or the names of its fields in snake_case. What comes out has
// all of its fields but for those that are nil. What goes in, which is a Scenario, a Fleet or a BudgetConfig, has those
// that are not zero.
func JSON(v any) json.Marshaler { return later{v} }

// later is a struct that is not encoded unless it is printed: a time series can be long.
type later struct{ v any }

func (l later) MarshalJSON() ([]byte, error) {
	o, _ := encode(reflect.ValueOf(l.v), false).(object)
	return o.MarshalJSON()
}

// tags are the fields whose keys are not their names, as struct tags have them; keep is the opposite of omitzero.
var tags = map[string]string{
	"Scenario.Policy": "policy,keep", "Scenario.Server": "server,keep", "Population.Policy": "policy,keep",
	"Fleet.Failure": "failure_rate",
	"Plan.CanStart": "effective", "PlannedAttempt.Never": "never,omitzero",
	"Result.Step": "-", "Result.Judged": "-", "Result.Series": "-",
	"Certificate.Stability": "verdict", "ChainCertificate.Stability": "verdict,omitzero", "ChainCertificate.Law": "law,omitzero",
	"ChainCertificate.HiddenCapacity": "hidden_capacity,omitzero", "NodeLoad.HiddenCapacity": "hidden_capacity,omitzero",
	"Solution.Binding": "binding,omitzero", "InfeasibleError.B": "b,omitzero",
}

// keyOf returns the key of a field, and its option.
func keyOf(of reflect.Type, field string) (key, option string) {
	key, option, _ = strings.Cut(cmp.Or(tags[of.Name()+"."+field], Snake(field)), ",")
	return key, option
}

// encode returns v for encoding/json. input says that it goes in.
func encode(v reflect.Value, input bool) any {
	switch x := v.Interface().(type) {
	case time.Duration:
		return Duration(x)
	case float64:
		return finite(x)
	case retry.Policy:
		if input {
			return document(x)
		}
		return Policy(x)
	case retry.Reason:
		return Reason(x)
	case retryplan.Distribution:
		return object{
			{"min_seconds", seconds(x.Min())}, {"mean_seconds", seconds(x.Mean())}, {"p50_seconds", seconds(x.Quantile(.5))},
			{"p90_seconds", seconds(x.Quantile(.9))}, {"p99_seconds", seconds(x.Quantile(.99))}, {"max_seconds", seconds(x.Max())},
		}
	case retryplan.Durations:
		return object{
			{"count", x.Count()}, {"min_seconds", seconds(x.Quantile(0))}, {"mean_seconds", seconds(x.Mean())},
			{"p50_seconds", seconds(x.Quantile(.5))}, {"p90_seconds", seconds(x.Quantile(.9))}, {"p95_seconds", seconds(x.Quantile(.95))},
			{"p99_seconds", seconds(x.Quantile(.99))}, {"max_seconds", seconds(x.Quantile(1))},
		}
	case encoding.TextMarshaler:
		return x
	case retryplan.Scenario, retryplan.Fleet, retry.BudgetConfig:
		input = true
	case fmt.Stringer:
		return x.String()
	}
	switch v.Kind() {
	case reflect.Pointer:
		return encode(v.Elem(), input)
	case reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = encode(v.Index(i), input)
		}
		return list
	case reflect.Map:
		named := map[string]any{}
		for key, value := range v.Seq2() {
			named[fmt.Sprint(encode(key, input))] = encode(value, input)
		}
		return named
	case reflect.Struct:
		return members(v, input)
	}
	return v.Interface()
}

// members returns a struct.
func members(v reflect.Value, input bool) object {
	o := object{}
	for field, value := range v.Fields() {
		key, option := keyOf(v.Type(), field.Name)
		d, isDuration := value.Interface().(time.Duration)
		switch {
		case key == "-", value.Kind() == reflect.Func:
		case value.IsZero() && (input && option != "keep" || option == "omitzero" || nilable(value.Kind())):
		case isDuration && !input:
			o = append(o, member{key + "_seconds", seconds(d)})
		default:
			o = append(o, member{key, encode(value, input)})
		}
	}
	switch x := v.Interface().(type) {
	case retryplan.PlannedAttempt:
		if x.Number == 1 {
			o.drop("wait")
		}
	case retryplan.ChainCertificate:
		if x.Stability == 0 {
			o.drop("weakest")
			o.set("recovery_seconds", nil)
		} else {
			o.set("weakest", x.Weakest+1)
		}
	case retryplan.Result:
		if !x.Judged {
			o.set("recovered", nil)
		}
		if !x.Judged || !x.Recovered {
			o.set("recovery_seconds", nil)
		}
		o = append(o, member{"series", series(&x)})
	}
	return o
}

// nilable reports whether values of a kind can be nil.
func nilable(k reflect.Kind) bool {
	return k == reflect.Pointer || k == reflect.Map || k == reflect.Slice
}

// series returns the time series of r in columns, as charts want it: every list has one value for each interval.
func series(r *retryplan.Result) object {
	o := object{{"step_seconds", seconds(r.Step)}}
	for column := range reflect.TypeFor[retryplan.Point]().Fields() {
		key, values := Snake(column.Name), make([]float64, len(r.Series))
		for i, p := range r.Series {
			switch x := reflect.ValueOf(p).FieldByIndex(column.Index).Interface().(type) {
			case time.Duration:
				values[i] = x.Seconds()
			case int:
				values[i] = float64(x)
			case float64:
				values[i] = x
			}
		}
		if column.Name == "Start" {
			key += "_seconds"
		}
		o = append(o, member{key, values})
	}
	return o
}

// Read reads the JSON of what goes in into to, a pointer. It refuses keys that there are not, and names the place of
// what is wrong.
func Read(data []byte, to any) error { return decode(data, reflect.ValueOf(to).Elem(), "") }

func decode(data []byte, to reflect.Value, path string) error {
	at := func(err error) error {
		if err == nil || path == "" {
			return err
		}
		return fmt.Errorf("%s: %s", path[1:], strings.TrimPrefix(err.Error(), "json: "))
	}
	if string(bytes.TrimSpace(data)) == "null" { // as if the key were left out
		return nil
	}
	switch to := to.Addr().Interface().(type) {
	case *time.Duration:
		return at(json.Unmarshal(data, (*Duration)(to)))
	case *retryplan.TriggerKind:
		var name string
		if err := json.Unmarshal(data, &name); err != nil {
			return at(err)
		}
		kind, err := Parse(retryplan.Stall, retryplan.Failing, name)
		*to = kind
		return at(err)
	case *retry.Policy:
		var spec retryconf.Spec
		if err := json.Unmarshal(data, &spec); err != nil {
			return at(err)
		}
		p, err := spec.Policy()
		*to = p
		return at(err)
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return decode(data, to.Elem(), path)
	case reflect.Slice:
		var list []json.RawMessage
		if err := json.Unmarshal(data, &list); err != nil {
			return at(err)
		}
		to.Set(reflect.MakeSlice(to.Type(), len(list), len(list)))
		for i, one := range list {
			if err := decode(one, to.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Struct:
		var members map[string]json.RawMessage
		if err := json.Unmarshal(data, &members); err != nil {
			return at(err)
		}
		for field, value := range to.Fields() {
			key, _ := keyOf(to.Type(), field.Name)
			if one, ok := members[key]; ok {
				delete(members, key)
				if err := decode(one, value, path+"."+key); err != nil {
					return err
				}
			}
		}
		if unknown := slices.Sorted(maps.Keys(members)); len(unknown) > 0 {
			return at(fmt.Errorf("there is no key %q", unknown[0]))
		}
		return nil
	}
	return at(json.Unmarshal(data, to.Addr().Interface()))
}

// Policy returns a valid policy in every form in which it can be copied: the schedule on one line, an expression of Go,
// and the document that retryconf reads.
func Policy(p retry.Policy) any {
	o := object{{"name", p.Name}, {"text", Schedule(p)}, {"go", literal.Go(p)}, {"document", document(p)}}
	if p.Name == "" {
		o.drop("name")
	}
	return o
}

// document returns what is data of a valid policy.
func document(p retry.Policy) retryconf.Spec {
	spec, _ := retryconf.FromPolicy(p) // the error names what is code
	return spec
}

// seconds returns the seconds of d, nil for a negative one, which stands for what never happens, and for the largest,
// which stands for one without a bound.
func seconds(d time.Duration) any {
	if d < 0 || d == math.MaxInt64 {
		return nil
	}
	return d.Seconds()
}

// finite returns x, nil if it is not finite, since JSON has no such numbers.
func finite(x float64) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return x
}

// Snake returns the key of a document for a field: "max_attempts" for "MaxAttempts".
func Snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && unicode.IsUpper(r) && !unicode.IsUpper(rune(name[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
