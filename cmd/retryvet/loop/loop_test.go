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

func TestMoreFindsWhatCanBeIntended(t *testing.T) {
	data, err := filepath.Abs("../testdata")
	require.NoError(t, err)
	require.NoError(t, loop.Analyzer.Flags.Set("more", "true"))
	defer func() { require.NoError(t, loop.Analyzer.Flags.Set("more", "false")) }()
	analysistest.Run(t, data, loop.Analyzer, "loopmore")
}
