package retryplan

import "math"

// Dist.At does not use package math, whose functions are in assembly on some platforms and use fused multiply-add on
// others: a difference of one bit in one sample would change a simulation. Here every product is converted to float64,
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

// exp returns e^x, or 0 if that is too small for a normal float64, or +Inf if it is too large: e^(k·ln 2 + r) = 2^k·(1
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

// probit returns the quantile of the standard normal distribution at p in (0,1), to 1e-15 of itself:
// Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied Statistics 37 (1988), PPND16.
// A p of 0 or less gives the quantile at 1e-300, one of 1 or more its opposite.
func probit(p float64) float64 {
	q := p - 0.5
	if math.Abs(q) <= 0.425 {
		r := 0.180625 - q*q
		return q * quotient(r, &centralRatio)
	}
	tail := max(min(p, 1-p), 1e-300)
	r := math.Sqrt(-ln(tail))
	if r <= 5 {
		r = quotient(r-1.6, &middleRatio)
	} else {
		r = quotient(r-5, &farRatio)
	}
	return math.Copysign(r, q)
}

// quotient returns the quotient of two polynomials of degree 7.
func quotient(r float64, c *[2][8]float64) float64 {
	rr := r * r
	return polynomial(r, rr, &c[0]) / polynomial(r, rr, &c[1])
}

// polynomial returns c0 + c1·r + ... + c7·r⁷ for rr = r², paired so that the processor can work on four terms at a time.
func polynomial(r, rr float64, c *[8]float64) float64 {
	low := c[0] + float64(c[1]*r) + float64(rr*(c[2]+float64(c[3]*r)))
	high := c[4] + float64(c[5]*r) + float64(rr*(c[6]+float64(c[7]*r)))
	return low + float64(float64(rr*rr)*high)
}

// The coefficients of AS 241.
var (
	centralRatio = [2][8]float64{
		{
			3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
			4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3,
		},
		{
			1, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
			2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3,
		},
	}
	middleRatio = [2][8]float64{
		{
			1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
			1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4,
		},
		{
			1, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
			1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9,
		},
	}
	farRatio = [2][8]float64{
		{
			6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
			2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7,
		},
		{
			1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
			7.86869131845613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15,
		},
	}
)
