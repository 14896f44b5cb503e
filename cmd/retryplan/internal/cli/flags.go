package cli

import (
	"encoding"
	"errors"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// funcFlag is a flag that a function reads, each time that it is given.
type funcFlag struct {
	set  func(text string) error
	kind string
	text string // as it was given last, and at first its default; help does not show an empty one
}

func (f *funcFlag) Set(text string) error {
	f.text = text
	return f.set(text)
}
func (f *funcFlag) Type() string   { return f.kind }
func (f *funcFlag) String() string { return f.text }

// textVar adds a flag of a type that reads itself from text.
func textVar(flags *pflag.FlagSet, to encoding.TextUnmarshaler, kind, name, usage string) {
	flags.Var(&funcFlag{set: func(text string) error { return to.UnmarshalText([]byte(text)) }, kind: kind}, name, usage)
}

// durationVar adds a flag of a duration, which may be negative: the package that is asked refuses it.
func durationVar(flags *pflag.FlagSet, to *time.Duration, name, usage string) {
	textVar(flags, (*wire.Duration)(to), "duration", name, usage)
	if *to != 0 {
		flags.Lookup(name).DefValue = wire.Duration(*to).String()
	}
}

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

// lastingVar adds the flag of one trigger without its place in time.
func lastingVar(flags *pflag.FlagSet, to *retryplan.Trigger, usage string) {
	*to = retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second}
	flags.Var(&funcFlag{set: func(text string) (err error) {
		if text == "none" {
			*to = retryplan.Trigger{}
			return nil
		}
		*to, err = wire.ParseLasting(text)
		return err
	}, kind: "trigger", text: wire.Lasting(*to)}, "trigger", usage)
}

// settingFlags adds the flags that describe the setting in which a policy is used.
func settingFlags(flags *pflag.FlagSet, s *retryplan.Setting) {
	flags.BoolVar(&s.Inline, "inline", false, "a caller waits for the run, as in a request handler")
	durationVar(flags, &s.Deadline, "deadline", "the caller's deadline, from the start of the run")
	flags.IntVar(&s.Layers, "layers", 0, "how many services on the way retry with this policy, this one included")
	flags.IntVar(&s.Clients, "clients", 0, "how many clients use the policy against one backend")
	textVar(flags, &s.Duration, "distribution", "duration", "how long an attempt takes")
}

// checkSetting refuses what Lint takes for zero.
func checkSetting(s retryplan.Setting) error {
	var bad retry.FieldErrors
	refuse(&bad, s.Deadline < 0, "Setting.Deadline", s.Deadline, "is negative")
	refuse(&bad, s.Layers < 0, "Setting.Layers", s.Layers, "is negative")
	refuse(&bad, s.Clients < 0, "Setting.Clients", s.Clients, "is negative")
	return bad.Err()
}

// refuse adds a field to bad if it is.
func refuse(bad *retry.FieldErrors, is bool, field string, value any, rule string) {
	if is {
		bad.Add("", field, value, rule)
	}
}

// budgetFlags are --budget and its details.
type budgetFlags struct {
	retry.BudgetConfig
	on bool
}

func (f *budgetFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.on, "budget", false, "give each client a retry budget; the details below do as well")
	flags.Float64Var(&f.Ratio, "budget-ratio", 0, "tokens that a success adds (default 0.1)")
	flags.IntVar(&f.Burst, "budget-burst", 0, "tokens at most (default 10)")
	flags.IntVar(&f.Initial, "budget-initial", 0, "tokens at first, -1 for none (default 1)")
	durationVar(flags, &f.Trickle, "budget-trickle", "grant an empty budget a token each such period")
}

// get returns the budget, nil for none. It refuses values that retry.NewBudget would silently replace.
func (f *budgetFlags) get(a *app) (*retry.BudgetConfig, error) {
	var bad retry.FieldErrors
	refuse(&bad, math.IsNaN(f.Ratio) || math.IsInf(f.Ratio, 0), "Budget.Ratio", f.Ratio, "is not a finite number")
	refuse(&bad, a.given("budget-burst") && (f.Burst < 1 || f.Burst > 1_000_000_000), "Budget.Burst", f.Burst, "is outside [1,1000000000]")
	refuse(&bad, f.Initial < -1, "Budget.Initial", f.Initial, "is below -1, which means none")
	refuse(&bad, f.Trickle < 0, "Budget.Trickle", f.Trickle, "is negative")
	if err := bad.Err(); err != nil || !a.wanted("budget", f.on) {
		return nil, err
	}
	return &f.BudgetConfig, nil
}

// given reports whether one of the flags is given.
func (a *app) given(names ...string) bool { return slices.ContainsFunc(names, a.flags.Changed) }

// set sets what a flag or a measurement says, if it is the one that counts.
func set[T any](meant bool, to *T, value T) {
	if meant {
		*to = value
	}
}

// wanted reports whether a feature is on: its flag says so, or is not given and one of its details is.
func (a *app) wanted(feature string, on bool) bool {
	if a.given(feature) {
		return on
	}
	a.flags.Visit(func(f *pflag.Flag) { on = on || strings.HasPrefix(f.Name, feature+"-") })
	return on
}

// blame returns the error of a command. If it names fields it becomes a misuse of the command line, since all fields
// come from flags, but for those of documents.
func (a *app) blame(err error) error {
	fields := wire.Fields(err)
	if len(fields) == 0 || fields[0].Package == "retryconf" {
		return err
	}
	var lines []error
	for _, f := range fields {
		lines = append(lines, errors.New(a.asFlag(f)))
	}
	return &misuse{errors.Join(lines...)}
}

// asFlag describes a bad field by its flag.
func (a *app) asFlag(f *retry.FieldError) string {
	flag := a.flagOf(f.Field)
	rule := strings.Replace(f.Rule, "a field other than", "a flag of the server other than", 1)
	rule = goName.ReplaceAllStringFunc(rule, func(name string) string {
		if strings.Contains(values, " "+name+" ") {
			return wire.Snake(name)
		}
		return a.flagOf(name)
	})
	switch {
	case f.Field == "Scenario.Arrivals" && f.Value == "(none)" && a.given("rate"):
		return "--rate 0 is not above 0"
	case f.Field == "Scenario.Arrivals":
		return "give one of --rate, --closed and --at-once: when do runs begin?"
	case f.Rule == "is required":
		return flag + " " + f.Value + " is not above 0"
	case f.Value == "(set)" || f.Value == "true":
		return flag + " " + rule
	}
	return flag + " " + f.Value + " " + rule
}

var (
	goName    = regexp.MustCompile(`\b[A-Z][A-Za-z]+(?:\.[A-Z][A-Za-z]+)?\b`)
	ofLayer   = regexp.MustCompile(`^Chain\.Layers\[(\d+)\]\.`)
	ofTrigger = regexp.MustCompile(`\.Trigger(?:s\[(\d+)\])?(?:\.(\w+))?$`)
)

// values are what rules call by their names in Go. Flags write them in lower case.
const values = " Unlimited Exponential Linear Fixed List Stall Outage Slowdown CapacityCut Surge Failing "

// flagOf returns the flag of the command behind a field, or the field itself if it has none: "--rate" for
// "Scenario.Arrivals.Rate", "--trigger 2: from" for "Scenario.Triggers[1].From", "layer 2: --capacity" for
// "Chain.Layers[1].Capacity". A flag has the name of its field in lower case, but for a few.
func (a *app) flagOf(field string) string {
	number := func(index string) string {
		n, _ := strconv.Atoi(index)
		return strconv.Itoa(n + 1)
	}
	if m := ofLayer.FindStringSubmatch(field); m != nil {
		return "layer " + number(m[1]) + ": " + a.flagOf("Layer."+field[len(m[0]):])
	}
	if m := ofTrigger.FindStringSubmatch(field); m != nil {
		flag := "--trigger"
		if m[1] != "" {
			flag += " " + number(m[1])
		}
		if m[2] != "" {
			flag += ": " + strings.ToLower(m[2])
		}
		return flag
	}
	path := strings.Split(field, ".")
	name, _, _ := strings.Cut(path[len(path)-1], "[")
	of := ""
	if len(path) > 1 {
		of = path[len(path)-2]
	}
	flag := strings.ReplaceAll(wire.Snake(name), "_", "-")
	switch {
	case name == "MaxAttempts":
		flag = "attempts"
	case name == "MinSamples":
		flag = "breaker-samples"
	case of == "Fleet" && name == "Failure":
		flag = "failure-rate"
	case of == "Breaker" || of == "Budget":
		flag = strings.ToLower(of) + "-" + flag
	}
	if a.flags.Lookup(flag) == nil {
		return field
	}
	return "--" + flag
}

var rawError = regexp.MustCompile(`strconv\.Parse(\w+): parsing ("(?:[^"\\]|\\.)*"): (invalid syntax|value out of range)`)

// wants says what a text is not that a kind of flag refuses.
var wants = map[string]string{
	"Bool": "neither true nor false", "Float": "not a number", "Int": "not a whole number", "Uint": "not a whole number of 0 or more",
}

// flagError returns an error of pflag without the names of Go's functions.
func flagError(err error) error {
	text := rawError.ReplaceAllStringFunc(err.Error(), func(raw string) string {
		m := rawError.FindStringSubmatch(raw)
		if m[3] == "value out of range" {
			return m[2] + " is out of range"
		}
		return m[2] + " is " + wants[m[1]]
	})
	return errors.New(text)
}
