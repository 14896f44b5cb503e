package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
)

// TestServe holds that the address of the page is printed, and that nothing is served to other machines.
func TestServe(t *testing.T) {
	for line, out := range map[string]string{
		"serve":                    `^http://127\.0\.0\.1:\d+/\n$`,
		"serve --addr localhost:0": `^http://127\.0\.0\.1:\d+/\n$`,
	} {
		got := runIn(t, ended(t), cli.Options{}, line)
		require.Equal(t, cli.Done, got.Exit, got.Err)
		require.Regexp(t, out, got.Out)
	}
	got := runIn(t, ended(t), cli.Options{}, "serve --addr :8080")
	require.Contains(t, got.Err, `":8080" is not a loopback address`)
}
