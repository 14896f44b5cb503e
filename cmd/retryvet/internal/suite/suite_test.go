package suite_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"

	"github.com/retrygo/retry/cmd/retryvet/internal/ignore"
	"github.com/retrygo/retry/cmd/retryvet/internal/suite"
)

func TestEveryAnalyzerCanBeIgnored(t *testing.T) {
	require.NoError(t, analysis.Validate(suite.Analyzers()))
	names := []string{}
	for _, a := range suite.Analyzers() {
		if a != ignore.Analyzer {
			names = append(names, a.Name)
		}
	}
	require.Equal(t, ignore.Names, names)
}
