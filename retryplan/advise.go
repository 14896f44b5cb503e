package retryplan

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

// Advice is a change that was simulated on the seeds of a Question.
type Advice struct {
	// Change is a sentence like that of Finding.Change.
	Change string
	// Verdict is about the changed fleet.
	Verdict Verdict

	question Question
}

// Advise simulates changes of the fleet of q, of which v is the Verdict, and returns those with which no larger share of
// the seeds is lost and no more runs of the calm fail than chance explains. They are the changes of the findings, in
// their order, and if v has lost seeds changes that often help, which are one budget for all calls, two attempts, full
// jitter, twice the timeout. A Change that does not matter to a simulation, such as that of MaxHint, is returned with v.
// A chain has no advice.
//
// When ctx ends, Advise returns the advice so far together with ctx's cause. Its other errors are those of Judge.
func Advise(ctx context.Context, q Question, v Verdict, findings ...Finding) (kept []Advice, err error) {
	if len(q.Chain.Layers) > 0 {
		return nil, nil
	}
	if err := q.validate(); err != nil {
		return nil, err
	}
	for _, c := range changesOf(q, v, findings) {
		changed := v
		if c.matters {
			if changed, err = Judge(ctx, c.question); err != nil {
				return kept, err
			}
		}
		if !changed.worse(&v) {
			kept = append(kept, Advice{c.text, changed, c.question})
		}
	}
	return kept, nil
}

// change is a question that differs in one thing.
type change struct {
	text     string
	question Question
	matters  bool // to the simulation
}

// changesOf returns the changes to simulate.
func changesOf(q Question, v Verdict, findings []Finding) (all []change) {
	progress := q.Progress
	q.Progress = func(_ Verdict, held int) {
		if progress != nil {
			progress(v, held)
		}
	}
	add := func(text string, do func(q *Question)) {
		known := slices.ContainsFunc(all, func(c change) bool { return c.text == text })
		changed := q
		do(&changed)
		if !known && changed.validate() == nil {
			all = append(all, change{text, changed, true})
		}
	}
	for _, f := range findings {
		if f.changed == nil {
			all = append(all, change{f.Change, q, false})
			continue
		}
		add(f.Change, func(q *Question) {
			q.Policy = *f.changed
			q.Policy.Budget = nil // which is that of the fleet
			if f.funded {
				q.Fleet.Budget, q.Fleet.Clients = &retry.BudgetConfig{}, 1
			}
		})
	}
	if v.Back == v.Seeds {
		return all
	}
	p := q.Policy.Effective()
	retries := !p.Disabled && p.MaxAttempts != 1
	if retries && (q.Fleet.Budget == nil || q.Fleet.Clients > 1) {
		add(budgetChange, func(q *Question) { q.Fleet.Budget, q.Fleet.Clients = &retry.BudgetConfig{}, 1 })
	}
	if retries && p.MaxAttempts != 2 {
		add("Set MaxAttempts to 2.", func(q *Question) { q.Policy.MaxAttempts = 2 })
	}
	if retries && p.Jitter != retry.FullJitter {
		add("Set Jitter to retry.FullJitter.", func(q *Question) { q.Policy.Jitter, q.Policy.JitterRatio = retry.FullJitter, 0 })
	}
	if p.AttemptTimeout > 0 && p.AttemptTimeout < time.Hour {
		add("Set AttemptTimeout to "+plainly(2*p.AttemptTimeout)+".", func(q *Question) { q.Policy.AttemptTimeout *= 2 })
	}
	return all
}

// worse reports whether v loses a larger share of its seeds than given, or fails more of its calm than chance explains.
func (v *Verdict) worse(given *Verdict) bool {
	if v.Back*given.Seeds < given.Back*v.Seeds {
		return true
	}
	n, m := float64(max(v.calm.ended, 1)), float64(max(given.calm.ended, 1))
	both := float64(v.calm.failed+given.calm.failed) / (n + m)
	return v.CalmFailed-given.CalmFailed > 3*math.Sqrt(both*(1-both)*(1/n+1/m))
}
