package plugin_test

import (
	"testing"

	"github.com/golangci/plugin-module-register/register"
	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryvet/loop"
	_ "github.com/retrygo/retry/cmd/retryvet/plugin"
)

func TestGolangciLintFindsTheLinter(t *testing.T) {
	open, err := register.GetPlugin("retryvet")
	require.NoError(t, err)
	_, err = open(map[string]any{"unknown": true})
	require.Error(t, err)
	linter, err := open(nil)
	require.NoError(t, err)
	require.Equal(t, register.LoadModeTypesInfo, linter.GetLoadMode())
	analyzers, err := linter.BuildAnalyzers()
	require.NoError(t, err)
	require.Contains(t, analyzers, loop.Analyzer)
}
