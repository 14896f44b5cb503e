package retryplan

import "math"

// box is the convolution of a grid with an even distribution over [from, to) cells, split linearly between nodes. In
// terms of the cumulated masses C it is (F(from) − F(to)) / (to − from) with F(x)[i] = Σ weight[k]·C[i−⌊x⌋−k], k = 0,
// 1, 2: the integral of the hat function whose weights the split has.
type box struct {
	from, to       int // whole cells
	weightA        [3]float64
	weightB        [3]float64
	width          float64
	emptyInFrontOf int
}

func newBox(from, to float64) box {
	// What is farther than any grid is long can be anywhere there, and an int of 32 bits must hold it.
	width := to - from
	from, to = min(from, farCell), min(to, farCell+1)
	a, b := math.Floor(from), math.Floor(to)
	f := box{from: int(a), to: int(b), width: width}
	weights := func(part float64) [3]float64 {
		c, d := 1-(1-part)*(1-part)/2, part*part/2
		return [3]float64{1 - c, c - d, d}
	}
	f.weightA, f.weightB = weights(from-a), weights(to-b)
	if width < 1e-4 {
		// The difference of two sums over so small a width is all rounding: a point instead, which is as good.
		part := from + width/2 - a
		f.weightA, f.weightB, f.width = [3]float64{1 - part, 2*part - 1, -part}, [3]float64{}, 1
	}
	f.emptyInFrontOf = f.to + 3
	return f
}

// longer returns by how many cells the result is longer.
func (f *box) longer() int { return f.to + 2 }

// cumulate returns the cumulated cells with room on both sides for apply.
func (f *box) cumulate(cells, buffer []float64) []float64 {
	pad := f.emptyInFrontOf
	buffer = append(buffer[:0], make([]float64, pad)...)
	var running float64
	for _, v := range cells {
		running += v
		buffer = append(buffer, running)
	}
	for range pad {
		buffer = append(buffer, running)
	}
	return buffer
}

// apply writes f's convolution to out, times the given factor.
func (f *box) apply(out, cumulated []float64, factor float64) {
	factor /= f.width
	a := cumulated[f.emptyInFrontOf-f.from-2:]
	b := cumulated[f.emptyInFrontOf-f.to-2:]
	a, b = a[:len(out)+2], b[:len(out)+2]
	a0, a1, a2 := factor*f.weightA[0], factor*f.weightA[1], factor*f.weightA[2]
	b0, b1, b2 := factor*f.weightB[0], factor*f.weightB[1], factor*f.weightB[2]
	for i := range out {
		upper := float64(a0*a[i+2]) + float64(a1*a[i+1]) + float64(a2*a[i])
		lower := float64(b0*b[i+2]) + float64(b1*b[i+1]) + float64(b2*b[i])
		out[i] = max(upper-lower, 0)
	}
}
