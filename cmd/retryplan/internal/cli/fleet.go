package cli

import (
	"math"

	"github.com/spf13/pflag"

	"github.com/retrygo/retry/retryplan"
)

// fleetFlags are the flags of a fleet.
type fleetFlags struct {
	fleet retryplan.Fleet
	budgetFlags
	measured
	attempt retryplan.Dist // how long one takes, if that was measured
}

func (f *fleetFlags) add(flags *pflag.FlagSet) {
	flags.Float64Var(&f.fleet.Rate, "rate", 0, "runs a second that the fleet begins")
	flags.Float64Var(&f.fleet.Capacity, "capacity", 0, "attempts a second that the backend completes")
	flags.IntVar(&f.fleet.Workers, "workers", 0, "how many of them it works on at the same time (default 1)")
	f.measured.add(flags)
	f.budgetFlags.add(flags)
	flags.BoolVar(&f.fleet.Shared, "shared", false, "all clients share one budget")
	lastingVar(flags, &f.fleet.Trigger, `the trouble to survive: "stall 10s", "outage 5m", "failing 5m 0.5", "slowdown 10s 3", "capacity_cut 10s 0.5", "surge 10s 3" or none`)
}

// addFailure adds the flag of the calm, which solve has by another name.
func (f *fleetFlags) addFailure(flags *pflag.FlagSet) {
	flags.Float64Var(&f.fleet.Failure, "failure-rate", 0, "probability that an attempt fails which the backend has worked on, in the calm as well")
}

// addClients adds the flags of a fleet that are flags of a setting as well.
func (f *fleetFlags) addClients(flags *pflag.FlagSet) {
	flags.IntVar(&f.fleet.Clients, "clients", 0, "how many clients there are (default 1)")
	durationVar(flags, &f.fleet.Deadline, "deadline", "the callers' deadline, from the start of each run")
}

// given reports whether any flag is given that is the fleet's alone.
func (f *fleetFlags) given(a *app) bool {
	return a.given("rate", "from", "capacity", "workers", "failure-rate", "shared", "trigger") || a.wanted("budget", a.given("budget"))
}

// complete makes the fleet that the flags describe, which needs a rate and a capacity.
func (f *fleetFlags) complete(a *app) error {
	traffic, err := f.measured.read(a)
	if err != nil {
		return err
	}
	for _, name := range []string{"rate", "capacity"} {
		if !a.given(name) && (traffic == nil || name != "rate") {
			return misusef("--%s is required: a fleet is --rate runs a second against a backend of --capacity attempts a second", name)
		}
	}
	if traffic != nil {
		f.attempt = traffic.Duration
		set(!a.given("rate"), &f.fleet.Rate, traffic.Rate())
		set(!a.given("failure-rate"), &f.fleet.Failure, traffic.Failure())
		// As many workers as do --capacity attempts a second if each takes as long as was measured.
		set(!a.given("workers"), &f.fleet.Workers, max(1, int(math.Round(f.fleet.Capacity*traffic.Mean.Seconds()))))
	}
	if f.fleet.Budget, err = f.budgetFlags.get(a); err != nil {
		return err
	}
	if f.fleet.Shared && f.fleet.Budget == nil {
		return misusef("--shared shares a budget, and there is none: give --budget as well")
	}
	return nil
}
