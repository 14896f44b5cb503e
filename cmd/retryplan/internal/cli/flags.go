package cli

import (
	"encoding"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryplan"
)

// inputs are the values of flags. A flag means the same in every command that has it.
type inputs struct {
	spec    retryconf.Spec // the fields of policies that flags replace
	setting retryplan.Setting
	model   retryplan.Model
	fleet   retryplan.Fleet
	budget  retry.BudgetConfig
	ignored []string // CODE or POLICY:CODE
	from    []string
	over    time.Duration
	seed    uint64
	seeds   int
	limit   time.Duration // of a verdict; zero means none
	shared  bool
	failOn  retryplan.Level // zero means that no finding fails
}

// funcFlag is a flag that a function reads.
type funcFlag struct {
	kind string
	set  func(text string) error
}

func (f *funcFlag) Set(text string) error { return f.set(text) }
func (f *funcFlag) Type() string          { return f.kind }
func (f *funcFlag) String() string        { return "" }

// textVar adds a flag of a type that reads itself from text.
func textVar(flags *pflag.FlagSet, to encoding.TextUnmarshaler, kind, name, usage string) {
	flags.Var(&funcFlag{kind, func(text string) error { return to.UnmarshalText([]byte(text)) }}, name, usage)
}

// callerFlags adds the flags of the clients that make runs.
func (a *app) callerFlags(flags *pflag.FlagSet) {
	flags.IntVar(&a.setting.Clients, "clients", 0, "number of clients that use the policy against one backend (default 1)")
	flags.DurationVar(&a.setting.Deadline, "deadline", 0, "deadline of the caller, from the start of each run")
}

// settingFlags adds the flags of the setting in which a policy is used.
func (a *app) settingFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&a.setting.Inline, "inline", false, "a caller waits for the run, as in a request handler")
	a.callerFlags(flags)
	textVar(flags, &a.setting.Duration, "distribution", "duration", "how long an attempt takes")
}

// failureFlag adds the flag of how attempts fail, with its default in words.
func (a *app) failureFlag(flags *pflag.FlagSet, otherwise string) {
	flags.Float64SliceVar(&a.model.Failure, "failure", nil, "`probability` that an attempt fails, or one for each attempt (default "+otherwise+")")
	flags.Lookup("failure").DefValue = "" // or help would show an empty list
}

func (a *app) budgetFlags(flags *pflag.FlagSet) {
	flags.Bool("budget", false, "give each client a retry budget; implied by the following flags")
	flags.Float64Var(&a.budget.Ratio, "budget-ratio", 0, "tokens that a success adds (default 0.1)")
	flags.IntVar(&a.budget.Burst, "budget-burst", 0, "largest number of tokens (default 10)")
	flags.DurationVar(&a.budget.Trickle, "budget-trickle", 0, "period after which an empty budget is granted a token")
}

// hedgeFlags adds the flags of second calls beside slow ones.
func (a *app) hedgeFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&a.fleet.Hedge.Delay, "hedge-delay", 0, "make a second call beside an attempt that takes longer; the budget pays for it")
	flags.Float64Var(&a.fleet.Hedge.Share, "hedge-share", 0, "make one beside this share of the attempts, such as 0.05: the delay is tracked")
}

func (a *app) failOnFlag(flags *pflag.FlagSet) {
	flags.Var(&funcFlag{"level", func(text string) (err error) {
		if a.failOn = 0; text != "none" {
			a.failOn, err = say.Parse(retryplan.Note, retryplan.Severe, text)
		}
		return err
	}}, "fail-on", "exit with status 1 for findings of this level or above: none, note, warning or severe")
}

// checkIgnored refuses a code that no finding has.
func (a *app) checkIgnored() error {
	for _, which := range a.ignored {
		code := which[strings.LastIndex(which, ":")+1:]
		if !slices.Contains(append(retryplan.Codes(), lostCode), code) {
			return misusef("--ignore: there is no finding %q", code)
		}
	}
	return nil
}

// seedFlags adds the flags of verdicts.
func (a *app) seedFlags(flags *pflag.FlagSet) {
	flags.IntVar(&a.seeds, "seeds", 20, "number of seeds to simulate")
	flags.Uint64Var(&a.seed, "seed", 1, "the first of them")
	flags.DurationVar(&a.limit, "limit", 0, "time after which a verdict is that of the seeds that are done (default none)")
}

// settle combines the flags into the values that the commands use.
func (a *app) settle() error {
	if err := a.checkIgnored(); err != nil {
		return err
	}
	for _, name := range []string{"clients", "deadline", "layers", "budget-ratio", "budget-burst"} { // zero is the default
		if f := a.flags.Lookup(name); f != nil && strings.HasPrefix(f.Value.String(), "-") {
			return misusef("--%s %v is negative", name, f.Value)
		}
	}
	if flag := a.flags.Lookup("budget"); flag != nil {
		wanted := flag.Value.String() == "true"
		if !flag.Changed { // the flags of its details imply one
			a.flags.Visit(func(f *pflag.Flag) { wanted = wanted || strings.HasPrefix(f.Name, "budget-") })
		}
		set(wanted, &a.fleet.Budget, &a.budget)
	}
	a.fleet.Clients, a.fleet.Deadline = a.setting.Clients, a.setting.Deadline
	return a.measure()
}

// given reports whether one of the flags is given.
func (a *app) given(names ...string) bool { return slices.ContainsFunc(names, a.flags.Changed) }

// set assigns a value if it is meant.
func set[T any](meant bool, to *T, value T) {
	if meant {
		*to = value
	}
}
