package retryconnect_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheTestsThatTheReadmeNamesExist(t *testing.T) {
	paths, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var tests strings.Builder
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		tests.Write(text)
	}
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for _, text := range []string{readme(t), string(doc)} {
		names := regexp.MustCompile(`\bTest\w+`).FindAllString(text, -1)
		require.NotEmpty(t, names)
		for _, name := range names {
			require.Contains(t, tests.String(), "\nfunc "+name+"(t")
		}
	}
}

func readme(t *testing.T) string {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}
