package cli_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry/cmd/retryplan/internal/cli"
	"github.com/retrygo/retry/cmd/retryplan/internal/web"
)

// TestServe holds what the page is given, and that its address is printed while it is served.
func TestServe(t *testing.T) {
	t.Chdir("testdata")
	for _, row := range []struct {
		line, addr, out string
	}{
		{"serve", "127.0.0.1:0", "http://there/\n"},
		{"serve --addr localhost:8080", "localhost:8080", "http://there/\n"},
		{"serve --json", "127.0.0.1:0", "{\"url\":\"http://there/\"}\n"},
	} {
		t.Run(row.line, func(t *testing.T) {
			var out, err bytes.Buffer
			exit := cli.Run(t.Context(), cli.Options{Serve: func(_ context.Context, o web.Options) error {
				require.Equal(t, row.addr, o.Addr)
				o.Ready("http://there/")
				require.Equal(t, row.out, out.String())
				return errors.New("the end")
			}}, split(row.line), &out, &err)
			require.Equal(t, cli.Failed, exit)
			require.Equal(t, "retryplan: the end\n", err.String())
		})
	}
}
