package suite_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/retrygo/retry/cmd/retryvet/internal/suite"
)

func TestTheAnalyzersAreValid(t *testing.T) {
	require.NoError(t, analysis.Validate(suite.Analyzers()))
}

// TestEachAnalyzerFindsWhatItIsFor compares the findings of each analyzer with the comments in the packages of testdata
// that have its name. Facts cross from one package to another.
func TestEachAnalyzerFindsWhatItIsFor(t *testing.T) {
	data, err := filepath.Abs("../../testdata")
	require.NoError(t, err)
	stores := map[string][]string{"carried": {"carried/store"}, "nested": {"nested/store"}}
	for _, a := range suite.Analyzers() {
		t.Run(a.Name, func(t *testing.T) {
			analysistest.Run(t, data, a, append(stores[a.Name], a.Name)...)
		})
	}
}
