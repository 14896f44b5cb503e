package retryplan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// LintChain returns the findings about the layers of c together, the gravest first and then by code, or nil if there
// are none. Lint returns the findings about each policy. Errors are those of CertifyChain.
//
//	code                   level            found if
//	hedges-in-layers       warning          more than one layer hedges: one slow call below makes hedges in each, which multiply
//	layers-without-budget  warning, severe  more than one layer retries without a budget, and they multiply each other's attempts;
//	                                        severe from 10 attempts at the bottom on
func LintChain(c Chain) ([]Finding, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	found := append(layersWithoutBudget(&c), hedgesInLayers(&c)...)
	slices.SortStableFunc(found, graver)
	return found, nil
}

// manyCalls is the number of attempts at the bottom, an order of magnitude, from which layers that multiply are severe.
const manyCalls = 10

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
