package wire

import (
	"time"

	"github.com/retrygo/retry/retryplan"
)

// Model is what becomes of attempts.
type Model struct {
	Failure  []float64      `json:"failure,omitempty"`
	Duration retryplan.Dist `json:"duration,omitzero"`
	Deadline Duration       `json:"deadline,omitzero"`
	Horizon  int            `json:"horizon,omitzero"`
}

// Model returns m as retryplan has it.
func (m Model) Model() retryplan.Model {
	return retryplan.Model{Failure: m.Failure, Duration: m.Duration, Deadline: time.Duration(m.Deadline), Horizon: m.Horizon}
}

// Plan is what a policy does to one run.
type Plan struct {
	Attempts         []Attempt          `json:"attempts"`
	Truncated        bool               `json:"truncated"`
	CanStart         int                `json:"effective"`
	TotalWait        Distribution       `json:"total_wait"`
	Elapsed          Distribution       `json:"elapsed"`
	Success          float64            `json:"success"`
	InTime           float64            `json:"in_time"`
	Load             float64            `json:"load"`
	WorstCaseSeconds Number             `json:"worst_case_seconds"`
	Endings          map[string]float64 `json:"endings"` // by reason
}

// Attempt is one attempt of a Plan.
type Attempt struct {
	Number          int     `json:"number"`
	Wait            *Wait   `json:"wait,omitempty"` // before it; none for the first
	Starts          float64 `json:"starts"`         // a probability
	Succeeds        float64 `json:"succeeds"`       // a probability
	EarliestSeconds Number  `json:"earliest_seconds"`
	LatestSeconds   Number  `json:"latest_seconds"`
	Never           string  `json:"never,omitempty"` // the reason for which it can never start
}

// Wait is the wait before an attempt.
type Wait struct {
	LoSeconds   Number `json:"lo_seconds"`
	MeanSeconds Number `json:"mean_seconds"`
	HiSeconds   Number `json:"hi_seconds"`
	P50Seconds  Number `json:"p50_seconds"`
	P90Seconds  Number `json:"p90_seconds"`
	P99Seconds  Number `json:"p99_seconds"`
}

// Distribution is a distribution of durations in figures.
type Distribution struct {
	MinSeconds  Number `json:"min_seconds"`
	MeanSeconds Number `json:"mean_seconds"`
	P50Seconds  Number `json:"p50_seconds"`
	P90Seconds  Number `json:"p90_seconds"`
	P99Seconds  Number `json:"p99_seconds"`
	MaxSeconds  Number `json:"max_seconds"`
}

// NewPlan returns p as data.
func NewPlan(p *retryplan.Plan) Plan {
	plan := Plan{
		Truncated: p.Truncated, CanStart: p.CanStart, TotalWait: NewDistribution(p.TotalWait), Elapsed: NewDistribution(p.Elapsed),
		Success: p.Success, InTime: p.InTime, Load: p.Load, WorstCaseSeconds: inSeconds(p.WorstCase), Endings: byName(p.Endings),
		Attempts: make([]Attempt, len(p.Attempts)),
	}
	for i, a := range p.Attempts {
		plan.Attempts[i] = Attempt{
			Number: a.Number, Starts: a.Starts, Succeeds: a.Succeeds,
			EarliestSeconds: inSeconds(a.Earliest), LatestSeconds: inSeconds(a.Latest),
		}
		if a.Number > 1 {
			w := a.Wait
			plan.Attempts[i].Wait = &Wait{
				inSeconds(w.Lo), inSeconds(w.Mean), inSeconds(w.Hi), inSeconds(w.P50), inSeconds(w.P90), inSeconds(w.P99),
			}
		}
		if a.Never != 0 {
			plan.Attempts[i].Never = Reason(a.Never)
		}
	}
	return plan
}

// NewDistribution returns the figures of d.
func NewDistribution(d retryplan.Distribution) Distribution {
	return Distribution{
		inSeconds(d.Min()), inSeconds(d.Mean()), inSeconds(d.Quantile(.5)), inSeconds(d.Quantile(.9)), inSeconds(d.Quantile(.99)), inSeconds(d.Max()),
	}
}
