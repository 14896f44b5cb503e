// Package plots draws what package retryplan computes: as an SVG file, and as an SVG element of a page.
//
// The same input gives the same bytes. Pictures are light or dark as their reader prefers, and series differ in dashes
// and markers as well as in color, so that they survive a gray printer.
package plots

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/retrygo/retry/retryplan"
)

// Most is how many plans or runs one picture can show: a reader cannot distinguish more lines.
const Most = 8

// Plan is a plan with the name that the picture gives it. An empty name counts as "policy 1", "policy 2", ...
type Plan struct {
	Name string
	Plan *retryplan.Plan
}

// Run is a simulation with the name that the picture gives it. An empty name counts as "run 1", "run 2", ...
type Run struct {
	Name   string
	Result retryplan.Result
	// Triggers are those of the Scenario: they are shaded and named.
	Triggers []retryplan.Trigger
}

// Schedule draws the wait before each attempt with its jitter envelope, of one plan or of several side by side. It
// returns an error for no plan, for more than Most, and for a nil Plan.
func Schedule(plans ...Plan) (*Picture, error) {
	plans, err := checkPlans(plans)
	if err != nil {
		return nil, err
	}
	return picture(scheduleDrawing(plans)), nil
}

// TotalWait draws the distribution of Plan.TotalWait as the share of runs that have waited no longer, with the median,
// the 99th percentile and the worst case marked. Errors are those of Schedule.
func TotalWait(plans ...Plan) (*Picture, error) {
	plans, err := checkPlans(plans)
	if err != nil {
		return nil, err
	}
	return picture(totalWaits(plans).drawing()), nil
}

// Plans draws the pictures of Schedule and TotalWait, one above the other. Errors are those of Schedule.
func Plans(plans ...Plan) (*Picture, error) {
	plans, err := checkPlans(plans)
	if err != nil {
		return nil, err
	}
	return picture(scheduleDrawing(plans), totalWaits(plans).drawing()), nil
}

// Outlook draws the pictures of Plans and, beneath them, the distribution of Plan.Elapsed with the callers' deadline,
// zero for none. Errors are those of Schedule.
func Outlook(deadline time.Duration, plans ...Plan) (*Picture, error) {
	plans, err := checkPlans(plans)
	if err != nil {
		return nil, err
	}
	return picture(scheduleDrawing(plans), totalWaits(plans).drawing(), elapsedTimes(plans, deadline).drawing()), nil
}

// drawing is a section of a picture of some width.
type drawing func(width float64) section

func scheduleDrawing(plans []Plan) drawing {
	return func(width float64) section { return scheduleSection(plans, width) }
}

func (ts totals) drawing() drawing {
	return func(width float64) section { return totalSection(ts, width) }
}

// picture puts drawings one above the other.
func picture(parts ...drawing) *Picture {
	return &Picture{sections: func(width float64) []section {
		var all []section
		for _, part := range parts {
			all = append(all, part(width))
		}
		return all
	}}
}

// Simulation draws the time series of a run in panels that share the time axis: load, goodput and queue. Of several
// runs it draws the goodput of each in one panel and the attempts of each in another. If the series is empty, the
// picture says so. It returns an error for no run, for more than Most, and for a series without a Step above 0.
func Simulation(runs ...Run) (*Picture, error) {
	if err := checkCount(len(runs), "run"); err != nil {
		return nil, err
	}
	var errs []error
	named := make([]Run, len(runs))
	for i, r := range runs {
		r.Name = nameOf(r.Name, "run", i)
		if r.Result.Step <= 0 && len(r.Result.Series) > 0 {
			errs = append(errs, fmt.Errorf("plots: %s has a series with a step of %s, not above 0", r.Name, r.Result.Step))
		}
		named[i] = r
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return picture(func(width float64) section { return simulationSection(named, width) }), nil
}

// Load draws the rates of a run alone, and Queue its queue: the two panels of Simulation.
func Load(r Run) *Picture  { return onePanel(r, 0) }
func Queue(r Run) *Picture { return onePanel(r, 1) }

func onePanel(r Run, i int) *Picture {
	return picture(func(width float64) section {
		s := simulationSection([]Run{r}, width)
		if len(s.panels) > i {
			s.panels = s.panels[i : i+1]
		}
		if i > 0 {
			s.keys, s.note = nil, ""
		}
		return s
	})
}

func checkPlans(plans []Plan) ([]Plan, error) {
	if err := checkCount(len(plans), "plan"); err != nil {
		return nil, err
	}
	var errs []error
	named := make([]Plan, len(plans))
	for i, p := range plans {
		p.Name = nameOf(p.Name, "policy", i)
		if p.Plan == nil {
			errs = append(errs, fmt.Errorf("plots: %s has no plan", p.Name))
		}
		named[i] = p
	}
	return named, errors.Join(errs...)
}

func checkCount(n int, noun string) error {
	switch {
	case n == 0:
		return fmt.Errorf("plots: no %s to draw", noun)
	case n > Most:
		return fmt.Errorf("plots: %d %ss in one picture, at most %d can be distinguished", n, noun, Most)
	}
	return nil
}

// longestName is as many runes as fit beside the figures of a legend entry.
const longestName = 40

// nameOf returns a name that fits and that can stand in XML and on a terminal: it may come from a file.
func nameOf(name, fallback string, i int) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return ' '
	}, name)
	name = strings.Join(strings.Fields(name), " ")
	if name == "" {
		return fmt.Sprintf("%s %d", fallback, i+1)
	}
	if runes := []rune(name); len(runes) > longestName {
		return strings.TrimSpace(string(runes[:longestName-1])) + "…"
	}
	return name
}
