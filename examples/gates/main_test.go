package main

import (
	"bytes"
	"os"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestOutput(t *testing.T) {
	want, err := os.ReadFile("testdata/output.txt")
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		run(&text)
		require.Equal(t, string(want), text.String())
	})
}
