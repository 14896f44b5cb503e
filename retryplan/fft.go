package retryplan

import (
	"math"
	"math/bits"
	"math/cmplx"
	"sync"
)

// convolve returns the sums Σ x[j]·y[i−j] for non-negative x and y.
func convolve(x, y []float64) []float64 {
	if len(x) < len(y) {
		x, y = y, x
	}
	out := make([]float64, len(x)+len(y)-1)
	n := 1 << bits.Len(uint(len(out)-1))
	if len(x)*len(y) <= 3*n*bits.Len(uint(n)) { // the plain sum is faster
		for j, weight := range y {
			for i, value := range x {
				out[i+j] += float64(weight * value)
			}
		}
		return out
	}
	// Both in one transform: x as the real part and y as the imaginary one. With Z the transform of x + iy, that of the
	// convolution is X·Y = (Z[k]² − conj(Z[n−k])²) / 4i.
	z := make([]complex128, n)
	for i, v := range x {
		z[i] = complex(v, 0)
	}
	for i, v := range y {
		z[i] += complex(0, v)
	}
	transform(z)
	product := make([]complex128, n)
	for k := range z {
		a, b := z[k], cmplx.Conj(z[(n-k)&(n-1)])
		p := (a*a - b*b) * complex(0, -0.25)
		product[k] = cmplx.Conj(p) // so that the forward transform is the inverse
	}
	transform(product)
	for i := range out {
		out[i] = max(real(product[i])/float64(n), 0) // below 0 by rounding only
	}
	return out
}

// rootCount is the longest transform: of the sum of two of the largest grids.
const rootCount = 1 << 14

// roots returns e^(−2πik/rootCount) for k below rootCount/2.
var roots = sync.OnceValue(func() []complex128 {
	roots := make([]complex128, rootCount/2)
	for k := range roots {
		sin, cos := math.Sincos(2 * math.Pi * float64(k) / rootCount)
		roots[k] = complex(cos, -sin)
	}
	return roots
})

// transform replaces z, whose length is a power of two, by its discrete Fourier transform: Cooley and Tukey, "An
// Algorithm for the Machine Calculation of Complex Fourier Series" (1965), in place.
func transform(z []complex128) {
	n, roots := len(z), roots()
	shift := 64 - bits.Len(uint(n-1))
	for i := range z {
		if j := int(bits.Reverse64(uint64(i)) >> shift); i < j {
			z[i], z[j] = z[j], z[i]
		}
	}
	for half := 1; half < n; half *= 2 {
		stride := rootCount / (2 * half)
		for start := 0; start < n; start += 2 * half {
			low, high := z[start:start+half], z[start+half:start+2*half]
			for k := range low {
				t := high[k] * roots[k*stride]
				low[k], high[k] = low[k]+t, low[k]-t
			}
		}
	}
}
