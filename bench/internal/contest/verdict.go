package contest

import (
	"fmt"
	"math"
	"slices"
)

// Verdict says whether a target was met. Target.Most is what was allowed.
type Verdict struct {
	Target
	// Measured is a ratio for Ratio, Best and Scaling, in the scenario's unit for Value, allocations for the
	// others. It is 0 where Missing is set.
	Measured float64
	// Missing says why the target could not be judged; it is then not met. Empty means it was judged.
	Missing string
	Met     bool
}

// Judge returns a verdict on each of the scenario's targets, in their order. A target is judged on all of the scenario's
// numbers of cores or, where one was skipped, on none; only allocations do not depend on them. It is an error if a target
// names a contender that is not there, or if r lacks a row or a median.
func Judge(r Result) ([]Verdict, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	var verdicts []Verdict
	for _, t := range r.Scenario.Targets {
		v, err := r.judge(t)
		if err != nil {
			return nil, err
		}
		verdicts = append(verdicts, v)
	}
	return verdicts, nil
}

func (r *Result) judge(t Target) (Verdict, error) {
	ours, against, err := r.Scenario.resolve(t)
	if err != nil {
		return Verdict{}, err
	}
	if skipped := r.Skipped(); len(skipped) > 0 && !t.Kind.ofAllocs() {
		return Verdict{Target: t, Missing: fmt.Sprintf("not measured on %s", coresText(skipped))}, nil
	}
	v := Verdict{Target: t}
	switch t.Kind {
	case Ratio, Best, Value:
		v.Measured = r.worst(ours, against)
	case Allocs:
		v.Measured = float64(r.Rows[ours].Allocs)
	case Beyond, Fewest:
		v.Measured = float64(r.Rows[ours].Allocs - r.fewest(against))
	case Scaling:
		one, most := slices.Index(r.Cores, 1), slices.Index(r.Cores, slices.Max(r.Cores))
		v.Measured = ratio(r.Rows[ours].Medians[one].Center, r.Rows[ours].Medians[most].Center)
		v.Met = v.Measured >= t.Most && !math.IsInf(v.Measured, 0) // a time of zero was not measured
		return v, nil
	}
	v.Met = v.Measured <= t.Most // false of NaN
	return v, nil
}

// worst returns, of all numbers of cores, the greatest ratio of ours to the fastest of against, or the greatest value of
// ours where against is empty.
func (r *Result) worst(ours int, against []int) float64 {
	worst := math.Inf(-1)
	for k := range r.Cores {
		measured := r.Rows[ours].Medians[k].Center
		if len(against) > 0 {
			fastest := math.Inf(1)
			for _, i := range against {
				fastest = min(fastest, r.Rows[i].Medians[k].Center)
			}
			measured = ratio(measured, fastest)
		}
		worst = max(worst, measured)
	}
	return worst
}

func (r *Result) fewest(contenders []int) int {
	fewest := math.MaxInt
	for _, i := range contenders {
		fewest = min(fewest, r.Rows[i].Allocs)
	}
	return fewest
}

// ratio returns a/b. Where b is zero or, by the noise of a difference, below, it returns 1 if a is no more than b and
// infinity else.
func ratio(a, b float64) float64 {
	switch {
	case b > 0 || math.IsNaN(a) || math.IsNaN(b):
		return a / b
	case a <= b:
		return 1
	default:
		return math.Inf(1)
	}
}

func coresText(cores []int) string {
	text := ""
	for i, k := range cores {
		switch {
		case i == 0:
		case i == len(cores)-1:
			text += " and "
		default:
			text += ", "
		}
		text += fmt.Sprint(k)
	}
	if len(cores) == 1 && cores[0] == 1 {
		return text + " core"
	}
	return text + " cores"
}
