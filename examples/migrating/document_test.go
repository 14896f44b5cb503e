package migrating_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const document = "../../docs/migrating.md"

// documents returns the index and the page of each library.
func documents(t *testing.T) []string {
	pages, err := filepath.Glob("../../docs/migrating/*.md")
	require.NoError(t, err)
	require.Len(t, pages, 7)
	return append(pages, document)
}

func TestTheCodeOfTheDocumentsIsCompiledHere(t *testing.T) {
	paths, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var sources strings.Builder
	for _, path := range paths {
		sources.WriteString(read(t, path))
	}
	imports := regexp.MustCompile(`(?m)^(import .*\n)+\n`)
	for _, page := range documents(t) {
		text := read(t, page)
		blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text, -1)
		require.NotEmpty(t, blocks, page)
		for _, block := range blocks {
			require.Contains(t, sources.String(), "\n"+imports.ReplaceAllString(block[1], ""), "the block stands here word for word")
		}
	}
}

func TestTheVersionsOfTheDocumentAreThoseThatRun(t *testing.T) {
	text, module := read(t, document), read(t, "go.mod")
	versions := regexp.MustCompile("`(github.com/[^` ]+ v[0-9.]+)`").FindAllStringSubmatch(text, -1)
	require.Len(t, versions, 10)
	for _, version := range versions {
		require.Contains(t, module, "\t"+version[1]+"\n")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return strings.ReplaceAll(string(b), "\r", "")
}
