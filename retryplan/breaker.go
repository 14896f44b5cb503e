package retryplan

// simBreaker is the state of a Breaker.
type simBreaker struct {
	state      breakerState
	generation uint32  // of the state: what was sent in an earlier one does not count
	until      int64   // open
	sent       int     // probes
	passed     int     // probes that succeeded
	failures   int     // among samples
	samples    []int64 // the time of each, doubled, and 1 more for a failure
}

type breakerState uint8

const (
	breakerClosed breakerState = iota
	breakerOpen
	breakerProbing
)

// ask returns how long an attempt has to stay away; 0 means go.
func (b *simBreaker) ask(now int64, c *Breaker) int64 {
	if b.state == breakerOpen {
		if now < b.until {
			return b.until - now
		}
		b.turn(breakerProbing)
	}
	if b.state == breakerProbing && b.sent >= c.Probes {
		// The probes are under way, and it is not known for how long, so waiting attempts ask again soon.
		return max(int64(c.Open)/10, 1)
	}
	return 0
}

// send records that an attempt is sent, and returns the generation to pass to ended.
func (b *simBreaker) send() uint32 {
	if b.state == breakerProbing {
		b.sent++
	}
	return b.generation
}

// ended records how an attempt ended, and reports whether that opened the breaker.
func (b *simBreaker) ended(now int64, generation uint32, ok bool, c *Breaker) bool {
	if generation != b.generation {
		return false
	}
	switch b.state {
	case breakerProbing:
		if !ok {
			b.open(now, c)
			return true
		}
		if b.passed++; b.passed == c.Probes {
			b.turn(breakerClosed)
		}
	case breakerClosed:
		b.sample(now, ok, c)
		if n := len(b.samples); n >= c.MinSamples && float64(b.failures) >= float64(c.Failures*float64(n)) {
			b.open(now, c)
			return true
		}
	}
	return false
}

func (b *simBreaker) open(now int64, c *Breaker) {
	b.turn(breakerOpen)
	b.until = later(now, int64(c.Open))
}

func (b *simBreaker) turn(to breakerState) {
	b.state = to
	b.generation++
	b.sent, b.passed, b.failures = 0, 0, 0
	b.samples = b.samples[:0]
}

// sample adds a sample and forgets those that have left the window.
func (b *simBreaker) sample(now int64, ok bool, c *Breaker) {
	for len(b.samples) > 0 && b.samples[0]>>1 <= now-int64(c.Window) {
		b.failures -= int(b.samples[0] & 1)
		b.samples = b.samples[1:]
	}
	failed := int64(1)
	if ok {
		failed = 0
	}
	b.failures += int(failed)
	b.samples = append(b.samples, now<<1|failed)
}
