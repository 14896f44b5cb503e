package retryplan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// LintChain returns the findings about the layers of c together, the gravest first and then by code, or nil if there
// are none. Lint returns the findings about each policy. Errors are those of CertifyChain.
//
//	code                   level            found if
//	graded-timeouts        warning, severe  a layer without a budget waits longer than a failing run of the layer below takes, both
//	                                        retry, and neither answers nor requests keep them from multiplying; severe from 10 attempts
//	                                        at the bottom on
//	hedges-in-layers       warning          more than one layer hedges: one slow call below makes hedges in each, which multiply
//	layers-without-budget  warning, severe  more than one layer retries without a budget, and they multiply each other's attempts;
//	                                        severe from 10 attempts at the bottom on
//	timeout-below-run      warning          a layer gives up before a failing run of the layer below ends, and its deadline is not
//	                                        passed on, or do-not-retry answers come too late for it
func LintChain(c Chain) ([]Finding, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	found := append(layersWithoutBudget(&c), hedgesInLayers(&c)...)
	for i := range c.bottom() {
		if f := timeoutOf(&c, i); f.Level > 0 && !slices.ContainsFunc(found, func(g Finding) bool { return f.Code == g.Code }) {
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, graver)
	return found, nil
}

// manyCalls is the number of attempts at the bottom, an order of magnitude, from which layers that multiply are severe.
const manyCalls = 10

// timeoutOf compares the timeout of a layer with a failing run of the layer below while the bottom hangs.
func timeoutOf(c *Chain, i int) Finding {
	below := Chain{Layers: c.Layers[i+1:], PassOn: c.PassOn, DoNotRetry: c.DoNotRetry, TrustRequests: c.TrustRequests}
	if c.Layers[i].attempts() == 1 || below.Layers[0].attempts() == 1 {
		return Finding{}
	}
	// The largest Duration stands for a time without end.
	timeout := cmp.Or(c.Layers[i].Policy.AttemptTimeout, maxDuration)
	run := below.storm(below.bottom(), 0, true).longest
	text := fmt.Sprintf("Layer %d waits %s for an attempt, and a failing run of layer %d takes %s",
		i+1, orForever(timeout), i+2, orForever(run))
	switch {
	case run < timeout && !c.DoNotRetry && !c.TrustRequests && c.Layers[i].Budget == nil:
		hang := c.storm(c.bottom(), 0, true).attempts[c.bottom()]
		return Finding{
			"graded-timeouts", oneMore(Warning, hang >= manyCalls),
			fmt.Sprintf("%s: it then asks for another such run, and %s attempts reach the bottom for one run of the user while it hangs.", text, figure(hang)),
			"Set Chain.DoNotRetry to true: let a service whose calls have failed for good answer that the request must not be repeated.",
		}
	case timeout <= run && timeout < maxDuration && !c.PassOn:
		return Finding{
			"timeout-below-run", Warning, text + ": the run goes on although its caller has gone and may have begun another.",
			"Set Chain.PassOn to true: pass the context of each request to the calls made for it.",
		}
	case timeout <= run && run < maxDuration && c.DoNotRetry:
		return Finding{
			"timeout-below-run", Warning, text + ": its do-not-retry answer comes too late.",
			fmt.Sprintf("Set Chain.Layers[%d].Policy.AttemptTimeout to %s, or give layer %d fewer attempts.", i, plainly(raised(run+1)), i+2),
		}
	}
	return Finding{}
}

// orForever prints d, of which the largest has no end.
func orForever(d time.Duration) string {
	if d == maxDuration {
		return "forever"
	}
	return roughly(d)
}

func hedgesInLayers(c *Chain) []Finding {
	var hedge []string
	for i := range c.Layers {
		if c.Layers[i].Hedge != (Hedge{}) {
			hedge = append(hedge, strconv.Itoa(i+1))
		}
	}
	last := len(hedge) - 1
	if last < 1 {
		return nil
	}
	return []Finding{{
		"hedges-in-layers", Warning,
		fmt.Sprintf("Layers %s and %s hedge: a call that is slow at the bottom can be made %d times.", strings.Join(hedge[:last], ", "), hedge[last], 1<<len(hedge)),
		"Set Layer.Hedge to the zero Hedge in every layer but one.",
	}}
}

func layersWithoutBudget(c *Chain) []Finding {
	var without []string
	alone, funded := 1, 1.0
	for i := range c.Layers {
		if c.Layers[i].Budget != nil {
			ratio, _, _ := budgetFigures(*c.Layers[i].Budget)
			funded += ratio
			continue
		}
		if l := &c.Layers[i]; l.attempts() > 1 {
			without = append(without, strconv.Itoa(i+1))
			alone = max(alone, l.attempts())
		}
	}
	bottom := c.bottom()
	attempts := max(c.storm(bottom, 0, true).attempts[bottom], c.storm(bottom, 0, false).attempts[bottom])
	last := len(without) - 1
	if last < 1 || attempts <= float64(alone) {
		return nil
	}
	return []Finding{{
		"layers-without-budget", oneMore(Warning, attempts >= manyCalls),
		fmt.Sprintf("Layers %s and %s retry without a budget: up to %s attempts reach the bottom for one run of the user in an outage, and %s at worst with a budget of 0.1 in each.",
			strings.Join(without[:last], ", "), without[last], figure(attempts), figure(funded+0.1*float64(len(without)))),
		"Set Layer.Budget to &retry.BudgetConfig{} in each of them, or MaxAttempts to 1 in every layer but one.",
	}}
}
