package retryplan

// Stability says what a trigger does to a fleet.
type Stability uint8

// The stabilities, from the best to the worst.
const (
	// Safe fleets come back from any trigger: even if every attempt fails, the retries leave capacity to spare.
	Safe Stability = iota + 1
	// Vulnerable fleets come back from this trigger, but a larger one would tip them into a storm that feeds itself.
	Vulnerable
	// Metastable fleets do not come back from this trigger by themselves: the retries keep the backend busy with work
	// that no client waits for.
	Metastable
	// Overloaded fleets do not come back, and retries are not the cause. Under the law Overload the runs alone are more
	// than the backend can do, and no policy mends that; under SlowService no attempt is answered while its client
	// waits, and under RandomArrivals too few are, which a longer AttemptTimeout or Deadline mends.
	Overloaded
)

// String returns "safe", "vulnerable", "metastable" or "overloaded", "" for the zero Stability, and "Stability(5)" for
// one that does not exist.
func (s Stability) String() string {
	return named(uint8(s), "Stability", "", "safe", "vulnerable", "metastable", "overloaded")
}

// Survives reports whether a fleet comes back from its trigger: it is Safe or Vulnerable.
func (s Stability) Survives() bool { return s == Safe || s == Vulnerable }
