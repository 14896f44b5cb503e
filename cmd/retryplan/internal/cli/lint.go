package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

func (a *app) lintCommand() *cobra.Command {
	var (
		ignore []string
		format string
	)
	cmd := &cobra.Command{
		Use:   "lint [POLICY]...",
		Short: "Print findings for CI, and fail on warnings",
		Long: `lint prints the findings of show, one on a line with the place in the document. With the flags of a fleet (--rate and
--capacity) the verdict of certify is a finding too, unless it is safe. lint exits with status 1 if a finding is a
warning or severe, or as --fail-on says. --format github prints annotations for a pull request.

A finding can be ignored by --ignore, or by .retryplan.yaml, the first in the directories up to the repository's, which lint and certify read. It has the flags
of both and two more keys: documents, relative to the file, and ignore, with the reason for each CODE or POLICY:CODE.`,
		Example: `  retryplan lint policies.yaml
  retryplan lint policies.json --fail-on severe --inline --deadline 5s
  retryplan lint preset:standard policies.json --budget --ignore standard:no-jitter
  retryplan lint --format github`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ignored, args, err := a.configure(cmd, args)
			if err != nil {
				return err
			}
			if !slices.Contains([]string{"text", "github"}, format) {
				return misusef("--format %q is not one of text, github", format)
			}
			for _, which := range ignore {
				if err := checkIgnored(which, "--ignore"); err != nil {
					return misusef("--ignore %q: %w", which, err)
				}
				ignored[which] = "--ignore"
			}
			set(!a.given("fail-on"), &a.failOn, retryplan.Warning)
			found, err := a.policies(args)
			if err != nil {
				return err
			}
			if a.hasFleet() {
				if err := a.complete(); err != nil {
					return err
				}
			}
			var all []reported
			for _, n := range found {
				findings := a.findings(n.policy)
				if a.hasFleet() && n.policy.Validate() == nil {
					c, err := retryplan.Certify(n.policy, a.fleet)
					if err != nil {
						return err
					}
					if c.Stability != retryplan.Safe {
						what, why := say.Stability(&c, a.fleet)
						verdict := retryplan.Finding{Code: c.Stability.String(), Level: gravity[c.Stability], Text: what + " " + why}
						findings = append(findings, verdict)
					}
				}
				data := shown{Name: n.name, Policy: wire.Policy(n.policy), Findings: []wire.Finding{}}
				for i, f := range wire.NewFindings(findings) {
					f.File, f.Line = n.file, n.lineOf(findings[i])
					if ignored[f.Code] == "" && ignored[n.name+":"+f.Code] == "" {
						all, data.Findings = append(all, reported{f, n.name}), append(data.Findings, f)
						a.note(findings[i].Level, n.name+" "+f.Code)
					}
				}
				a.all = append(a.all, data)
			}
			switch {
			case a.json:
			case len(all) == 0 && format == "text":
				a.line("no findings")
			default:
				for _, r := range all {
					line := r.text
					set(format == "github", &line, r.annotation)
					a.line("%s", line())
				}
			}
			return a.finish(nil)
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or github")
	a.configFlag(cmd.Flags())
	cmd.Flags().StringSliceVar(&ignore, "ignore", nil, "leave out findings of these `codes`, CODE or POLICY:CODE")
	a.failOnFlag(cmd.Flags())
	cmd.Flags().Lookup("fail-on").DefValue = "warning"
	a.policyFlags(cmd.Flags())
	a.settingFlags(cmd.Flags())
	a.fleetFlags(cmd.Flags())
	a.failureRateFlag(cmd.Flags())
	return cmd
}
