package retryconf_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
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

func policyNamed(t testing.TB, c *retryconf.Catalog, name string) retry.Policy {
	t.Helper()
	r, ok := c.Lookup(name)
	require.True(t, ok)
	return r.Policy()
}

func written(t testing.TB, c *retryconf.Catalog) string {
	t.Helper()
	var b strings.Builder
	n, err := c.WriteTo(&b)
	require.NoError(t, err)
	require.EqualValues(t, b.Len(), n)
	return b.String()
}

func TestTheZeroCatalogIsEmptyAndReady(t *testing.T) {
	var c retryconf.Catalog
	require.NoError(t, c.Err())
	require.Empty(t, c.All())
	_, ok := c.Lookup("x")
	require.False(t, ok)
	require.Equal(t, "{\n  \"policies\": {}\n}\n", written(t, &c))
	require.NoError(t, load(&c, written(t, &c)))
}

func TestTheZeroRefHasTheZeroPolicy(t *testing.T) {
	var ref retryconf.Ref
	require.Equal(t, retry.Policy{}, ref.Policy())
	require.Empty(t, ref.Name())
}

func TestAnUnloadedCatalogHasItsDefinitions(t *testing.T) {
	c := defined()
	require.Equal(t, []retryconf.Entry{
		{"invoice-email", false, retry.Policy{Name: "invoice-email", MaxAttempts: 6, TTL: hour,
			Backoff: retry.Backoff{Base: sec, Factor: 3, Cap: minute, Jitter: retry.FullJitter}}},
		{"search", false, retry.Policy{Name: "lookup", Disabled: true}},
		{"webhook", false, retry.Policy{Name: "webhook"}},
	}, c.All())
	before := c.All()
	require.NoError(t, load(c, `{}`))
	require.Equal(t, before, c.All(), "an empty document changes nothing")
}

func TestWhereEachValueComesFrom(t *testing.T) {
	email := retry.Policy{Name: "invoice-email", MaxAttempts: 6, TTL: hour,
		Backoff: retry.Backoff{Base: sec, Factor: 3, Cap: minute, Jitter: retry.FullJitter}}
	with := func(change func(p *retry.Policy)) retry.Policy {
		p := email
		change(&p)
		return p
	}
	for _, row := range []struct {
		name, document string
		want           retry.Policy
	}{
		{"an entry stands before the definition", `{"policies":{"invoice-email":{"max_attempts":9}}}`, with(func(p *retry.Policy) { p.MaxAttempts = 9 })},
		{"the definition stands before the defaults", `{"defaults":{"max_attempts":9,"jitter":"equal"}}`, email},
		{"the defaults fill what is left", `{"defaults":{"attempt_timeout":"1s"}}`, with(func(p *retry.Policy) { p.AttemptTimeout = sec })},
		{"a base keeps the definition's factor", `{"policies":{"invoice-email":{"base":"2s"}}}`, with(func(p *retry.Policy) { p.Base = 2 * sec })},
		{"a factor keeps the definition's base", `{"defaults":{"factor":4},"policies":{"invoice-email":{"factor":5}}}`, with(func(p *retry.Policy) { p.Factor = 5 })},
		{"another mode keeps the base, but not the factor", `{"policies":{"invoice-email":{"mode":"linear"}}}`,
			with(func(p *retry.Policy) { p.Mode, p.Factor = retry.Linear, 0 })},
		{"the defaults give the factor of their mode", `{"defaults":{"mode":"linear","factor":5},"policies":{"invoice-email":{"mode":"linear"}}}`,
			with(func(p *retry.Policy) { p.Mode, p.Factor = retry.Linear, 5 })},
		{"the defaults' delays do not join a formula", `{"defaults":{"delays":["1s"]}}`, email},
		{"delays take the place of a formula", `{"policies":{"invoice-email":{"delays":["1s"]}}}`,
			with(func(p *retry.Policy) { p.Base, p.Factor, p.Delays = 0, 0, []time.Duration{sec} })},
		{"jitter none overrides", `{"policies":{"invoice-email":{"jitter":"none"}}}`, with(func(p *retry.Policy) { p.Jitter = retry.NoJitter })},
		{"a label is taken", `{"policies":{"invoice-email":{"name":"mail"}}}`, with(func(p *retry.Policy) { p.Name = "mail" })},
		{"max overrides cap", `{"policies":{"invoice-email":{"max":"2m"}}}`, with(func(p *retry.Policy) { p.Cap = 2 * minute })},
		{"what is extended stands before the definition", `{"policies":{"invoice-email":{"extends":"webhook"},"webhook":{"ttl":"2h","name":"w"}}}`, with(func(p *retry.Policy) { p.TTL = 2 * hour })},
		{"an entry stands before what it extends", `{"policies":{"invoice-email":{"extends":"webhook","ttl":"3h"},"webhook":{"ttl":"2h"}}}`, with(func(p *retry.Policy) { p.TTL = 3 * hour })},
		{"what is extended brings its definition", `{"policies":{"invoice-email":{"extends":"search"}}}`, with(func(p *retry.Policy) { p.Disabled = true })},
		{"a chain is followed", `{"policies":{"invoice-email":{"extends":"webhook"},"webhook":{"extends":"search"},"search":{"max_hint":"1s"}}}`,
			with(func(p *retry.Policy) { p.Disabled, p.MaxHint = true, sec })},
		{"what is extended comes without the defaults", `{"defaults":{"ttl":"5h"},"policies":{"invoice-email":{"extends":"webhook"}}}`, email},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := defined()
			require.NoError(t, load(c, row.document))
			require.Equal(t, row.want, policyNamed(t, c, "invoice-email"))
			requireWritesBack(t, c)
		})
	}
}

func TestRetriesEnabledOverridesADisabledDefinition(t *testing.T) {
	c := defined()
	require.NoError(t, load(c, `{"policies":{"search":{"retries_enabled":true}}}`))
	require.Equal(t, retry.Policy{Name: "lookup"}, policyNamed(t, c, "search"))
	requireWritesBack(t, c)
}

func TestAnExtendedPresetIsItsPublishedSchedule(t *testing.T) {
	for name, want := range map[string]retry.Policy{"standard": retry.Standard(), "inline": retry.Inline(), "delivery": {}} {
		t.Run(name+" over a definition with attempts and cap", func(t *testing.T) {
			var c retryconf.Catalog
			ref := c.Define("x", retry.Policy{MaxAttempts: 12, Backoff: retry.Backoff{Base: 10 * sec, Cap: 30 * sec}})
			require.NoError(t, load(&c, `{"policies":{"x":{"extends":"`+name+`"}}}`))
			want.Name = "x"
			require.Equal(t, want.String(), ref.Policy().String())
		})
	}
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

func TestAFaultLeavesEverythingAsItWas(t *testing.T) {
	for _, row := range []struct {
		name, document, want string
	}{
		{"nothing", ``, `document is not valid JSON: unexpected end`},
		{"null", `null`, `document null is not a JSON object`},
		{"policies that are a list", `{"policies":[]}`, "policies [] is not a JSON object"},
		{"an entry that is null", `{"policies":{"search":null}}`, "policies.search null is not a JSON object"},
		{"an unknown section", `{"polices":{}}`, `polices is not a known key (did you mean "policies"?)`},
		{"a section twice", `{"policies":{},"policies":{}}`, "policies is given twice"},
		{"an entry twice", `{"policies":{"search":{},"search":{}}}`, "policies.search is given twice"},
		{"an unknown policy", `{"policies":{"serch":{}}}`, `policies.serch is not defined in the code (did you mean "search"?)`},
		{"a preset's name", `{"policies":{"standard":{}}}`, `policies.standard is not defined in the code`},
		{"a bad value", `{"policies":{"webhook":{"ttl":"1m"},"search":{"factor":"2"}}}`, `policies.search.factor "2" is not a number`},
		{"a policy that does not validate", `{"policies":{"invoice-email":{"base":"2h"}}}`, `policies.invoice-email.cap "1m" is below base 2h`},
		{"bad defaults", `{"defaults":{"ttl":5,"name":"n","extends":"standard"}}`,
			`defaults.extends "standard" is not allowed in defaults, only in a policy; defaults.name "n" is not allowed in defaults, where it would label all policies; ` +
				`defaults.ttl 5 is a number (write it as a string with its unit, such as "30s")`},
		{"defaults with cap and max", `{"defaults":{"cap":"1s","max":"1s"}}`, `defaults.max "1s" is given together with cap, which means the same`},
		{"a circle of one", `{"policies":{"search":{"extends":"search"}}}`, `policies.search.extends "search" is a cycle: search → search`},
		{"a circle of two", `{"policies":{"search":{"extends":"webhook"},"webhook":{"extends":"search"}}}`,
			`policies.webhook.extends "search" is a cycle: search → webhook → search`},
		{"an unknown extends", `{"policies":{"search":{"extends":"webhok"}}}`,
			`policies.search.extends "webhok" is neither a policy nor a preset: "inline", "aggressive", "standard", "patient", "cautious" and "delivery" (did you mean "webhook"?)`},
		{"what is extended by two, once", `{"policies":{"search":{"extends":"x"},"webhook":{"extends":"search"}}}`,
			`policies.search.extends "x" is neither a policy nor a preset: "inline", "aggressive", "standard", "patient", "cautious" and "delivery"`},
		{"cap and max of an entry, once", `{"policies":{"search":{"cap":"2s","max":"1s"}}}`, `policies.search.max "1s" is given together with cap, which means the same`},
		{"a megabyte", strings.Repeat(" ", 2<<20), `document is larger than 1048576 bytes`},
	} {
		t.Run(row.name+" is refused", func(t *testing.T) {
			c := defined()
			require.NoError(t, load(c, `{"policies":{"search":{"max_attempts":3}}}`))
			before := c.All()
			err := load(c, row.document)
			require.Equal(t, before, c.All())
			require.EqualError(t, err, "retryconf: "+row.want)
			requireFields(t, err)
		})
	}
}

func TestOneLetterIsNoSlipForAnother(t *testing.T) {
	var c retryconf.Catalog
	c.Define("a", retry.Policy{})
	require.EqualError(t, load(&c, `{"policies":{"b":{}}}`), "retryconf: policies.b is not defined in the code")
}

func TestAReloadForgetsTheEarlierDocument(t *testing.T) {
	c := defined()
	before := c.All()
	require.NoError(t, load(c, `{"defaults":{"max_hint":"1s"},"policies":{"search":{"max_attempts":3}}}`))
	require.True(t, c.All()[0].Loaded, "defaults change it")
	require.NoError(t, load(c, `{"policies":{"webhook":{}}}`))
	require.Equal(t, []bool{false, false, true}, []bool{c.All()[0].Loaded, c.All()[1].Loaded, c.All()[2].Loaded})
	require.NoError(t, load(c, `{}`))
	require.Equal(t, before, c.All())
}

func TestPartsThatAreCodeSurviveAReload(t *testing.T) {
	var c retryconf.Catalog
	budget := retry.NewBudget(retry.BudgetConfig{})
	ref := c.Define("x", retry.Policy{Budget: budget, Classify: retry.Otherwise(retry.Terminal), Rand: func() float64 { return 0.5 },
		Gate: func(context.Context) time.Duration { return 7 }, Observe: func(context.Context, retry.Event) {},
		Wait: func(int, error, time.Duration) time.Duration { return 8 }, Pay: func(context.Context, retry.Decision) bool { return true }})
	require.NoError(t, load(&c, `{"policies":{"x":{"extends":"patient"}}}`))
	p := ref.Policy()
	require.Same(t, budget, p.Budget)
	require.Equal(t, []any{retry.Terminal, 0.5, time.Duration(7), time.Duration(8), true},
		[]any{p.Classify(nil), p.Rand(), p.Gate(nil), p.Wait(1, nil, 0), p.Pay(nil, retry.Decision{})})
	require.NotNil(t, p.Observe)
	require.Equal(t, retry.Patient().Delays, p.Delays)
}

func TestMistakesInDefinitionsAreReported(t *testing.T) {
	var c retryconf.Catalog
	first := c.Define("a", retry.Policy{TTL: 1})
	second := c.Define("a", retry.Policy{TTL: 2})
	c.Define("", retry.Policy{})
	c.Define("\xff", retry.Policy{})
	c.Define("standard", retry.Policy{})
	bad := c.Define("b", retry.Policy{TTL: -1, MaxAttempts: -2})
	want := `retryconf: policies.a is defined twice; policies "" is empty or not valid UTF-8; policies "\xff" is empty or not valid UTF-8; ` +
		`policies.standard is the name of a preset; policies.b.max_attempts -2 is below -1, which is unlimited; policies.b.ttl -1ns is negative`
	require.EqualError(t, c.Err(), want)
	require.Equal(t, []any{retry.Policy{Name: "a", TTL: 1}, retry.Policy{Name: "a", TTL: 2}, retry.Policy{Name: "b", TTL: -1, MaxAttempts: -2}},
		[]any{first.Policy(), second.Policy(), bad.Policy()})
	require.Len(t, c.All(), 1)
	err := load(&c, `{"policies":{"a":{"ttl":"1s"},"z":{}}}`)
	require.ErrorContains(t, err, "policies.a is defined twice")
	require.ErrorContains(t, err, "policies.z is not defined in the code")
	require.Equal(t, time.Duration(1), first.Policy().TTL)
	require.Equal(t, "a", first.Name())
}

func TestAnErrorOfDefinitionsIsOneLine(t *testing.T) {
	var c retryconf.Catalog
	c.Define("a\nb", retry.Policy{TTL: -1})
	require.NotContains(t, c.Err().Error(), "\n")
}

func TestLoadFileNamesTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "retry.json")
	c := defined()
	require.ErrorIs(t, c.LoadFile(path), os.ErrNotExist)
	// The rest, after the path, is the operating system's text.
	require.ErrorContains(t, c.LoadFile(path), "retryconf: open "+path+": ")
	require.ErrorContains(t, c.LoadFile(dir), "retryconf: read: read "+dir+": ")
	require.NoError(t, os.WriteFile(path, []byte(`{"policies":{"search":{"ttl":5}}}`), 0o600))
	require.EqualError(t, c.LoadFile(path), `retryconf: policies.search.ttl 5 is a number (write it as a string with its unit, such as "30s") (in `+path+")")
	requireFields(t, c.LoadFile(path))
	require.NoError(t, os.WriteFile(path, []byte(`{"policies":{"search":{"ttl":"5s"}}}`), 0o600))
	require.NoError(t, c.LoadFile(path))
	require.Equal(t, 5*sec, policyNamed(t, c, "search").TTL)
}

func TestAReaderOrWriterThatFailsIsReported(t *testing.T) {
	broken := errors.New("broken")
	c := defined()
	err := c.Load(iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
	require.EqualError(t, err, "retryconf: read: broken")
	require.NoError(t, c.Load(iotest.OneByteReader(strings.NewReader(`{}`))))
	_, err = c.WriteTo(failingWriter{broken})
	require.ErrorIs(t, err, broken)
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

func TestADocumentOfAMegabyteIsRead(t *testing.T) {
	require.NoError(t, load(defined(), "{}"+strings.Repeat(" ", 1<<20-2)))
}

func TestWriteToWritesNothingThatLoadWouldNotRead(t *testing.T) {
	c := defined()
	require.NoError(t, load(c, `{"policies":{"webhook":{"delays":[`+strings.Repeat(`"1h",`, 150_000)+`"1h"]}}}`))
	var b strings.Builder
	n, err := c.WriteTo(&b)
	require.EqualError(t, err, `retryconf: document is larger than 1048576 bytes`)
	require.Zero(t, n)
	require.Empty(t, b.String())
}

func TestAPresetIsLabeledWithTheNameOfItsDefinition(t *testing.T) {
	var c retryconf.Catalog
	require.Equal(t, "lookup", c.Define("lookup", retry.Inline()).Policy().Name)
	require.Equal(t, "own", c.Define("search", retry.Policy{Name: "own"}).Policy().Name)
}
