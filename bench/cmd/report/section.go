package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/retrygo/retry/bench/internal/contest"
)

// section returns what was measured of one scenario: limits, ours, then the peers from the fastest to the slowest on the
// first number of cores.
func section(r contest.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", r.Scenario.Name)
	if r.Scenario.About != "" {
		fmt.Fprintf(&b, "%s\n\n", r.Scenario.About)
	}
	for _, cores := range r.Skipped() {
		fmt.Fprintf(&b, "Not measured on %s: this machine has fewer.\n\n", countCores(cores))
	}
	c := columns{Result: r, limit: first(r, contest.Limit), ours: first(r, contest.Ours)}
	var rows [][]string
	var remarks []string
	for _, i := range sorted(r) {
		cells := c.cells(i)
		if remark := r.Scenario.Contenders[i].Remark; remark != "" {
			note := slices.Index(remarks, remark)
			if note < 0 {
				note = len(remarks)
				remarks = append(remarks, remark)
			}
			cells[0] += " " + superscript(note+1)
		}
		rows = append(rows, cells)
	}
	b.WriteString(table(c.header(), rows, 2))
	for i, remark := range remarks {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "- %s %s\n", superscript(i+1), remark)
	}
	return b.String()
}

// sorted returns the order of the rows, as indices of contenders.
func sorted(r contest.Result) []int {
	group := map[contest.Form]int{contest.Limit: 0, contest.Ours: 1, contest.Fastest: 2, contest.Usual: 2}
	indices := make([]int, len(r.Rows))
	for i := range indices {
		indices[i] = i
	}
	slices.SortStableFunc(indices, func(i, j int) int {
		a, b := r.Scenario.Contenders[i], r.Scenario.Contenders[j]
		if d := cmp.Compare(group[a.Form], group[b.Form]); d != 0 || !isPeer(a) || len(r.Cores) == 0 {
			return d
		}
		return cmp.Compare(r.Rows[i].Medians[0].Center, r.Rows[j].Medians[0].Center)
	})
	return indices
}

// first returns the index of the first contender of a form, or -1.
func first(r contest.Result, form contest.Form) int {
	return slices.IndexFunc(r.Scenario.Contenders, func(c contest.Contender) bool { return c.Form == form })
}

// columns are those of a scenario's table. limit and ours are what rows are multiples of, -1 means no such column.
type columns struct {
	contest.Result
	limit, ours int
}

func (c *columns) header() []string {
	header := []string{"contender", "form"}
	for _, cores := range c.Cores {
		if len(c.Scenario.Cores) > 1 || cores > 1 {
			header = append(header, c.Scenario.Unit+", "+countCores(cores))
		} else {
			header = append(header, c.Scenario.Unit)
		}
	}
	if len(c.Cores) > 1 {
		header = append(header, "scaling")
	}
	if c.limit >= 0 {
		header = append(header, "× limit")
	}
	if c.ours >= 0 {
		header = append(header, "× ours")
	}
	if c.countsAllocs() {
		header = append(header, "B/op", "allocs/op")
	}
	return header
}

// cells returns the row of the ith contender.
func (c *columns) cells(i int) []string {
	contender, row := c.Scenario.Contenders[i], c.Rows[i]
	cells := []string{contender.Name, string(contender.Form)}
	for _, median := range row.Medians {
		cells = append(cells, significant(median.Center, 3)+" "+spread(median))
	}
	if len(c.Cores) > 1 {
		fewest := slices.Index(c.Cores, slices.Min(c.Cores))
		most := slices.Index(c.Cores, slices.Max(c.Cores))
		cells = append(cells, times(row.Medians[fewest].Center, row.Medians[most].Center))
	}
	for _, base := range []int{c.limit, c.ours} {
		if base >= 0 {
			cells = append(cells, c.multiples(i, base))
		}
	}
	switch {
	case contender.New != nil:
		cells = append(cells, count(row.Bytes), count(row.Allocs))
	case c.countsAllocs():
		cells = append(cells, "", "") // not counted of a sample
	}
	return cells
}

// multiples returns the medians of the ith contender over those of base, one for each number of cores.
func (c *columns) multiples(i, base int) string {
	var all []string
	for k := range c.Cores {
		all = append(all, times(c.Rows[i].Medians[k].Center, c.Rows[base].Medians[k].Center))
	}
	return strings.Join(all, " / ")
}

func (c *columns) countsAllocs() bool {
	return slices.ContainsFunc(c.Scenario.Contenders, func(o contest.Contender) bool { return o.New != nil })
}
