package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
)

// TestAHostileName holds that a policy's name cannot speak to the terminal.
func TestAHostileName(t *testing.T) {
	for _, line := range []string{"show -", "show - --failure 0.5", "lint -", "simulate - --rate 1 --capacity 9", "compare - preset:standard", "show - --fail-on note"} {
		var out, err bytes.Buffer
		cli.Run(t.Context(), cli.Options{Stdin: strings.NewReader(`{"name": "a\u001b[2J\nb\u202e", "base": "1s"}`)}, split(line), &out, &err)
		for _, text := range []string{out.String(), err.String()} {
			require.NotContains(t, text, "\x1b", line)
			require.NotContains(t, text, "\u202e", line)
		}
	}
}
