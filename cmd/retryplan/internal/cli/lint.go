package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryplan"
)

func (a *app) lintCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "lint [POLICY]...",
		Short: "Print findings for CI, and fail on warnings",
		Long: `lint prints the findings of show, one on a line with the place in the document. With the flags of a fleet (--rate and
--capacity) the count of simulate is a finding too if seeds are lost, and a change is printed only if it was simulated and
is not worse. lint exits with status 1 if a finding is a warning or severe, or as --fail-on says. --format github prints
annotations for a pull request.

lint and simulate read .retryplan.yaml in the working directory, or else beside .git. It has flags of both and two more
keys: documents, relative to the file, and ignore, with the reason for each CODE or POLICY:CODE.`,
		Example: `  retryplan lint policies.yaml
  retryplan lint policies.json --fail-on severe --inline --deadline 5s
  retryplan lint --format github`,
		RunE: func(_ *cobra.Command, args []string) error {
			if !slices.Contains(completions["format"], format) {
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
				a.all = append(a.all, shown{Name: n.name, Policy: n.policy, Findings: findings})
			}
			switch {
			case a.json:
			case len(all) == 0 && format == "text":
				a.line("no findings")
			default:
				for _, f := range all {
					line := f.line
					set(format == "github", &line, f.annotation)
					a.line("%s", line())
				}
			}
			return a.finish()
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or github")
	a.configFlag(cmd.Flags())
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
