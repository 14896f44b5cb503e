package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/plots"
	"github.com/retrygo/retry/cmd/retryplan/internal/say"
	"github.com/retrygo/retry/cmd/retryplan/internal/wire"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryplan"
)

// chainFlags are what flags say of a chain beside what they say of a fleet.
type chainFlags struct {
	chain    retryplan.Chain
	layers   int
	timeouts []time.Duration
}

func (a *app) chainCommand() *cobra.Command {
	var given chainFlags
	cmd := &cobra.Command{
		Use:   "chain [POLICY]... | chain CHAIN.json",
		Short: "Multiply layers of retries: what one run of a user costs the service at the bottom",
		Long: `chain follows the runs of users through services that call each other, each with a policy of its own, the user's
first. It counts how many attempts reach each node for one run: in a calm in which --failure of the attempts at the
bottom fail, while the bottom refuses everything at once, and while it hangs. With --rate it also counts the simulations
in which the chain comes back from --trigger, as simulate does. A table shows what would change either: a budget in each
layer, answers that say "do not retry", requests that say "this is a retry", deadlines that are passed on, and retries in
one layer only.

One POLICY is repeated in --layers layers. A document with the key "layers" describes a whole chain, and flags replace
what it says. Its keys are layers (a list of policy, budget, clients, hedge, failure, capacity and workers), pass_on,
do_not_retry, trust_requests, rate, deadline, trigger and trigger_at.

For --fail-on, a verdict of which half of the seeds or more are lost is severe, and of which any is a warning. --plot draws
a seed of the chain as it is, and of each change.`,
		Example: `  retryplan chain --layers 3 --attempts 4 --base 50ms
  retryplan chain --layers 3 --attempts 3 --base 10ms --timeouts 10s,3.2s,1s --rate 10 --capacity 100
  retryplan chain chain.json --pass-on`,
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.chain(&given, args)
			if err = cmp.Or(err, a.fits(1)); err != nil {
				return err
			}
			return a.showChain(c)
		},
	}
	flags := cmd.Flags()
	a.policyFlags(flags)
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
	a.plotFlag(flags)
	return cmd
}

// showChain shows a chain and its changes.
func (a *app) showChain(c retryplan.Chain) error {
	var out shown
	g := newGrid("-", "outage", "hang", "calm", "success", "back", "median", "worst")
	for i, change := range append([]change{{"as it is", c}}, changes(c)...) {
		nodes, success, err := change.chain.Loads()
		if err != nil {
			return err
		}
		one, bottom := shown{Change: change.name, Nodes: nodes}, nodes[len(nodes)-1]
		cells := []string{change.name, say.Number(bottom.Outage), say.Number(bottom.Hang), say.Number(bottom.Calm), say.Percent(success), "", "", ""}
		if i == 0 && !a.json {
			a.chainNodes(&c, nodes)
		}
		if c.Rate != 0 {
			v, r, err := a.judgeChain(change)
			if err != nil {
				return err
			}
			one.Verdict, one.Simulation = v, r
			cells[5], cells[6], cells[7] = say.Count(&v), say.Median(&v), say.Worst(&v)
			if i == 0 {
				a.report(named{name: "chain"}, lost(&v))
				if !a.json {
					a.line("")
					a.facts(say.Verdict(&v))
				}
			}
		}
		if i > 0 {
			out.Changes = append(out.Changes, one)
		} else {
			out.Nodes, out.Verdict, out.Simulation = one.Nodes, one.Verdict, one.Simulation
		}
		g.row(cells...)
	}
	if a.json {
		return cmp.Or(a.printJSON(out), a.draw(), a.guard())
	}
	a.line("\nattempts at the bottom for one run of a user")
	a.print(g)
	return cmp.Or(a.draw(), a.guard())
}

// judgeChain returns the verdict about a chain, and the seed to draw.
func (a *app) judgeChain(c change) (retryplan.Verdict, retryplan.Result, error) {
	q := retryplan.Question{Chain: c.chain, Seeds: a.seeds, Seed: a.seed}
	v, err := a.judge(c.name, q)
	if err != nil {
		return v, retryplan.Result{}, err
	}
	r, err := retryplan.Simulate(a.ctx, q, v.Drawn)
	a.runs = append(a.runs, plots.Run{Name: c.name, Result: r})
	return v, r, err
}

// chain returns the chain that the arguments and the flags describe.
func (a *app) chain(f *chainFlags, args []string) (c retryplan.Chain, err error) {
	document := false
	if len(args) == 1 {
		if c, document, err = a.chainDocument(args[0]); err != nil {
			return c, err
		}
	}
	switch {
	case document && (a.changed() || a.given("layers", "preset")):
		return c, misusef("%s has its own policies: change them there", source(args[0]))
	case !document:
		found, err := a.policies(args)
		if err != nil {
			return c, err
		}
		if len(found) == 1 {
			found = slices.Repeat(found, max(f.layers, len(f.timeouts), 1))
		} else if a.given("layers") {
			return c, misusef("--layers repeats one policy, and there are %d", len(found))
		}
		for _, n := range found {
			c.Layers = append(c.Layers, retryplan.Layer{Policy: n.policy})
		}
	}
	if a.given("timeouts") && len(f.timeouts) != len(c.Layers) {
		return c, misusef("--timeouts has %d of them, and there are %d layers", len(f.timeouts), len(c.Layers))
	}
	set(a.given("pass-on"), &c.PassOn, f.chain.PassOn)
	set(a.given("do-not-retry"), &c.DoNotRetry, f.chain.DoNotRetry)
	set(a.given("trust-requests"), &c.TrustRequests, f.chain.TrustRequests)
	set(a.given("trigger-at"), &c.TriggerAt, f.chain.TriggerAt)
	set(a.given("deadline"), &c.Deadline, a.setting.Deadline)
	set(a.given("rate"), &c.Rate, a.fleet.Rate)
	set(a.given("trigger") || !document, &c.Trigger, a.fleet.Trigger)
	for i := range c.Layers {
		l, bottom := &c.Layers[i], i == len(c.Layers)-1
		if a.given("timeouts") {
			l.Policy.AttemptTimeout = f.timeouts[i]
		}
		set(a.fleet.Budget != nil, &l.Budget, a.fleet.Budget)
		set(a.given("clients"), &l.Clients, a.setting.Clients)
		set(bottom && a.given("failure"), &l.Failure, a.fleet.Failure)
		set(bottom && a.given("capacity"), &l.Capacity, a.fleet.Capacity)
		set(bottom && a.given("workers"), &l.Workers, a.fleet.Workers)
	}
	return c, nil
}

// chainDocument returns the chain in a document, and whether it is one. What a document of a policy says is left for
// policies to read.
func (a *app) chainDocument(file string) (c retryplan.Chain, ok bool, err error) {
	data, err := a.contents(file)
	if file == "-" && err == nil {
		a.Stdin = bytes.NewReader(data)
	}
	var keys map[string]json.RawMessage
	if err != nil || json.Unmarshal(data, &keys) != nil || keys["layers"] == nil {
		return c, false, nil
	}
	if err := wire.Read(data, &c); err != nil {
		return c, true, fmt.Errorf("%s: %w", source(file), err)
	}
	return c, true, nil
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
	g, stored := newGrid("node", "attempts", "timeout", "budgets", "outage", "hang", "calm"), 0.0
	for i, n := range nodes {
		l := &c.Layers[i]
		timeout, budgets := "", ""
		set(l.Policy.AttemptTimeout > 0, &timeout, say.Span(l.Policy.AttemptTimeout))
		set(l.Budget != nil, &budgets, strconv.Itoa(max(l.Clients, 1)))
		g.row(strconv.Itoa(i+1), attempts(l.Policy), timeout, budgets, say.Number(n.Outage), say.Number(n.Hang), say.Number(n.Calm))
		stored += n.Stored
	}
	a.print(g)
	if stored > 0 {
		a.line("%s tokens are stored in all budgets", say.Number(stored))
	}
}

// attempts returns the number of attempts of a policy.
func attempts(p retry.Policy) string {
	if p.Disabled {
		return "1"
	}
	return retryconf.Attempts(p.Effective().MaxAttempts).String()
}
