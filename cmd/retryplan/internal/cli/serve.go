package cli

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry"
)

func (a *app) serveCommand() *cobra.Command {
	var (
		flags policyFlags
		addr  string
	)
	cmd := &cobra.Command{
		Use:   "serve [POLICY | LINK]",
		Short: "Serve a page, to this machine alone, that redraws all of this as sliders move",
		Long: `serve shows schedule, distribution, simulation, findings and certificate on a local page, with sliders for policy and
fleet, and gives the policy as Go and as JSON to copy. It listens on a loopback address only, and ends when it is
interrupted. The page opens with POLICY, or with all that the address of another such page says: LINK.`,
		Example: `  retryplan serve
  retryplan serve policy.json --addr 127.0.0.1:8080
  retryplan serve "http://127.0.0.1:41234/#max_attempts=5&base=1s"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("the page opens with one policy, not %d", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			var p retry.Policy
			var fragment string
			if len(args) > 0 && strings.HasPrefix(args[0], "http://") {
				link, err := url.Parse(args[0])
				if err != nil || link.Fragment == "" {
					return misusef("%q is no address of a page: one ends in #max_attempts=5 and so on", args[0])
				}
				if flags.preset != "" || flags.changed() {
					return misusef("%s says all of the page; change it there", args[0])
				}
				fragment, args = "#"+link.EscapedFragment(), nil
			}
			if len(args) > 0 || flags.preset != "" || flags.changed() {
				found, err := a.policies(&flags, args)
				if err != nil {
					return err
				}
				if len(found) > 1 {
					return misusef("the page opens with one policy; say which: %s@%s", found[0].name, args[0])
				}
				p = found[0].policy
			}
			return a.Serve(a.ctx, addr, p, func(address string) {
				address += fragment
				if a.json {
					_ = a.printJSON(object{"url": address})
				} else {
					a.line("%s", address)
				}
				_ = a.out.Flush() // now, since the command goes on
			})
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:0", "loopback `address` to listen on; port 0 is any that is free")
	flags.add(cmd.Flags())
	return cmd
}
