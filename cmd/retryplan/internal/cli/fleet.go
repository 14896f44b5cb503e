package cli

import (
	"cmp"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/retrygo/retry/cmd/retryplan/internal/fit"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryplan"
)

// backendFlags adds the flags of the runs that begin, of the backend, and of the trouble that it has.
func (a *app) backendFlags(flags *pflag.FlagSet) {
	f := &a.fleet
	flags.Float64Var(&f.Rate, "rate", 0, "runs that begin in a second")
	flags.Float64Var(&f.Capacity, "capacity", 0, "attempts that the backend completes in a second")
	flags.IntVar(&f.Workers, "workers", 0, "number of attempts that it works on at the same time (default 1)")
	f.Trigger = retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second}
	flags.Var(&funcFlag{"trigger", func(text string) (err error) {
		f.Trigger, err = say.ParseTrigger(text)
		return err
	}}, "trigger", `trouble to survive: "stall 10s", "outage 5m", "failing 5m 0.5", "slowdown 10s 3", "capacity_cut 10s 0.5", "surge 10s 3" or none`)
	flags.Lookup("trigger").DefValue = say.Trigger(f.Trigger)
	a.budgetFlags(flags)
}

// fleetFlags adds the flags of a fleet, but for those of its callers.
func (a *app) fleetFlags(flags *pflag.FlagSet) {
	a.backendFlags(flags)
	a.measuredFlags(flags)
	flags.BoolVar(&a.shared, "shared", false, "let all clients share one budget")
	flags.Float64Var(&a.fleet.Failure, "failure-rate", 0, "probability that an attempt fails after the backend has worked on it")
	a.hedgeFlags(flags)
}

// hasFleet reports whether a flag is given that only a fleet has.
func (a *app) hasFleet() bool {
	return a.given("rate", "from", "capacity", "workers", "failure-rate", "shared", "trigger")
}

// measuredFlags adds the flags of metrics.
func (a *app) measuredFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&a.from, "from", nil, "read rate, failure rate and duration from this `file` of metrics, FILE or NAME@FILE; two are two scrapes")
	flags.DurationVar(&a.over, "over", 0, "time over which the counters of --from count")
}

// measure prints the traffic that --from measured, and uses it in place of the flags that are not given.
func (a *app) measure() error {
	policy := ""
	var files [][]byte
	for _, file := range a.from {
		if name, rest, ok := strings.Cut(file, "@"); ok {
			policy, file = name, rest
		}
		data, err := readFile(file, maxMetrics)
		if err != nil {
			return err
		}
		files = append(files, data)
	}
	from := strings.Join(a.from, " and ")
	switch {
	case len(files) == 0 && a.given("over"):
		return misusef("--over is about --from, which is missing")
	case len(files) == 0:
		return nil
	case a.over <= 0:
		return misusef("--from %s does not say over what time it counts: give --over, or two scrapes and the time between them", from)
	}
	traffic, err := fit.Read(policy, a.over, files...)
	if err != nil {
		return misusef("--from %s: %w", from, err)
	}
	a.remark("from %s: %v", from, traffic)
	set(!a.given("rate"), &a.fleet.Rate, traffic.Rate())
	set(!a.given("failure-rate"), &a.fleet.Failure, traffic.Failure())
	a.setting.Duration = cmp.Or(a.setting.Duration, traffic.Duration)
	return nil
}
