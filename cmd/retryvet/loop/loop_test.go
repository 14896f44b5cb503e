package loop_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/retrygo/retry/cmd/retryvet/loop"
)

func TestLoopsThatFailureRepeatsAndSuccessNeverDoesAreFound(t *testing.T) {
	data, err := filepath.Abs("../testdata")
	require.NoError(t, err)
	analysistest.Run(t, data, loop.Analyzer, "loop")
}
