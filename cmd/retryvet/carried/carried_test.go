package carried_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/retrygo/retry/cmd/retryvet/carried"
)

func TestStateThatAFailedAttemptLeavesBehindIsFound(t *testing.T) {
	data, err := filepath.Abs("../testdata")
	require.NoError(t, err)
	analysistest.Run(t, data, carried.Analyzer, "carried", "carried/store")
}
