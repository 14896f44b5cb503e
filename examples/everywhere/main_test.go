package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOutput compares everything except the actual waits. asynq truncates due times to whole seconds and looks for them at
// an interval, here 50ms.
func TestOutput(t *testing.T) {
	want, err := os.ReadFile("testdata/output.txt")
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, run(t.Context(), &text))
	waited := regexp.MustCompile(`, waited \S+`)
	require.Equal(t, waited.ReplaceAllString(string(want), ""), waited.ReplaceAllString(text.String(), ""))
}

func TestEachLibraryAsksWithTheAttemptThatFailed(t *testing.T) {
	for _, l := range libraries {
		t.Run(l.name, func(t *testing.T) {
			var r record
			var asked []int
			require.NoError(t, l.run(t.Context(), func(attempt int) time.Duration {
				asked = append(asked, attempt)
				return r.delay(attempt)
			}, r.note))
			require.Equal(t, []int{1, 2}, asked)
			require.Equal(t, []time.Duration{30 * time.Millisecond, 60 * time.Millisecond}, r.said)
			require.Len(t, r.at, 3)
		})
	}
}

// TestThePageHasTheLinesOfTheFiles checks that the table shows the code that runs.
func TestThePageHasTheLinesOfTheFiles(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| [^|]+ \\| `(.+?)` \\| [^|]+ \\| \\[(\\w+\\.go)\\]").FindAllStringSubmatch(string(page), -1)
	require.Len(t, rows, 7)
	for _, row := range rows {
		file, err := os.ReadFile(row[2])
		require.NoError(t, err)
		source := strings.NewReplacer("policy.DrawDelay", "delay").Replace(string(file))
		require.Contains(t, source, strings.ReplaceAll(row[1], "policy.DrawDelay", "delay"))
	}
}
