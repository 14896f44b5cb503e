package cli_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
)

func TestAPolicyFromStandardInput(t *testing.T) {
	data, err := os.ReadFile("testdata/policies.json")
	require.NoError(t, err)
	want := run(t, "show email@policies.json")
	got := runIn(t, t.Context(), cli.Config{Stdin: bytes.NewReader(data)}, "show email@-")
	require.Equal(t, want, got)
	got = runIn(t, t.Context(), cli.Config{Stdin: strings.NewReader(`{"base": "1s", "max_attempts": 2}`)}, "show -")
	require.Equal(t, "standard input: 2 attempts, exponential 1s ×2, cap 1h: 1s (1s in all)", strings.Split(got.Out, "\n")[0])
}
