package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
)

// files writes files into a new directory and makes it the working directory.
func files(t *testing.T, content map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range content {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
}

// TestAFindingStandsAtTheLineOfItsPolicy holds for YAML and JSON, with tabs as well.
func TestAFindingStandsAtTheLineOfItsPolicy(t *testing.T) {
	files(t, map[string]string{
		"p.yaml": "name: a\nbase: 1s\njitter: none\nmax_attempts: 60\ndelays: []\n",
		"a.yml":  "max_attempts: 3\nbase: 1s\nmax_hint: 20s\nattempt_timeout: 1s\njitter: full\n",
		"b.json": "{\n\t\"policies\": {\n\t\t\"x\": {\n\t\t\t\"base\": \"1s\",\n\t\t\t\"jitter\": \"none\",\n\t\t\t\"max_attempts\": 60\n\t\t}\n\t}\n}\n",
		"c.json": `{"base": "1s", "jitter": "none", "max_attempts": 2}`,
	})
	require.Contains(t, run(t, "lint p.yaml").Err, "p.yaml: ", "an empty list is refused, by the name of the file")
	require.Contains(t, run(t, "lint a.yml --inline").Out, "a.yml:1: a: note long-hint-inline: ")
	require.Contains(t, run(t, "lint b.json").Out, "b.json:3: x: warning no-jitter: ")
	require.Contains(t, run(t, "lint c.json").Out, "c.json:1: c: warning no-jitter: ")
	require.Equal(t, run(t, "lint a.yml").Exit, cli.Done)
	require.NotContains(t, run(t, "lint preset:standard").Out, ".json:")
}

// TestYAMLMeansWhatJSONMeans has the same catalog in both.
func TestYAMLMeansWhatJSONMeans(t *testing.T) {
	files(t, map[string]string{
		"c.json": `{"defaults": {"jitter": "full"}, "policies": {"a": {"base": "20ms", "factor": 3, "max_attempts": "unlimited", "ttl": "1h"}, "b": {"delays": ["1s", "2s"]}}}`,
		"c.yaml": "defaults: &d {jitter: full}\npolicies:\n  a:\n    base: 20ms\n    factor: 3\n    max_attempts: unlimited\n    ttl: 1h\n  b:\n    <<: *d\n    delays: [1s, 2s]\n",
	})
	require.Equal(t, run(t, "show c.json"), run(t, "show c.yaml"))
	for text, want := range map[string]string{
		"base: [1s":              "did not find expected ',' or ']'",
		"base: 1s\nbase: 2s\n":   `mapping key "base" already defined`,
		"base: 5\n":              "base 5 is a number",
		"1: 2\n? [a]\n: b\n":     "yaml: ",
		"just text":              "retryconf: ",
		"bsae: 1s\n":             "bsae",
		"base: 1s\n---\nbase: 2": "more than one document",
	} {
		got := runIn(t, t.Context(), cli.Options{Stdin: strings.NewReader(text)}, "show -")
		require.Equal(t, cli.Failed, got.Exit, text)
		require.Contains(t, got.Err, want, text)
	}
}

// TestTheConfigurationIsThatOfTheRepository is looked up from a directory beneath it.
func TestTheConfigurationIsThatOfTheRepository(t *testing.T) {
	files(t, map[string]string{
		".retryplan.yaml":     "documents: [config/p.json]\nignore:\n  mail:no-jitter: one client\nfail-on: severe\nrate: 70\ncapacity: 100\nbudget: true\ntrigger: stall 10s\nseeds: 3\n",
		"config/p.json":       `{"policies": {"mail": {"base": "1s"}, "search": {"base": "1s", "attempt_timeout": "1s", "max_attempts": 4}}}`,
		"sub/deep/.keep":      "",
		".git/HEAD":           "",
		"bad/.retryplan.yaml": "rates: 70\n",
		"why/.retryplan.yaml": "ignore: {no-jitter: \"\"}\n",
		"odd/.retryplan.yaml": "rate: fast\n",
	})
	t.Chdir("sub/deep")
	got := run(t, "lint")
	require.Equal(t, cli.Done, got.Exit, "warnings do not fail: %s", got.Err)
	require.Contains(t, got.Out, "../../config/p.json:1: search: warning no-jitter: ")
	require.NotContains(t, got.Out, "mail: warning no-jitter")
	require.NotContains(t, got.Out, "fleet-lost", "the program has a budget")
	got = run(t, "lint --budget=false")
	require.Equal(t, cli.Failed, got.Exit, "the command line wins")
	require.Contains(t, got.Out, "search: severe fleet-lost: The fleet came back in 0 of 3 simulations of a stall of 10s")
	require.Contains(t, got.Err, "search fleet-lost")
	require.Contains(t, run(t, "simulate").Out, "search: 4 attempts", "simulate reads it, too")
	require.NotContains(t, run(t, "lint preset:inline").Out, "p.json", "a policy that is named is meant alone")
	require.NotContains(t, run(t, "lint --config none --preset inline --rate 5 --capacity 9").Out, "p.json")
	require.Contains(t, run(t, "lint --config none").Out, "default policy")
	require.Contains(t, run(t, "lint --config missing.yaml").Err, "missing.yaml: no such file")
	require.Equal(t, "retryplan: ../../bad/.retryplan.yaml: rates is neither documents, ignore, nor a flag of lint or simulate\n", run(t, "lint --config ../../bad/.retryplan.yaml").Err)
	require.Contains(t, run(t, "lint --config ../../why/.retryplan.yaml").Err, "ignore: no-jitter has no reason")
	require.Contains(t, run(t, "lint --config ../../odd/.retryplan.yaml").Err, `rate: invalid argument "fast"`)
}

func TestAnnotationsAreEscaped(t *testing.T) {
	files(t, map[string]string{"a,b:c.yaml": "base: 1s\nname: 100%\n"})
	out := run(t, "lint a,b:c.yaml --format github").Out
	require.Contains(t, out, "::warning file=a%2Cb%3Ac.yaml,line=1,title=retryplan no-jitter::100%25: The waits have no jitter")
	require.Empty(t, run(t, "lint preset:inline --budget --attempt-timeout 1s --format github").Out, "no annotation if there is nothing to say")
}

// A configuration comes with a repository that others wrote.
func TestAConfigurationReadsRegularFilesOfItsOwn(t *testing.T) {
	files(t, map[string]string{
		"repo/.git/HEAD": "", "repo/p.json": `{"base": "1s"}`, "secret.txt": "hunter2",
		".retryplan.yaml": "fail-on: none\n", // of a parent, beyond the repository
	})
	require.NoError(t, os.Symlink("../secret.txt", "repo/link"))
	t.Chdir("repo")
	require.NoError(t, os.Mkdir("sub", 0o700))
	require.Equal(t, cli.Failed, run(t, "lint p.json").Exit, "the repository is the end")
	for _, row := range []struct{ config, err string }{
		{"documents: [../secret.txt]", "../secret.txt: path escapes from parent"},
		{"documents: [link]", "link: path escapes from parent"},
		{"documents: [/etc/passwd]", "/etc/passwd: path escapes from parent"},
		{"documents: [sub]", "sub: it is not a regular file"},
		{"from: ../secret.txt", "from is neither documents, ignore, nor a flag"},
		{"plot: x.svg", "plot is neither documents, ignore, nor a flag"},
	} {
		require.NoError(t, os.WriteFile(".retryplan.yaml", []byte(row.config), 0o600))
		got := run(t, "lint")
		require.Equal(t, cli.Failed, got.Exit, row.config)
		require.Contains(t, got.Err, row.err)
		require.NotContains(t, got.Err+got.Out, "hunter2")
	}
	require.NoError(t, os.Remove(".retryplan.yaml"))
	require.NoError(t, os.Symlink("/dev/zero", ".retryplan.yaml"))
	require.Contains(t, run(t, "lint").Err, "it is not a regular file")
	require.Contains(t, run(t, "lint /dev/zero --config none").Err, "/dev/zero is larger than 1 MiB")
	require.NoError(t, os.Remove(".retryplan.yaml"))
	require.NoError(t, os.WriteFile(".retryplan.yaml", []byte("documents: [p.json]"), 0o600))
	require.Contains(t, run(t, "lint").Err, "retryplan: using .retryplan.yaml\n")
}
