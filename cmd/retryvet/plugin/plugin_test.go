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
	more := loop.Analyzer.Flags.Lookup("more")
	require.Equal(t, "false", more.Value.String())
	linter, err = open(map[string]any{"more": true})
	require.NoError(t, err)
	_, err = linter.BuildAnalyzers()
	require.NoError(t, err)
	require.Equal(t, "true", more.Value.String())
	require.NoError(t, more.Value.Set("false"))
}
