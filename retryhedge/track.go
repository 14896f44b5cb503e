package retryhedge

import (
	"cmp"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/retrygo/retry"
)

const (
	// defaultShare sends a second request after the 95th percentile, as in Dean and Barroso, "The Tail at Scale" (CACM
	// 56(2), 2013).
	defaultShare = 0.05
	defaultMin   = time.Millisecond
	defaultMax   = 10 * time.Second

	// A step of the delay, in logarithms. A larger one follows faster and wavers more. If every call becomes slow, a
	// factor of 10 takes ln 10 / (step·(1−Share)) = 49 calls, and ln 10 / (step·Share) = 920 calls back.
	step = 0.05
)

// TrackerConfig sets the share of calls that is hedged, and the bounds of the delay. Its zero value hedges 5% of calls,
// after 1ms to 10s.
type TrackerConfig struct {
	// Share is the share of calls that are still under way after the delay, in (0, 0.5]. A share above the Ratio of the
	// budget that pays for hedges cannot be funded. Zero means 0.05.
	Share float64
	// Min is the shortest delay. Zero means 1ms.
	Min time.Duration
	// Max is the longest delay, at which tracking begins. If calls take longer, more than Share are hedged, as far as the
	// budget allows. Zero means 10s.
	Max time.Duration
}

// Validate returns nil or retry.FieldErrors with every bad field. It refuses a Share outside (0, 0.5], which NaN is too,
// negative delays, and a Min above Max, defaults included.
func (c TrackerConfig) Validate() error {
	var bad retry.FieldErrors
	if !(c.Share >= 0 && c.Share <= 0.5) { // NaN too; 0 is not set
		bad.Refuse("retryhedge.TrackerConfig.Share", c.Share, "is outside (0, 0.5]")
	}
	if c.Min < 0 {
		bad.Refuse("retryhedge.TrackerConfig.Min", c.Min, "is negative")
	}
	if c.Max < 0 {
		bad.Refuse("retryhedge.TrackerConfig.Max", c.Max, "is negative")
	}
	if full := c.Effective(); c.Min >= 0 && c.Max >= 0 && full.Min > full.Max {
		bad.Refuse("retryhedge.TrackerConfig.Min", full.Min, "is above Max", full.Max)
	}
	return bad.Err()
}

// Effective returns c with every default written out. Effective of it is itself.
func (c TrackerConfig) Effective() TrackerConfig {
	return TrackerConfig{cmp.Or(c.Share, defaultShare), cmp.Or(c.Min, defaultMin), cmp.Or(c.Max, defaultMax)}
}

// Tracker chooses the delay of hedges so that a given share of calls is still under way after it. It measures no
// durations, because the durations of calls that a hedge has cut short are not known. After each call that was over
// within the delay, delay ← delay·e^(−step·Share). After each call that was not, delay ← delay·e^(step·(1−Share)). The
// two balance exactly if the share of slow calls is Share, whatever the distribution.
//
// A call that fails within the delay is not counted, nor is one whose caller has gone by then, because these do not
// show how long calls take. Refused hedges are counted.
//
// A Tracker begins at Max, so its first calls are not hedged. From 10s it takes 1,840 calls to come down to 100ms, and
// 920 for each further factor of 10. If it began at Min, its first hedges would take the tokens of the first retries. A
// Max near the longest usual duration makes it quicker.
//
// Use one Tracker for each kind of call, and one Policy value with it for all such calls. It is safe for concurrent use
// and lock-free.
type Tracker struct {
	config   TrackerConfig
	up, down float64
	delay    atomic.Uint64 // the bits of a float64, in nanoseconds
}

// NewTracker returns a Tracker, or the error of c.Validate.
func NewTracker(c TrackerConfig) (*Tracker, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.Effective()
	t := &Tracker{config: c, up: math.Exp(step * (1 - c.Share)), down: math.Exp(-step * c.Share)}
	t.delay.Store(math.Float64bits(float64(c.Max)))
	return t, nil
}

// Delay returns the delay of the next call, in [Min, Max].
func (t *Tracker) Delay() time.Duration { return time.Duration(math.Float64frombits(t.delay.Load())) }

// String returns "hedge 5% of calls, after 1ms to 10s".
func (t *Tracker) String() string {
	return fmt.Sprintf("hedge %v%% of calls, after %v to %v", math.Round(t.config.Share*1e8)/1e6, t.config.Min, t.config.Max)
}

// Note counts a call that was, or was not, under way after the delay. Do calls it. Only other shells, such as a
// simulation, have to.
func (t *Tracker) Note(slow bool) {
	factor := t.down
	if slow {
		factor = t.up
	}
	for {
		old := t.delay.Load()
		d := math.Float64frombits(old) * factor
		d = min(max(d, float64(t.config.Min)), float64(t.config.Max))
		if t.delay.CompareAndSwap(old, math.Float64bits(d)) {
			return
		}
	}
}
