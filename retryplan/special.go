package retryplan

import "math"

// Dist.At does not use package math, whose functions are in assembly on some platforms and use fused multiply-add on
// others. A difference of one bit in one sample would change a simulation. Here every product is converted to float64,
// which rounds it.

const (
	ln2High = 6.93147180369123816490e-01 // ln 2 with its last 32 bits zero, so that k·ln2High is exact
	ln2Low  = 1.90821492927058770002e-10 // ln 2 − ln2High
)

// ln returns the natural logarithm of a normal x > 0, to about one unit in the last place:
// ln(2^k·m) = k·ln 2 + 2·artanh(s) with s = (m−1)/(m+1), artanh(s) = s + s³/3 + s⁵/5 + ... and |s| < 0.172.
func ln(x float64) float64 {
	bits := math.Float64bits(x)
	k := int(bits>>52) - 1023
	m := math.Float64frombits(bits&(1<<52-1) | 1023<<52)
	if m > math.Sqrt2 {
		m /= 2
		k++
	}
	s := (m - 1) / (m + 1)
	z := s * s
	zz := z * z
	odd := 1./3 + float64(zz*(1./7+float64(zz*(1./11+float64(zz*(1./15+float64(zz*(1./19))))))))
	even := 1./5 + float64(zz*(1./9+float64(zz*(1./13+float64(zz*(1./17+float64(zz*(1./21))))))))
	series := float64(z * (odd + float64(z*even)))
	high := float64(float64(k) * ln2High)
	return high + (2*s + (float64(2*s*series) + float64(float64(k)*ln2Low)))
}

// exp returns e^x, or 0 if that is too small for a normal float64, or +Inf if it is too large. It is e^(k·ln 2 + r) = 2^k·(1
// + r + r²/2! + ... + r¹³/13!) with |r| < 0.347.
func exp(x float64) float64 {
	switch {
	case x > 709.7:
		return math.Inf(1)
	case x < -708:
		return 0
	}
	k := math.Floor(x/math.Ln2 + 0.5)
	r := x - float64(k*ln2High) - float64(k*ln2Low)
	z := r * r
	even := 1 + float64(z*(1./2+float64(z*(1./24+float64(z*(1./720+float64(z*(1./40320+float64(z*(1./3628800+float64(z*(1./479001600))))))))))))
	odd := 1 + float64(z*(1./6+float64(z*(1./120+float64(z*(1./5040+float64(z*(1./362880+float64(z*(1./39916800+float64(z*(1./6227020800))))))))))))
	half := math.Float64frombits(uint64(int(k)-1+1023) << 52) // 2^1024 is no float64
	return float64(2*half) * (even + float64(r*odd))
}

// probit returns the quantile of the standard normal distribution at p in (0,1), to 1.2e-9 of itself: P. J. Acklam, "An
// Algorithm for Computing the Inverse Normal Cumulative Distribution Function" (2003). A p of 0 or less gives the
// quantile at 1e-300, and one of 1 or more its opposite.
func probit(p float64) float64 {
	q := p - 0.5
	if math.Abs(q) <= 0.47575 {
		return q * polynomial(q*q, &centralRatio[0]) / polynomial(q*q, &centralRatio[1])
	}
	r := math.Sqrt(-2 * ln(max(min(p, 1-p), 1e-300)))
	return math.Copysign(polynomial(r, &tailRatio[0])/polynomial(r, &tailRatio[1]), q)
}

// polynomial returns c0·x⁵ + c1·x⁴ + ... + c5.
func polynomial(x float64, c *[6]float64) (sum float64) {
	for _, coefficient := range c {
		sum = float64(sum*x) + coefficient
	}
	return sum
}

// Acklam's coefficients a and b, and c and d.
var (
	centralRatio = [2][6]float64{
		{-39.69683028665376, 220.9460984245205, -275.9285104469687, 138.3577518672690, -30.66479806614716, 2.506628277459239},
		{-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572, 1},
	}
	tailRatio = [2][6]float64{
		{-0.007784894002430293, -0.3223964580411365, -2.400758277161838, -2.549732539343734, 4.374664141464968, 2.938163982698783},
		{0, 0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1},
	}
)
