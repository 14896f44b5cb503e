package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryplan"
)

// chained is what --json prints.
type chained struct {
	Certificate wire.ChainCertificate `json:"certificate"`
	Simulation  *wire.Result          `json:"simulation,omitempty"`
	Changes     []chainChange         `json:"changes"`
	Findings    []wire.Finding        `json:"findings"`
}

// chainChange is what a change of the chain comes to.
type chainChange struct {
	Change      string                `json:"change"`
	Certificate wire.ChainCertificate `json:"certificate"`
	Simulation  *wire.Result          `json:"simulation,omitempty"`
}

// chainFlags are the flags of a chain.
type chainFlags struct {
	chain    wire.Chain
	layers   int
	timeouts []time.Duration
	budget   func(*cobra.Command) (*wire.Budget, error)
	clients  int
	failure  float64
	capacity float64
	workers  int
	simulate bool
	seed     uint64
}

func (f *chainFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&f.layers, "layers", 0, "repeat one policy in so many layers")
	flags.DurationSliceVar(&f.timeouts, "timeouts", nil, "the attempt timeout of each layer, the user's first: 10s,3.2s,1s")
	flags.BoolVar(&f.chain.PassOn, "pass-on", false, "calls end when the caller of their service gives up")
	flags.BoolVar(&f.chain.DoNotRetry, "do-not-retry", false, "a service that gives up answers that the request must not be repeated")
	durationVar(flags, &f.chain.Deadline, "deadline", "the user's deadline, from the start of each run")
	flags.Float64Var(&f.failure, "failure", 0, "probability that an attempt fails at the bottom")
	flags.Float64Var(&f.chain.Rate, "rate", 0, "runs a second that the users begin")
	flags.Float64Var(&f.capacity, "capacity", 0, "attempts a second that the bottom completes")
	flags.IntVar(&f.workers, "workers", 0, "how many of them it works on at the same time (default 1)")
	f.budget = budgetFlags(flags)
	flags.IntVar(&f.clients, "clients", 0, "how many processes of each layer call the next (default 1)")
	flags.Var(&triggerFlag{&f.chain.Trigger}, "trigger", `the trouble that the bottom has, such as "stall 10s", or none (default stall 10s)`)
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
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.chain(cmd, &flags, &given, args)
			if err != nil {
				return err
			}
			cert, err := retryplan.CertifyChain(c)
			if err != nil {
				return blame(err)
			}
			findings, err := retryplan.LintChain(c)
			if err != nil {
				return blame(err)
			}
			guard.findings("chain", findings)
			guard.stability("chain", cert.Stability)
			simulate := func(c retryplan.Chain) (*retryplan.Result, error) {
				if !given.simulate {
					return nil, nil
				}
				r, err := retryplan.SimulateChain(cmd.Context(), c, given.seed)
				return &r.Result, err
			}
			result, err := simulate(c)
			if err != nil {
				return err
			}
			out := chained{Certificate: wire.NewChainCertificate(&cert), Simulation: newResult(result), Changes: []chainChange{}, Findings: wire.NewFindings(findings)}
			table := newGrid("", "outage", "hang", "calm", "success", "serves", "verdict", "simulated").words(0, 6, 7)
			row := func(name string, cert *retryplan.ChainCertificate, r *retryplan.Result) {
				bottom := cert.Nodes[len(cert.Nodes)-1]
				table.row(name, say.Number(bottom.Outage), say.Number(bottom.Hang), say.Number(bottom.Calm), say.Percent(cert.Success), serves(cert.HiddenCapacity),
					cert.Stability.String(), chainOutcome(r))
			}
			row("as it is", &cert, result)
			for _, change := range changes(c) {
				changed, err := retryplan.CertifyChain(change.chain)
				if err != nil {
					return blame(err)
				}
				r, err := simulate(change.chain)
				if err != nil {
					return err
				}
				row(change.name, &changed, r)
				out.Changes = append(out.Changes, chainChange{change.name, wire.NewChainCertificate(&changed), newResult(r)})
			}
			if a.json {
				if err := a.printJSON(out); err != nil {
					return err
				}
				return cmp.Or(guard.err(), chainContradiction(&cert, result))
			}
			a.chainCertificate(&c, &cert)
			a.line("")
			a.line("attempts at the bottom for one run of a user")
			a.print(table)
			a.line("")
			a.showFindings(findings)
			return cmp.Or(guard.err(), chainContradiction(&cert, result))
		},
	}
	given.add(cmd.Flags())
	flags.add(cmd.Flags())
	guard.add(cmd.Flags(), "")
	return cmd
}

// chainContradiction returns an error if certificate and simulation do not agree whether the chain comes back.
func chainContradiction(c *retryplan.ChainCertificate, r *retryplan.Result) error {
	if r == nil || !r.Judged || c.Stability == 0 || c.Stability.Survives() == r.Recovered {
		return nil
	}
	return fmt.Errorf("certificate and simulation disagree: the certificate says %v, the simulation %q; near the hidden capacity chance decides: try other seeds and rates",
		c.Stability, chainOutcome(r))
}

func newResult(r *retryplan.Result) *wire.Result {
	if r == nil {
		return nil
	}
	result := wire.NewResult(r)
	return &result
}

// chain returns the chain that the arguments and the flags mean.
func (a *app) chain(cmd *cobra.Command, flags *policyFlags, given *chainFlags, args []string) (retryplan.Chain, error) {
	if len(args) == 1 {
		data, err := a.contents(args[0])
		if args[0] == "-" {
			a.Stdin = bytes.NewReader(data) // for a policy
		}
		var keys map[string]json.RawMessage
		if err == nil && json.Unmarshal(data, &keys) == nil && keys["layers"] != nil {
			return given.document(cmd, flags, data, source(args[0]))
		}
	}
	found, err := a.policies(cmd, flags, args)
	if err != nil {
		return retryplan.Chain{}, err
	}
	switch {
	case len(found) == 1:
		found = slices.Repeat(found, max(given.layers, len(given.timeouts), 1))
	case cmd.Flags().Changed("layers"):
		return retryplan.Chain{}, misusef("--layers repeats one policy, and there are %d", len(found))
	}
	if given.chain.Trigger == (wire.Trigger{}) && !cmd.Flags().Changed("trigger") {
		given.chain.Trigger = wire.Trigger{Kind: "stall", For: wire.Duration(10 * time.Second)}
	}
	c, err := given.chain.Chain()
	if err != nil {
		return c, blame(err)
	}
	for _, n := range found {
		c.Layers = append(c.Layers, retryplan.Layer{Policy: n.policy})
	}
	return c, given.apply(cmd, &c)
}

// document returns the chain of a document, as the flags change it.
func (f *chainFlags) document(cmd *cobra.Command, policy *policyFlags, data []byte, name string) (retryplan.Chain, error) {
	var doc wire.Chain
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&doc); err != nil {
		return retryplan.Chain{}, fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return retryplan.Chain{}, fmt.Errorf("%s: there is something after the chain", name)
	}
	if policy.changed(cmd) || cmd.Flags().Changed("layers") || cmd.Flags().Changed("preset") {
		return retryplan.Chain{}, misusef("%s has its own policies: change them there", name)
	}
	for flag, change := range map[string]func(){
		"pass-on":      func() { doc.PassOn = f.chain.PassOn },
		"do-not-retry": func() { doc.DoNotRetry = f.chain.DoNotRetry },
		"deadline":     func() { doc.Deadline = f.chain.Deadline },
		"rate":         func() { doc.Rate = f.chain.Rate },
		"trigger":      func() { doc.Trigger = f.chain.Trigger },
	} {
		if cmd.Flags().Changed(flag) {
			change()
		}
	}
	c, err := doc.Chain()
	if err != nil {
		return c, fmt.Errorf("%s: %w", name, err)
	}
	return c, f.apply(cmd, &c)
}

// apply sets in a chain what flags say about its layers.
func (f *chainFlags) apply(cmd *cobra.Command, c *retryplan.Chain) error {
	budget, err := f.budget(cmd)
	if err != nil {
		return err
	}
	if f.simulate && c.Rate == 0 {
		return misusef("--simulate needs --rate")
	}
	changed := cmd.Flags().Changed
	if changed("timeouts") && len(f.timeouts) != len(c.Layers) {
		return misusef("--timeouts has %d of them, and there are %s", len(f.timeouts), plural(len(c.Layers), "layer"))
	}
	for i := range c.Layers {
		l := &c.Layers[i]
		if changed("timeouts") {
			l.Policy.AttemptTimeout = f.timeouts[i]
		}
		if budget != nil {
			l.Budget = budget.Config()
		}
		if changed("clients") {
			l.Clients = f.clients
		}
	}
	if len(c.Layers) == 0 {
		return nil
	}
	bottom := &c.Layers[len(c.Layers)-1]
	if changed("failure") {
		bottom.Failure = f.failure
	}
	if changed("capacity") {
		bottom.Capacity = f.capacity
	}
	if changed("workers") {
		bottom.Workers = f.workers
	}
	return nil
}

// change is a chain that differs in one thing.
type change struct {
	name  string
	chain retryplan.Chain
}

// changes returns what would help a chain that has layers to multiply, except for what it has already.
func changes(c retryplan.Chain) []change {
	var all []change
	each := func(name string, f func(i int, l *retryplan.Layer) bool) {
		changed, any := c, false
		changed.Layers = slices.Clone(c.Layers)
		for i := range changed.Layers {
			any = f(i, &changed.Layers[i]) || any
		}
		if any {
			all = append(all, change{name, changed})
		}
	}
	retries := func(l *retryplan.Layer) bool { return !l.Policy.Disabled && l.Policy.Effective().MaxAttempts != 1 }
	each("a budget in each", func(_ int, l *retryplan.Layer) bool {
		if !retries(l) || l.Budget != nil {
			return false
		}
		l.Budget = &retry.BudgetConfig{}
		return true
	})
	if len(c.Layers) == 1 {
		return all
	}
	if !c.DoNotRetry {
		told := c
		told.DoNotRetry = true
		all = append(all, change{"do-not-retry", told})
	}
	if !c.PassOn {
		passed := c
		passed.PassOn = true
		all = append(all, change{"pass deadlines on", passed})
	}
	alone := func(name string, only int) {
		each(name, func(i int, l *retryplan.Layer) bool {
			if i == only || !retries(l) {
				return false
			}
			l.Policy.MaxAttempts = 1
			return true
		})
	}
	alone("innermost retries", len(c.Layers)-1)
	alone("outermost retries", 0)
	return all
}

// chainCertificate prints the nodes and the verdict.
func (a *app) chainCertificate(c *retryplan.Chain, cert *retryplan.ChainCertificate) {
	g := newGrid("node", "attempts", "timeout", "budgets", "outage", "hang", "calm", "serves")
	for i, n := range cert.Nodes {
		l := &c.Layers[i]
		budgets, timeout := "", ""
		if l.Budget != nil {
			budgets = say.Number(float64(max(l.Clients, 1)))
		}
		if l.Policy.AttemptTimeout > 0 {
			timeout = say.Span(l.Policy.AttemptTimeout)
		}
		g.row(fmt.Sprint(i+1), attempts(l.Policy), timeout, budgets, say.Number(n.Outage), say.Number(n.Hang), say.Number(n.Calm), serves(n.HiddenCapacity))
	}
	a.print(g)
	if cert.Stability == 0 {
		return
	}
	a.line("")
	weakest := &c.Layers[cert.Weakest]
	load := weakest.Capacity / cert.Nodes[cert.Weakest].HiddenCapacity
	a.wrapped(fmt.Sprintf("%v: ", cert.Stability), chainText(c, cert, load), 2)
	a.line("")
	f := newGrid("", "").words(0, 1)
	f.row("trigger", say.Trigger(c.Trigger))
	f.row("hidden capacity", fmt.Sprintf("%s runs/s; the users begin %s", say.Number(cert.HiddenCapacity), say.Number(c.Rate)))
	if cert.Stored > 0 {
		f.row("stored", say.Number(math.Floor(cert.Stored))+" tokens in all budgets")
	}
	if cert.Recovery >= 0 {
		f.row("recovery", say.Span(cert.Recovery)+" after the trigger's end")
	} else {
		f.row("recovery", "never by itself")
	}
	f.row("law", fmt.Sprintf("%v: %s", cert.Law, say.Law(cert.Law)))
	a.print(f)
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
func chainText(c *retryplan.Chain, cert *retryplan.ChainCertificate, load float64) string {
	node, capacity := fmt.Sprintf("node %d", cert.Weakest+1), c.Layers[cert.Weakest].Capacity
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

// chainOutcome says what a simulation of a chain came to.
func chainOutcome(r *retryplan.Result) string {
	switch {
	case r == nil:
		return ""
	case !r.Judged:
		return "failed " + say.Percent(math.Round(r.Failed*1000)/1000)
	case r.Recovered:
		return "back in " + say.Span(r.Recovery)
	}
	return "not back"
}
