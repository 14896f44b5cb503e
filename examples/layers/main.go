// Layers counts how many queries reach a database for one request of a user, through three services that each make four
// attempts, with each remedy, and compares the counts with the results of package retryplan for such a chain:
//
//	user → shop (HTTP) → orders (HTTP) → stock (gRPC) → database
//
// It takes a few seconds.
//
//	go run ./examples/layers
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/retrygo/retry/retryplan"
)

func main() {
	if err := table(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// remedies are the rows of the table.
var remedies = []remedy{
	{name: "nothing"},
	{name: "contexts passed on", passOn: true},
	{name: "... and time passed on", passOn: true, time: true},
	{name: "... and answers", passOn: true, answers: true},
	{name: "... or requests", passOn: true, requests: true},
	{name: "... or budgets", passOn: true, budgets: true},
	{name: "all of them", passOn: true, answers: true, requests: true, budgets: true},
}

// scenes are the columns. Graded timeouts are each longer than a whole failing run of the layer below: 4 attempts of
// 60ms, 10ms apart, take 270ms.
var scenes = []scene{
	{name: "outage", attempts: 4, wait: 10 * ms},
	{name: "hang, equal", hang: true, attempts: 4, wait: 10 * ms, timeouts: [3]time.Duration{60 * ms, 60 * ms, 60 * ms}},
	{name: "hang, graded", hang: true, attempts: 4, wait: 10 * ms, timeouts: [3]time.Duration{1400 * ms, 320 * ms, 60 * ms}},
}

const ms = time.Millisecond

// table writes the number of queries that arrive for each remedy in each scene, next to the planned number.
func table(out io.Writer) error {
	counts, errs := make([][]int, len(remedies)), make([][]error, len(remedies))
	var all sync.WaitGroup
	for i, r := range remedies {
		counts[i], errs[i] = make([]int, len(scenes)), make([]error, len(scenes))
		for j, s := range scenes {
			all.Go(func() { counts[i][j], errs[i][j] = count(r, s) })
		}
	}
	all.Wait()

	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "queries, planned in brackets")
	for _, s := range scenes {
		fmt.Fprint(t, "\t", s.name)
	}
	fmt.Fprintln(t)
	for i, r := range remedies {
		fmt.Fprint(t, r.name)
		for j, s := range scenes {
			if errs[i][j] != nil {
				return errs[i][j]
			}
			says, err := planned(r, s)
			if err != nil {
				return err
			}
			fmt.Fprintf(t, "\t%d [%s]", counts[i][j], says)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// count returns the number of queries that arrive for one request of a user.
func count(r remedy, s scene) (int, error) {
	db := &database{hangs: s.hang}
	c := newChain(r, s.policies(r.budgets), db)
	defer c.close()
	err := c.request()
	return int(db.queries.Load()), err
}

// planned returns the result of package retryplan for such a chain. Of budgets it knows the maximum that they pay for.
func planned(r remedy, s scene) (string, error) {
	plan := retryplan.Chain{PassOn: r.passOn, DoNotRetry: r.answers, TrustRequests: r.requests}
	for _, p := range s.policies(false) {
		l := retryplan.Layer{Policy: p}
		if r.budgets {
			l.Budget = &budget
		}
		plan.Layers = append(plan.Layers, l)
	}
	nodes, _, err := plan.Loads()
	if err != nil {
		return "", err
	}
	bottom := nodes[len(nodes)-1]
	calls := bottom.Outage
	if s.hang {
		calls = bottom.Hang
	}
	if r.budgets {
		for _, n := range nodes {
			calls += n.Stored
		}
		return fmt.Sprintf("≤%v", calls), nil
	}
	return fmt.Sprint(calls), nil
}
