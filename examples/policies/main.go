// Policies is a catalog of policies to start from, with the planner's figures for each in a stated fleet.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryplan"
)

// document holds the part of the policies that is data. A program of yours would read it as a file, and again when it
// changes.
//
//go:embed policies.json
var document []byte

// An entry has the parts of a policy that the document cannot hold.
type entry struct {
	name     string
	attempts retryplan.Dist  // how long an attempt takes
	fleet    retryplan.Fleet // the clients, the budget of each, and their backend
}

var entries = []entry{
	{"inline-http", retryplan.LogNormal(20*time.Millisecond, 200*time.Millisecond), retryplan.Fleet{
		Rate: 700, Capacity: 1000, Workers: 20, Clients: 200, Budget: &retry.BudgetConfig{}, Deadline: 10 * time.Second,
		Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second},
	}},
	{"db-transaction", retryplan.LogNormal(15*time.Millisecond, 150*time.Millisecond), retryplan.Fleet{
		Rate: 300, Capacity: 400, Workers: 8, Clients: 10, Budget: &retry.BudgetConfig{}, Deadline: 6 * time.Second,
		Trigger: retryplan.Trigger{Kind: retryplan.CapacityCut, Factor: 0.25, For: 20 * time.Second},
	}},
	{"webhook-delivery", retryplan.LogNormal(200*time.Millisecond, 5*time.Second), retryplan.Fleet{
		Rate: 40, Capacity: 500, Workers: 100, Clients: 20,
		Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 5 * time.Minute},
	}},
	{"batch-job", retryplan.LogNormal(100*time.Millisecond, 2*time.Second), retryplan.Fleet{
		Rate: 50, Capacity: 400, Workers: 40, Clients: 50,
		Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 2 * time.Minute},
	}},
	{"reconnect-loop", retryplan.LogNormal(80*time.Millisecond, time.Second), retryplan.Fleet{
		Rate: 20, Capacity: 1500, Workers: 100, Clients: 2000,
		Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 30 * time.Second},
	}},
}

func main() {
	log.SetFlags(0)
	if err := run(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(w io.Writer) error {
	catalog, err := load()
	if err != nil {
		return err
	}
	for _, e := range entries {
		ref, _ := catalog.Lookup(e.name)
		p := ref.Policy()
		fmt.Fprintln(w, p)
		plan, err := retryplan.New(p, retryplan.Model{Failure: []float64{0.5}, Duration: e.attempts, Deadline: e.fleet.Deadline})
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "  if half of the attempts fail: %.4g%% of the runs succeed, with %.3g attempts a run; 99%% end within %v\n",
			100*plan.Success, plan.Load, plan.Elapsed.Quantile(0.99).Round(10*time.Millisecond))
		for _, f := range retryplan.Lint(p, e.setting()) {
			fmt.Fprintf(w, "  lint: %s, a %v\n", f.Code, f.Level)
		}
		v, err := e.judge(p)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "  fleet: %v\n", v)
	}
	return nil
}

// load defines the budgets, which are code, and loads the document.
func load() (*retryconf.Catalog, error) {
	catalog := new(retryconf.Catalog)
	for _, e := range entries {
		var defined retry.Policy
		if e.fleet.Budget != nil {
			defined.Budget = retry.NewBudget(*e.fleet.Budget)
		}
		catalog.Define(e.name, defined)
	}
	return catalog, catalog.Load(bytes.NewReader(document))
}

// setting is the use of the policy, for lint.
func (e entry) setting() retryplan.Setting {
	f := e.fleet
	return retryplan.Setting{Inline: f.Deadline > 0, Deadline: f.Deadline, Clients: f.Clients, Duration: e.attempts}
}

// judge counts the simulations in which the fleet comes back under p. A budget is the state of a running program, so the
// fleet has a new one for each client.
func (e entry) judge(p retry.Policy) (retryplan.Verdict, error) {
	p.Budget = nil
	return retryplan.Judge(context.Background(), retryplan.Question{Policy: p, Fleet: e.fleet})
}
