package migrate_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/retrygo/retry/cmd/retryvet/internal/migrate"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files")

// copied returns a copy of a module of testdata, which finds our module in this repository.
func copied(t *testing.T, name string) string {
	t.Helper()
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-buildvcs=false")
	t.Setenv("GONOSUMDB", "*")
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", name))))
	root, err := filepath.Abs("../../../..")
	require.NoError(t, err)
	run(t, dir, "go", "mod", "edit", "-require=github.com/retrygo/retry@v0.1.0", "-replace=github.com/retrygo/retry="+root)
	return dir
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// timeline runs the tests of the module and returns what the forms did.
func timeline(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "timeline")
	t.Setenv("TIMELINE", file)
	run(t, dir, "go", "test", "-count=1", "./...")
	return read(t, file)
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

func source(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	result := map[string]string{}
	for _, name := range files {
		if filepath.Ext(name) != "" {
			result[filepath.Base(name)] = read(t, name)
		}
	}
	return result
}

func TestMovedCallsMakeTheSameAttemptsAtTheSameTimes(t *testing.T) {
	dir := copied(t, "forms")
	moves(t, dir, "forms.diff", migrate.Options{Write: true})
	for name, text := range source(t, dir) {
		if strings.HasSuffix(name, ".go") {
			require.NotRegexp(t, `"github.com/(cenkalti|avast|sethvargo|hashicorp)`, text, name)
		}
	}
}

// moves moves all calls of the module, and compares what they do.
func moves(t *testing.T, dir, diff string, o migrate.Options) migrate.Report {
	t.Helper()
	before := timeline(t, dir)
	report, err := migrate.Run(t.Context(), dir, []string{"./..."}, o)
	require.NoError(t, err)
	for _, site := range report.Sites {
		require.Empty(t, site.Why, "%v", site)
	}
	golden(t, diff, report.Diff)
	after := strings.Split(timeline(t, dir), "\n")
	for i, line := range strings.Split(before, "\n") {
		assert.Equal(t, line, after[i], "the calls, what is told of them, and how the runs end")
	}
	run(t, dir, "go", "vet", "./...")

	again, err := migrate.Run(t.Context(), dir, []string{"./..."}, o)
	require.NoError(t, err)
	require.Empty(t, again, "nothing is left for a second run")
	return report
}

func golden(t *testing.T, name, text string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	if want := read(t, name); want != text {
		t.Errorf("the diff is not %s; go test -update writes it", name)
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	dir := copied(t, "forms")
	before := source(t, dir)
	report, err := migrate.Run(t.Context(), dir, []string{"./..."}, migrate.Options{})
	require.NoError(t, err)
	require.NotEmpty(t, report.Diff)
	require.Equal(t, before, source(t, dir))
}

func TestAModuleMustRequireOursFirst(t *testing.T) {
	dir := copied(t, "forms")
	run(t, dir, "go", "mod", "edit", "-droprequire=github.com/retrygo/retry")
	before := source(t, dir)
	report, err := migrate.Run(t.Context(), dir, []string{"./..."}, migrate.Options{Write: true})
	require.ErrorIs(t, err, migrate.ErrNotRequired)
	require.NotEmpty(t, report.Sites)
	require.Equal(t, before, source(t, dir))
}

func TestWhatDoesNotTypeCheckAfterwardsIsRefused(t *testing.T) {
	dir := copied(t, "forms")
	run(t, dir, "go", "mod", "edit", "-replace=github.com/retrygo/retry=./elsewhere")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "elsewhere"), 0o700))
	for name, text := range map[string]string{"go.mod": "module github.com/retrygo/retry\n\ngo 1.26\n", "retry.go": "package retry\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "elsewhere", name), []byte(text), 0o600))
	}
	before := source(t, dir)
	report, err := migrate.Run(t.Context(), dir, []string{"./..."}, migrate.Options{Write: true})
	require.NoError(t, err)
	for _, site := range report.Sites {
		require.Contains(t, site.Why, "the file would not type-check: ", "%v", site)
	}
	require.Empty(t, report.Diff)
	require.Equal(t, before, source(t, dir))
}

func TestAFileThatIsALinkChangesNothing(t *testing.T) {
	dir := copied(t, "forms")
	outside := filepath.Join(t.TempDir(), "backoff4.go")
	require.NoError(t, os.Rename(filepath.Join(dir, "backoff4.go"), outside))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "backoff4.go")))
	before, there := source(t, dir), read(t, outside)
	_, err := migrate.Run(t.Context(), dir, []string{"./..."}, migrate.Options{Write: true})
	require.ErrorContains(t, err, "backoff4.go is not a regular file of the module")
	require.Equal(t, before, source(t, dir))
	require.Equal(t, there, read(t, outside))
}

func TestWhatIsRefusedSaysWhy(t *testing.T) { refuses(t, "refused", migrate.Options{Write: true}) }

func TestMarksThatMayComeFromElsewhereAreRefused(t *testing.T) {
	refuses(t, "marks", migrate.Options{Write: true})
}

func TestMarksInFilesThatTheBuildLeavesOutAreRefused(t *testing.T) {
	refuses(t, "constrained", migrate.Options{Write: true})
}

func refuses(t *testing.T, module string, o migrate.Options) {
	t.Helper()
	dir := copied(t, module)
	before := source(t, dir)
	report, err := migrate.Run(t.Context(), dir, []string{"."}, o)
	require.NoError(t, err)
	require.Empty(t, report.Diff)
	after := source(t, dir)
	require.Equal(t, before, after)

	want := map[string]map[int]string{}
	comment := regexp.MustCompile("// want `(.*)`")
	for name, text := range maps.All(after) {
		want[name] = map[int]string{}
		for i, line := range strings.Split(text, "\n") {
			if m := comment.FindStringSubmatch(line); m != nil {
				want[name][i+1] = m[1]
			}
		}
	}
	for _, site := range report.Sites {
		name, line := filepath.Base(site.Position.Filename), site.Position.Line
		reason, ok := want[name][line]
		require.True(t, ok, "not expected: %v", site)
		require.Contains(t, site.Why, reason, "%v", site)
		delete(want[name], line)
	}
	for name, left := range want {
		require.Empty(t, left, "of %s", name)
	}
}

func TestLoopsAroundOtherLibrariesThatAreRefusedSayWhy(t *testing.T) {
	refuses(t, "sourcedrefused", migrate.Options{Write: true})
}

func ExampleRun() {
	os.Setenv("GOWORK", "off") // the module is not one of this workspace
	report, err := migrate.Run(context.Background(), "testdata/marks", []string{"."}, migrate.Options{})
	if err != nil {
		fmt.Println(err)
	}
	for _, site := range report.Sites[:1] {
		fmt.Println(site.Call)
		fmt.Println(site.Why)
	}
	// Output:
	// backoff/v4 Retry
	// a mark of backoff/v4 that is made or looked for elsewhere (elsewhere.go:11) can reach it, and retry would not know it
}

func TestLoopsMakeTheSameCallsAtTheSameTimes(t *testing.T) {
	dir := copied(t, "loops")
	report := moves(t, dir, "loops.diff", migrate.Options{Loops: true, Write: true})
	require.GreaterOrEqual(t, len(report.Sites), 20)
	require.NotContains(t, read(t, filepath.Join(dir, "loops.go")), "time.Sleep")
}

func TestLoopsAroundOtherLibrariesMakeTheSameCallsAtTheSameTimes(t *testing.T) {
	dir := copied(t, "loops")
	report := moves(t, dir, "sourced.diff", migrate.Options{Write: true})
	require.Len(t, report.Sites, 14)
	require.NotRegexp(t, `"(github.com/(cenkalti|grafana|cockroachdb)|k8s.io)/`, read(t, filepath.Join(dir, "sourced.go")))
}

func TestLoopsThatAreRefusedSayWhy(t *testing.T) {
	refuses(t, "loopsrefused", migrate.Options{Loops: true, Write: true})
}
