package cli_test

import (
	"os"
	"path/filepath"
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

func TestAFindingStandsAtTheLineOfItsPolicy(t *testing.T) {
	files(t, map[string]string{
		"a.json": "{\n  \"base\": \"1s\", \"max_attempts\": 3, \"max_hint\": \"20s\", \"attempt_timeout\": \"1s\", \"jitter\": \"full\"\n}\n",
		"b.json": "{\n\t\"policies\": {\n\t\t\"x \\\"y\\\"\" : {\n\t\t\t\"base\": \"1s\",\n\t\t\t\"jitter\": \"none\",\n\t\t\t\"max_attempts\": 60\n\t\t}\n\t}\n}\n",
	})
	require.Contains(t, run(t, "lint a.json --inline").Out, "a.json:1: a: note long-hint-inline: ")
	require.Contains(t, run(t, "lint b.json").Out, `b.json:3: x "y": warning no-jitter: `)
	require.Equal(t, run(t, "lint a.json").Exit, cli.Done)
	require.NotContains(t, run(t, "lint preset:standard").Out, ".json:")
}

func TestFindingsAreIgnored(t *testing.T) {
	files(t, map[string]string{"p.json": `{"policies": {"mail": {"base": "1s"}, "search": {"base": "1s", "attempt_timeout": "1s", "max_attempts": 4}}}`})
	fleet := "lint p.json --rate 70 --capacity 100 --seeds 3 --ignore mail:no-jitter,mail:fleet-lost"
	got := run(t, fleet)
	require.Equal(t, cli.Failed, got.Exit)
	require.NotContains(t, got.Out, "mail: warning no-jitter")
	require.Contains(t, got.Out, "search: warning no-jitter")
	require.Contains(t, got.Out, "search: severe fleet-lost: The fleet came back in 0 of 3 simulations of a stall of 10s")
	require.Equal(t, cli.Done, run(t, fleet+" --ignore no-jitter,fleet-lost,no-budget").Exit)
	require.NotContains(t, run(t, fleet+" --budget").Out, "fleet-lost", "the program has a budget")
	require.Equal(t, "retryplan: --ignore: there is no finding \"no-jiter\"\nretryplan: run 'retryplan lint --help' for usage\n", run(t, "lint --ignore mail:no-jiter").Err)
	require.Contains(t, run(t, "lint /dev/zero").Err, "/dev/zero is larger than 1 MiB")
}

func TestAnnotationsAreEscaped(t *testing.T) {
	files(t, map[string]string{"a,b:c.json": `{"base": "1s", "name": "100%"}`})
	out := run(t, "lint a,b:c.json --format github").Out
	require.Contains(t, out, "::warning file=a%2Cb%3Ac.json,line=1,title=retryplan no-jitter::100%25: The waits have no jitter")
	require.Empty(t, run(t, "lint preset:inline --budget --attempt-timeout 1s --format github").Out, "no annotation if there is nothing to say")
}
