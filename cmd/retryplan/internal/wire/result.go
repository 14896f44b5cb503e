package wire

import "github.com/retrygo/retry/retryplan"

// Result is what a simulation saw.
type Result struct {
	SimulatedSeconds float64        `json:"simulated_seconds"`
	Events           uint64         `json:"events"`
	Runs             int            `json:"runs"`
	Attempts         int            `json:"attempts"`
	Rejected         int            `json:"rejected"`
	Wasted           int            `json:"wasted"`
	Endings          map[string]int `json:"endings"`               // by reason
	Populations      []Runs         `json:"populations,omitempty"` // of each policy of a mix
	Unfinished       int            `json:"unfinished"`
	Amplification    float64        `json:"amplification"`
	Failed           float64        `json:"failed"`
	Peak             int            `json:"peak"`
	PeakAtSeconds    float64        `json:"peak_at_seconds"`
	Recovered        *bool          `json:"recovered"`        // null if there was no time, or nothing, to judge it by
	RecoverySeconds  *float64       `json:"recovery_seconds"` // null if it did not recover
	Latency          Durations      `json:"latency"`
	Finished         Durations      `json:"finished"`
	Series           Series         `json:"series"`
}

// Runs is what became of the runs of one policy.
type Runs struct {
	Runs      int `json:"runs"`
	Succeeded int `json:"succeeded"`
}

// Durations is the figures of a set of durations.
type Durations struct {
	Count       int     `json:"count"`
	MinSeconds  float64 `json:"min_seconds"`
	MeanSeconds float64 `json:"mean_seconds"`
	P50Seconds  float64 `json:"p50_seconds"`
	P90Seconds  float64 `json:"p90_seconds"`
	P95Seconds  float64 `json:"p95_seconds"`
	P99Seconds  float64 `json:"p99_seconds"`
	MaxSeconds  float64 `json:"max_seconds"`
}

// Series is a time series in columns, as charts want it: every list has one value for each interval.
type Series struct {
	StepSeconds  float64   `json:"step_seconds"`
	StartSeconds []float64 `json:"start_seconds"`
	Offered      []int     `json:"offered"`
	Attempts     []int     `json:"attempts"`
	Arrived      []int     `json:"arrived"`
	Rejected     []int     `json:"rejected"`
	TimedOut     []int     `json:"timed_out"`
	Goodput      []int     `json:"goodput"`
	Failed       []int     `json:"failed"`
	Queue        []int     `json:"queue"`
	Busy         []int     `json:"busy"`
	Waiting      []int     `json:"waiting"`
	Tokens       []float64 `json:"tokens"`
	Open         []int     `json:"open"`
}

// NewResult returns r as data.
func NewResult(r *retryplan.Result) Result {
	result := Result{
		SimulatedSeconds: r.Simulated.Seconds(), Events: r.Events, Runs: r.Runs, Attempts: r.Attempts, Rejected: r.Rejected, Wasted: r.Wasted,
		Endings: byName(r.Endings), Unfinished: r.Unfinished, Amplification: r.Amplification, Failed: r.Failed,
		Peak: r.Peak, PeakAtSeconds: r.PeakAt.Seconds(),
		Latency: NewDurations(r.Latency), Finished: NewDurations(r.Finished), Series: NewSeries(r),
	}
	for _, p := range r.Populations {
		result.Populations = append(result.Populations, Runs(p))
	}
	if r.Judged {
		result.Recovered = &r.Recovered
	}
	if r.Judged && r.Recovered {
		result.RecoverySeconds = never(r.Recovery)
	}
	return result
}

// NewDurations returns the figures of d.
func NewDurations(d retryplan.Durations) Durations {
	return Durations{
		d.Count(), d.Quantile(0).Seconds(), d.Mean().Seconds(), d.Quantile(.5).Seconds(), d.Quantile(.9).Seconds(),
		d.Quantile(.95).Seconds(), d.Quantile(.99).Seconds(), d.Quantile(1).Seconds(),
	}
}

// NewSeries returns the time series of r in columns.
func NewSeries(r *retryplan.Result) Series {
	n := len(r.Series)
	s := Series{
		StepSeconds: r.Step.Seconds(), StartSeconds: make([]float64, n), Tokens: make([]float64, n),
		Offered: column(r, func(p *retryplan.Point) int { return p.Offered }), Attempts: column(r, func(p *retryplan.Point) int { return p.Attempts }),
		Arrived: column(r, func(p *retryplan.Point) int { return p.Arrived }), Rejected: column(r, func(p *retryplan.Point) int { return p.Rejected }),
		TimedOut: column(r, func(p *retryplan.Point) int { return p.TimedOut }), Goodput: column(r, func(p *retryplan.Point) int { return p.Goodput }),
		Failed: column(r, func(p *retryplan.Point) int { return p.Failed }), Queue: column(r, func(p *retryplan.Point) int { return p.Queue }),
		Busy: column(r, func(p *retryplan.Point) int { return p.Busy }), Waiting: column(r, func(p *retryplan.Point) int { return p.Waiting }),
		Open: column(r, func(p *retryplan.Point) int { return p.Open }),
	}
	for i := range r.Series {
		s.StartSeconds[i], s.Tokens[i] = r.Series[i].Start.Seconds(), r.Series[i].Tokens
	}
	return s
}

func column(r *retryplan.Result, of func(*retryplan.Point) int) []int {
	values := make([]int, len(r.Series))
	for i := range r.Series {
		values[i] = of(&r.Series[i])
	}
	return values
}
