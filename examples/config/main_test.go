package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryRunGivesTheSameOutput(t *testing.T) {
	var once, again bytes.Buffer
	require.NoError(t, run(&once))
	require.NoError(t, run(&again))
	require.Equal(t, once.String(), again.String())
}
