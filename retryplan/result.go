package retryplan

import (
	"time"

	"github.com/retrygo/retry"
)

// Result has the figures of the simulation of one seed, through the calm, the trigger, and the time after it until the
// outcome was known.
type Result struct {
	// Series has a Point for each interval of the length Step, from 0 on.
	Series []Point
	Step   time.Duration
	// Trigger is the trouble with the From that it had.
	Trigger Trigger
	// Recovery is the time from the end of the trigger until the fleet was well, and stayed so (see Judge). It is negative
	// if the fleet did not come back.
	Recovery time.Duration

	Runs     int // begun
	Attempts int // sent to the backend, or to the bottom of a chain, hedges included
	Hedges   int // second calls beside a slow one; of all layers of a chain
	Rejected int // attempts that the backend rejected
	Wasted   int // attempts that were worked on, to the end, until after their client had gone
	// Nodes is the number of attempts that were sent to each node.
	Nodes []int
	// Endings counts the runs by how they ended, success under the zero Reason. Together with Unfinished they are all
	// Runs.
	Endings map[retry.Reason]int
	// Unfinished are the runs that were under way when the simulation ended.
	Unfinished int
	// Latency is the distribution of the time from a run's start to its success, to 0.2 %.
	Latency Distribution
}

// Point is one interval of a simulation.
type Point struct {
	Start    time.Duration
	Offered  int // runs begun
	Attempts int // attempts sent
	Rejected int // attempts that the backend rejected
	TimedOut int // attempts that their client gave up; of all layers of a chain
	Goodput  int // runs that succeeded
	Queue    int // attempts that waited for a worker at the end of the interval
}
