package retryplan

// The laws of storms: see Certificate.Law. They are derived for a server that works in the order of arrival and executes
// abandoned work, as in Bronson et al., "Metastable Failures in Distributed Systems" (HotOS 2021), and Huang et al.,
// "Metastable Failures in the Wild" (OSDI 2022).
const (
	lawOverload            = "overload"
	lawSlowService         = "slow-service"
	lawNoTimeout           = "no-timeout"
	lawHiddenCapacity      = "hidden-capacity"
	lawSuccessFunded       = "success-funded-budget"
	lawTriggerBelowTimeout = "trigger-below-timeout"
	lawFluid               = "fluid"
	lawRandomArrivals      = "random-arrivals"
)
