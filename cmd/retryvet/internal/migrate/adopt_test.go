package migrate_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryvet/internal/migrate"
)

// TestPublishedModulesAreMoved is run by hand. RETRYVET_MODULES is a list of modules with versions, such as
// "github.com/openfga/openfga@v1.22.1". For each it prints a line: its calls, those that are moved,
// the reasons for the others, and whether the tests of the packages that change pass before and after.
func TestPublishedModulesAreMoved(t *testing.T) {
	modules := strings.Fields(os.Getenv("RETRYVET_MODULES"))
	if len(modules) == 0 {
		t.Skip("RETRYVET_MODULES names no modules")
	}
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-mod=mod -buildvcs=false")
	root, err := filepath.Abs("../../../..")
	require.NoError(t, err)
	for _, module := range modules {
		var downloaded struct{ Dir string }
		require.NoError(t, json.Unmarshal([]byte(run(t, t.TempDir(), "go", "mod", "download", "-json", module)), &downloaded))
		dir := t.TempDir()
		require.NoError(t, os.CopyFS(dir, os.DirFS(downloaded.Dir)))
		run(t, dir, "chmod", "-R", "u+w", ".")
		run(t, dir, "go", "mod", "edit", "-require=github.com/retrygo/retry@v0.1.0", "-replace=github.com/retrygo/retry="+root)
		report, err := migrate.Run(t.Context(), dir, []string{"./..."}, migrate.Options{})
		require.NoError(t, err, module)
		moved, whys, touched := 0, map[string]int{}, []string{"test"}
		for _, site := range report.Sites {
			if site.Why != "" {
				whys[site.Why]++
				continue
			}
			moved++
			rel, err := filepath.Rel(dir, filepath.Dir(site.Position.Filename))
			require.NoError(t, err)
			if pkg := "./" + filepath.ToSlash(rel); !slices.Contains(touched, pkg) {
				touched = append(touched, pkg)
			}
		}
		tests := func() string {
			if moved == 0 {
				return "none"
			}
			cmd := exec.CommandContext(t.Context(), "go", touched...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				return "fail"
			}
			return "pass"
		}
		before := tests()
		_, err = migrate.Run(t.Context(), dir, []string{"./..."}, migrate.Options{Write: true})
		require.NoError(t, err, module)
		if moved > 0 {
			run(t, dir, "go", append([]string{"vet"}, touched[1:]...)...)
		}
		fmt.Printf("| %s | %d | %d | %v | %s, %s |\n", module, len(report.Sites), moved, whys, before, tests())
	}
}
