package retry_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
)

// enumeration is one of the types whose values have texts.
type enumeration interface {
	~uint8
	encoding.TextMarshaler
}

func TestTextMethods(t *testing.T) {
	testTexts[retry.Status](t, "Status", "", "succeeded", "waiting_retry", "dead_letter", "expired", "failed_no_retries", "canceled")
	testTexts[retry.Reason](t, "Reason", "", "terminal_error", "attempts_exhausted", "budget_exhausted", "ttl_elapsed", "deadline_passed",
		"deadline_too_near", "hint_too_long", "retries_disabled", "caller_canceled")
	testTexts[retry.Class](t, "Class", "unknown", "retryable", "terminal")
	testTexts[retry.Mode](t, "Mode", "", "exponential", "linear", "fixed", "list")
	testTexts[retry.JitterMode](t, "JitterMode", "none", "full", "equal", "ratio", "decorrelated")
}

func testTexts[T enumeration](t *testing.T, name string, texts ...string) {
	read := func(text string) (T, error) {
		v := T(77)
		err := any(&v).(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
		return v, err
	}
	for i, want := range texts {
		t.Run(fmt.Sprintf("%s %q there and back", name, want), func(t *testing.T) {
			text, err := T(i).MarshalText()
			require.NoError(t, err)
			require.Equal(t, want, string(text))
			v, err := read(want)
			require.NoError(t, err)
			require.Equal(t, T(i), v)
			var back T
			quoted, err := json.Marshal(T(i))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%q", want), string(quoted))
			require.NoError(t, json.Unmarshal(quoted, &back))
			require.Equal(t, T(i), back)
		})
	}
	t.Run(name+" without a text cannot be written", func(t *testing.T) {
		for _, v := range []int{len(texts), 255} {
			_, err := T(v).MarshalText()
			require.EqualError(t, err, fmt.Sprintf("retry: %s(%d) has no text", name, v))
		}
	})
	t.Run("what is not text of "+name+" cannot be read", func(t *testing.T) {
		bad := []string{"Terminal", " list", "nonsense", name + "(1)", "two\nlines"}
		if texts[0] != "" {
			bad = append(bad, "")
		}
		for _, text := range bad {
			v, err := read(text)
			field := must[*retry.FieldError](t, err)
			require.Equal(t, name, field.Field)
			require.Equal(t, fmt.Sprintf("%q", text), field.Value)
			require.Contains(t, err.Error(), fmt.Sprintf("retry: %s %q is not ", name, text))
			require.NotContains(t, err.Error(), "\n")
			require.Equal(t, T(77), v, "the value stays as it was")
		}
	})
}
