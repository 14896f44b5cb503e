package retryconf_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

// defined returns a catalog of three policies.
func defined() *retryconf.Catalog {
	var c retryconf.Catalog
	c.Define("invoice-email", retry.Policy{MaxAttempts: 6, TTL: hour, Backoff: retry.Backoff{Base: sec, Factor: 3, Cap: minute, Jitter: retry.FullJitter}})
	c.Define("search", retry.Policy{Name: "lookup", Disabled: true})
	c.Define("webhook", retry.Policy{})
	return &c
}

func load(c *retryconf.Catalog, document string) error { return c.Load(strings.NewReader(document)) }

func written(t testing.TB, c *retryconf.Catalog) string {
	t.Helper()
	var b strings.Builder
	n, err := c.WriteTo(&b)
	require.NoError(t, err)
	require.EqualValues(t, b.Len(), n)
	return b.String()
}

// requireWritesBack asserts that WriteTo writes a document that loads as the same policies.
func requireWritesBack(t testing.TB, c *retryconf.Catalog) {
	t.Helper()
	before, document := policiesOf(c), written(t, c)
	require.NoError(t, load(c, document), "%s", document)
	require.Equal(t, before, policiesOf(c), "%s", document)
	require.Equal(t, document, written(t, c))
}

func policiesOf(c *retryconf.Catalog) map[string]retry.Policy {
	policies := map[string]retry.Policy{}
	for _, e := range c.All() {
		policies[e.Name] = e.Policy
	}
	return policies
}

var noLimits = retryconf.Limits{MaxName: -1}

const (
	sec    = time.Second
	minute = time.Minute
	hour   = time.Hour
)
