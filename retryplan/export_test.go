package retryplan

// Throttle is a mechanism of another library, whose published figures the simulation is compared with.
type Throttle = throttle

// ErrHeldBack is what an attempt that a Throttle holds back fails with.
var ErrHeldBack = errHeldBack

// SetThrottle gives each client of s a throttle, or all of them one if Shared.
func SetThrottle(s *Scenario, throttle func() Throttle) { s.throttle = throttle }
