package attempts_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/retrygo/retry/cmd/retryvet/attempts"
)

func TestLoopsThatNeverSetTheirErrorAreFoundAndMended(t *testing.T) {
	data, err := filepath.Abs("../testdata")
	require.NoError(t, err)
	analysistest.RunWithSuggestedFixes(t, data, attempts.Analyzer, "attempts")
}
