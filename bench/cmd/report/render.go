package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"
)

const (
	secPerOp    = "sec/op"
	allocsPerOp = "allocs/op"
	bytesPerOp  = "B/op"
)

type results struct {
	config  map[string]string
	samples map[sampleKey][]float64
	names   map[string][]string // of contenders, by benchmark
}

type sampleKey struct {
	bench, contender string
	cores            int
	unit             string
}

func parse(text []byte) (*results, error) {
	r := &results{map[string]string{}, map[sampleKey][]float64{}, map[string][]string{}}
	reader := benchfmt.NewReader(bytes.NewReader(text), "results")
	for reader.Scan() {
		res, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			return nil, fmt.Errorf("not a benchmark result: %v", reader.Result())
		}
		for _, c := range res.Config {
			r.config[c.Key] = string(c.Value)
		}
		bench, parts := res.Name.Parts()
		key := sampleKey{bench: string(bench), cores: 1}
		for _, part := range parts {
			if name, ok := bytes.CutPrefix(part, []byte("/")); ok {
				key.contender += string(name)
			} else if n, err := strconv.Atoi(string(part[1:])); err == nil {
				key.cores = n
			}
		}
		if !slices.Contains(r.names[key.bench], key.contender) {
			r.names[key.bench] = append(r.names[key.bench], key.contender)
		}
		for _, v := range res.Values {
			key.unit = v.Unit
			r.samples[key] = append(r.samples[key], v.Value)
		}
	}
	return r, reader.Err()
}

type table struct {
	scenario
	Measured []int // numbers of cores
	Rows     []row // limits, ours, and peers, the best first
}

// row is a contender. Allocs and Bytes are NaN if they were not counted.
type row struct {
	Name          string
	Medians       []benchmath.Summary // in the scenario's unit, for each number of cores
	Allocs, Bytes benchmath.Summary
}

func (r row) ours() bool  { return strings.HasPrefix(r.Name, "retry") }
func (r row) limit() bool { return strings.HasPrefix(r.Name, "bare-") }
func (r row) peer() bool  { return !r.ours() && !r.limit() }

func (r *results) table(s scenario) table {
	s.Unit = cmp.Or(s.Unit, secPerOp)
	t := table{scenario: s}
	t.Measured, _ = s.cores(r.cores())
	for _, name := range r.names[s.Bench] {
		row := row{Name: name}
		for _, k := range t.Measured {
			row.Medians = append(row.Medians, r.summary(sampleKey{s.Bench, name, k, s.Unit}))
		}
		row.Allocs = r.summary(sampleKey{s.Bench, name, 1, allocsPerOp})
		row.Bytes = r.summary(sampleKey{s.Bench, name, 1, bytesPerOp})
		t.Rows = append(t.Rows, row)
	}
	slices.SortStableFunc(t.Rows, func(a, b row) int { return cmp.Compare(rank(a), rank(b)) })
	return t
}

func rank(r row) float64 {
	switch {
	case r.limit():
		return -2
	case r.ours():
		return -1
	}
	return r.Medians[0].Center
}

// cores returns the number of cores of the machine, 1 if the results do not say.
func (r *results) cores() int {
	n, _ := strconv.Atoi(r.config["cores"])
	return max(n, 1)
}

// summary returns the median and its confidence interval, without an assumption about the distribution: times have a
// long tail. Of allocations it is the least, as they do not depend on the machine: more is a stray one. It is NaN if
// there is no sample.
func (r *results) summary(key sampleKey) benchmath.Summary {
	samples := r.samples[key]
	switch {
	case len(samples) == 0:
		return benchmath.Summary{Center: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
	case key.unit == allocsPerOp || key.unit == bytesPerOp:
		samples = []float64{slices.Min(samples)}
	}
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(samples, &benchmath.DefaultThresholds), 0.95)
}

func (t table) values(r row, unit string) []benchmath.Summary {
	if unit == allocsPerOp {
		return []benchmath.Summary{r.Allocs}
	}
	return r.Medians
}

// leads returns a line for each comparison in which a peer is ahead of ours.
func (t table) leads() (lines []string) {
	ours := t.Ours()
	for _, unit := range []string{t.Unit, allocsPerOp} {
		for k, our := range t.values(ours, unit) {
			title := t.Title
			if len(t.Measured) > 1 && unit != allocsPerOp {
				title += ", " + goroutines(t.Measured[k])
			}
			var ahead []string
			for _, peer := range t.Rows {
				their := t.values(peer, unit)[k]
				if !peer.peer() || !(their.Center < our.Center) {
					continue
				}
				noise := ""
				if our.Lo <= their.Hi && unit != allocsPerOp {
					noise = " (within the noise)"
				}
				ahead = append(ahead, fmt.Sprintf("**%s** %s%s", peer.Name, show(their, unit), noise))
			}
			if ahead != nil {
				lines = append(lines, fmt.Sprintf("- %s: %s %s, after %s", title, ours.Name, show(our, unit), strings.Join(ahead, ", ")))
			}
		}
	}
	return lines
}

// Counted reports whether allocations were counted.
func (t table) Counted() bool { return !math.IsNaN(t.Rows[0].Allocs.Center) }

// Ours returns the first row of ours, or of a limit if ours was not measured.
func (t table) Ours() row { return t.Rows[max(0, slices.IndexFunc(t.Rows, row.ours))] }

type verdict struct {
	Title, Rule, Allowed, Measured, Color string
}

// judge compares ours with a target on each number of cores. The worst counts.
func (t table) judge(target target) verdict {
	v := verdict{Title: t.Title, Rule: target.Rule, Color: "**red**"}
	unit := cmp.Or(target.Unit, t.Unit)
	our, their := t.values(t.Ours(), unit), t.against(target.Against, unit)
	var worst, allowed float64
	noisy := false
	switch {
	case target.Against == "":
		worst, allowed = our[0].Center, target.Plus
		v.Allowed, v.Measured = plain(allowed, unit), plain(worst, unit)
	case unit == allocsPerOp:
		worst, allowed = our[0].Center-their[0].Center, target.Plus
		v.Allowed, v.Measured = fmt.Sprintf("%s %+g", target.Against, allowed), fmt.Sprintf("%s %+g", target.Against, worst)
	case target.Scaling && len(t.Measured) == 1:
		v.Measured, v.Color = "needs 2 cores", "does not apply"
		return v
	default:
		allowed = target.Factor
		for k := range t.Measured {
			ratio, least := our[k].Center/their[k].Center, our[k].Lo/their[k].Hi
			if target.Scaling {
				ratio /= our[0].Center / their[0].Center
				least /= our[0].Hi / their[0].Lo
			}
			if !(ratio <= worst) {
				worst, noisy = ratio, !math.IsNaN(ratio) && !(least > allowed)
			}
		}
		v.Allowed, v.Measured = fmt.Sprintf("%.2f × %s", allowed, target.Against), fmt.Sprintf("%.2f", worst)
	}
	if worst <= allowed {
		v.Color = "green"
	} else if noisy {
		v.Color = "within the noise"
	}
	return v
}

// against returns the values of a contender on each number of cores, NaN if there is none.
func (t table) against(name, unit string) []benchmath.Summary {
	least := slices.Repeat([]benchmath.Summary{{Center: math.NaN()}}, len(t.Measured))
	for _, r := range t.Rows {
		if r.Name == name || name == fastestPeer && r.peer() {
			for k, v := range t.values(r, unit) {
				if !(least[k].Center <= v.Center) {
					least[k] = v
				}
			}
		}
	}
	return least
}

//go:embed RESULTS.md.tmpl
var resultsTemplate string

// render returns the report in Markdown. Equal arguments give equal text.
func render(text []byte, modules string) ([]byte, error) {
	r, err := parse(text)
	if err != nil {
		return nil, err
	}
	var tables []table
	var ahead []string
	var verdicts []verdict
	lacking := map[int][]string{} // titles, by the number of cores that the machine lacks
	for _, s := range scenarios {
		if len(r.names[s.Bench]) == 0 {
			continue
		}
		t := r.table(s)
		tables = append(tables, t)
		if t.Ours().ours() {
			ahead = append(ahead, t.leads()...)
			for _, target := range s.Targets {
				verdicts = append(verdicts, t.judge(target))
			}
		}
		_, lacks := s.cores(r.cores())
		for _, k := range lacks {
			lacking[k] = append(lacking[k], s.Title)
		}
	}
	if len(tables) == 0 {
		return nil, errors.New("no results")
	}
	green := 0
	for _, v := range verdicts {
		if v.Color == "green" {
			green++
		}
	}
	var b bytes.Buffer
	err = template.Must(template.New("").Funcs(template.FuncMap{
		"goroutines": goroutines, "show": show, "times": times, "join": strings.Join,
	}).Parse(resultsTemplate)).Execute(&b, map[string]any{
		"Config": r.config, "Modules": modules, "Ahead": ahead, "Verdicts": verdicts, "Green": green, "Tables": tables,
		"Cores": r.cores(), "Lacking": lacking,
	})
	reading := plain(r.summary(sampleKey{"Clock", "bare-reading", 1, secPerOp}).Center, secPerOp)
	return bytes.ReplaceAll(b.Bytes(), []byte("{reading}"), []byte(reading)), err
}

func goroutines(n int) string {
	if n == 1 {
		return "1 goroutine"
	}
	return fmt.Sprintf("%d goroutines on %d cores", n, n)
}

// times returns how many times that of another contender is what was measured of r, on each number of cores.
func times(r, other row) string {
	var all []string
	for k := range r.Medians {
		if of := other.Medians[k].Center; of > 0 {
			all = append(all, fmt.Sprintf("%.2f", r.Medians[k].Center/of))
		} else {
			all = append(all, "–")
		}
	}
	return strings.Join(all, " / ")
}

// show returns a median and the width of its confidence interval.
func show(s benchmath.Summary, unit string) string {
	if unit == allocsPerOp {
		return plain(s.Center, unit)
	}
	return plain(s.Center, unit) + " ± " + s.PctRangeString()
}

// plain returns a value with its unit, of which what is counted is left out: 36.00ns for sec/op.
func plain(value float64, unit string) string {
	switch {
	case math.IsNaN(value):
		return "–"
	case unit == allocsPerOp:
		return fmt.Sprintf("%g allocs", value)
	case strings.Contains(unit, "sec"):
		return benchunit.Scale(value, benchunit.ClassOf(unit)) + "s"
	}
	return benchunit.Scale(value, benchunit.ClassOf(unit)) + "B"
}
