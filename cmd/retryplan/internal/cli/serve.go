package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry"
)

func (a *app) serveCommand() *cobra.Command {
	var (
		flags policyFlags
		addr  string
	)
	cmd := &cobra.Command{
		Use:   "serve [POLICY]",
		Short: "Serve a page, to this machine alone, that redraws all of this as sliders move",
		Long: `serve shows schedule, distribution, simulation, findings and certificate on a local page, with sliders for policy and
fleet, and gives the policy as Go and as JSON to copy. It listens on a loopback address only, and ends when it is
interrupted. The page opens with POLICY.`,
		Example: `  retryplan serve
  retryplan serve policy.json --addr 127.0.0.1:8080`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("the page opens with one policy, not %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var p retry.Policy
			if len(args) > 0 || flags.preset != "" || flags.changed(cmd) {
				found, err := a.policies(cmd, &flags, args)
				if err != nil {
					return err
				}
				if len(found) > 1 {
					return misusef("the page opens with one policy; say which: %s@%s", found[0].name, args[0])
				}
				p = found[0].policy
			}
			return a.Serve(cmd.Context(), addr, p, func(url string) {
				if a.json {
					_ = a.printJSON(struct {
						URL string `json:"url"`
					}{url})
				} else {
					a.line("%s", url)
				}
				_ = a.out.Flush() // now, since the command goes on
			})
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:0", "loopback `address` to listen on; port 0 is any that is free")
	flags.add(cmd.Flags())
	return cmd
}
