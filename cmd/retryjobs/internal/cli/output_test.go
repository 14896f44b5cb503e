package cli_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryjobs/internal/cli"
	"github.com/retrygo/retry/retryjob"
)

// FuzzOutput checks that texts of a job reach a terminal only as text, that a table keeps its lines, and that JSON has
// the job's values.
func FuzzOutput(f *testing.F) {
	for _, seed := range []string{
		"", "plain", "a\nb\r\n\tc", "\x1b]0;title\a", "\u009b2J", "\x9b2J", "\u202eabc", "a\u2028b", "\\\u009b", "\U000E0041", "\x00\x7f\xff", "日本", "a\vb\fc", "\u00a0",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		job := jobs()[2]
		job.Correlation, job.Kind, job.History[2].Err, job.History[2].Code = text, text, text, text
		store := newFake(job)
		shown := 20
		if text == "" { // nothing is shown of the fields that are empty
			shown = 18
		}
		for command, lines := range map[string]int{"list": 2, "show waiting-1": shown, "list --json": 1, "show waiting-1 --json": 1} {
			got := run(t, store, strings.Fields(command)...)
			require.Equal(t, ran{Out: got.Out}, got)
			require.Equal(t, lines, strings.Count(got.Out, "\n"), "%q", got.Out)
			require.True(t, utf8.ValidString(got.Out))
			for _, r := range got.Out {
				require.True(t, r == '\n' || unicode.IsPrint(r) || unicode.Is(unicode.Zs, r), "%q", r)
			}
		}
		if !utf8.ValidString(text) {
			return
		}
		got := run(t, store, "show", "waiting-1", "--json")
		require.Equal(t, cli.Done, got.Exit)
		var info retryjob.Info
		require.NoError(t, json.Unmarshal([]byte(got.Out), &info))
		require.Equal(t, job, info)
	})
}
