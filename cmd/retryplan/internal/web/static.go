package web

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/retrygo/retry/cmd/retryplan/internal/page"
	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
)

//go:embed static
var static embed.FS

// program is the package that the static form of the page computes with.
const program = "github.com/retrygo/retry/cmd/retryplan/internal/wasm"

// Static writes the page into a directory, for any web server: the files of the served page, with package retryplan as
// WebAssembly in place of the server. It builds that with the go command, from the source in the working directory if
// there is one, otherwise from that of the given version of this module, so that no binary has to be kept.
func Static(ctx context.Context, dir, version string) error {
	files := map[string][]byte{"presets.json": page.PresetsJSON, "chart.css": []byte(plots.Stylesheet)}
	for _, from := range []struct {
		fs   embed.FS
		name string
	}{{assets, "assets"}, {static, "static"}} { // whose ask.js replaces that of the server
		entries, err := from.fs.ReadDir(from.name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if files[e.Name()], err = fs.ReadFile(from.fs, from.name+"/"+e.Name()); err != nil {
				return err
			}
		}
	}
	root, err := golang(ctx, nil, "env", "GOROOT")
	if err != nil {
		return err
	}
	if files["wasm_exec.js"], err = os.ReadFile(filepath.Join(root, "lib", "wasm", "wasm_exec.js")); err != nil {
		return err
	}
	if files["retryplan.wasm"], err = build(ctx, version); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// build returns the program.
func build(ctx context.Context, version string) ([]byte, error) {
	temp, err := os.MkdirTemp("", "retryplan")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	cache, err := golang(ctx, nil, "env", "GOMODCACHE")
	if err != nil {
		return nil, err
	}
	// A program for another system cannot be installed into GOBIN, but in its own folder of GOPATH.
	env := []string{"GOOS=js", "GOARCH=wasm", "GOPATH=" + temp, "GOBIN=", "GOMODCACHE=" + cache}
	source := program
	if _, err := golang(ctx, env, "list", source); err != nil {
		source += "@" + version
	}
	if _, err := golang(ctx, env, "install", "-trimpath", "-ldflags=-s -w", source); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(temp, "bin", "js_wasm", "wasm"))
}

// golang runs the go command.
func golang(ctx context.Context, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("web: go %s: %s", args[0], strings.TrimSpace(string(failed.Stderr)))
	} else if err != nil {
		return "", fmt.Errorf("web: the page is built by the go command: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
