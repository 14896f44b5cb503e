package check_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryvet/internal/check"
	"github.com/retrygo/retry/cmd/retryvet/internal/suite"
)

func TestMigrateSaysWhatItWouldDoAndThenDoesIt(t *testing.T) {
	module, err := filepath.Abs("../..")
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(module, "README.md"))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "client"))))
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-buildvcs=false")
	out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-require=github.com/retrygo/retry@v0.1.0", "-replace=github.com/retrygo/retry="+filepath.Join(module, "..", "..")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	migrate := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		status := check.Run(t.Context(), suite.Analyzers(), "v1.2.3", append([]string{"-migrate"}, args...), &out, &errs)
		require.Empty(t, errs.String())
		return status, out.String()
	}
	status, printed := migrate("-diff", "./...")
	require.Equal(t, 1, status, "a call is left")
	require.Regexp(t, `^client.go:21:9: backoff/v4 RetryWithData: moved\nclient.go: errors are of type .*\ndiff a/client.go b/client.go\n`, printed)
	_, shown, _ := strings.Cut(string(readme), "```diff\n")
	shown, _, ok := strings.Cut(shown, "```")
	require.True(t, ok)
	require.Contains(t, printed, shown, "README.md shows what is printed")

	status, _ = migrate("-w", "./...")
	require.Equal(t, 0, status, "nothing is left")
	status, printed = migrate("./...")
	require.Equal(t, 0, status)
	require.Empty(t, printed)
}

func TestFixMakesLoopsOverAttempts(t *testing.T) {
	module, err := filepath.Abs("../..")
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "client"))))
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "-buildvcs=false")
	out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-require=github.com/retrygo/retry@v0.1.0", "-replace=github.com/retrygo/retry="+filepath.Join(module, "..", "..")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	before, err := os.ReadFile("loop.go")
	require.NoError(t, err)
	fix := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		status := check.Run(t.Context(), suite.Analyzers(), "v1.2.3", append([]string{"-loop", "-fix"}, args...), &out, &errs)
		require.Empty(t, errs.String())
		return status, out.String()
	}
	status, printed := fix("-diff", "./...")
	require.Equal(t, 1, status, "a loop is left")
	require.Contains(t, printed, "loop.go:10:2: retry loop: moved\n")
	require.Contains(t, printed, "+	for ctx := range retry.Attempts(ctx, retry.Policy{\n")
	after, err := os.ReadFile("loop.go")
	require.NoError(t, err)
	require.Equal(t, string(before), string(after))

	status, _ = fix("./...")
	require.Equal(t, 0, status, "nothing is left")
	after, err = os.ReadFile("loop.go")
	require.NoError(t, err)
	require.Contains(t, string(after), "retry.Attempts(ctx, ")
	status, printed = fix("./...")
	require.Equal(t, 0, status)
	require.Empty(t, printed)
}

func TestMigrateFlagsAloneAreWrong(t *testing.T) {
	for _, flags := range [][]string{{"-w"}, {"-diff"}, {"-fix"}, {"-fix", "-nested"}, {"-loop", "-fix", "-w"}} {
		status, _, errs := run(t, program, append(flags, "./...")...)
		require.Equal(t, 2, status, "%v", flags)
		require.Contains(t, errs, "retryvet -migrate [-diff] [-w] PACKAGE...")
	}
}
