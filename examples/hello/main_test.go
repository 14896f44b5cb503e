package main

import (
	"io"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestREADMEShowsTheOutput(t *testing.T) {
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = writer
	main()
	os.Stdout = stdout
	require.NoError(t, writer.Close())
	output, err := io.ReadAll(reader)
	require.NoError(t, err)
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Contains(t, timeless(string(readme)), timeless(string(output)))
}

// timeless drops the time that a run took.
func timeless(s string) string {
	return regexp.MustCompile(`attempts in \S+ `).ReplaceAllString(s, "attempts in … ")
}
