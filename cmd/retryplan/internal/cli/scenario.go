package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// scenarioFlags are the flags of a scenario.
type scenarioFlags struct {
	s retryplan.Scenario
	measured
	budgetFlags
	breaker retryplan.Breaker
	broken  bool
}

func (f *scenarioFlags) add(flags *pflag.FlagSet) {
	s := &f.s
	flags.IntVar(&s.Clients, "clients", 0, "how many clients there are (default 1)")
	flags.Float64Var(&s.Arrivals.Rate, "rate", 0, "open loop: the fleet begins so many runs a second")
	f.measured.add(flags)
	flags.BoolVar(&s.Arrivals.Closed, "closed", false, "closed loop: each client has one run at a time")
	textVar(flags, &s.Arrivals.Think, "distribution", "think", "closed loop: the pause before each run")
	flags.BoolVar(&s.Arrivals.AtOnce, "at-once", false, "every client begins one run, at the start")
	durationVar(flags, &s.Deadline, "deadline", "the callers' deadline, from the start of each run")

	textVar(flags, &s.Network, "distribution", "network", "the time of one hop between client and server")
	flags.IntVar(&s.Server.Workers, "workers", 0, "how many attempts the server works on at a time (default any number)")
	textVar(flags, &s.Server.Service, "distribution", "service", "how long it works on one")
	durationVar(flags, &s.Server.Crowding, "crowding", "added to that for each attempt that is being worked on")
	flags.IntVar(&s.Server.Queue, "queue", 0, "how many attempts may wait for a worker, -1 for none (default any number)")
	flags.BoolVar(&s.Server.LIFO, "lifo", false, "the newest waiting attempt goes first")
	flags.Var(&funcFlag{set: func(text string) (err error) {
		s.Server.Shed, err = wire.Parse(retryplan.ShedNothing, retryplan.ShedHopeless, text)
		return err
	}, kind: "string"}, "shed", "drop waiting attempts: nothing, expired or hopeless")
	flags.Float64Var(&s.Server.FailureRate, "failure-rate", 0, "probability that an attempt that was worked on fails")
	flags.IntVar(&s.Server.RateLimit, "rate-limit", 0, "accept so many attempts in each window, reject the rest")
	durationVar(flags, &s.Server.RateWindow, "rate-window", "the window of --rate-limit (default 1s)")
	textVar(flags, &s.Server.RetryAfter, "distribution", "retry-after", "the hint of a rejection")
	flags.BoolVar(&s.Server.Conflict, "conflict", false, "attempts read and then write one row; a write after another's fails")
	flags.Var(&funcFlag{set: func(text string) error {
		t, err := wire.ParseTrigger(text)
		s.Triggers = append(s.Triggers, t)
		return err
	}, kind: "trigger"}, "trigger", `"stall 60s 10s" and so on; can be given several times`)

	f.budgetFlags.add(flags)
	flags.BoolVar(&f.broken, "breaker", false, "put a circuit breaker before the attempts of each client; the details below do as well")
	flags.Float64Var(&f.breaker.Failures, "breaker-failures", 0, "share of failures that opens it (default 0.5)")
	flags.IntVar(&f.breaker.MinSamples, "breaker-samples", 0, "attempts that it needs to judge (default 20)")
	durationVar(flags, &f.breaker.Window, "breaker-window", "how far back it looks (default 10s)")
	durationVar(flags, &f.breaker.Open, "breaker-open", "how long it stays open (default 5s)")
	flags.IntVar(&f.breaker.Probes, "breaker-probes", 0, "attempts that it lets through then (default 5)")
	flags.BoolVar(&f.breaker.Defer, "breaker-defer", false, "attempts wait for it rather than fail")
	flags.BoolVar(&s.Shared, "shared", false, "all clients share one budget and breaker")

	s.Duration = 4 * time.Minute
	durationVar(flags, &s.Duration, "duration", "how long runs begin")
	flags.BoolVar(&s.Drain, "drain", false, "then go on until every run has ended")
	durationVar(flags, &s.Step, "step", "the interval of the time series (default 1s)")
	flags.Uint64Var(&s.Seed, "seed", 1, "chooses the random numbers")
}

// complete makes the scenario that the flags describe, without a policy.
func (f *scenarioFlags) complete(a *app) error {
	t, err := f.measured.read(a)
	if err != nil {
		return err
	}
	if t != nil {
		set(!a.given("rate"), &f.s.Arrivals.Rate, t.Rate())
		set(!a.given("failure-rate"), &f.s.Server.FailureRate, t.Failure())
		set(!a.given("service"), &f.s.Server.Service, t.Duration)
	}
	modes := 0
	for _, on := range []bool{a.given("rate") || t != nil, f.s.Arrivals.Closed, f.s.Arrivals.AtOnce} {
		if on {
			modes++
		}
	}
	if modes != 1 {
		return misusef("give one of --rate, --closed and --at-once: when do runs begin?")
	}
	if f.s.Budget, err = f.budgetFlags.get(a); err != nil {
		return err
	}
	if a.wanted("breaker", f.broken) {
		f.s.Breaker = &f.breaker
	}
	if f.s.Shared && f.s.Budget == nil && f.s.Breaker == nil {
		return misusef("--shared shares budget and breaker, and there is none: give --budget or --breaker as well")
	}
	return nil
}
