package retryplan

import (
	"fmt"
	"math"
	"time"

	"github.com/retrygo/retry"
)

// Trigger is trouble of a backend, or a change of its load, that lasts for a while.
type Trigger struct {
	Kind TriggerKind
	// From is when the trigger begins, counted from the start of the simulation. A Question does not use it, since its calm
	// comes first.
	From time.Duration
	// For is the length of the trigger.
	For time.Duration
	// Factor is the strength, as the kinds define it. Stall and Outage do not use it.
	Factor float64
}

// TriggerKind is the effect of a Trigger.
type TriggerKind uint8

// The kinds of trigger.
const (
	Stall       TriggerKind = iota + 1 // the server works on nothing, and goes on afterwards
	Outage                             // the server rejects every attempt at once
	Slowdown                           // work that begins takes Factor times as long; Factor above 1
	CapacityCut                        // only the share Factor, in [0,1), of workers is there, rounded up
	Surge                              // arrivals come Factor times as often; Factor above 0
	Failing                            // attempts that are worked on fail with probability Factor, in (0,1]
)

// String returns "stall", "outage", "slowdown", "capacity_cut", "surge" or "failing", "" for the zero TriggerKind, and
// "TriggerKind(7)" for one that does not exist.
func (k TriggerKind) String() string {
	return named(uint8(k), "TriggerKind", "", "stall", "outage", "slowdown", "capacity_cut", "surge", "failing")
}

// end returns the time at which t ends, saturated.
func (t *Trigger) end() int64 { return later(int64(t.From), int64(t.For)) }

// validate refuses a trigger whose factor or length is out of range. A trigger without a Kind is none.
func (t *Trigger) validate(field string, bad *retry.FieldErrors) {
	factor := func(ok bool, rule string) {
		if math.IsNaN(t.Factor) || math.IsInf(t.Factor, 0) {
			ok, rule = false, "is not a finite number"
		}
		refuse(bad, !ok, field+".Factor", t.Factor, rule)
	}
	switch t.Kind {
	case Slowdown:
		factor(t.Factor > 1, "is not above 1, which Slowdown needs")
	case CapacityCut:
		factor(t.Factor >= 0 && t.Factor < 1, "is outside [0,1), which CapacityCut needs")
	case Surge:
		factor(t.Factor > 0, "is not above 0, which Surge needs")
	case Failing:
		factor(t.Factor > 0 && t.Factor <= 1, "is outside (0,1], which Failing needs")
	default:
		refuse(bad, t.Kind > Failing, field+".Kind", uint8(t.Kind), "is not one of Stall, Outage, Slowdown, CapacityCut, Surge and Failing")
	}
	negative(bad, field+".For", t.For)
}

// named returns the name of a value of an enumeration.
func named(value uint8, enum string, names ...string) string {
	if int(value) < len(names) {
		return names[value]
	}
	return fmt.Sprintf("%s(%d)", enum, value)
}
