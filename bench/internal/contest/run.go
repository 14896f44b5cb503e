package contest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"
)

const (
	// Long beside a barrier and a preemption, short beside a drift of the machine, which then meets all contenders.
	defaultSampleTime = 20 * time.Millisecond
	// The median's 95% confidence interval leaves out 3 values on each side (benchmath.AssumeNothing).
	defaultRounds = 15
)

// Options say how long to measure. The zero Options are the defaults.
type Options struct {
	// SampleTime is about how long a contender that has New runs at once. Zero means 20 ms.
	SampleTime time.Duration
	// Rounds is how often each contender is sampled on each number of cores. Zero means 15.
	Rounds int
	// Progress is told each scenario and number of cores when its turn comes, in a line. Nil means nobody.
	Progress io.Writer
}

// WithDefaults returns o with its zero fields filled in.
func (o Options) WithDefaults() Options {
	o.SampleTime = cmp.Or(o.SampleTime, defaultSampleTime)
	o.Rounds = cmp.Or(o.Rounds, defaultRounds)
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return o
}

// Validate returns an error for each field that is negative, joined, or nil.
func (o *Options) Validate() error {
	var errs []error
	if o.SampleTime < 0 {
		errs = append(errs, fmt.Errorf("contest: Options.SampleTime %v is negative", o.SampleTime))
	}
	if o.Rounds < 0 {
		errs = append(errs, fmt.Errorf("contest: Options.Rounds %d is negative", o.Rounds))
	}
	return errors.Join(errs...)
}

// Run measures the scenarios one after the other and returns a result for each, in their order. On each of a scenario's
// numbers of cores it takes turns: every round samples every contender once, in an order that changes from round to
// round, so that what slows the machine for a while slows all of them. It sets GOMAXPROCS meanwhile.
//
// It returns an error, before it measures anything, if the options or a scenario are not valid or two scenarios have the
// same name. It returns ctx's cause when ctx is done; a sample that has begun is not cut short.
func Run(ctx context.Context, scenarios []Scenario, options Options) ([]Result, error) {
	r := runner{Options: options.WithDefaults(), cores: runtime.NumCPU(), now: time.Now}
	return r.run(ctx, scenarios)
}

// runner is Run with its machine as arguments.
type runner struct {
	Options
	cores int // of the machine
	now   func() time.Time
}

func (r *runner) run(ctx context.Context, scenarios []Scenario) ([]Result, error) {
	errs := []error{r.Validate()}
	for i, s := range scenarios {
		errs = append(errs, s.Validate())
		if slices.ContainsFunc(scenarios[:i], func(o Scenario) bool { return o.Name == s.Name }) {
			errs = append(errs, fmt.Errorf("contest: scenario %q is there twice", s.Name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}

	var results []Result
	for i, s := range scenarios {
		result, err := r.scenario(ctx, s, fmt.Sprintf("%d/%d %s", i+1, len(scenarios), s.Name))
		if err != nil {
			return nil, fmt.Errorf("contest: scenario %q: %w", s.Name, err)
		}
		results = append(results, result)
	}
	return results, nil
}

// scenario measures s, which progress is about.
func (r *runner) scenario(ctx context.Context, s Scenario, progress string) (Result, error) {
	result := Result{Scenario: s, Rows: make([]Row, len(s.Contenders))}
	for i, c := range s.Contenders {
		if ctx.Err() != nil {
			return Result{}, context.Cause(ctx)
		}
		if c.New != nil {
			result.Rows[i].Allocs, result.Rows[i].Bytes = memory(c.New(), r.now)
		}
	}
	for _, cores := range s.cores() {
		if cores > r.cores {
			fmt.Fprintf(r.Progress, "%s: %s skipped, this machine has %d\n", progress, coresText([]int{cores}), r.cores)
			continue
		}
		fmt.Fprintf(r.Progress, "%s: %s\n", progress, coresText([]int{cores}))
		values, err := r.values(ctx, s.Contenders, cores)
		if err != nil {
			return Result{}, err
		}
		result.Cores = append(result.Cores, cores)
		for i := range values {
			result.Rows[i].Medians = append(result.Rows[i].Medians, summary(values[i]))
		}
	}
	return result, nil
}

// values returns, for each contender, a sample of each round.
func (r *runner) values(ctx context.Context, contenders []Contender, cores int) ([][]float64, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	samples := make([]func() float64, len(contenders))
	for i, c := range contenders {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		samples[i] = r.sample(c, cores)
	}
	values := make([][]float64, len(contenders))
	for round := range r.Rounds {
		for _, i := range order(len(contenders), round) {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			runtime.GC() // so that no contender pays for the garbage of another
			values[i] = append(values[i], samples[i]())
		}
	}
	return values, nil
}

// order returns the order in which n contenders are sampled in a round, the first of which is 0. Each round begins with
// another contender, and within n rounds, or 2n if n is odd, each contender follows each other equally often: a balanced
// Latin square, whose first row is 0, 1, n−1, 2, n−2, … (E. J. Williams, Australian Journal of Scientific Research A 2,
// 1949). Turning a fixed order would leave all neighbours as they are.
func order(n, round int) []int {
	indices := make([]int, n)
	for i := range indices {
		zigzag := (i + 1) / 2
		if i%2 == 0 {
			zigzag = n - zigzag
		}
		indices[i] = (zigzag + round) % n
	}
	if n%2 == 1 && round/n%2 == 1 {
		slices.Reverse(indices) // the neighbours that the first n rounds of an odd n lack
	}
	return indices
}
