package cli

import (
	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryplan"
)

func (a *app) lintCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "lint [POLICY]...",
		Short: "Print findings for CI, and fail on warnings",
		Long: `lint prints the findings of show, one on a line with its place in the document, and exits with status 1 if one is a
warning or severe, or as --fail-on says. With the flags of a fleet (--rate and --capacity) the count of simulate is a
finding too if seeds are lost, and a change is printed only if it was simulated and is not worse.

--ignore no-jitter leaves a finding out of all policies, --ignore email:no-jitter of one.`,
		Example: `  retryplan lint policies.json --fail-on severe --inline --deadline 5s
  retryplan lint policies.json --format github`,
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "text" && format != "github" {
				return misusef("--format %q is not one of text, github", format)
			}
			set(!a.given("fail-on"), &a.failOn, retryplan.Warning)
			found, err := a.policies(args)
			if err != nil {
				return err
			}
			var all []finding
			for _, n := range found {
				findings, err := a.linted(n)
				if err != nil {
					return err
				}
				all = append(all, findings...)
			}
			if len(all) == 0 && format == "text" {
				a.line("no findings")
			}
			for _, f := range all {
				line := f.line
				set(format == "github", &line, f.annotation)
				a.line("%s", line())
			}
			return a.guard()
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or github")
	cmd.Flags().StringSliceVar(&a.ignored, "ignore", nil, "findings to leave out, each a CODE or POLICY:CODE")
	a.failOnFlag(cmd.Flags())
	cmd.Flags().Lookup("fail-on").DefValue = "warning"
	a.policyFlags(cmd.Flags())
	a.settingFlags(cmd.Flags())
	a.fleetFlags(cmd.Flags())
	a.seedFlags(cmd.Flags())
	return cmd
}

// linted returns the findings about a policy, and if there is a fleet its verdict.
func (a *app) linted(n named) ([]finding, error) {
	if !a.hasFleet() || n.policy.Validate() != nil {
		return a.findings(n), nil
	}
	q := a.question(n)
	v, err := a.judge(n.name, q)
	if err != nil {
		return nil, err
	}
	findings, _, err := a.advised(n, q, v)
	return append(findings, a.report(n, lost(&v))...), err
}
