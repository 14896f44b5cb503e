package retryconf_test

import (
	"encoding"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

var update = flag.Bool("update", false, "write testdata/errors.golden anew")

// TestEveryErrorTextIsShown checks testdata/errors.golden, which lists each input and the text of its error.
func TestEveryErrorTextIsShown(t *testing.T) {
	var b strings.Builder
	show := func(title string, err error) {
		require.Error(t, err, title)
		require.NotContains(t, err.Error(), "\n", title)
		b.WriteString(title + "\n\t" + err.Error() + "\n")
	}
	for _, document := range []string{
		``, `{"base": }`, `[1, 2]`, `{} {}`, `{"base": 30}`, `{"base": "30"}`, `{"base": null}`, `{"base": "0s"}`, `{"base": "-1s"}`, `{"base": "soon"}`,
		`{"base": "` + strings.Repeat("9", 65) + `s"}`, `{"max_attempts": 0}`, `{"max_attempts": "many"}`, `{"factor": 0}`, `{"factor": "2"}`,
		`{"mode": "cubic"}`, `{"mode": 1}`, `{"jitter": "some"}`, `{"jitter_ratio": 2, "jitter": "ratio"}`, `{"jitter_ratio": 0.5}`, `{"retries_enabled": "yes"}`,
		`{"retries_enabled": 1}`, `{"name": 1}`, `{"delays": []}`, `{"delays": [60, "0", "-1s"]}`, `{"extends": "nobody"}`, `{"cap": "1m", "max": "1m"}`,
		`{"base": "1s", "base": "2s"}`, `{"max_atempts": 3}`, `{"timeout": "3s"}`, `{"base": "5s", "cap": "1s"}`, `{"factor": 0.5}`, `{"mode": "list"}`,
		`{"mode": "fixed", "base": "1s", "factor": 2, "delays": ["1s"]}`, `{"mode": "linear", "jitter": "decorrelated"}`, `{"reset_after": "0s"}`,
	} {
		_, err := retryconf.Parse([]byte(document), retryconf.Spec{}, noLimits)
		show("Parse "+document, err)
	}
	_, err := retryconf.Parse(make([]byte, 1<<20), retryconf.Spec{}, noLimits)
	show("Parse of a megabyte", err)
	tight := retryconf.Limits{MaxAttempts: 3, MinFactor: 3, MaxFactor: 4, MaxDelay: sec, MaxTotalWait: sec, MaxTTL: hour, MaxAttemptTimeout: minute}
	for _, document := range []string{`{}`, `{"max_attempts": "unlimited", "factor": 5, "ttl": "2h", "attempt_timeout": "2m", "reset_after": "1m"}`, `{"delays": ["1m"]}`} {
		_, err := retryconf.Parse([]byte(document), retryconf.Spec{}, tight)
		show("Parse with limits "+document, err)
	}
	_, err = retryconf.FromEnviron("RETRY_", []string{"RETRY_BASE=30", "RETRY_BSE=1s", "RETRY_DELAYS="})
	show("FromEnviron RETRY_BASE=30 RETRY_BSE=1s RETRY_DELAYS=", err)
	for _, text := range []struct {
		to   encoding.TextUnmarshaler
		text string
	}{{new(retryconf.Number), "NaN"}, {new(retryconf.Attempts), "-1"}, {new(retryconf.Delay), "0"}, {new(retryconf.Switch), "yes"}} {
		show("UnmarshalText "+text.text, text.to.UnmarshalText([]byte(text.text)))
	}
	_, err = retryconf.Spec{Mode: 9, Base: -1, Cap: -1, Factor: -1, MaxAttempts: -2, AttemptTimeout: -1, TTL: -1, MaxHint: -1, ResetAfter: -1}.Policy()
	show("Spec.Policy of values that no text gives", err)
	_, err = retryconf.FromPolicy(retry.Policy{Name: "\xff", MaxAttempts: -2})
	show("FromPolicy of a bad policy", err)
	_, err = retryconf.FromPolicy(retry.Policy{Budget: retry.NewBudget(retry.BudgetConfig{}), Classify: retry.Otherwise(retry.Terminal)})
	show("FromPolicy with code", err)

	for _, document := range []string{
		`{"polices": {}}`, `{"policies": 1}`, `{"defaults": {"name": "n", "extends": "standard"}}`, `{"policies": {"serch": {}, "search": {"factor": "2"}}}`,
		`{"policies": {"search": {"extends": "webhook"}, "webhook": {"extends": "search"}}}`, `{"policies": {"search": {"extends": "nobody"}}}`,
		`{"policies": {"search": {}, "search": {}}}`, `{"policies": {"invoice-email": {"base": "2h"}}}`,
	} {
		show("Load "+document, load(defined(), document))
	}
	show("Load of 2 MiB", load(defined(), strings.Repeat(" ", 2<<20)))
	show("Load of a reader that fails", defined().Load(iotest.ErrReader(errors.New("broken"))))
	show("Load of a circle of two", defined().Load(strings.NewReader(`{"policies":{"search":{"extends":"webhook"},"webhook":{"extends":"search"}}}`)))
	var c retryconf.Catalog
	for _, name := range []string{"a", "a", "", "standard"} {
		c.Define(name, retry.Policy{})
	}
	c.Define("b", retry.Policy{TTL: -1})
	show("Catalog.Err", c.Err())

	const path = "testdata/errors.golden"
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	golden, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(golden), b.String())
}
