package migrate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAFileThatCannotBeWrittenPutsBackTheOthers(t *testing.T) {
	dir := t.TempDir()
	there, never := filepath.Join(dir, "a.go"), filepath.Join(dir, "none", "b.go")
	require.NoError(t, os.WriteFile(there, []byte("old"), 0o600))
	err := replace(
		[]*file{{name: there, src: []byte("old")}, {name: never, src: []byte("old")}},
		map[string][]byte{there: []byte("new"), never: []byte("new")},
	)
	require.ErrorContains(t, err, "nothing was migrated")
	text, err := os.ReadFile(there)
	require.NoError(t, err)
	require.Equal(t, "old", string(text))
}
