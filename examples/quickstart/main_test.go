package main

import (
	"bytes"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// output runs the program and returns its output without measurements.
func output(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, run(&b))
	return normalized(b.String())
}

// normalized returns text with "…" for each measurement.
func normalized(text string) string {
	return regexp.MustCompile(`(attempts?) in \S+`).ReplaceAllString(text, "$1 in …")
}

func TestNothingIsLeftRunning(t *testing.T) {
	before := runtime.NumGoroutine()
	output(t)
	// The goroutines of a closed connection end just after Close has returned; no event says when, so yield to them.
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
		runtime.Gosched()
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

func TestEveryRunGivesTheSameOutput(t *testing.T) {
	require.Equal(t, output(t), output(t))
}

func TestREADMEShowsTheOutput(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(readme), "<!-- quickstart output -->")
	require.True(t, found, "README.md lacks the marker that the output begins after")
	block, _, found := strings.Cut(after, "<!-- end of quickstart output -->")
	require.True(t, found, "README.md lacks the marker that the output ends before")
	require.Equal(t, "```text\n"+strings.TrimSpace(output(t))+"\n```", normalized(strings.TrimSpace(block)))
}
