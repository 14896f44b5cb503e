package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/bench/internal/contest"
)

func fakes() []contest.Scenario {
	sampled := func(name string) contest.Scenario {
		return contest.Scenario{Name: name, Unit: "B", Contenders: []contest.Contender{
			{Name: "retry", Form: contest.Ours, Sample: func() float64 { return 3 }},
		}, Targets: []contest.Target{{Rule: "nothing", Kind: contest.Value, Most: 0}}}
	}
	return []contest.Scenario{sampled("memory"), sampled("latency")}
}

func TestRunWritesTheReport(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "go.work"), nil, 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "bench", "cmd"), 0o700))

	t.Run("of all scenarios to bench of the workspace", func(t *testing.T) {
		t.Chdir(filepath.Join(root, "bench", "cmd"))
		var stdout, stderr bytes.Buffer
		require.NoError(t, run(context.Background(), []string{"-rounds", "1"}, fakes(), &stdout, &stderr))
		text, err := os.ReadFile(filepath.Join(root, "bench", "RESULTS.md"))
		require.NoError(t, err)
		require.Contains(t, string(text), "```sh\ngo run ./bench/cmd/report -rounds 1\n```")
		require.Contains(t, string(text), "## memory")
		require.Contains(t, string(text), "## latency")
		require.Contains(t, string(text), "**red**")
		require.NotContains(t, string(text), root)
		require.Empty(t, stdout.String())
		require.Equal(t, "1/2 memory: 1 core\n2/2 latency: 1 core\n", stderr.String())
	})
	t.Run("of some to the standard output", func(t *testing.T) {
		var stdout bytes.Buffer
		require.NoError(t, run(context.Background(), []string{"-rounds", "1", "-run", "^mem"}, fakes(), &stdout, io.Discard))
		require.Contains(t, stdout.String(), "go run ./bench/cmd/report -rounds 1 -run '^mem'\n")
		require.Contains(t, stdout.String(), "## memory")
		require.NotContains(t, stdout.String(), "latency")
	})
	t.Run("of some to a file", func(t *testing.T) {
		file := filepath.Join(root, "out.md")
		var stdout bytes.Buffer
		require.NoError(t, run(context.Background(), []string{"-rounds=1", "-run=mem", "-o", file}, fakes(), &stdout, io.Discard))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), "go run ./bench/cmd/report -rounds 1 -run mem\n")
		require.Empty(t, stdout.String())
	})
}

func TestRunRefuses(t *testing.T) {
	for _, row := range []struct {
		args []string
		err  string
	}{
		{[]string{"-run", "none"}, `-run: no scenario matches "none"`},
		{[]string{"-run", "("}, "-run: error parsing regexp: missing closing ): `(`"},
		{[]string{"-rounds", "0"}, "-rounds 0 is below 1"},
		{[]string{"-sample", "0s"}, "-sample 0s is not above 0"},
		{[]string{"all"}, `unexpected argument "all"`},
	} {
		require.EqualError(t, run(context.Background(), row.args, fakes(), io.Discard, io.Discard), row.err)
	}
	missing := filepath.Join(t.TempDir(), "none", "out.md")
	require.ErrorIs(t, run(context.Background(), []string{"-o", missing}, fakes(), io.Discard, io.Discard), os.ErrNotExist)
}

func TestRunWritesNothingWhenCancelled(t *testing.T) {
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	file := filepath.Join(t.TempDir(), "out.md")
	require.ErrorIs(t, run(ctx, []string{"-o", file}, fakes(), io.Discard, io.Discard), cause)
	require.NoFileExists(t, file)
}

func TestResultsFileWithoutAWorkspace(t *testing.T) {
	t.Chdir(t.TempDir())
	require.Equal(t, "RESULTS.md", resultsFile())
}

func TestQuoted(t *testing.T) {
	for word, want := range map[string]string{
		"20ms": "20ms", "": "''", "a b": "'a b'", "$HOME": "'$HOME'", "it's": `'it'\''s'`,
	} {
		require.Equal(t, want, quoted(word))
	}
}

func TestPeers(t *testing.T) {
	require.Equal(t, []peer{
		{"github.com/avast/retry-go/v4", "replaced"},
		{"golang.org/x/time", "v0.15.0"},
	}, peers([]*debug.Module{
		{Path: "golang.org/x/time", Version: "v0.15.0"},
		{Path: "github.com/stretchr/testify", Version: "v1.12.1"},
		{Path: "github.com/avast/retry-go/v4", Version: "v4.0.0", Replace: &debug.Module{Path: "../fork"}},
	}))
}
