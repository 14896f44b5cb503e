package main

import (
	"bytes"
	"os"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// The page shows the output of the program.
func TestThePageShowsTheOutput(t *testing.T) {
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		run(&text)
		require.Contains(t, string(page), "```\n"+text.String()+"```\n")
	})
}
