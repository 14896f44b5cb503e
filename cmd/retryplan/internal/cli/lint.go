package cli

import (
	"github.com/spf13/cobra"

	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

func (a *app) lintCommand() *cobra.Command {
	var (
		flags   policyFlags
		setting wire.Setting
		guard   guard
	)
	cmd := &cobra.Command{
		Use:   "lint [POLICY]...",
		Short: "Guard policies in CI: print findings, fail on warnings",
		Long: `lint prints the findings of show, one for a line, or that there are none. It exits with status 1 where one is a warning
or severe; --fail-on says otherwise.`,
		Example: `  retryplan lint policies.json
  retryplan lint policies.json --fail-on severe --inline --deadline 5s`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkSetting(setting); err != nil {
				return err
			}
			found, err := a.policies(cmd, &flags, args)
			if err != nil {
				return err
			}
			var all []shown
			quiet := true
			for _, n := range found {
				findings := retryplan.Lint(n.policy, setting.Setting())
				guard.findings(n.name, findings)
				if a.json {
					one, err := newShown(n, nil, findings)
					if err != nil {
						return err
					}
					all = append(all, one)
					continue
				}
				quiet = quiet && len(findings) == 0
				for _, f := range findings {
					a.line("%s", wire.OneLine(n.name+": "+f.Level.String()+" "+f.Code+": "+f.Text+" Do: "+f.Change))
				}
			}
			if quiet && !a.json {
				a.line("no findings in %s", policiesText(len(found)))
			}
			if a.json {
				if err := a.printJSON(policiesJSON[shown]{all}); err != nil {
					return err
				}
			}
			return guard.err()
		},
	}
	flags.add(cmd.Flags())
	settingFlags(cmd.Flags(), &setting)
	guard.add(cmd.Flags(), "warning")
	return cmd
}
