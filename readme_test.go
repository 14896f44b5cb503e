package retry_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPromises holds that the tests and benchmarks that the pages name exist. The tests in docs run the code of the pages.
func TestPromises(t *testing.T) {
	var sources strings.Builder
	var pages []string
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch filepath.Ext(path) {
		case ".go":
			source, err := os.ReadFile(path)
			sources.Write(source)
			return err
		case ".md":
			pages = append(pages, path)
		}
		return err
	}))
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)`")
	linked := regexp.MustCompile(`\[((?:Test|Fuzz|Benchmark)[A-Z]\w*)\]\(([^)]+)\)`)
	require.Contains(t, pages, "README.md")
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, link := range linked.FindAllStringSubmatch(string(text), -1) {
			source, err := os.ReadFile(filepath.Join(filepath.Dir(page), filepath.FromSlash(link[2])))
			require.NoError(t, err, page)
			if !strings.Contains(string(source), "func "+link[1]+"(") {
				t.Errorf("%s links to a test that is not there: %s", page, link[0])
			}
		}
		for _, promise := range named.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(sources.String(), "func "+promise[1]+"(") { // require.Contains would print all the sources
				t.Errorf("%s names a test that does not exist: %s", page, promise[1])
			}
		}
	}
}
