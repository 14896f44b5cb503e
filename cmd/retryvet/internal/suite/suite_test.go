package suite_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"

	"github.com/retrygo/retry/cmd/retryvet/internal/suite"
)

func TestTheAnalyzersAreValid(t *testing.T) {
	require.NoError(t, analysis.Validate(suite.Analyzers()))
}
