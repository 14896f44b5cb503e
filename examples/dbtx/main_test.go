package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

const want = `alice pays 60 to bob
  attempt 1: retrysql: statement: busy_snapshot (517): database is locked (517)
  succeeded
alice pays 60 to bob
  succeeded
  insufficient funds
alice  10
bob    60
carol  30
`

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, run(&b))
	require.Equal(t, want, b.String())
}
