// Package contest says what a benchmark of several libraries is: contenders that do the same work, measured in turns.
package contest

// Form says how a contender uses its library.
type Form string

// The forms.
const (
	Limit   Form = "limit"   // no library: what the work itself costs
	Ours    Form = "ours"    // retry
	Fastest Form = "fastest" // a peer in the fastest form that its documentation shows
	Usual   Form = "usual"   // a peer in the form that most people write
)

// Contender is one way of doing a scenario's work. Exactly one of New and Sample is set.
type Contender struct {
	// Name is "hand-written loop" of a limit, "cenkalti/backoff v5" of a library. Name and Form together are unique
	// in a scenario.
	Name string
	Form Form
	// Remark is what a reader must know to compare fairly, such as what this contender does not do. Empty means
	// nothing.
	Remark string
	// New prepares the work and returns what does it n times over. Several goroutines may call the result at once
	// where the scenario has more than one core.
	New func() func(n int)
	// Sample measures once by itself and returns the result in the scenario's unit, less being better. One
	// goroutine calls it, with GOMAXPROCS set to the number of cores.
	Sample func() float64
}

// Scenario is work that all its contenders do.
type Scenario struct {
	Name  string // a short title
	About string // what is done, in sentences
	// Unit is "ns/op" where contenders have New, else what Sample returns, such as "B" or "ns".
	Unit string
	// Cores are the numbers of cores to measure on, each with a goroutine a core. More than the machine has are
	// skipped. Empty means 1.
	Cores []int
	// Contenders begin with the limits and ours.
	Contenders []Contender
	// Targets are what ours is held to.
	Targets []Target
}

// Target is one thing that ours is held to: Of(ours) is at most Most times Of(against).
type Target struct {
	Rule string // in words
	// Kind says what is compared; see the kinds.
	Kind Kind
	// Ours is the Name of the contender of Form Ours that is held to it. Empty means the scenario's only one.
	Ours string
	// Against is the Name of the contender to compare with, for Ratio and Beyond. The other kinds need none: empty.
	Against string
	// Most is the ratio, number of allocations or bound that must not be exceeded; for Scaling it is the least.
	Most float64
	// Why says what keeps ours from it, for the report to tell where it is missed. Empty means nothing known.
	Why string
}

// Kind is a kind of comparison.
type Kind string

// The kinds, over medians. Ratio, Best and Value hold on each of the scenario's numbers of cores: the worst counts.
const (
	Ratio   Kind = "ratio"   // ours / Against ≤ Most
	Best    Kind = "best"    // ours / the fastest peer ≤ Most, where every Fastest and Usual is a peer
	Value   Kind = "value"   // ours ≤ Most, in the scenario's unit
	Allocs  Kind = "allocs"  // allocations of ours ≤ Most
	Beyond  Kind = "beyond"  // allocations of ours − those of Against ≤ Most
	Fewest  Kind = "fewest"  // allocations of ours − those of the peer with the fewest ≤ Most
	Scaling Kind = "scaling" // throughput of ours on the most cores / on one ≥ Most
)
