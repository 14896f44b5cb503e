package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The test binary is the command if RETRYVET_MAIN is set.
func TestMain(m *testing.M) {
	if os.Getenv("RETRYVET_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

const loop = `
	for {
		if err := call(ctx); err == nil {
			return
		}
		time.Sleep(time.Second)
	}
}
`

const source = `
import (
	"context"
	"time"
)

func call(context.Context) error { return nil }

func wait(ctx context.Context) {` + loop

const helper = `
import (
	"context"
	"testing"
	"time"
)

func waitIn(ctx context.Context, _ testing.TB) {` + loop

// The go command hands a package over together with its tests, which import testing.
func TestGoVetFindsWhatAPackageWithTestsHas(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":               "module example.com/latest\n\ngo 1.26\n",
		"r.go":                 "package latest\n" + source,
		"r_test.go":            "package latest\n\nimport \"testing\"\n\nfunc TestNothing(*testing.T) {}\n",
		"helper.go":            "package latest\n" + helper,
		"contest/r.go":         "package contest\n" + source,
		"attestation/r.go":     "package attestation\n" + source,
		"e2e/r.go":             "package e2e\n" + source,
		"e2e/r_test.go":        "package e2e\n",
		"testing/r.go":         "package testing\n" + source,
		"internal/tests/of.go": "package tests\n" + source,
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o777))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
	}
	cmd := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+os.Args[0], "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "RETRYVET_MAIN=1", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "the status is 1 if there are findings")
	found := regexp.MustCompile(`(?m)^\S+\.go:\d+`).FindAllString(string(out), -1)
	require.ElementsMatch(t, []string{"r.go:11", "attestation/r.go:11", "contest/r.go:11"}, found, "%s", out)
}
