package retryplan

import (
	"math"
	"time"
)

// bins are the ranges in which the waits of decorrelated jitter are counted. They are Base·3^(i/perTriple), cut at Cap,
// so that three times a bin is a bin again.
type bins struct {
	base, limit float64
	perTriple   int
	edges       []float64
	// inverse[i] is the mean of 1/(min(3s, Cap) − Base) over the bin i: the density of the wait that follows s.
	inverse []float64
}

// newBins returns the bins for the given number of waits.
func newBins(base, limit time.Duration, waits, perTriple int) *bins {
	b := &bins{base: float64(base), limit: float64(limit), perTriple: perTriple}
	for i := 0; i <= waits*perTriple; i++ {
		edge := b.base * math.Pow(3, float64(i)/float64(perTriple))
		if edge >= b.limit*(1-1e-9) {
			b.edges = append(b.edges, b.limit)
			break
		}
		b.edges = append(b.edges, edge)
	}
	for i := range len(b.edges) - 1 {
		lo, hi := b.edges[i], b.edges[i+1]
		// The integral of 1/(3s−Base) is ln(3s−Base)/3, up to Cap/3.
		turn := min(max(b.limit/3, lo), hi)
		whole := math.Log((3*turn-b.base)/(3*lo-b.base))/3 + (hi-turn)/(b.limit-b.base)
		b.inverse = append(b.inverse, whole/(hi-lo))
	}
	return b
}

func (b *bins) len() int             { return len(b.edges) - 1 }
func (b *bins) width(i int) float64  { return b.edges[i+1] - b.edges[i] }
func (b *bins) middle(i int) float64 { return (b.edges[i] + b.edges[i+1]) / 2 }

// share returns the share of the waits that follow one of bin from that fall into bin to.
func (b *bins) share(from, to int) float64 {
	last := min(from+b.perTriple, b.len()-1)
	switch {
	case to < last:
		return b.width(to) * b.inverse[from]
	case to == last:
		return max(1-(b.edges[to]-b.base)*b.inverse[from], 0)
	default:
		return 0
	}
}

// marginals returns the distribution of each of the given number of waits over the bins.
func (b *bins) marginals(waits int) [][]float64 {
	out := make([][]float64, 0, waits)
	first := make([]float64, b.len())
	reach := min(b.perTriple, b.len())
	for i := range reach {
		first[i] = b.width(i) / (b.edges[reach] - b.base)
	}
	out = append(out, first)
	for len(out) < waits {
		prev, next := out[len(out)-1], make([]float64, b.len())
		var density float64 // of those bins that reach beyond the one in hand
		from := b.len() - 1
		for to := b.len() - 1; to >= 0; to-- {
			for ; from >= 0 && min(from+b.perTriple, b.len()-1) > to; from-- {
				density += prev[from] * b.inverse[from]
			}
			next[to] = density * b.width(to)
			for l := from; l >= 0 && min(l+b.perTriple, b.len()-1) == to; l-- {
				next[to] += prev[l] * b.share(l, to)
			}
		}
		out = append(out, next)
	}
	return out
}

// chain is the joint distribution of the last wait and the sum of all waits, for decorrelated jitter, in which each
// wait depends on the one before: one row of sums for each bin of waits. Sums that are not before limit are left out;
// sums only grow.
type chain struct {
	bins   *bins
	limit  time.Duration
	cells  int // at most, of a row
	waits  int
	origin time.Duration
	step   time.Duration
	n      int // cells of a row
	rows   [][]float64
	// leaving[m] is, before the last step, the distribution of the sums whose next wait is in bin m, if it was kept.
	leaving       [][]float64
	leavingOrigin time.Duration
	leavingStep   time.Duration
	keep          bool

	sum []float64 // of all rows

	values, spare, kept []float64 // what rows, the next rows and leaving are cut from: the largest part of all memory
}

func newChain(b *bins, limit time.Duration, cells int) *chain {
	return &chain{bins: b, limit: limit, cells: cells, step: 1}
}

// next takes the chain one wait further.
func (c *chain) next() {
	b := c.bins
	base := time.Duration(b.base)
	if c.waits == 0 {
		c.rows, c.n = [][]float64{{1}}, 1
	}
	reach := min((c.waits+1)*b.perTriple, b.len())
	if c.waits > 0 {
		reach = min(len(c.rows)+b.perTriple, b.len())
	}
	span := b.edges[reach] - b.base
	if c.limit < maxDuration {
		span = min(span, max(float64(c.limit)-float64(c.origin)-b.base, 1))
	}
	for c.tooLong(span) {
		c.coarsen()
	}
	step := float64(c.step)
	begin := 1 - 0.5/step // as in waited
	grown := c.n + int(min(begin+span/step, farCell)) + 2
	if c.limit < maxDuration {
		// One cell more than reaches the limit: see shareBefore.
		reached := (float64(c.limit)-float64(c.origin)-b.base)/step + 3
		grown = max(min(grown, int(min(reached, 1e9))), 1)
	}
	pad := grown + 5 // a wait that is longer is beyond the last cell
	c.values, c.spare = zeros(c.spare, reach*grown), c.values
	rows := cut(c.values, reach, grown)
	c.leaving = nil
	if c.keep {
		c.kept = zeros(c.kept, reach*c.n)
		c.leaving = cut(c.kept, reach, c.n)
		c.leavingOrigin, c.leavingStep = c.origin, c.step
	}
	density := make([]float64, c.n) // of the rows whose reach is beyond the bin in hand
	arriving := make([]float64, c.n)
	cumulated := make([]float64, pad+c.n+max(pad, grown))
	cumulate := func(cells []float64) {
		var running float64
		for i, v := range cells {
			running += v
			cumulated[pad+i] = running
		}
		for i := pad + len(cells); i < len(cumulated); i++ {
			cumulated[i] = running
		}
	}
	last := b.len() - 1
	from := len(c.rows) - 1
	final := false // whether cumulated is that of density, and no row is left to be added
	for to := reach - 1; to >= 0; to-- {
		source, factor := density, b.width(to)
		if c.waits == 0 {
			source, factor = c.rows[0], b.width(to)/(b.edges[reach]-b.base)
			if !final {
				cumulate(source)
				final = true
			}
		} else if !final {
			for ; from >= 0 && min(from+b.perTriple, last) > to; from-- {
				weight := b.inverse[from]
				for i, v := range c.rows[from] {
					density[i] += float64(weight * v)
				}
			}
			if from < 0 {
				cumulate(density)
				final = true
			} else {
				for i, v := range density {
					arriving[i] = factor * v
				}
				for l := from; l >= 0 && min(l+b.perTriple, last) == to; l-- {
					weight := b.share(l, to)
					for i, v := range c.rows[l] {
						arriving[i] += float64(weight * v)
					}
				}
				source, factor = arriving, 1
				cumulate(source)
			}
		}
		if c.keep {
			for i, v := range source {
				c.leaving[to][i] = factor * v
			}
		}
		f := newBox(begin+(b.edges[to]-b.base)/step, begin+(b.edges[to+1]-b.base)/step)
		if f.from > grown {
			continue
		}
		f.to, f.emptyInFrontOf = min(f.to, grown+2), pad
		f.apply(rows[to], cumulated, factor)
	}
	c.rows, c.n = rows, grown
	c.origin = saturatingAdd(c.origin, base) - c.step // the boxes begin one cell late
	c.waits++
	c.cut()
}

// tooLong reports whether rows that grow by the given span would have too many cells, those beyond limit left out.
func (c *chain) tooLong(span float64) bool {
	length := float64(c.n)*float64(c.step) + span
	if c.limit < maxDuration {
		length = min(length, float64(c.limit)-float64(c.origin)-c.bins.base)
	}
	return length/float64(c.step) > float64(c.cells-8) && c.step < 1<<61
}

// coarsen doubles the step of all rows, in their place.
func (c *chain) coarsen() {
	for i, row := range c.rows {
		for j, v := range row {
			row[j] = 0
			if j%2 == 0 {
				row[j/2] += v
			} else {
				row[j/2] += v / 2
				row[j/2+1] += v / 2
			}
		}
		c.rows[i] = row[:len(row)/2+1]
	}
	c.n = c.n/2 + 1
	c.step *= 2
}

// zeros returns n zeros, in the memory of buffer if that is large enough.
func zeros(buffer []float64, n int) []float64 {
	if cap(buffer) < n {
		return make([]float64, n, n+n/2)
	}
	clear(buffer[:n])
	return buffer[:n]
}

// cut returns values in rows of n.
func cut(values []float64, rows, n int) [][]float64 {
	out := make([][]float64, rows)
	for i := range out {
		out[i] = values[i*n : (i+1)*n]
	}
	return out
}

// cut leaves out the sums that are not before limit, and moves what there is beyond all but edgeMass, on either side,
// to the edge there.
func (c *chain) cut() {
	total := make([]float64, c.n)
	for _, row := range c.rows {
		for i, v := range row {
			total[i] += v
		}
	}
	m := measure{origin: c.origin, step: c.step}
	n := c.n
	for n > 1 && m.shareBefore(n-1, c.limit) <= 0 {
		n--
	}
	for i := n - 1; i >= 0; i-- {
		share := m.shareBefore(i, c.limit)
		if share == 1 {
			break
		}
		for _, row := range c.rows {
			row[i] *= share
		}
		total[i] *= share
	}
	end, rest := n, 0.
	for end > 1 && rest+total[end-1] <= edgeMass {
		end--
		rest += total[end]
	}
	total[end-1] += rest
	begin := 0
	rest = 0
	for begin < end-1 && rest+total[begin] <= edgeMass {
		rest += total[begin]
		begin++
	}
	total[begin] += rest
	for i, row := range c.rows {
		row[end-1] += massOf(row[end:n])
		row[begin] += massOf(row[:begin])
		c.rows[i] = row[begin:end]
	}
	c.origin += time.Duration(begin) * c.step
	c.n, c.sum = end-begin, total[begin:end]
}

// sums returns the distribution of the sum of the waits so far.
func (c *chain) sums() measure {
	return measure{origin: c.origin, step: c.step, cells: c.sum}
}
