package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/cmd/retryplan/internal/literal"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

func (a *app) solveCommand() *cobra.Command {
	var (
		required retryplan.Requirements
		fleet    fleetFlags
	)
	cmd := &cobra.Command{
		Use:   "solve",
		Short: "Find a policy that does what is required, or say which requirements conflict",
		Long: `solve finds a policy that meets every requirement that is given, checks it by plan, and prints it as Go and as JSON with
its plan. With the flags of a fleet, the policy's certificate must be safe or vulnerable, and a simulation is run as
well. It says which requirement binds. If no policy meets all, it says which two requirements conflict, and exits with
status 1.`,
		Example: `  retryplan solve --failure 0.1 --success 0.9999 --worst-case 10s --duration 50ms
  retryplan solve --failure 0.3 --success 0.99 --load 1.5 --p99 5s
  retryplan solve --failure 0.1 --success 0.999 --rate 70 --capacity 100 --deadline 2s --trigger "stall 10s"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("solve finds a policy and takes none: %q", args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			if !a.given("outage", "success", "p99", "worst-case", "load") && !fleet.given(a) {
				return misusef("nothing is required: give --success, --p99, --worst-case, --load, --outage or a fleet")
			}
			if fleet.given(a) || a.given("clients", "deadline") {
				if err := fleet.complete(a); err != nil {
					return err
				}
				required.Fleet = &fleet.fleet
			}
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
	textVar(flags, &required.Duration, "distribution", "duration", "how long an attempt takes")
	flags.Float64Var(&required.Success, "success", 0, "least probability that a run succeeds, in (0,1)")
	durationVar(flags, &required.P99, "p99", "the most that the 99th percentile of a run's time may be")
	durationVar(flags, &required.WorstCase, "worst-case", "the most that any run may take")
	flags.Float64Var(&required.Load, "load", 0, "the most attempts that a run may make on average")
	durationVar(flags, &required.Outage, "outage", "how long the backend may be gone so that a run still makes an attempt after it")
	fleet.add(flags)
	fleet.addClients(flags)
	return cmd
}

// solution prints a policy with its proof.
func (a *app) solution(s *retryplan.Solution, r *retryplan.Requirements) error {
	document, err := literal.Document(s.Policy)
	if err != nil {
		return err
	}
	a.title(named{name: "policy", policy: s.Policy})
	if s.Binding != "" {
		a.line("binding requirement: %s; to loosen it would allow a better policy", s.Binding)
	}
	a.line("\n%s", literal.Go(s.Policy))
	if s.Budget != nil {
		a.line("\nand one budget for each client, retry.NewBudget of\n%s", literal.Budget(*s.Budget))
	}
	a.line("\n%s", document)
	a.line("\nat a failure rate of %s", say.Percent(r.Failure))
	a.outlook(s.Plan, 0)
	if s.Certificate != nil {
		a.line("")
		fleet := *r.Fleet
		fleet.Budget = s.Budget
		a.certificate(s.Certificate, fleet)
	}
	if s.Simulation != nil {
		a.line("\nsimulated: %s", outcome(s.Simulation, r.Fleet))
	}
	return nil
}

// outcome returns what a simulation of a fleet came to in one line.
func outcome(r *retryplan.Result, f *retryplan.Fleet) string {
	text := fmt.Sprintf("%s attempts per run, %s of the runs failed", say.Number(r.Amplification), say.Percent(r.Failed))
	if f.Trigger.Kind == 0 {
		return text
	}
	return text + ", " + recovered(r, "recovery not known", "recovery after ", "no recovery in "+say.Span(r.Simulated))
}

// recovered says whether a fleet came back, which may be unknown, and after how long.
func recovered(r *retryplan.Result, unknown, after, not string) string {
	switch {
	case !r.Judged:
		return unknown
	case r.Recovered:
		return after + say.Span(r.Recovery)
	}
	return not
}
