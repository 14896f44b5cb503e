package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
)

func TestAPolicyFromStandardInput(t *testing.T) {
	data, err := os.ReadFile("testdata/policies.json")
	require.NoError(t, err)
	want := run(t, "show email@policies.json")
	got := runIn(t, t.Context(), cli.Options{Stdin: bytes.NewReader(data)}, "show email@-")
	require.Equal(t, want, got)
	got = runIn(t, t.Context(), cli.Options{Stdin: strings.NewReader("\ufeff" + `{"base": "1s", "max_attempts": 2}`)}, "show -")
	require.Equal(t, "standard input: 2 attempts, exponential 1s ×2, cap 1h: 1s (1s in all)", headline(got.Out))
}

// TestNamesWithAnAt has catalogs and policies whose names have the sign that stands between them.
func TestNamesWithAnAt(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("policy.json", []byte(`{}`), 0o600))
	catalog := []byte(`{"policies": {"a@b": {"base": "1s"}, "a": {"base": "2s"}}}`)
	require.NoError(t, os.WriteFile("c.json", catalog, 0o600))
	require.NoError(t, os.WriteFile("x@y.json", catalog, 0o600))
	for _, row := range []struct{ arg, base string }{{"a@b@c.json", "1s"}, {"a@c.json", "2s"}, {"x@y.json", "2s"}} {
		got := run(t, "show "+row.arg)
		require.Equal(t, cli.Done, got.Exit, got.Err)
		require.Contains(t, got.Out, "exponential "+row.base)
	}
	got := runIn(t, t.Context(), cli.Options{Stdin: bytes.NewReader(catalog)}, "show a@b@-")
	require.Contains(t, got.Out, "a@b: 8 attempts, exponential 1s")
}

// TestPoliciesOfOneName holds that policies of one name from different places can be distinguished.
func TestPoliciesOfOneName(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("policy.json", []byte(`{"base": "3s"}`), 0o600))
	for _, dir := range []string{"a", "b"} {
		require.NoError(t, os.Mkdir(dir, 0o700))
		require.NoError(t, os.WriteFile(dir+"/policy.json", []byte(`{"base": "1s"}`), 0o600))
		require.NoError(t, os.WriteFile(dir+"/all.json", []byte(`{"policies": {"mail": {"base": "1s"}}}`), 0o600))
	}
	got := run(t, "lint a/policy.json b/policy.json a/all.json b/all.json preset:patient")
	for _, name := range []string{"a/policy.json", "b/policy.json", "mail@a/all.json", "mail@b/all.json"} {
		require.Contains(t, "\n"+got.Out, name+": warning no-jitter: ")
		require.Contains(t, got.Err, name+" no-jitter")
	}
	got = run(t, "lint a/policy.json a/all.json")
	require.Contains(t, got.Out, "policy: ")
	require.Contains(t, got.Out, "mail: ")
}

// TestManyFindingsOnOneLine holds that the error of a guard stays a line that can be read, and that no finding is said
// to be none.
func TestManyFindingsOnOneLine(t *testing.T) {
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf(`"p%03d": {"base": "1s"}`, i))
	}
	got := runIn(t, t.Context(), cli.Options{Stdin: strings.NewReader(`{"policies": {` + strings.Join(many, ", ") + `}}`)}, "lint -")
	require.Equal(t, cli.Failed, got.Exit)
	require.Equal(t, "retryplan: findings at or above warning: p000 no-jitter, p001 no-jitter, p002 no-jitter, p003 no-jitter, p004 no-jitter, "+
		"p005 no-jitter, p006 no-jitter, p007 no-jitter, p008 no-jitter, p009 no-jitter and 190 more\n", got.Err)

	quiet := `{"policies": {"a": {"max_attempts": 1, "attempt_timeout": "1s"}, "b": {"max_attempts": 1, "attempt_timeout": "1s"}}}`
	got = runIn(t, t.Context(), cli.Options{Stdin: strings.NewReader(quiet)}, "lint -")
	require.Equal(t, ran{Out: "no findings\n"}, got)
	got = runIn(t, t.Context(), cli.Options{Stdin: strings.NewReader(quiet)}, "lint a@-")
	require.Equal(t, ran{Out: "no findings\n"}, got)
}

// TestShippedPoliciesPassTheLinter passes the linter the settings that a document cannot hold, and nothing wrong.
func TestShippedPoliciesPassTheLinter(t *testing.T) {
	got := run(t, "lint ../../../../../examples/policies/policies.json --budget")
	require.Equal(t, ran{Out: "no findings\n"}, got)
	presets := "preset:inline preset:aggressive preset:standard preset:patient preset:cautious preset:delivery"
	require.Equal(t, cli.Done, run(t, "lint "+presets).Exit)
	require.Equal(t, cli.Done, run(t, "lint").Exit, "the zero Policy")
	got = run(t, "lint preset:patient preset:standard --fail-on note --ignore no-attempt-timeout,no-budget,standard:no-jitter")
	require.Equal(t, cli.Failed, got.Exit)
	require.Equal(t, "retryplan: findings at or above note: patient no-jitter\n", got.Err)
	require.NotContains(t, got.Out, "standard:")
	require.NotContains(t, got.Out, "no-budget")
}
