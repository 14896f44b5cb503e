package cli

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retrygo/retry/cmd/retryplan/internal/literal"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// textFlag is a flag of a type that reads and writes itself as text.
type textFlag struct {
	to interface {
		encoding.TextUnmarshaler
		encoding.TextMarshaler
	}
	kind string
	// unset is the text of the flag if it is not given. Help does not show it.
	unset string
}

func (f *textFlag) Set(text string) error { return f.to.UnmarshalText([]byte(text)) }
func (f *textFlag) Type() string          { return f.kind }
func (f *textFlag) String() string {
	if f.to == nil {
		return ""
	}
	text, err := f.to.MarshalText()
	if err != nil || string(text) == f.unset {
		return ""
	}
	return string(text)
}

// durationVar adds a flag of a duration. Its default is zero.
func durationVar(flags *pflag.FlagSet, to *wire.Duration, name, usage string) {
	flags.Var(&textFlag{to: to, kind: "duration", unset: "0s"}, name, usage)
}

// distVar adds a flag of a distribution. Its default is the zero distribution.
func distVar(flags *pflag.FlagSet, to *retryplan.Dist, name, usage string) {
	flags.Var(&textFlag{to: to, kind: "distribution", unset: "0s"}, name, usage)
}

// funcFlag is a flag that a function reads, each time that it is given.
type funcFlag struct {
	set  func(text string) error
	kind string
	all  []string
}

func (f *funcFlag) Set(text string) error {
	f.all = append(f.all, text)
	return f.set(text)
}
func (f *funcFlag) Type() string   { return f.kind }
func (f *funcFlag) String() string { return strings.Join(f.all, ", ") }

// failureVar adds the flag of the probabilities that attempts fail.
func failureVar(flags *pflag.FlagSet, to *[]float64, unset string) {
	given := false
	flags.Var(&funcFlag{set: func(text string) error {
		if !given {
			*to, given = nil, true
		}
		for one := range strings.SplitSeq(text, ",") {
			p, err := strconv.ParseFloat(strings.TrimSpace(one), 64)
			if err != nil {
				return err
			}
			*to = append(*to, p)
		}
		return nil
	}, kind: "numbers"}, "failure", "probability that an attempt fails: one, or one for each attempt (default "+unset+")")
}

// settingFlags adds the flags that describe the setting in which a policy is used.
func settingFlags(flags *pflag.FlagSet, s *wire.Setting) {
	flags.BoolVar(&s.Inline, "inline", false, "a caller waits for the run, as in a request handler")
	durationVar(flags, &s.Deadline, "deadline", "the caller's deadline, from the start of the run")
	flags.IntVar(&s.Layers, "layers", 0, "how many services on the way retry with this policy, this one included")
	flags.IntVar(&s.Clients, "clients", 0, "how many clients use the policy against one backend")
	distVar(flags, &s.Duration, "duration", "how long an attempt takes")
}

// checkSetting refuses a setting that cannot exist.
func checkSetting(s wire.Setting) error {
	var bad []error
	if s.Deadline < 0 {
		bad = append(bad, fmt.Errorf("--deadline %v is negative", s.Deadline))
	}
	if s.Layers < 0 {
		bad = append(bad, fmt.Errorf("--layers %d is negative", s.Layers))
	}
	if s.Clients < 0 {
		bad = append(bad, fmt.Errorf("--clients %d is negative", s.Clients))
	}
	return asMisuse(bad)
}

// checked returns the errors that there are as one of the command line.
func checked(errs ...error) error { return asMisuse(errs) }

func asMisuse(errs []error) error {
	if err := errors.Join(errs...); err != nil {
		return &misuse{err}
	}
	return nil
}

// budgetFlags add --budget and its details. What is chosen is in the returned function, nil for none.
func budgetFlags(flags *pflag.FlagSet) func(*cobra.Command) (*wire.Budget, error) {
	var b wire.Budget
	var on bool
	flags.BoolVar(&on, "budget", false, "give each client a retry budget; the details below do as well")
	flags.Float64Var(&b.Ratio, "budget-ratio", 0, "tokens that a success adds (default 0.1)")
	flags.IntVar(&b.Burst, "budget-burst", 0, "tokens at most (default 10)")
	flags.IntVar(&b.Initial, "budget-initial", 0, "tokens at first, -1 for none (default 1)")
	durationVar(flags, &b.Trickle, "budget-trickle", "grant an empty budget a token each such period")
	return func(cmd *cobra.Command) (*wire.Budget, error) {
		if err := checkBudget(cmd, b); err != nil || !given(cmd, &on, "budget") {
			return nil, err
		}
		return &b, nil
	}
}

// checkBudget refuses values that retry.BudgetConfig would silently replace.
func checkBudget(cmd *cobra.Command, b wire.Budget) error {
	const most = 1_000_000_000
	var bad []error
	if math.IsNaN(b.Ratio) || math.IsInf(b.Ratio, 0) {
		bad = append(bad, fmt.Errorf("--budget-ratio %v is not a finite number", b.Ratio))
	}
	if cmd.Flags().Changed("budget-burst") && (b.Burst < 1 || b.Burst > most) {
		bad = append(bad, fmt.Errorf("--budget-burst %d is outside [1,%d]", b.Burst, most))
	}
	if b.Initial < -1 {
		bad = append(bad, fmt.Errorf("--budget-initial %d is below -1, which means none", b.Initial))
	}
	if b.Trickle < 0 {
		bad = append(bad, fmt.Errorf("--budget-trickle %v is negative", b.Trickle))
	}
	return asMisuse(bad)
}

// given reports whether a feature is on: its flag says so, or is not given and one of its details is.
func given(cmd *cobra.Command, on *bool, prefix string) bool {
	if cmd.Flags().Changed(prefix) {
		return *on
	}
	any := false
	cmd.Flags().Visit(func(f *pflag.Flag) { any = any || strings.HasPrefix(f.Name, prefix+"-") })
	return any
}

// fleetFlags are the flags of a fleet.
type fleetFlags struct {
	fleet  wire.Fleet
	budget func(*cobra.Command) (*wire.Budget, error)
	measured
	attempt retryplan.Dist // how long one takes, if that was measured
}

func (f *fleetFlags) add(flags *pflag.FlagSet) {
	flags.Float64Var(&f.fleet.Rate, "rate", 0, "runs a second that the fleet begins")
	flags.Float64Var(&f.fleet.Capacity, "capacity", 0, "attempts a second that the backend completes")
	flags.IntVar(&f.fleet.Workers, "workers", 0, "how many of them it works on at the same time (default 1)")
	f.measured.add(flags)
	f.budget = budgetFlags(flags)
	flags.BoolVar(&f.fleet.Shared, "shared", false, "all clients share one budget")
	f.fleet.Trigger = wire.Trigger{Kind: "stall", For: wire.Duration(10 * time.Second)}
	flags.Var(&triggerFlag{&f.fleet.Trigger}, "trigger", `the trouble to survive: "stall 10s", "outage 5m", "failing 5m 0.5", "slowdown 10s 3", "capacity_cut 10s 0.5", "surge 10s 3" or none`)
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

// get returns the fleet, which needs a rate and a capacity.
func (f *fleetFlags) get(a *app, cmd *cobra.Command) (retryplan.Fleet, error) {
	traffic, err := f.measured.read(a, cmd)
	if err != nil {
		return retryplan.Fleet{}, err
	}
	if traffic != nil {
		f.attempt = traffic.Duration
		f.fleet.Rate = unlessGiven(cmd, "rate", f.fleet.Rate, traffic.Rate())
		f.fleet.Failure = unlessGiven(cmd, "failure-rate", f.fleet.Failure, traffic.Failure())
		// As many workers as do --capacity attempts a second if each takes as long as was measured.
		f.fleet.Workers = unlessGiven(cmd, "workers", f.fleet.Workers, max(1, int(math.Round(f.fleet.Capacity*traffic.Mean.Seconds()))))
	}
	for _, name := range []string{"rate", "capacity"} {
		if !cmd.Flags().Changed(name) && (traffic == nil || name != "rate") {
			return retryplan.Fleet{}, misusef("--%s is required: a fleet is --rate runs a second against a backend of --capacity attempts a second", name)
		}
	}
	if f.fleet.Budget, err = f.budget(cmd); err != nil {
		return retryplan.Fleet{}, err
	}
	if f.fleet.Shared && f.fleet.Budget == nil {
		return retryplan.Fleet{}, misusef("--shared shares a budget, and there is none: give --budget as well")
	}
	return f.fleet.Fleet()
}

// given reports whether any flag is given that is the fleet's alone.
func (f *fleetFlags) given(cmd *cobra.Command) bool {
	for _, name := range []string{"rate", "from", "capacity", "workers", "failure-rate", "budget", "budget-ratio", "budget-burst", "budget-initial", "budget-trickle", "shared", "trigger"} {
		if cmd.Flags().Changed(name) {
			return true
		}
	}
	return false
}

// triggerFlag is one trigger without its place in time.
type triggerFlag struct{ to *wire.Trigger }

func (f *triggerFlag) Set(text string) (err error) {
	if text == "none" {
		*f.to = wire.Trigger{}
		return nil
	}
	*f.to, err = wire.ParseLasting(text)
	return err
}
func (f *triggerFlag) Type() string { return "trigger" }
func (f *triggerFlag) String() string {
	if f.to == nil || f.to.Kind == "" {
		return ""
	}
	return f.to.Lasting()
}

// flagOf returns the flag behind a field of retryplan, or the field itself if it has no flag: "--rate" for
// "Scenario.Arrivals.Rate", "--trigger 2: From" for "Scenario.Triggers[1].From", "layer 2: --capacity" for
// "Chain.Layers[1].Capacity".
func flagOf(field string) string {
	name := field
	if rest, ok := strings.CutPrefix(field, "Chain.Layers["); ok { // of one layer
		if index, of, ok := strings.Cut(rest, "]."); ok {
			n, _ := strconv.Atoi(index)
			of = flagOf(of)
			if !strings.HasPrefix(of, "-") { // a field of Layer itself
				of = "--" + strings.ReplaceAll(strings.ToLower(of), ".", "-")
			}
			return fmt.Sprintf("layer %d: %s", n+1, of)
		}
	}
	if of, ok := strings.CutPrefix(field, "Policy."); ok {
		of, _, _ = strings.Cut(of, "[")
		if flag, ok := policyFlagNames[of]; ok {
			return "--" + flag
		}
	}
	for _, prefix := range []string{"Scenario.", "Requirements.", "Fleet.", "Chain."} {
		if rest := strings.TrimPrefix(name, prefix); strings.ContainsAny(rest, ".[") {
			name = rest
		}
	}
	if rest, ok := strings.CutPrefix(name, "Trigger"); ok {
		index, of, _ := strings.Cut(strings.TrimPrefix(rest, "s"), ".")
		if n, err := strconv.Atoi(strings.Trim(index, "[]")); err == nil {
			return fmt.Sprintf("--trigger %d: %s", n+1, strings.ToLower(of))
		}
		return strings.TrimSuffix("--trigger: "+strings.ToLower(of), ": ")
	}
	plain, _, _ := strings.Cut(name, "[")
	if flag, ok := flagNames[plain]; ok {
		return "--" + flag
	}
	return field
}

// flagNames has the fields whose flags have other names than in lower case with hyphens.
var flagNames = map[string]string{
	"Model.Failure": "failure", "Model.Duration": "duration", "Model.Deadline": "deadline", "Model.Horizon": "horizon",
	"Scenario.Deadline": "deadline", "Scenario.Clients": "clients", "Scenario.Network": "network", "Scenario.Duration": "duration",
	"Scenario.Step": "step", "Arrivals.Rate": "rate", "Arrivals.Think": "think", "Arrivals.Closed": "closed", "Arrivals.AtOnce": "at-once",
	"Server.Workers": "workers", "Server.Service": "service", "Server.Crowding": "crowding", "Server.Queue": "queue", "Server.Shed": "shed",
	"Server.FailureRate": "failure-rate", "Server.RateLimit": "rate-limit", "Server.RateWindow": "rate-window",
	"Server.RetryAfter": "retry-after", "Server.Conflict": "conflict", "Server.LIFO": "lifo", "Breaker.Failures": "breaker-failures", "Breaker.MinSamples": "breaker-samples",
	"Breaker.Window": "breaker-window", "Breaker.Open": "breaker-open", "Breaker.Probes": "breaker-probes",
	"Chain.Layers": "layers", "Chain.Rate": "rate", "Chain.Deadline": "deadline",
	"Fleet.Rate": "rate", "Fleet.Capacity": "capacity", "Fleet.Workers": "workers", "Fleet.Clients": "clients", "Fleet.Deadline": "deadline", "Fleet.Failure": "failure-rate",
	"Requirements.Failure": "failure", "Requirements.Duration": "duration", "Requirements.Outage": "outage", "Requirements.Success": "success",
	"Requirements.P99": "p99", "Requirements.WorstCase": "worst-case", "Requirements.Load": "load",
}

// policyFlagNames has the flags of the fields of a policy.
var policyFlagNames = map[string]string{
	"MaxAttempts": "attempts", "Mode": "mode", "Base": "base", "Factor": "factor", "Cap": "cap", "Delays": "delays", "Jitter": "jitter",
	"JitterRatio": "jitter-ratio", "AttemptTimeout": "attempt-timeout", "TTL": "ttl", "MaxHint": "max-hint",
	"ResetAfter": "reset-after", "Disabled": "disabled",
}

// ruleNames has what the rules of retryplan name that has another name here.
var ruleNames = map[string]string{
	"Rate": "--rate", "Arrivals.Rate": "--rate", "Closed": "--closed", "AtOnce": "--at-once", "Workers": "--workers", "RateLimit": "--rate-limit",
	"RetryAfter": "--retry-after", "Server.Conflict": "--conflict", "Duration": "--duration", "Unlimited": "unlimited", "Fleet.Budget": "--budget",
	"Stall": "stall", "Outage": "outage", "Slowdown": "slowdown", "CapacityCut": "capacity_cut", "Surge": "surge", "Failing": "failing",
	"Exponential": "exponential", "Linear": "linear", "Fixed": "fixed", "List": "list",
}

var goName = regexp.MustCompile(`\b[A-Z][A-Za-z]+(?:\.[A-Z][A-Za-z]+)?\b`)

// ruleOf returns a rule in terms of flags, with durations as this command writes them.
func ruleOf(rule string) string {
	rule = strings.Replace(rule, "a field other than", "a flag of the server other than", 1)
	return literal.Compact(goName.ReplaceAllStringFunc(rule, func(name string) string {
		if flag, ok := ruleNames[name]; ok {
			return flag
		}
		if flag, ok := policyFlagNames[name]; ok {
			return "--" + flag
		}
		return name
	}))
}

// asFlag describes a bad field by its flag.
func asFlag(f wire.Field) string {
	switch {
	case f.Field == "Scenario.Arrivals": // --rate is given, as scenario sees to, and zero is none
		return "--rate 0 is not above 0"
	case f.Rule == "is required":
		return flagOf(f.Field) + " " + literal.Compact(f.Value) + " is not above 0"
	case f.Value == "(set)" || f.Value == "true":
		return flagOf(f.Field) + " " + ruleOf(f.Rule)
	}
	return flagOf(f.Field) + " " + literal.Compact(f.Value) + " " + ruleOf(f.Rule)
}

var rawError = regexp.MustCompile(`strconv\.Parse(\w+): parsing ("(?:[^"\\]|\\.)*"): (invalid syntax|value out of range)`)

// flagError returns an error of pflag without the names of Go's functions.
func flagError(err error) error {
	text := rawError.ReplaceAllStringFunc(err.Error(), func(raw string) string {
		m := rawError.FindStringSubmatch(raw)
		kind, value := m[1], m[2]
		switch {
		case m[3] == "value out of range":
			return value + " is out of range"
		case kind == "Bool":
			return value + " is neither true nor false"
		case kind == "Float":
			return value + " is not a number"
		case kind == "Uint":
			return value + " is not a whole number of 0 or more"
		}
		return value + " is not a whole number"
	})
	return &misuse{errors.New(text)}
}
