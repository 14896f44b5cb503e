package drivers_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheProgramOfTheReadme runs the first program of README.md against PostgreSQL, and without it.
func TestTheProgramOfTheReadme(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	found := regexp.MustCompile("(?s)```go\n(package main.*?)```\n\n```text\n(.*?)```").FindSubmatch(bytes.ReplaceAll(readme, []byte("\r"), nil))
	require.NotNil(t, found)
	program := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(program, found[1], 0o600))
	for name, source := range map[string]func(*testing.T) string{
		"SQLite": func(*testing.T) string { return "" },
		"PostgreSQL": func(t *testing.T) string {
			s, database := newPostgres(t)
			return pgxStdlib.source("postgres", s.address, database)
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "go", "run", program)
			cmd.Env = append(os.Environ(), "DATABASE_URL="+source(t))
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Equal(t, string(found[2]), string(out))
		})
	}
}
