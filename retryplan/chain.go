package retryplan

import (
	"math"
	"time"
)

// bins are the ranges in which the waits of decorrelated jitter are counted, each of which is even over [Base, 3·s) for
// the one before, s, cut at Cap. The first is Base itself, which the first wait follows. The others end at
// Base·3^(i/perTriple), so that three times a bin is a bin again.
type bins struct {
	base      float64
	perTriple int
	edges     []float64
	// density[i] is that of the wait after one of bin i, in all bins but the last that it reaches. It is such that the
	// wait has the right mean.
	density []float64
}

// newBins returns the bins for the given number of waits.
func newBins(base, limit time.Duration, waits, perTriple int) *bins {
	b := &bins{base: float64(base), perTriple: perTriple, edges: []float64{float64(base)}}
	most := float64(limit)
	for i := 0; i <= waits*perTriple; i++ {
		edge := b.base * math.Pow(3, float64(i)/float64(perTriple))
		if edge >= most*(1-1e-9) {
			b.edges = append(b.edges, most)
			break
		}
		b.edges = append(b.edges, edge)
	}
	for i := range b.len() {
		lo, hi := b.edges[i], b.edges[i+1]
		reach := 3 * lo // the mean of min(3s, Cap)
		if turn := min(max(most/3, lo), hi); hi > lo {
			reach = (3*(turn*turn-lo*lo)/2 + most*(hi-turn)) / (hi - lo)
		}
		near, far := b.edges[b.last(i)]-b.base, b.edges[b.last(i)+1]-b.base
		var density float64
		if near > 0 { // d·near²/2 + (1 − d·near)·(near+far)/2 = (reach − Base)/2
			density = (near + far + b.base - min(reach, most)) / (near * far)
		}
		b.density = append(b.density, density)
	}
	return b
}

func (b *bins) len() int { return len(b.edges) - 1 }

// last returns the last bin that the waits after one of bin i reach.
func (b *bins) last(i int) int { return min(i+b.perTriple, b.len()-1) }

// next returns how often a wait is in each bin, if the one before is so often in each.
func (b *bins) next(before []float64) []float64 {
	after := make([]float64, b.last(len(before)-1)+1)
	var density float64 // of those bins that reach beyond the one in hand
	from := len(before) - 1
	for to := len(after) - 1; to >= 0; to-- {
		after[to] = (b.edges[to+1] - b.edges[to]) * density
		for ; from >= 0 && b.last(from) == to; from-- {
			after[to] += before[from] * max(1-(b.edges[to]-b.base)*b.density[from], 0)
			density += before[from] * b.density[from]
		}
	}
	return after
}

// chain is the joint distribution of the last wait and the sum of all waits, for decorrelated jitter, in which each
// wait depends on the one before: the sums for each bin of the last wait. Sums that are not before limit are left out;
// sums only grow.
type chain struct {
	*bins
	limit   time.Duration
	rows    measure   // one grid for each bin that was reached
	sums    []measure // of the first wait, the first two, and so on
	keeps   bool
	leaving measure // if it keeps them, the sums before the last wait, for each bin of that wait
}

// chainCells is the number of cells of a row, at most.
const chainCells = 1536

func newChain(b *bins, limit time.Duration, keeps bool) *chain {
	return &chain{bins: b, limit: limit, rows: exactly(0, 1), keeps: keeps}
}

// after returns the distribution of the sum of the first n waits, 1 at least, and takes the chain that far.
func (c *chain) after(n int) measure {
	for len(c.sums) < n {
		c.next()
		var sum measure
		if all := c.rows.merged(chainCells, 0); len(all.cells) > 0 {
			sum = measure{all.trimmed(edgeMass)}
		}
		c.sums = append(c.sums, sum)
	}
	return c.sums[n-1]
}

// next takes the chain one wait further.
func (c *chain) next() {
	reach := c.last(len(c.rows)-1) + 1
	room := c.edges[reach] - c.base
	if c.limit < maxDuration {
		room = min(room, float64(c.limit))
	}
	density, rows := c.rows.frame(chainCells, room) // density is of the bins that reach beyond the one in hand
	step, most := float64(density.step), math.Inf(1)
	if c.limit < maxDuration {
		most = float64(c.limit-density.origin) - c.base + 2*step
	}
	c.rows, c.leaving = make(measure, reach), make(measure, reach)
	density.cells = make([]float64, 0, chainCells)
	sums := density
	sums.cells = make([]float64, 0, chainCells)
	from, spilled := len(rows)-1, 0.
	for to := reach - 1; to >= 0; to-- {
		lo, hi := c.edges[to]-c.base, c.edges[to+1]-c.base
		if sums.cells = sums.cells[:0]; c.keeps {
			sums.cells = make([]float64, 0, chainCells)
		}
		for _, v := range density.cells {
			sums.cells = append(sums.cells, (hi-lo)*v)
		}
		for ; from >= 0 && c.last(from) == to; from-- {
			sums.add(rows[from], max(1-lo*c.density[from], 0))
			density.add(rows[from], c.density[from])
		}
		if c.keeps {
			c.leaving[to] = sums
		}
		if lo >= most || hi <= lo {
			continue
		}
		skipped := math.Floor(max(lo-0.5, 0) / step)
		row := grid{saturatingAdd(density.origin, whole(skipped*step)), density.step, nil}
		row.cells = boxed(sums.cells, max(lo-0.5, 0)/step-skipped, (min(hi, most)-0.5)/step-skipped)
		waited := measure{row}.shifted(time.Duration(c.base)).before(c.limit)
		if most < hi {
			waited = waited.scaled((most - lo) / (hi - lo))
		}
		if mass := waited.mass(); mass <= edgeMass {
			spilled += mass
			continue
		}
		row = waited[0].trimmed(edgeMass)
		row.cells[len(row.cells)-1] += spilled
		spilled = 0
		c.rows[to] = row
	}
}
