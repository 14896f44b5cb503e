package retryconf_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

// value is implemented by the type of each field of a Spec.
type value interface {
	encoding.TextMarshaler
	fmt.Stringer
}

// readAs calls UnmarshalText with text on a new value of the type of like, and returns the result.
func readAs(like value, text string) (value, error) {
	to := reflect.New(reflect.TypeOf(like))
	err := to.Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
	return to.Elem().Interface().(value), err
}

const (
	sec    = time.Second
	minute = time.Minute
	hour   = time.Hour
)

func seconds(n float64) retryconf.Duration { return retryconf.Duration(n * float64(sec)) }

func TestEachValueReadsItsText(t *testing.T) {
	for _, row := range []struct {
		text string
		want value
	}{
		{"30s", seconds(30)},
		{"1h30m", seconds(5400)},
		{"1.5s", seconds(1.5)},
		{"1ns", retryconf.Duration(1)},
		{"2562047h47m16.854775807s", retryconf.Duration(math.MaxInt64)},
		{"0s", retryconf.Delay(0)},
		{"3h", retryconf.Delay(3 * hour)},
		{"1", retryconf.Attempts(1)},
		{strings.Repeat("0", 63) + "5", retryconf.Attempts(5)},
		{strconv.Itoa(math.MaxInt), retryconf.Attempts(math.MaxInt)},
		{"unlimited", retryconf.Attempts(retry.Unlimited)},
		{"2", retryconf.Number(2)},
		{"0.25", retryconf.Number(0.25)},
		{"1e6", retryconf.Number(1e6)},
		{"5e-324", retryconf.Number(math.SmallestNonzeroFloat64)},
		{"1.7976931348623157e308", retryconf.Number(math.MaxFloat64)},
		{"exponential", retryconf.Mode(retry.Exponential)},
		{"linear", retryconf.Mode(retry.Linear)},
		{"fixed", retryconf.Mode(retry.Fixed)},
		{"constant", retryconf.Mode(retry.Fixed)},
		{"list", retryconf.Mode(retry.List)},
		{"none", retryconf.NoJitter},
		{"full", retryconf.FullJitter},
		{"equal", retryconf.EqualJitter},
		{"ratio", retryconf.RatioJitter},
		{"decorrelated", retryconf.DecorrelatedJitter},
		{"true", retryconf.On},
		{"false", retryconf.Off},
	} {
		t.Run(fmt.Sprintf("%T reads %q", row.want, row.text), func(t *testing.T) {
			got, err := readAs(row.want, row.text)
			require.NoError(t, err)
			require.Equal(t, row.want, got)

			written, err := got.MarshalText()
			require.NoError(t, err)
			require.Equal(t, string(written), got.String())
			again, err := readAs(row.want, string(written))
			require.NoError(t, err)
			require.Equal(t, row.want, again)
		})
	}
}

func TestEachValueRefusesWithItsRule(t *testing.T) {
	const whole = `is not a whole number of 1 or more, nor "unlimited" (leave it out for the default)`
	const number = "is not a number above 0 (leave it out for the default)"
	long := strings.Repeat("9", 1<<20)
	for _, row := range []struct {
		like value
		text string
		want string
	}{
		{seconds(0), "", `"" is not a duration such as "30s" or "1h30m"`},
		{seconds(0), "30", `"30" has no unit (write it as a string such as "30s")`},
		{seconds(0), "1.5", `"1.5" has no unit (write it as a string such as "1.5s")`},
		{seconds(0), "0s", `"0s" is not above 0 (leave it out for the default)`},
		{seconds(0), "0.1ns", `"0.1ns" is not above 0 (leave it out for the default)`},
		{seconds(0), "-1s", `"-1s" is negative`},
		{seconds(0), "soon", `"soon" is not a duration such as "30s" or "1h30m"`},
		{seconds(0), "9999999h", `"9999999h" is not a duration such as "30s" or "1h30m"`},
		{seconds(0), "NaN", `"NaN" is not a duration such as "30s" or "1h30m"`},
		{seconds(0), "inf", `"inf" is not a duration such as "30s" or "1h30m"`},
		{seconds(0), "1e3", `"1e3" is not a duration such as "30s" or "1h30m"`},
		{seconds(0), "0", `"0" is not above 0 (leave it out for the default)`},
		{seconds(0), long, `"9999999999999999999999999999999999999999"... is too long for a duration`},
		{retryconf.Delay(0), "0", `"0" has no unit (write it as a string such as "0s")`},
		{retryconf.Delay(0), "-1s", `"-1s" is negative`},
		{retryconf.Delay(0), "5", `"5" has no unit (write it as a string such as "5s")`},
		{retryconf.Attempts(0), "", `"" ` + whole},
		{retryconf.Attempts(0), "0", `"0" ` + whole},
		{retryconf.Attempts(0), "-1", `"-1" ` + whole},
		{retryconf.Attempts(0), "1.5", `"1.5" ` + whole},
		{retryconf.Attempts(0), "Unlimited", `"Unlimited" ` + whole},
		{retryconf.Attempts(0), "9223372036854775808", `"9223372036854775808" ` + whole},
		{retryconf.Attempts(0), strings.Repeat("0", 64) + "1", `"` + strings.Repeat("0", 40) + `"... ` + whole},
		{retryconf.Number(0), "", `"" ` + number},
		{retryconf.Number(0), "0", `"0" ` + number},
		{retryconf.Number(0), "-0", `"-0" ` + number},
		{retryconf.Number(0), "-2", `"-2" ` + number},
		{retryconf.Number(0), "NaN", `"NaN" ` + number},
		{retryconf.Number(0), "Inf", `"Inf" ` + number},
		{retryconf.Number(0), "1e309", `"1e309" is too large`},
		{retryconf.Number(0), "1e-999999999", `"1e-999999999" ` + number},
		{retryconf.Number(0), "0x1p4", `"0x1p4" ` + number},
		{retryconf.Number(0), "1_0", `"1_0" ` + number},
		{retryconf.Mode(0), "", `"" is not one of "exponential", "linear", "fixed" and "list"`},
		{retryconf.Mode(0), "Fixed", `"Fixed" is not one of "exponential", "linear", "fixed" and "list"`},
		{retryconf.Jitter(""), "", `"" is not one of "none", "full", "equal", "ratio" and "decorrelated"`},
		{retryconf.Jitter(""), "a\nb", `"a\nb" is not one of "none", "full", "equal", "ratio" and "decorrelated"`},
		{retryconf.On, "", `"" is neither true nor false`},
		{retryconf.On, "yes", `"yes" is neither true nor false`},
	} {
		t.Run(fmt.Sprintf("%T refuses %.20q of %d bytes", row.like, row.text, len(row.text)), func(t *testing.T) {
			_, err := readAs(row.like, row.text)
			require.EqualError(t, err, "retryconf: "+row.want)
			var field *retry.FieldError
			require.ErrorAs(t, err, &field)
			require.Empty(t, field.Field)
		})
	}
}

func TestARefusedTextLeavesTheValueAsItWas(t *testing.T) {
	d, a, n, m, j, s := seconds(30), retryconf.Attempts(3), retryconf.Number(2), retryconf.Mode(1), retryconf.FullJitter, retryconf.On
	for _, to := range []encoding.TextUnmarshaler{&d, &a, &n, &m, &j, &s} {
		require.Error(t, to.UnmarshalText([]byte("?")))
	}
	require.Equal(t, []any{seconds(30), retryconf.Attempts(3), retryconf.Number(2), retryconf.Mode(1), retryconf.FullJitter, retryconf.On},
		[]any{d, a, n, m, j, s})
}

func TestTheZeroOfEachValueHasNoText(t *testing.T) {
	for _, zero := range []value{retryconf.Duration(0), retryconf.Attempts(0), retryconf.Number(0), retryconf.Mode(0), retryconf.Jitter(""), retryconf.Switch(0)} {
		require.Empty(t, zero.String(), "%T", zero)
	}
	require.Equal(t, "0s", retryconf.Delay(0).String(), "0 is a delay")
}

func TestEachValueHasItsJSONForm(t *testing.T) {
	for _, row := range []struct {
		value any
		want  string
	}{
		{seconds(30), `"30s"`},
		{retryconf.Delay(0), `"0s"`},
		{retryconf.Attempts(12), `12`},
		{retryconf.Attempts(retry.Unlimited), `"unlimited"`},
		{retryconf.Number(2.5), `2.5`},
		{retryconf.Number(1e21), `1e+21`},
		{retryconf.Mode(retry.Fixed), `"fixed"`},
		{retryconf.NoJitter, `"none"`},
		{retryconf.On, `true`},
		{retryconf.Off, `false`},
	} {
		t.Run(fmt.Sprintf("%T %v is written as %s", row.value, row.value, row.want), func(t *testing.T) {
			got, err := json.Marshal(row.value)
			require.NoError(t, err)
			require.Equal(t, row.want, string(got))
		})
		t.Run(fmt.Sprintf("%T %v is read from %s alone", row.value, row.value, row.want), func(t *testing.T) {
			to := reflect.New(reflect.TypeOf(row.value))
			require.NoError(t, json.Unmarshal([]byte(row.want), to.Interface()))
			require.Equal(t, row.value, to.Elem().Interface())
		})
	}
}
