package cli

import (
	"cmp"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/cmd/retryplan/internal/literal"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryplan"
)

func (a *app) solveCommand() *cobra.Command {
	var required retryplan.Requirements
	cmd := &cobra.Command{
		Use:   "solve",
		Short: "Find a policy that meets requirements, or say which requirements conflict",
		Long: `solve finds a policy that meets every requirement that is given, checks it by plan, and prints it as Go and as JSON
with its plan. With the flags of a fleet, the certificate must be safe or vulnerable, and a simulation is run as well.
solve says which requirement binds. If no policy meets all, it says which two requirements conflict, and exits with
status 1.`,
		Example: `  retryplan solve --failure 0.1 --success 0.9999 --worst-case 10s --duration 50ms
  retryplan solve --failure 0.3 --success 0.99 --load 1.5 --p99 5s
  retryplan solve --failure 0.1 --success 0.999 --rate 70 --capacity 100 --deadline 2s --trigger "stall 10s"`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if a.hasFleet() || a.budgetOf() != nil || a.given("clients", "deadline") {
				if err := a.complete(); err != nil {
					return err
				}
				required.Fleet = &a.fleet
			} else if !a.given("outage", "success", "p99", "worst-case", "load") {
				return misusef("nothing is required: give --success, --p99, --worst-case, --load, --outage or a fleet")
			}
			required.Duration = a.setting.Duration
			solution, err := retryplan.Solve(a.ctx, required)
			no, infeasible := errors.AsType[*retryplan.InfeasibleError](err)
			switch {
			case infeasible && a.json:
				return cmp.Or(a.printJSON(object{"infeasible": wire.JSON(*no)}), err)
			case err != nil:
				return err
			case a.json:
				return a.printJSON(wire.JSON(solution))
			}
			return a.solution(&solution, &required)
		},
	}
	flags := cmd.Flags()
	flags.Float64Var(&required.Failure, "failure", 0, "probability that an attempt fails, in [0,1)")
	textVar(flags, &a.setting.Duration, "distribution", "duration", "how long an attempt takes")
	flags.Float64Var(&required.Success, "success", 0, "least probability that a run succeeds, in (0,1)")
	flags.DurationVar(&required.P99, "p99", 0, "most that the 99th percentile of a run's time may be")
	flags.DurationVar(&required.WorstCase, "worst-case", 0, "most that any run may take")
	flags.Float64Var(&required.Load, "load", 0, "most attempts that a run may make on average")
	flags.DurationVar(&required.Outage, "outage", 0, "how long the backend may be gone so that a run still makes an attempt after it")
	a.fleetFlags(flags)
	a.callerFlags(flags)
	return cmd
}

// solution prints a policy with its proof.
func (a *app) solution(s *retryplan.Solution, r *retryplan.Requirements) error {
	spec, err := retryconf.FromPolicy(s.Policy)
	if err != nil {
		return err
	}
	document, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return err
	}
	a.title(named{name: "policy", policy: s.Policy})
	if s.Binding != "" {
		a.line("binding requirement: %s; loosening it would allow a better policy", s.Binding)
	}
	a.line("\n%s", literal.Go(s.Policy))
	if s.Budget != nil {
		a.line("\nand one budget for each client, retry.NewBudget of\n%s", literal.Budget(*s.Budget))
	}
	a.line("\n%s\n\nat a failure rate of %s", document, say.Percent(r.Failure))
	a.attempts(s.Plan, true)
	a.line("")
	a.printFacts(planFacts(s.Plan, 0))
	if s.Certificate != nil {
		fleet := *r.Fleet
		fleet.Budget = s.Budget
		a.line("\nthe certificate")
		a.printFacts(certificateFacts(s.Certificate, &fleet))
		a.line("\na simulation")
		a.printFacts(append(resultFacts(s.Simulation), fact{"recovery", recovery(s.Simulation), ""}))
	}
	return nil
}
