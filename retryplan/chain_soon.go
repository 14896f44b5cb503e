package retryplan

import (
	"math"
	"slices"
	"time"
)

// soon returns the probability that the last wait was below limit − e, given that the attempt before it ended at e, the
// sum of the waits before it and of the durations of the attempts. It needs keep.
func (c *chain) soon(limit time.Duration, durations measure) func(ended time.Duration) float64 {
	if len(c.leaving) == 0 {
		return func(time.Duration) float64 { return 0 }
	}
	if durations.cells == nil {
		return c.soonAfter(limit, durations.at)
	}
	return c.soonMixed(limit, durations)
}

// soonAfter is soon if the attempts took a fixed time: e determines the sum of the waits before.
func (c *chain) soonAfter(limit, took time.Duration) func(ended time.Duration) float64 {
	b := c.bins
	shares := make([]float64, len(c.leaving[0]))
	first := saturatingAdd(c.leavingOrigin, took)
	for i := range shares {
		left := nanos(limit, first) - 0.5 - float64(i)*float64(c.leavingStep)
		var all, soon float64
		for m, row := range c.leaving {
			all += row[i]
			soon += row[i] * min(max((left-b.edges[m])/b.width(m), 0), 1)
		}
		if all > 0 {
			shares[i] = soon / all
		}
	}
	step := float64(c.leavingStep)
	return func(ended time.Duration) float64 { return between(shares, (float64(ended)-float64(first))/step) }
}

// mixedCells is the number of cells of a row, and of the ends of attempts, for soonMixed.
const mixedCells = 256

// soonMixed is soon if the attempts took a random time D: each sum w of the waits before counts by the probability of D
// = e − w.
func (c *chain) soonMixed(limit time.Duration, durations measure) func(ended time.Duration) float64 {
	b := c.bins
	least := durations.origin
	if durations.atom > 0 {
		least = min(least, durations.at)
	}
	least = max(least, 0)
	first := saturatingAdd(c.leavingOrigin, least) // of the ends
	group := max(int(math.Ceil(max(nanos(limit, first), 1)/float64(c.leavingStep)/mixedCells)), 1)
	step := float64(group) * float64(c.leavingStep)
	fine := len(c.leaving[0])
	n := (fine-1)/group + 1
	// below[m] has the masses of those whose next wait is in a bin before m.
	below := make([]float64, (len(c.leaving)+1)*n)
	for m, row := range c.leaving {
		last, next := below[m*n:(m+1)*n], below[(m+1)*n:(m+2)*n]
		copy(next, last)
		for i, v := range row {
			next[i/group] += v
		}
	}
	all := below[len(c.leaving)*n:]
	// A group stands for its middle, and so does an end: chances[k] is that of a D of k steps.
	ends := int(max(nanos(limit, first), 0)/step) + 2
	var d Distribution
	d.add(durations)
	chances := make([]float64, ends)
	last := 0.
	for k := range chances {
		next := d.mass(saturatingAdd(least, whole((float64(k)+0.5)*step)))
		chances[k], last = max(next-last, 0), next
	}
	shares := make([]float64, ends)
	for k := range shares {
		left := nanos(limit, first) - 0.5 - float64(group-1)/2*float64(c.leavingStep) - float64(k)*step
		m, _ := slices.BinarySearch(b.edges[:len(c.leaving)+1], left)
		m = max(m-1, 0)
		var part float64
		lower := below[m*n : (m+1)*n]
		upper := lower
		if m < len(c.leaving) {
			part = min(max((left-b.edges[m])/b.width(m), 0), 1)
			upper = below[(m+1)*n : (m+2)*n]
		}
		var total, soon float64
		for i := range min(n, k+1) {
			chance := chances[k-i]
			total += float64(chance * all[i])
			soon += chance * (lower[i] + float64(part*(upper[i]-lower[i])))
		}
		switch {
		case total > 0:
			shares[k] = soon / total
		case k > 0:
			shares[k] = shares[k-1]
		default:
			shares[k] = 1
		}
	}
	origin := float64(first) + float64(group-1)/2*float64(c.leavingStep)
	return func(ended time.Duration) float64 {
		if ended >= limit {
			return 0
		}
		return between(shares, (float64(ended)-origin)/step)
	}
}

// between returns the value at x between those at whole numbers, and the first or the last beyond them.
func between(values []float64, x float64) float64 {
	x = min(max(x, 0), float64(len(values)-1))
	i := int(x)
	if i == len(values)-1 {
		return values[i]
	}
	return values[i] + float64((x-float64(i))*(values[i+1]-values[i]))
}
