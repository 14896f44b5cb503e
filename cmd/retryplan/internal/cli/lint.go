package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

func (a *app) lintCommand() *cobra.Command {
	var (
		flags   policyFlags
		setting wire.Setting
		guard   guard
		budget  bool
		ignore  []string
	)
	cmd := &cobra.Command{
		Use:   "lint [POLICY]...",
		Short: "Guard policies in CI: print findings, fail on warnings",
		Long: `lint prints the findings of show, one for a line, or that there are none. It exits with status 1 if one is a warning
or severe; --fail-on says otherwise. --budget and --ignore say what a document cannot: that the program gives its policies a
budget, and which findings are meant to be.`,
		Example: `  retryplan lint policies.json
  retryplan lint policies.json --fail-on severe --inline --deadline 5s
  retryplan lint preset:standard policies.json --budget --ignore standard:no-jitter`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checked(checkSetting(setting), checkIgnored(ignore)); err != nil {
				return err
			}
			found, err := a.policies(cmd, &flags, args)
			if err != nil {
				return err
			}
			var all []shown
			quiet := true
			for _, n := range found {
				p := n.policy
				if budget {
					p = funded(p, &retry.BudgetConfig{})
				}
				findings := slices.DeleteFunc(retryplan.Lint(p, setting.Setting()), func(f retryplan.Finding) bool {
					return slices.Contains(ignore, f.Code) || slices.Contains(ignore, n.name+":"+f.Code)
				})
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
	cmd.Flags().BoolVar(&budget, "budget", false, "the program gives each policy a budget")
	cmd.Flags().StringSliceVar(&ignore, "ignore", nil, "leave out findings of these codes, CODE or POLICY:CODE")
	guard.add(cmd.Flags(), "warning")
	return cmd
}

// checkIgnored refuses codes that no finding has.
func checkIgnored(ignore []string) error {
	for _, one := range ignore {
		if code := one[strings.LastIndex(one, ":")+1:]; !slices.Contains(retryplan.Codes(), code) {
			return misusef("--ignore %q: there is no finding %q", one, code)
		}
	}
	return nil
}
