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
				if a.json {
					_ = a.printJSON(struct{ URL string }{address})
				} else {
					a.line("%s", address)
				}
				_ = a.out.Flush()
			})
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:0", "loopback `address` to listen on; port 0 means any free port")
	return cmd
}

func (a *app) pageCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "page DIR",
		Short: "Write the page of serve as files for any web server",
		Long: `page writes the page of retryplan serve into a directory, as files that any web server can serve: it computes in the
browser. page builds the program for that with the go command.`,
		Example: `  retryplan page public
  python3 -m http.server --directory public`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := web.Static(a.ctx, args[0], a.Version); err != nil {
				return err
			}
			a.line("wrote %s", args[0])
			return nil
		},
	}
}
