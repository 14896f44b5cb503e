package retryplan

// Verdict says what a trigger does to a fleet.
type Verdict uint8

// The verdicts.
const (
	// Safe fleets come back from any trigger: even if every attempt fails, the retries leave capacity to spare.
	Safe Verdict = iota + 1
	// Vulnerable fleets come back from this trigger, but a larger one would tip them into a storm that feeds itself.
	Vulnerable
	// Metastable fleets do not come back from this trigger by themselves: the retries keep the backend busy with work that
	// nobody waits for.
	Metastable
	// Overloaded fleets do not come back, and retries are not the cause. Under the law Overload the runs alone are more than the
	// backend can do, and no policy mends that; under SlowService no attempt is answered while its client waits, which a longer
	// AttemptTimeout or Deadline mends.
	Overloaded
)

// String returns "safe", "vulnerable", "metastable" or "overloaded", "" for the zero Verdict, and "Verdict(5)" for one that
// does not exist.
func (v Verdict) String() string {
	return named(uint8(v), "Verdict", "", "safe", "vulnerable", "metastable", "overloaded")
}

// MarshalText returns String.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Survives reports whether a fleet comes back from its trigger: it is Safe or Vulnerable.
func (v Verdict) Survives() bool { return v == Safe || v == Vulnerable }
