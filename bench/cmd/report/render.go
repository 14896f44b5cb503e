package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"maps"
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

// results are the samples in Go's benchmark format: by benchmark, contender, number of cores and unit.
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

// table is what was measured of a scenario.
type table struct {
	scenario
	Measured, Lacking []int // numbers of cores
	Rows              []row // limits, ours, and peers, the best first
	Allocs            bool  // whether allocations are counted
}

type row struct {
	Name          string
	Medians       []benchmath.Summary // by Measured
	Allocs, Bytes benchmath.Summary
}

func (r row) Ours() bool  { return strings.HasPrefix(r.Name, "retry") }
func (r row) Limit() bool { return strings.HasPrefix(r.Name, "bare-") }
func (r row) Peer() bool  { return !r.Ours() && !r.Limit() }

func (r *results) table(s scenario) table {
	s.Unit = cmp.Or(s.Unit, secPerOp)
	t := table{scenario: s}
	cores, _ := strconv.Atoi(r.config["cores"])
	for _, k := range max1(s.Cores) {
		if k <= max(cores, 1) {
			t.Measured = append(t.Measured, k)
		} else {
			t.Lacking = append(t.Lacking, k)
		}
	}
	for _, name := range r.names[s.Bench] {
		key := sampleKey{s.Bench, name, 1, allocsPerOp}
		t.Allocs = t.Allocs || len(r.samples[key]) > 0
		row := row{Name: name, Allocs: r.least(key)}
		key.unit = bytesPerOp
		row.Bytes = r.least(key)
		for _, key.cores = range t.Measured {
			key.unit = s.Unit
			row.Medians = append(row.Medians, r.summary(key))
		}
		t.Rows = append(t.Rows, row)
	}
	slices.SortStableFunc(t.Rows, func(a, b row) int {
		if !a.Peer() || !b.Peer() {
			return cmp.Compare(rank(a), rank(b))
		}
		return cmp.Compare(a.Medians[0].Center, b.Medians[0].Center)
	})
	return t
}

func rank(r row) int {
	switch {
	case r.Limit():
		return 0
	case r.Ours():
		return 1
	}
	return 2
}

func max1(cores []int) []int {
	if len(cores) == 0 {
		return []int{1}
	}
	return cores
}

// summary returns the median and its confidence interval, without an assumption about the distribution: times have a
// long tail. It is NaN if there is no sample.
func (r *results) summary(key sampleKey) benchmath.Summary {
	if len(r.samples[key]) == 0 {
		return benchmath.Summary{Center: math.NaN(), Lo: math.NaN(), Hi: math.NaN()}
	}
	return benchmath.AssumeNothing.Summary(benchmath.NewSample(r.samples[key], &benchmath.DefaultThresholds), 0.95)
}

// least returns the least of the samples, for what does not depend on the machine: more than that is a stray allocation.
func (r *results) least(key sampleKey) benchmath.Summary {
	if len(r.samples[key]) == 0 {
		return r.summary(key)
	}
	least := slices.Min(r.samples[key])
	return benchmath.Summary{Center: least, Lo: least, Hi: least}
}

func (t *table) values(r row, unit string) []benchmath.Summary {
	if unit == allocsPerOp {
		return []benchmath.Summary{r.Allocs}
	}
	return r.Medians
}

// lead is a row in which a peer is ahead of ours.
type lead struct {
	What, Ours string
	Peers      []string
}

func leads(t table) (all []lead) {
	for _, ours := range t.Rows {
		if !ours.Ours() {
			continue
		}
		for _, unit := range []string{t.Unit, allocsPerOp} {
			for k, our := range t.values(ours, unit) {
				l := lead{What: t.Title, Ours: ours.Name + " " + show(our, unit)}
				if len(t.Measured) > 1 && unit != allocsPerOp {
					l.What += ", " + goroutines(t.Measured[k])
				}
				for _, peer := range t.Rows {
					their := t.values(peer, unit)[k]
					if !peer.Peer() || !(their.Center < our.Center) {
						continue
					}
					text := "**" + peer.Name + "** " + show(their, unit)
					if our.Lo <= their.Hi && their.Lo <= our.Hi && unit != allocsPerOp {
						text += " (within the noise)"
					}
					l.Peers = append(l.Peers, text+": "+t.note(peer.Name))
				}
				if len(l.Peers) > 0 {
					all = append(all, l)
				}
			}
		}
	}
	return all
}

func (t *table) note(name string) string { return cmp.Or(t.Notes[name], notes[name]) }

// verdict is a target and what was measured.
type verdict struct {
	Title, Rule, Allowed, Measured, Color string
}

func (t *table) verdicts() (all []verdict) {
	for _, target := range t.Targets {
		for _, ours := range t.Rows {
			if ours.Ours() {
				all = append(all, t.judge(target, ours))
			}
		}
	}
	return all
}

func (t *table) judge(target target, ours row) verdict {
	unit := cmp.Or(target.Unit, t.Unit)
	v := verdict{Title: t.Title, Rule: target.Rule, Color: "green"}
	our, their := t.values(ours, unit), t.against(target.Against, unit)
	var worst, allowed float64
	noisy := false
	switch {
	case target.Against == "":
		worst, allowed = our[0].Center, target.Plus
		v.Allowed, v.Measured = plain(allowed, unit), plain(worst, unit)
	case target.Factor == 1 && unit == allocsPerOp:
		worst, allowed = our[0].Center, their[0].Center+target.Plus
		v.Allowed, v.Measured = fmt.Sprintf("%s %+g", target.Against, target.Plus), fmt.Sprintf("%s %+g", target.Against, worst-their[0].Center)
	case target.Scaling && len(t.Measured) < 2:
		v.Allowed, v.Measured, v.Color = "", "needs 2 cores", "does not apply"
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
	switch {
	case worst <= allowed:
	case noisy:
		v.Color = "within the noise"
	default:
		v.Color = "**red**"
	}
	return v
}

// against returns the values of a contender on each number of cores, NaN if there is none.
func (t *table) against(name, unit string) []benchmath.Summary {
	least := make([]benchmath.Summary, len(t.Measured))
	for k := range least {
		least[k].Center = math.NaN()
	}
	for _, r := range t.Rows {
		if r.Name == name || name == fastestPeer && r.Peer() {
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
func render(text []byte, modules []string) ([]byte, error) {
	r, err := parse(text)
	if err != nil {
		return nil, err
	}
	var tables []table
	var ahead []lead
	var verdicts []verdict
	for _, s := range scenarios {
		if len(r.names[s.Bench]) == 0 {
			continue
		}
		t := r.table(s)
		tables, ahead, verdicts = append(tables, t), append(ahead, leads(t)...), append(verdicts, t.verdicts()...)
	}
	reading := plain(r.summary(sampleKey{"Clock", "bare-reading", 1, secPerOp}).Center, secPerOp)
	green := 0
	for _, v := range verdicts {
		if v.Color == "green" {
			green++
		}
	}
	var b bytes.Buffer
	err = template.Must(template.New("").Funcs(template.FuncMap{
		"goroutines": goroutines, "show": show, "plain": plain,
		"note":  func(t table, name string) string { return strings.ReplaceAll(t.note(name), "{reading}", reading) },
		"ratio": func(t table, r row, to row) string { return ratios(r, to) },
		"limit": func(t table) row { return t.Rows[0] },
		"ours":  func(t table) row { return t.Rows[max(0, slices.IndexFunc(t.Rows, row.Ours))] },
	}).Parse(resultsTemplate)).Execute(&b, map[string]any{
		"Config": r.config, "Modules": modules, "Ahead": ahead, "Verdicts": verdicts, "Green": green, "Tables": tables, "Reading": reading,
		"Cores": counted(r.config["cores"], "core"), "Lacking": lacking(tables),
	})
	return b.Bytes(), err
}

// lacking returns sentences about the rows that need more cores than the machine has.
func lacking(tables []table) (sentences []string) {
	titles := map[int][]string{}
	for _, t := range tables {
		for _, k := range t.Lacking {
			titles[k] = append(titles[k], t.Title)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(titles)) {
		sentences = append(sentences, fmt.Sprintf("Rows of %d goroutines do not apply to this machine: %s.", k, strings.Join(titles[k], "; ")))
	}
	return sentences
}

func counted(n, what string) string {
	if n != "1" {
		what += "s"
	}
	return n + " " + what
}

func goroutines(n int) string {
	if n == 1 {
		return "1 goroutine"
	}
	return fmt.Sprintf("%d goroutines on %d cores", n, n)
}

func ratios(r, to row) string {
	var all []string
	for k := range r.Medians {
		if of := to.Medians[k].Center; of > 0 {
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
