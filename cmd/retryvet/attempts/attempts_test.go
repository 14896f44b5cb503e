package attempts_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/retrygo/retry/cmd/retryvet/attempts"
)

func TestLoopsThatNeverSetTheirErrorAreFound(t *testing.T) {
	data, err := filepath.Abs("../testdata")
	require.NoError(t, err)
	analysistest.Run(t, data, attempts.Analyzer, "attempts")
}
