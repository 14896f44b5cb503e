package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
)

// TestMorePoliciesThanAPictureShows holds that a large catalog is shown all the same, and that a picture of it is
// refused at once.
func TestMorePoliciesThanAPictureShows(t *testing.T) {
	many := strings.TrimSpace(strings.Repeat("policies.json ", 5))
	for _, command := range []string{"show", "show --failure 0.5", "compare", "simulate --rate 1 --capacity 9 --deadline 1s"} {
		got := run(t, command+" "+many)
		require.Equal(t, ran{Out: got.Out}, got, command)
		got = run(t, command+" --plot out.svg "+many)
		require.Equal(t, cli.Usage, got.Exit)
		require.Contains(t, got.Err, "retryplan: a picture shows up to 8 policies, not 10\n")
	}
}

func TestAClosedStandardInput(t *testing.T) {
	require.Equal(t, ran{cli.Failed, "", "retryplan: standard input is closed\n"}, runIn(t, t.Context(), cli.Options{}, "show -"))
}

// TestAHostileName holds that a policy's name cannot speak to the terminal.
func TestAHostileName(t *testing.T) {
	for _, line := range []string{"show -", "show - --failure 0.5", "lint -", "simulate - --rate 1 --capacity 9", "compare - preset:standard", "show - --fail-on note", "show - --json"} {
		var out, err bytes.Buffer
		cli.Run(t.Context(), cli.Options{Stdin: strings.NewReader(`{"name": "a\u001b[2J\nb\u202e", "base": "1s"}`)}, split(line), &out, &err)
		for _, text := range []string{out.String(), err.String()} {
			require.NotContains(t, text, "\x1b", line)
			require.NotContains(t, text, "\u202e", line)
		}
	}
}
