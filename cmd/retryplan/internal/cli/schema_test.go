package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
	"github.com/retrygo/retry/retryconf"
)

func TestSchemaPrintsTheSchemas(t *testing.T) {
	for line, want := range map[string][]byte{
		"schema":         retryconf.Schema(),
		"schema policy":  retryconf.Schema(),
		"schema catalog": retryconf.CatalogSchema(),
	} {
		require.Equal(t, ran{cli.Done, string(want), ""}, run(t, line))
	}
	require.Equal(t, cli.Usage, run(t, "schema fleet").Exit)
}
