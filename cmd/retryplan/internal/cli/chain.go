package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// chainFlags are the flags of a chain.
type chainFlags struct {
	chain    retryplan.Chain
	layers   int
	timeouts []time.Duration
	budgetFlags
	bottom   retryplan.Layer // what the flags say of it, and Clients of all layers
	simulate bool
	seed     uint64
}

func (f *chainFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&f.layers, "layers", 0, "repeat one policy in so many layers")
	flags.DurationSliceVar(&f.timeouts, "timeouts", nil, "the attempt timeout of each layer, the user's first: 10s,3.2s,1s")
	flags.BoolVar(&f.chain.PassOn, "pass-on", false, "calls end when the caller of their service gives up")
	flags.BoolVar(&f.chain.DoNotRetry, "do-not-retry", false, "a service that gives up answers that the request must not be repeated")
	durationVar(flags, &f.chain.Deadline, "deadline", "the user's deadline, from the start of each run")
	flags.Float64Var(&f.bottom.Failure, "failure", 0, "probability that an attempt fails at the bottom")
	flags.Float64Var(&f.chain.Rate, "rate", 0, "runs a second that the users begin")
	flags.Float64Var(&f.bottom.Capacity, "capacity", 0, "attempts a second that the bottom completes")
	flags.IntVar(&f.bottom.Workers, "workers", 0, "how many of them it works on at the same time (default 1)")
	f.budgetFlags.add(flags)
	flags.IntVar(&f.bottom.Clients, "clients", 0, "how many processes of each layer call the next (default 1)")
	lastingVar(flags, &f.chain.Trigger, `the trouble that the bottom has, such as "stall 10s", or none`)
	flags.BoolVar(&f.simulate, "simulate", false, "simulate the chain as well, and each change of it")
	flags.Uint64Var(&f.seed, "seed", 1, "chooses the random numbers of the simulation")
}

func (a *app) chainCommand() *cobra.Command {
	var (
		flags policyFlags
		given chainFlags
		guard guard
	)
	cmd := &cobra.Command{
		Use:   "chain [POLICY]... | chain CHAIN.json",
		Short: "Multiply layers of retries: what one run of a user costs the service at the bottom",
		Long: `chain follows the runs of users through services that call each other, each with a policy of its own, the user's first.
It prints how many attempts reach each node for one run: in a calm in which --failure of the attempts at the bottom fail,
while the bottom refuses everything at once, and while it hangs. With --rate and --capacity it says whether a storm of
retries can become permanent. Below is what would change it: a budget in each layer, answers that say "do not retry",
deadlines that are passed on, and retries in one layer alone.

One POLICY is repeated in --layers layers. A document with the key "layers" is a whole chain:

  {"layers": [
    {"policy": {"max_attempts": 3, "attempt_timeout": "10s"}},
    {"policy": {"max_attempts": 3, "attempt_timeout": "1s"}, "budget": {}, "clients": 20, "capacity": 100, "failure": 0.01}
  ], "pass_on": true, "do_not_retry": false, "rate": 10, "deadline": "30s", "trigger": {"kind": "stall", "for": "10s"}}

For --fail-on, metastable and overloaded are severe, and vulnerable is a note.`,
		Example: `  retryplan chain --layers 3 --attempts 4 --base 50ms
  retryplan chain --layers 3 --attempts 3 --base 10ms --timeouts 10s,3.2s,1s --rate 10 --capacity 100 --simulate
  retryplan chain chain.json --pass-on`,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := a.chain(&flags, &given, args); err != nil {
				return err
			}
			c := given.chain
			findings, err := retryplan.LintChain(c)
			if err != nil {
				return err
			}
			table := newGrid("", "outage", "hang", "calm", "success", "serves", "verdict", "simulated").words(0, 6, 7)
			var all []shown
			var chain retryplan.ChainCertificate
			var disagree error
			for i, change := range append([]change{{"", c}}, changes(c)...) {
				cert, err := retryplan.CertifyChain(change.chain)
				if err != nil {
					return err
				}
				one, seen := shown{Change: change.name, Certificate: wire.JSON(cert)}, ""
				if given.simulate {
					r, err := retryplan.SimulateChain(a.ctx, change.chain, given.seed)
					if err != nil {
						return err
					}
					seen, one.Simulation = recovered(&r.Result, "failed "+say.Percent(math.Round(r.Failed*1000)/1000), "back in ", "not back"), wire.JSON(r.Result)
					if i == 0 {
						disagree = contradiction("chain", cert.Stability, &r.Result, seen)
					}
				}
				if i == 0 {
					chain = cert
				}
				all = append(all, one)
				bottom := cert.Nodes[len(cert.Nodes)-1]
				table.row(cmp.Or(change.name, "as it is"), say.Number(bottom.Outage), say.Number(bottom.Hang), say.Number(bottom.Calm),
					say.Percent(cert.Success), serves(cert.HiddenCapacity), cert.Stability.String(), seen)
			}
			guard.findings("chain", findings)
			guard.stability("chain", chain.Stability)
			if a.json {
				out := all[0]
				out.Changes, out.Findings = all[1:], wire.NewFindings(findings)
				return cmp.Or(a.printJSON(out), guard.err(), disagree)
			}
			a.chainCertificate(&c, &chain)
			a.line("\nattempts at the bottom for one run of a user")
			a.print(table)
			a.line("")
			a.showFindings(findings)
			return cmp.Or(guard.err(), disagree)
		},
	}
	given.add(cmd.Flags())
	flags.add(cmd.Flags())
	guard.add(cmd.Flags(), "")
	return cmd
}

// chain makes the chain that the arguments and the flags mean.
func (a *app) chain(flags *policyFlags, f *chainFlags, args []string) error {
	if len(args) == 1 {
		data, err := a.contents(args[0])
		if args[0] == "-" {
			a.Stdin = bytes.NewReader(data) // for a policy
		}
		var keys map[string]json.RawMessage
		if err == nil && json.Unmarshal(data, &keys) == nil && keys["layers"] != nil {
			if flags.changed() || a.given("layers", "preset") {
				return misusef("%s has its own policies: change them there", source(args[0]))
			}
			return f.document(a, data, source(args[0]))
		}
	}
	found, err := a.policies(flags, args)
	if err != nil {
		return err
	}
	switch {
	case len(found) == 1:
		found = slices.Repeat(found, max(f.layers, len(f.timeouts), 1))
	case a.given("layers"):
		return misusef("--layers repeats one policy, and there are %d", len(found))
	}
	for _, n := range found {
		f.chain.Layers = append(f.chain.Layers, retryplan.Layer{Policy: n.policy})
	}
	return f.apply(a)
}

// document reads the chain of a document. The flags that are given count more.
func (f *chainFlags) document(a *app, data []byte, name string) error {
	given := map[string]string{}
	a.flags.Visit(func(flag *pflag.Flag) { given[flag.Name] = flag.Value.String() })
	f.chain = retryplan.Chain{}
	if err := wire.Read(data, &f.chain); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, flag := range []string{"pass-on", "do-not-retry", "deadline", "rate", "trigger"} {
		if text, ok := given[flag]; ok {
			_ = a.flags.Set(flag, text) // it was accepted before
		}
	}
	return f.apply(a)
}

// apply sets what flags say about the layers.
func (f *chainFlags) apply(a *app) error {
	budget, err := f.budgetFlags.get(a)
	if err != nil {
		return err
	}
	if f.simulate && f.chain.Rate == 0 {
		return misusef("--simulate needs --rate")
	}
	layers := f.chain.Layers
	if a.given("timeouts") && len(f.timeouts) != len(layers) {
		return misusef("--timeouts has %d of them, and there are %s", len(f.timeouts), plural(len(layers), "layer"))
	}
	for i := range layers {
		l, bottom := &layers[i], i == len(layers)-1
		if a.given("timeouts") {
			l.Policy.AttemptTimeout = f.timeouts[i]
		}
		set(budget != nil, &l.Budget, budget)
		set(a.given("clients"), &l.Clients, f.bottom.Clients)
		set(bottom && a.given("failure"), &l.Failure, f.bottom.Failure)
		set(bottom && a.given("capacity"), &l.Capacity, f.bottom.Capacity)
		set(bottom && a.given("workers"), &l.Workers, f.bottom.Workers)
	}
	return nil
}

// change is a chain that differs in one thing.
type change struct {
	name  string
	chain retryplan.Chain
}

// changes returns what would help a chain that has layers to multiply, except for what it has already.
func changes(c retryplan.Chain) (all []change) {
	each := func(name string, affects func(i int, l *retryplan.Layer) bool, f func(*retryplan.Layer)) {
		changed, any := c, false
		changed.Layers = slices.Clone(c.Layers)
		for i := range changed.Layers {
			l := &changed.Layers[i]
			if !l.Policy.Disabled && l.Policy.Effective().MaxAttempts != 1 && affects(i, l) {
				f(l)
				any = true
			}
		}
		if any {
			all = append(all, change{name, changed})
		}
	}
	each("a budget in each", func(_ int, l *retryplan.Layer) bool { return l.Budget == nil },
		func(l *retryplan.Layer) { l.Budget = &retry.BudgetConfig{} })
	if len(c.Layers) == 1 {
		return all
	}
	if answers := c; !c.DoNotRetry {
		answers.DoNotRetry = true
		all = append(all, change{"do-not-retry", answers})
	}
	if passed := c; !c.PassOn {
		passed.PassOn = true
		all = append(all, change{"pass deadlines on", passed})
	}
	once := func(l *retryplan.Layer) { l.Policy.MaxAttempts = 1 }
	each("innermost retries", func(i int, _ *retryplan.Layer) bool { return i < len(c.Layers)-1 }, once)
	each("outermost retries", func(i int, _ *retryplan.Layer) bool { return i > 0 }, once)
	return all
}

// chainCertificate prints the nodes and the verdict.
func (a *app) chainCertificate(c *retryplan.Chain, cert *retryplan.ChainCertificate) {
	g := newGrid("node", "attempts", "timeout", "budgets", "outage", "hang", "calm", "serves")
	for i, n := range cert.Nodes {
		l := &c.Layers[i]
		budgets := ""
		if l.Budget != nil {
			budgets = say.Number(float64(max(l.Clients, 1)))
		}
		g.row(fmt.Sprint(i+1), attempts(l.Policy), spanOr("", l.Policy.AttemptTimeout, l.Policy.AttemptTimeout > 0), budgets,
			say.Number(n.Outage), say.Number(n.Hang), say.Number(n.Calm), serves(n.HiddenCapacity))
	}
	a.print(g)
	if cert.Stability == 0 {
		return
	}
	a.line("")
	a.wrapped(fmt.Sprintf("%v: ", cert.Stability), chainText(c, cert), 2)
	a.line("")
	var f facts
	f.add("trigger", wire.Lasting(c.Trigger))
	f.add("hidden capacity", fmt.Sprintf("%s runs/s; the users begin %s", say.Number(cert.HiddenCapacity), say.Number(c.Rate)))
	if cert.Stored > 0 {
		f.add("stored", say.Number(math.Floor(cert.Stored))+" tokens in all budgets")
	}
	f.add("recovery", predicted(cert.Recovery))
	f.add("law", fmt.Sprintf("%v: %s", cert.Law, say.Law(cert.Law)))
	a.printFacts(f)
}

// attempts returns how many attempts a policy has.
func attempts(p retry.Policy) string {
	switch n := p.Effective().MaxAttempts; {
	case p.Disabled:
		return "1"
	case n == retry.Unlimited:
		return "unlimited"
	default:
		return say.Number(float64(n))
	}
}

// chainText says what the stability of a chain means.
func chainText(c *retryplan.Chain, cert *retryplan.ChainCertificate) string {
	node, capacity := fmt.Sprintf("node %d", cert.Weakest+1), c.Layers[cert.Weakest].Capacity
	load := capacity / cert.Nodes[cert.Weakest].HiddenCapacity
	switch cert.Stability {
	case retryplan.Safe:
		return "The chain comes back from any trigger: even if every attempt fails, each node has capacity to spare."
	case retryplan.Vulnerable:
		return fmt.Sprintf("The chain comes back from this trigger. A larger one tips it into a storm that feeds itself: if all attempts fail, %s runs/s become %s attempts/s at %s, which does %s.",
			say.Number(c.Rate), say.Number(c.Rate*load), node, say.Number(capacity))
	case retryplan.Metastable:
		return fmt.Sprintf("The chain does not come back from this trigger: %s runs/s become %s attempts/s at %s, which does %s. Only less load or fewer retries end it.",
			say.Number(c.Rate), say.Number(c.Rate*load), node, say.Number(capacity))
	}
	if cert.Law == retryplan.SlowService {
		return fmt.Sprintf("No attempt at %s succeeds: it takes as long as a caller waits or longer, with or without retries.", node)
	}
	return fmt.Sprintf("The users' runs are more than %s can do, with or without retries: no policy mends that.", node)
}

// serves returns a hidden capacity, nothing for none.
func serves(x float64) string {
	if x == 0 {
		return ""
	}
	return say.Number(x) + "/s"
}
