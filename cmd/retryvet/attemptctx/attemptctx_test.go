package attemptctx_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/retrygo/retry/cmd/retryvet/attemptctx"
)

func TestAttemptsThatUseWhatBelongsToTheRunAreFound(t *testing.T) {
	data, err := filepath.Abs("../testdata")
	require.NoError(t, err)
	analysistest.Run(t, data, attemptctx.Analyzer, "attemptctx")
}
