package docs

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProse counts, in all comments and Markdown files, words that standard library comments use rarely, and compares
// the counts for 1,000 words with those of the standard library: "where" in net/http 0.7, "nobody" and "somebody" at most
// 0.05, "told" at most 0.06. A higher count has always meant sentences that are hard to read.
func TestProse(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	all := prose(t, root)
	words := float64(len(regexp.MustCompile(`[A-Za-z']+`).FindAllString(all, -1)))
	require.Greater(t, words, 100_000.0)
	for _, row := range []struct {
		name, pattern string
		most          float64 // for 1,000 words
	}{
		{"where, in place of if or when", `\b[Ww]here\b`, 0.7},
		{"nobody, somebody", `(?i)\b(no|some)body\b`, 0.05},
		{"told, tells, whoever", `(?i)\b(told|tells|whoever)\b`, 0.06},
		{"British spelling", `(?i)\b\w*(honour|behaviour|cancelled|cancelling|colour|favour|organis|recognis|serialis|normalis)\w*`, 0},
	} {
		found := len(regexp.MustCompile(row.pattern).FindAllString(all, -1))
		rate := float64(found) / words * 1000
		t.Logf("%-30s %4d, %.2f for 1,000 words", row.name, found, rate)
		if rate > row.most {
			t.Errorf("%s: %.2f for 1,000 words, the limit is %.2f", row.name, rate, row.most)
		}
	}
}

// prose returns the comments of all Go files and the text of all Markdown files, without code.
func prose(t *testing.T, root string) string {
	code := regexp.MustCompile("(?s)```.*?```|`[^`]*`|\\([^()]*://[^()]*\\)")
	var all strings.Builder
	for _, file := range strings.Fields(run(t, root, "git", "ls-files", "*.go", "*.md")) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if os.IsNotExist(err) {
			continue // deleted, and not yet committed
		}
		require.NoError(t, err)
		if strings.HasSuffix(file, ".md") {
			all.WriteString(code.ReplaceAllString(string(text), " "))
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, group := range parsed.Comments {
			all.WriteString(group.Text())
		}
	}
	return all.String()
}
