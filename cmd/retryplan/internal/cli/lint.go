package cli

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

func (a *app) lintCommand() *cobra.Command {
	var (
		flags   policyFlags
		setting retryplan.Setting
		fleet   fleetFlags
		guard   guard
		ignore  []string
		format  string
		file    string
	)
	cmd := &cobra.Command{
		Use:   "lint [POLICY]...",
		Short: "Guard policies in CI: print findings, fail on warnings",
		Long: `lint prints the findings of show, one for a line and with the place in the document, or that there are none. With the
flags of a fleet (--rate and --capacity) the verdict of certify is a finding, too, unless it is safe. It exits with status 1
if one is a warning or severe; --fail-on says otherwise. --format github makes annotations of a pull request, sarif a file
for code scanning.

What is meant to be can be ignored: by --ignore, by a comment in a YAML document, within the policy or before all of them,

  # retryplan:ignore no-jitter there is one client

or by .retryplan.yaml, the first in the directories from here upwards, which lint and certify read:

  documents: [config/policies.yaml]   # beside this file
  ignore:                             # CODE or POLICY:CODE, and why
    email:no-jitter: there is one client
  fail-on: severe                     # and so on: any flag of lint or certify
  rate: 70
  capacity: 100`,
		Example: `  retryplan lint policies.yaml
  retryplan lint policies.json --fail-on severe --inline --deadline 5s
  retryplan lint preset:standard policies.json --budget --ignore standard:no-jitter
  retryplan lint --format github`,
		RunE: func(cmd *cobra.Command, args []string) error {
			config, args, err := a.configure(cmd, file, args)
			if err != nil {
				return err
			}
			if formats[format] == nil {
				return misusef("--format %q is not one of %s", format, strings.Join(slices.Sorted(maps.Keys(formats)), ", "))
			}
			ignored := map[string]string{}
			maps.Copy(ignored, config.Ignore)
			for _, which := range ignore {
				if err := checkIgnored(which, "--ignore"); err != nil {
					return misusef("--ignore %q: %w", which, err)
				}
				ignored[which] = "--ignore"
			}
			if err := checkSetting(setting); err != nil {
				return err
			}
			found, err := a.policies(&flags, args)
			if err != nil {
				return err
			}
			f := &fleet.fleet
			f.Clients, f.Deadline = setting.Clients, setting.Deadline
			certify := a.given("rate", "capacity", "from")
			if certify {
				err = fleet.complete(a)
				setting.Duration = cmp.Or(setting.Duration, fleet.attempt)
			} else {
				f.Budget, err = fleet.budgetFlags.get(a)
			}
			if err != nil {
				return err
			}
			var all []reported
			quiet := true
			for _, n := range found {
				findings := retryplan.Lint(funded(n.policy, f.Budget), setting)
				if certify && n.policy.Validate() == nil {
					c, err := retryplan.Certify(n.policy, *f)
					if err != nil {
						return err
					}
					if c.Stability != retryplan.Safe {
						what, why := say.Stability(&c, *f)
						findings = append(findings, retryplan.Finding{Code: c.Stability.String(), Level: gravity[c.Stability], Text: what + " " + why})
					}
				}
				var kept []retryplan.Finding
				for _, found := range findings {
					r := reported{Finding: found, policy: n.name, file: n.file, line: n.lineOf(found)}
					r.reason = cmp.Or(n.ignored[r.Code], ignored[r.Code], ignored[n.name+":"+r.Code])
					all = append(all, r)
					if r.reason == "" {
						kept = append(kept, found)
					}
				}
				guard.findings(n.name, kept)
				quiet = quiet && len(kept) == 0
				data := shown{Name: n.name, Policy: wire.Policy(n.policy), Findings: wire.NewFindings(kept)}
				for i, f := range kept {
					data.Findings[i].File, data.Findings[i].Line = n.file, n.lineOf(f)
				}
				a.all = append(a.all, data)
			}
			switch {
			case a.json:
				err = a.finish()
			case quiet && format == "text":
				a.line("no findings in %s", plural(len(found), "policy"))
			default:
				err = formats[format](a, all)
			}
			return cmp.Or(err, guard.err())
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, github or sarif")
	configFlag(cmd.Flags(), &file)
	cmd.Flags().StringSliceVar(&ignore, "ignore", nil, "leave out findings of these codes, CODE or POLICY:CODE")
	guard.add(cmd.Flags(), "warning")
	flags.add(cmd.Flags())
	settingFlags(cmd.Flags(), &setting)
	fleet.add(cmd.Flags())
	fleet.addFailure(cmd.Flags())
	return cmd
}
