package retryconf_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert/yaml"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/retryconf"
)

func ExampleSpec_UnmarshalYAML() {
	var s retryconf.Spec
	fmt.Println(yaml.Unmarshal([]byte("base: 30\nmax_atempts: 5"), &s))
	// Output: retryconf: line 1: base 30 is a number (write it as a string with its unit, such as "30s"); line 2: max_atempts is not a known key (did you mean "max_attempts"?)
}

func ExampleSchema() {
	var schema struct{ Properties map[string]any }
	fmt.Println(json.Unmarshal(retryconf.Schema(), &schema), schema.Properties["retries_enabled"])
	// Output: <nil> map[type:boolean]
}

func ExampleCatalogSchema() {
	var schema struct{ Properties map[string]any }
	fmt.Println(json.Unmarshal(retryconf.CatalogSchema(), &schema), len(schema.Properties))
	// Output: <nil> 3
}

func TestYAML(t *testing.T) {
	var s retryconf.Spec
	require.NoError(t, yaml.Unmarshal([]byte("max_attempts: unlimited\nfactor: 2.5\nretries_enabled: false\ndelays: [1m]"), &s))
	require.Equal(t, retryconf.Spec{MaxAttempts: -1, Factor: 2.5, RetriesEnabled: retryconf.Off, Delays: s.Delays}, s)
	require.EqualError(t, yaml.Unmarshal([]byte("- 1"), &s), "retryconf: line 1: [1] is not a mapping")
	require.EqualError(t, yaml.Unmarshal([]byte("hedge: {}\ncap: {\n  b: 1,\n  a: 2}"), &s),
		`retryconf: line 2: cap {"b":1,"a":2} is not a string such as "30s"`)
	require.ErrorContains(t, yaml.Unmarshal([]byte("cap: {1: 2}"), &s), `cap {"1":2} is not a string`)
	require.NoError(t, yaml.Unmarshal([]byte("hedge: {share: 0.1, max_calls: 3}"), &s))
	require.Equal(t, retryconf.Spec{Hedge: retryconf.Hedge{Share: 0.1, MaxCalls: 3}}, s)
}

func TestWhatYAMLIsWritten(t *testing.T) {
	for _, row := range []struct {
		from interface{ MarshalYAML() (any, error) }
		want any
	}{
		{retryconf.Attempts(5), 5}, {retryconf.Attempts(-1), "unlimited"}, {retryconf.Number(2.5), 2.5},
		{retryconf.On, true}, {retryconf.Off, false}, {retryconf.Switch(0), nil},
	} {
		got, err := row.from.MarshalYAML()
		require.NoError(t, err)
		require.Equal(t, row.want, got)
	}
}
