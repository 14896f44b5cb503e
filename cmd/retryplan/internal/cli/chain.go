package cli

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryplan"
)

// chainFlags are the flags of a chain that a fleet does not have.
type chainFlags struct {
	chain    retryplan.Chain
	layers   int
	timeouts []time.Duration
}

func (a *app) chainCommand() *cobra.Command {
	var given chainFlags
	cmd := &cobra.Command{
		Use:   "chain [POLICY]...",
		Short: "Multiply layers of retries: what one run of a user costs the service at the bottom",
		Long: `chain follows the runs of users through services that call each other, each with a policy of its own, the user's
first. It counts how many attempts reach each node for one run: in a calm in which --failure of the attempts at the
bottom fail, while the bottom refuses everything at once, and while it hangs. With --rate it also counts the simulations
in which the chain comes back from --trigger, as simulate does. A table shows what would change either.

One POLICY is repeated in --layers layers; several are the layers from the user's down. --failure, --capacity and --workers
are those of the bottom. A test with package retryplan describes any other chain.`,
		Example: `  retryplan chain --layers 3 --attempts 4 --base 50ms
  retryplan chain --layers 3 --attempts 3 --base 10ms --timeouts 10s,3.2s,1s --rate 10 --capacity 100
  retryplan chain preset:inline preset:inline policy.json --pass-on`,
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.chain(&given, args)
			if err != nil {
				return err
			}
			return a.showChain(c)
		},
	}
	flags := cmd.Flags()
	a.requestFlags(flags)
	flags.IntVar(&given.layers, "layers", 0, "number of layers that one policy is repeated in")
	flags.DurationSliceVar(&given.timeouts, "timeouts", nil, "attempt timeout of each layer, the user's first, such as 10s,3.2s,1s")
	flags.BoolVar(&given.chain.PassOn, "pass-on", false, "calls end when the caller of their service gives up")
	flags.BoolVar(&given.chain.DoNotRetry, "do-not-retry", false, "a service that gives up answers that the request must not be repeated")
	flags.BoolVar(&given.chain.TrustRequests, "trust-requests", false, "a request says that it is a retry, and a service makes one attempt of its calls for it")
	flags.IntVar(&given.chain.TriggerAt, "trigger-at", 0, "`node` that has the trouble, from 1 (default the bottom)")
	flags.Float64Var(&a.fleet.Failure, "failure", 0, "probability that an attempt fails at the bottom")
	a.backendFlags(flags)
	a.callerFlags(flags)
	a.seedFlags(flags)
	a.failOnFlag(flags)
	return cmd
}

// showChain shows a chain and its changes.
func (a *app) showChain(c retryplan.Chain) error {
	g := newGrid("-", "outage", "hang", "calm", "success", "back", "median", "worst")
	for i, change := range append([]change{{"as it is", c}}, changes(c)...) {
		nodes, success, err := change.chain.Loads()
		if err != nil {
			return err
		}
		bottom := nodes[len(nodes)-1]
		cells := []string{change.name, say.Number(bottom.Outage), say.Number(bottom.Hang), sampled(bottom.Calm), sampled(100*success) + "%", "", "", ""}
		if i == 0 {
			a.chainNodes(&c, nodes)
		}
		if c.Rate != 0 {
			v, err := a.judge(change.name, retryplan.Question{Chain: change.chain, Seeds: a.seeds, Seed: a.seed})
			if err != nil {
				return err
			}
			cells[5] = say.Count(&v)
			cells[6], cells[7] = say.Times(&v)
			if i == 0 {
				a.report(named{name: "chain"}, lost(&v))
				a.line("")
				a.facts(say.Verdict(&v))
			}
		}
		g.row(cells...)
	}
	a.line("\nattempts at the bottom for one run of a user")
	a.print(g)
	return a.guard()
}

// chain returns the chain that the arguments and the flags describe.
func (a *app) chain(f *chainFlags, args []string) (retryplan.Chain, error) {
	c := f.chain
	found, err := a.policies(args)
	if err != nil {
		return c, err
	}
	if len(found) == 1 {
		found = slices.Repeat(found, max(f.layers, len(f.timeouts), 1))
	} else if a.given("layers") {
		return c, misusef("--layers repeats one policy, and there are %d", len(found))
	}
	if a.given("timeouts") && len(f.timeouts) != len(found) {
		return c, misusef("--timeouts has %d of them, and there are %d layers", len(f.timeouts), len(found))
	}
	c.Deadline, c.Rate, c.Trigger = a.setting.Deadline, a.fleet.Rate, a.fleet.Trigger
	for i, n := range found {
		l := retryplan.Layer{Policy: n.policy, Budget: a.fleet.Budget, Clients: a.setting.Clients}
		if a.given("timeouts") {
			l.Policy.AttemptTimeout = f.timeouts[i]
		}
		if i == len(found)-1 {
			l.Failure, l.Capacity, l.Workers = a.fleet.Failure, a.fleet.Capacity, a.fleet.Workers
		}
		c.Layers = append(c.Layers, l)
	}
	return c, nil
}

// change is a chain that differs in one thing.
type change struct {
	name  string
	chain retryplan.Chain
}

// changes returns the changes that may help a chain with layers to multiply, except for those that it has already.
func changes(c retryplan.Chain) (all []change) {
	bottom := len(c.Layers) - 1
	once := func(layers []retryplan.Layer) {
		for i := range layers {
			layers[i].Policy.MaxAttempts = 1
		}
	}
	for _, one := range []struct {
		name string
		do   func(*retryplan.Chain)
	}{
		{"a budget in each", func(c *retryplan.Chain) {
			for i := range c.Layers {
				l := &c.Layers[i]
				set(l.Budget == nil && attempts(l.Policy) != "1", &l.Budget, &retry.BudgetConfig{})
			}
		}},
		{"do-not-retry", func(c *retryplan.Chain) { c.DoNotRetry = c.DoNotRetry || bottom > 0 }},
		{"trusted requests", func(c *retryplan.Chain) { c.TrustRequests = c.TrustRequests || bottom > 0 }},
		{"pass deadlines on", func(c *retryplan.Chain) { c.PassOn = c.PassOn || bottom > 0 }},
		{"innermost retries", func(c *retryplan.Chain) { once(c.Layers[:bottom]) }},
		{"outermost retries", func(c *retryplan.Chain) { once(c.Layers[1:]) }},
	} {
		changed := c
		changed.Layers = slices.Clone(c.Layers)
		if one.do(&changed); !reflect.DeepEqual(changed, c) {
			all = append(all, change{one.name, changed})
		}
	}
	return all
}

// chainNodes prints the nodes.
func (a *app) chainNodes(c *retryplan.Chain, nodes []retryplan.NodeLoad) {
	g := newGrid("node", "attempts", "timeout", "budgets", "outage", "hang", "calm")
	for i, n := range nodes {
		l := &c.Layers[i]
		timeout, budgets := "", ""
		set(l.Policy.AttemptTimeout > 0, &timeout, say.Span(l.Policy.AttemptTimeout))
		set(l.Budget != nil, &budgets, strconv.Itoa(max(l.Clients, 1)))
		g.row(strconv.Itoa(i+1), attempts(l.Policy), timeout, budgets, say.Number(n.Outage), say.Number(n.Hang), sampled(n.Calm))
	}
	a.print(g)
}

// sampled returns a figure of a calm, to the digits that do not depend on the seed.
func sampled(x float64) string { return fmt.Sprintf("%.3g", x) }

// attempts returns the number of attempts of a policy.
func attempts(p retry.Policy) string {
	n := retryconf.Attempts(p.Effective().MaxAttempts)
	set(p.Disabled, &n, 1)
	return n.String()
}
