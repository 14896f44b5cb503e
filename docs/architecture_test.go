package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/retrygo/retry"

// TestTheTableOfRoomsIsTrue compares architecture.md with the code: each package of the root module and of the modules
// that adapt nothing has a row, which lists what it imports of this repository and names a file that is there.
func TestTheTableOfRoomsIsTrue(t *testing.T) {
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	page, err := os.ReadFile("architecture.md")
	require.NoError(t, err)
	rows := map[string]string{} // what a room imports
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\| .+\\? \\| (.+) \\| `([a-z_]+\\.go)`").FindAllStringSubmatch(string(page), -1) {
		rows[row[1]] = row[2]
		require.FileExists(t, filepath.Join(root, folder(row[1]), row[3]))
	}
	imports := map[string]string{}
	for _, of := range []string{"./...", "./retryjob/...", "./retryplan/...", "./retrydebug", "./contrib/retryrpc", "./contrib/retryexport"} {
		for line := range strings.Lines(run(t, root, "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, of)) {
			paths := strings.Fields(line)
			if room := roomOf(paths[0]); room != "" {
				imports[room] = roomsIn(paths[1:])
			}
		}
	}
	require.Equal(t, imports, rows)
}

// roomOf returns the name of a room by the path of its package, or "" if the package is of another project or internal.
func roomOf(path string) string {
	if path != module && !strings.HasPrefix(path, module+"/") || strings.Contains(path+"/", "/internal/") {
		return ""
	}
	if path == module {
		return "retry"
	}
	return strings.TrimPrefix(path, module+"/")
}

func folder(room string) string {
	if room == "retry" {
		return "."
	}
	return room
}

// roomsIn returns the rooms among the imported paths as the table lists them.
func roomsIn(paths []string) string {
	var rooms []string
	for _, path := range paths {
		if room := roomOf(path); room != "" {
			rooms = append(rooms, room)
		}
	}
	if rooms == nil {
		return "the standard library"
	}
	slices.Sort(rooms)
	return strings.Join(rooms, ", ")
}

// TestTheArchitectureShowsTheShell holds that the shell on the page is the one that is tested against Do.
func TestTheArchitectureShowsTheShell(t *testing.T) {
	page, err := os.ReadFile("architecture.md")
	require.NoError(t, err)
	source, err := os.ReadFile("../tests/retry/shell_test.go")
	require.NoError(t, err)
	_, code, _ := strings.Cut(strings.ReplaceAll(string(page), "\r", ""), "```go\n")
	code, _, _ = strings.Cut(code, "```")
	require.Contains(t, code, "func shell(")
	require.Contains(t, strings.ReplaceAll(string(source), "\r", ""), strings.TrimSpace(code))
}
