package cli_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
)

// TestATerminalIsDrawnOn holds that a picture in characters is there by default on a terminal alone, and fits it.
func TestATerminalIsDrawnOn(t *testing.T) {
	const width = 60
	for _, row := range []struct {
		line  string
		width int
		drawn bool
	}{
		{"show policy.json", width, true},
		{"show policy.json", 0, false},
		{"show policy.json --graph", 0, true},
		{"show policy.json --graph=false", width, false},
		{"show policy.json --json --graph", width, false},
		{"plan policy.json", width, true},
		{"compare policies.json", width, true},
	} {
		t.Run(row.line, func(t *testing.T) {
			got := runIn(t, t.Context(), cli.Options{Width: row.width}, row.line)
			require.Equal(t, cli.Done, got.Exit)
			_, picture, drawn := strings.Cut(got.Out, "Wait before each attempt")
			require.Equal(t, row.drawn, drawn)
			require.NotContains(t, got.Out, "\x1b")
			if row.width == 0 {
				return
			}
			for line := range strings.Lines(picture) {
				require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), width, line)
			}
		})
	}
}

// TestMorePoliciesThanAPictureShows holds that a large catalog is shown all the same, and that a picture of it is refused
// at once.
func TestMorePoliciesThanAPictureShows(t *testing.T) {
	many := strings.TrimSpace(strings.Repeat("policies.json ", 5))
	for _, command := range []string{"show", "plan", "compare", "simulate --rate 5 --duration 2s"} {
		got := runIn(t, t.Context(), cli.Options{Width: 90}, command+" "+many)
		require.Equal(t, ran{Out: got.Out}, got, command)
		require.NotContains(t, got.Out, "Wait before each attempt")
		require.NotContains(t, got.Out, "Simulation of")
		for _, flag := range []string{" --graph ", " --plot out.svg "} {
			got = run(t, command+flag+many)
			require.Equal(t, cli.Usage, got.Exit)
			require.Contains(t, got.Err, "retryplan: a picture shows up to 8 policies, not 10\n")
		}
	}
}

// TestFindingsFitTheTerminal has sentences that are longer than a narrow terminal.
func TestFindingsFitTheTerminal(t *testing.T) {
	got := runIn(t, t.Context(), cli.Options{Width: 60}, "show --preset standard --graph=false")
	_, findings, ok := strings.Cut(got.Out, " findings\n")
	require.True(t, ok)
	for line := range strings.Lines(findings) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 60, line)
	}
}

func TestAClosedStandardInput(t *testing.T) {
	require.Equal(t, ran{cli.Failed, "", "retryplan: standard input is closed\n"}, runIn(t, t.Context(), cli.Options{}, "show -"))
}

// TestAHostileName holds that a policy's name cannot speak to the terminal.
func TestAHostileName(t *testing.T) {
	for _, line := range []string{"show -", "plan -", "lint -", "simulate - --rate 5 --duration 2s", "certify - --rate 1 --capacity 9", "compare - preset:standard", "show - --fail-on note", "show - --graph", "show - --json"} {
		var out, err bytes.Buffer
		cli.Run(t.Context(), cli.Options{Stdin: strings.NewReader(`{"name": "a\u001b[2J\nb\u202e", "base": "1s"}`)}, split(line), &out, &err)
		for _, text := range []string{out.String(), err.String()} {
			require.NotContains(t, text, "\x1b", line)
			require.NotContains(t, text, "\u202e", line)
		}
	}
}
