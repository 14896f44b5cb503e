package migrate_test

import (
	"encoding/json"
	"fmt"
	"maps"
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
// "github.com/openfga/openfga@v1.22.1". For each it prints a row of the README's table: the calls and loops that -migrate
// finds, those of them that are moved, the same for the hand-written loops of -loop -fix, whether the tests of the packages
// that change pass before and after (or that these only type-check, if they do not pass before), and why the others stay.
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
		whys, touched := map[string]int{}, map[string]bool{}
		counts := func(o migrate.Options) string {
			report, err := migrate.Run(t.Context(), dir, []string{"./..."}, o)
			require.NoError(t, err, module)
			moved := 0
			for _, site := range report.Sites {
				if site.Why != "" {
					whys[site.Why]++
					continue
				}
				moved++
				rel, err := filepath.Rel(dir, filepath.Dir(site.Position.Filename))
				require.NoError(t, err)
				touched["./"+filepath.ToSlash(rel)] = true
			}
			return fmt.Sprintf("%d of %d", moved, len(report.Sites))
		}
		row := "| " + module + " | " + counts(migrate.Options{}) + " | " + counts(migrate.Options{Loops: true})
		goes := func(args ...string) error {
			cmd := exec.CommandContext(t.Context(), "go", slices.AppendSeq(args, maps.Keys(touched))...)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			return err
		}
		result := ""
		if len(touched) > 0 {
			before := goes("test", "-short", "-timeout=5m")
			for _, loops := range []bool{false, true} {
				_, err = migrate.Run(t.Context(), dir, []string{"./..."}, migrate.Options{Loops: loops, Write: true})
				require.NoError(t, err, module)
			}
			require.NoError(t, goes("vet"), module)
			switch after := goes("test", "-short", "-timeout=5m"); {
			case before != nil:
				result = "type-checked"
			case after != nil:
				result = "pass, FAIL"
			default:
				result = "pass, pass"
			}
		}
		fmt.Printf("%s | %s | %v |\n", row, result, whys)
	}
}
