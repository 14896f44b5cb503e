package plugin_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const customFile = `version: %[1]s
plugins:
  - module: github.com/retrygo/retry/cmd/retryvet
    import: github.com/retrygo/retry/cmd/retryvet/plugin
    path: %[2]s/cmd/retryvet
  - module: github.com/retrygo/retry
    path: %[2]s
  - module: github.com/retrygo/retry/retryplan
    path: %[2]s/retryplan
`

const settings = `version: "2"
linters:
  default: none
  enable: [retryvet]
  settings:
    custom:
      retryvet:
        type: module
`

const program = `package x

import (
	"context"
	"time"
)

func get(ctx context.Context, fetch func(context.Context) (string, error)) (string, error) {
	for i := 0; ; i++ { // line 9
		s, err := fetch(ctx)
		if err == nil {
			return s, nil
		}
		if i == 3 {
			return "", err
		}
		time.Sleep(time.Second)
	}
}
`

// TestGolangciLintRunsThePlugin builds golangci-lint with the plugin by golangci-lint custom, and runs it. That takes
// minutes and the Go module proxy, so it is done only if RETRYVET_GOLANGCI is a version of golangci-lint, such as v2.15.0.
func TestGolangciLintRunsThePlugin(t *testing.T) {
	version := os.Getenv("RETRYVET_GOLANGCI")
	if version == "" {
		t.Skip("RETRYVET_GOLANGCI is not set")
	}
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	dir := t.TempDir()
	t.Setenv("GOWORK", "off")
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOBIN", dir)
	run(t, dir, "go", "install", "github.com/golangci/golangci-lint/v2/cmd/golangci-lint@"+version)

	// The command custom clones golangci-lint from GitHub. It gets the source that the proxy has.
	var module struct{ Dir string }
	require.NoError(t, json.Unmarshal([]byte(run(t, dir, "go", "mod", "download", "-json", "github.com/golangci/golangci-lint/v2@"+version)), &module))
	source := filepath.Join(dir, "source")
	require.NoError(t, os.CopyFS(source, os.DirFS(module.Dir)))
	git := []string{"-c", "user.name=x", "-c", "user.email=x", "-c", "core.autocrlf=false"}
	for _, args := range [][]string{{"init", "-q", "-b", version}, {"add", "-A", "-f"}, {"commit", "-q", "-m", version}} {
		run(t, source, "git", append(git, args...)...)
	}
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "url."+source+".insteadOf")
	t.Setenv("GIT_CONFIG_VALUE_0", "https://github.com/golangci/golangci-lint.git")

	for name, text := range map[string]string{
		".custom-gcl.yml": fmt.Sprintf(customFile, version, root), ".golangci.yml": settings,
		"go.mod": "module example.com/x\n\ngo 1.26\n", "x.go": program,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	run(t, dir, filepath.Join(dir, "golangci-lint"), "custom", "-v")
	cmd := exec.Command(filepath.Join(dir, "custom-gcl"), "run", "--output.text.print-issued-lines=false", "./x.go")
	cmd.Dir = dir
	out, err := cmd.Output()
	require.Error(t, err)
	require.Contains(t, string(out), "x.go:9:2: loop: this retry loop sleeps without watching ctx", err)
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	require.NoError(t, err, "%s %s\n%s%s", name, strings.Join(args, " "), out, &errs)
	return string(out)
}
