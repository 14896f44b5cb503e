package retryplan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// LintChain returns what is to be said about the layers of c together, the gravest first and then by code, and nil if
// there is nothing. Lint says what there is about each policy. Errors are those of CertifyChain.
//
//	code                   level            found when
//	graded-timeouts        warning, severe  a layer without a budget waits longer than a failing run of the layer below takes, both
//	                                        retry, and no do-not-retry answers keep it from asking again; severe from 10 attempts
//	                                        at the bottom on
//	layers-without-budget  warning, severe  more than one layer retries without a budget, and they multiply each other's attempts;
//	                                        severe from 10 attempts at the bottom on
//	timeout-below-run      warning          a layer gives up before a failing run of the layer below ends, and that is not passed
//	                                        on, or do-not-retry answers come too late for it
func LintChain(c Chain) ([]Finding, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	var found []Finding
	// From an order of magnitude on, layers that multiply are severe.
	for _, find := range []func(Chain) Finding{gradedTimeouts, layersWithoutBudget, timeoutBelowRun} {
		if f := find(c); f.Level > 0 {
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(x, y Finding) int {
		return cmp.Or(cmp.Compare(y.Level, x.Level), cmp.Compare(x.Code, y.Code))
	})
	return found, nil
}

// pair is a layer that retries above another that does.
type pair struct {
	above   int // the number of the layer above, from 1
	timeout time.Duration
	run     time.Duration // that a failing run of the layer below takes at most, while the bottom hangs
}

// pairs returns all there are. The largest Duration is one without end.
func (c *Chain) pairs() (all []pair) {
	for i := range c.bottom() {
		below := Chain{Layers: c.Layers[i+1:], PassOn: c.PassOn, DoNotRetry: c.DoNotRetry}
		if c.Layers[i].attempts() == 1 || below.Layers[0].attempts() == 1 {
			continue
		}
		all = append(all, pair{i + 1, cmp.Or(c.Layers[i].Policy.AttemptTimeout, maxDuration), below.storm(below.bottom(), 0, true).longest})
	}
	return all
}

func gradedTimeouts(c Chain) Finding {
	if c.DoNotRetry {
		return Finding{}
	}
	for _, p := range c.pairs() {
		if p.run == maxDuration || p.timeout <= p.run || c.Layers[p.above-1].Budget != nil {
			continue
		}
		hang := c.storm(c.bottom(), 0, true).attempts[c.bottom()]
		waits := "without end"
		if p.timeout < maxDuration {
			waits = roughly(p.timeout)
		}
		return Finding{
			Code: "graded-timeouts", Level: oneMore(Warning, hang >= 10),
			Text: fmt.Sprintf("Layer %d waits %s for an attempt, longer than the %s that a failing run of layer %d takes, and then asks for another such run: %s attempts reach the bottom for one run of the user while it hangs.",
				p.above, waits, roughly(p.run), p.above+1, figure(hang)),
			Change:  "Set Chain.DoNotRetry to true: let a service whose calls have failed for good answer that the request must not be repeated.",
			Figures: map[string]float64{"layer": float64(p.above), "run": p.run.Seconds(), "hang": hang},
		}
	}
	return Finding{}
}

func timeoutBelowRun(c Chain) Finding {
	for _, p := range c.pairs() {
		if p.timeout > p.run || p.timeout == maxDuration {
			continue
		}
		f := Finding{Code: "timeout-below-run", Level: Warning, Figures: map[string]float64{"layer": float64(p.above), "timeout": p.timeout.Seconds()}}
		takes := "never ends"
		if p.run < maxDuration {
			f.Figures["run"] = p.run.Seconds()
			takes = "takes " + roughly(p.run)
		}
		switch {
		case !c.PassOn:
			f.Text = fmt.Sprintf("Layer %d gives an attempt up after %s, and a failing run of layer %d %s: it goes on though its caller has gone and may have begun another.",
				p.above, roughly(p.timeout), p.above+1, takes)
			f.Change = "Set Chain.PassOn to true: hand the context of each request on to the calls that are made for it."
		case c.DoNotRetry && p.run < maxDuration:
			f.Text = fmt.Sprintf("Layer %d gives an attempt up after %s, and a failing run of layer %d %s: its do-not-retry answer comes too late.",
				p.above, roughly(p.timeout), p.above+1, takes)
			f.Change = fmt.Sprintf("Set Chain.Layers[%d].Policy.AttemptTimeout to %s, or give layer %d fewer attempts.", p.above-1, plainly(raised(p.run+1)), p.above+1)
		default:
			continue
		}
		return f
	}
	return Finding{}
}

func layersWithoutBudget(c Chain) Finding {
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
		return Finding{}
	}
	return Finding{
		Code: "layers-without-budget", Level: oneMore(Warning, attempts >= 10),
		Text: fmt.Sprintf("Layers %s and %s retry without a budget: up to %s attempts reach the bottom for one run of the user in an outage, and %s at worst with a budget of 0.1 in each.",
			strings.Join(without[:last], ", "), without[last], figure(attempts), figure(funded+0.1*float64(len(without)))),
		Change:  "Set Layer.Budget to &retry.BudgetConfig{} in each of them, or MaxAttempts to 1 in every layer but one.",
		Figures: map[string]float64{"layers": float64(len(without)), "attempts": attempts},
	}
}
