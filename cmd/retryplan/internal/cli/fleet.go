package cli

import (
	"errors"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/retrygo/retry/cmd/retryplan/internal/fit"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
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

// measured are the flags of metrics that say what a service does.
type measured struct {
	from []string
	over time.Duration
}

func (m *measured) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&m.from, "from", nil, "read rate, failure rate and duration from this `file` of metrics: FILE or NAME@FILE; two are two scrapes")
	durationVar(flags, &m.over, "over", "the time over which the counters of --from count")
}

// read returns the measured traffic, or nil if --from is not given, and prints it.
func (m *measured) read(a *app) (*fit.Traffic, error) {
	if len(m.from) == 0 {
		if a.given("over") {
			return nil, misusef("--over is the time of --from, which is missing")
		}
		return nil, nil
	}
	policy := ""
	var files [][]byte
	for _, file := range m.from {
		if name, rest, ok := strings.Cut(file, "@"); ok {
			policy, file = name, rest
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		files = append(files, data)
	}
	traffic, err := fit.Read(policy, m.over, files...)
	if errors.Is(err, fit.ErrTime) {
		return nil, misusef("--from %s does not say over what time it counts: give --over, or two scrapes and the time between them", m.from[0])
	}
	if err != nil {
		return nil, misusef("--from %s: %w", m.from[len(m.from)-1], err)
	}
	a.remark("from %s: %v", strings.Join(m.from, " and "), traffic)
	return &traffic, nil
}

// mix makes one fleet of several policies.
type mix struct{ shares []float64 }

func (m *mix) add(flags *pflag.FlagSet) {
	flags.Float64SliceVar(&m.shares, "mix", nil, "make one fleet of the policies: the share of its runs that follows each")
}

// of returns the policies that fleets follow first, and those that others of the same fleet follow.
func (m *mix) of(found []named) (first []named, others []retryplan.Population, err error) {
	if m.shares == nil {
		return found, nil, nil
	}
	if len(m.shares) != len(found) || len(found) < 2 {
		return nil, nil, misusef("--mix has %s, and there is %s", plural(len(m.shares), "share"), plural(len(found), "policy"))
	}
	sum := 0.0
	for i, share := range m.shares {
		sum += share
		if !(share > 0 && share < 1) {
			return nil, nil, misusef("--mix %v is outside (0,1)", share)
		}
		found[i].share = share
		if i > 0 {
			others = append(others, retryplan.Population{Policy: found[i].policy, Share: share})
		}
	}
	if !(math.Abs(sum-1) < 1e-6) {
		return nil, nil, misusef("--mix has shares that add up to %s, not to 1", say.Number(sum))
	}
	first = found[:1:1]
	first[0].others = found[1:]
	return first, others, nil
}

// all returns the policies of a fleet.
func (n named) all() []named { return append([]named{n}, n.others...) }
