package plainjson_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/internal/plainjson"
)

// FuzzObject requires what encoding/json finds in every valid object, and no panic for anything else.
func FuzzObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { } `, `{"a":1}`, `{"a" : "b" , "c":[1,{"d":"}]"}],"e":{"f":[]}}`, "{\"a\"\n:\tnull}", `{"a":"\\","b":"\\\"","c":2}`,
		`{"\u0061\/\b\f\n\r\t\"\\":"\ud83d\ude00 \ud83d x \ude00 \ud83d\u0041 é"}`, `{"a":-1.5e+10}`, `[]`, `{`, `}`, `{"a"}`, `{"a":"\`, `{"\ud83d\`,
		`{"a":"\ud83d\ud83d\ude00"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var want map[string]json.RawMessage
		valid := json.Unmarshal(data, &want) == nil && want != nil
		got := map[string]json.RawMessage{}
		err := plainjson.Object(data, func(name string, value []byte) error {
			got[name] = value
			if text, ok := plainjson.String(value); valid && ok {
				var want string
				require.NoError(t, json.Unmarshal(value, &want))
				require.Equal(t, []rune(want), []rune(text))
			}
			return nil
		})
		if valid {
			require.NoError(t, err)
			require.Len(t, got, len(want))
			for name, value := range got {
				if w, ok := want[name]; ok { // invalid UTF-8 becomes U+FFFD in encoding/json
					require.Equal(t, string(w), string(value))
				}
			}
		}
	})
}

func FuzzAppendString(f *testing.F) {
	f.Add("")
	f.Add("a \"b\" \\ \n\x00\x7f é \u2028 😀 \xff")
	f.Fuzz(func(t *testing.T, s string) {
		quoted := plainjson.AppendString(nil, s)
		var want string
		require.NoError(t, json.Unmarshal(quoted, &want))
		require.Equal(t, string([]rune(s)), want)
		got, ok := plainjson.String(quoted)
		require.True(t, ok)
		require.Equal(t, want, got)
	})
}
