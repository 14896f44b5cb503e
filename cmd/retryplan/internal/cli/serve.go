package cli

import (
	"github.com/spf13/cobra"

	"github.com/retrygo/retry/cmd/retryplan/internal/web"
)

func (a *app) serveCommand() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve a page that shows all of this with sliders, on this machine only",
		Long: `serve shows schedule, distribution, simulations, findings and advice on a local page with sliders for the policy
and the fleet, and shows the policy as Go and as JSON to copy. It listens on a loopback address only, until it is
interrupted.`,
		Example: `  retryplan serve
  retryplan serve --addr 127.0.0.1:8080`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return web.Serve(a.ctx, addr, func(address string) {
				a.line("%s", address)
				_ = a.out.Flush()
			})
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:0", "loopback `address` to listen on; port 0 means any free port")
	return cmd
}
