package retryplan

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"time"
)

// Judge simulates the seeds of q, on all processors, and counts those whose fleet comes back from the trigger.
//
// A seed is a calm of 2 minutes, the trigger, and 10 minutes after it within which the fleet has to be well. From then
// on the successes of every 5 s, for 20 s, are at least 0.9 of those that are due in them, and one success at all. Then
// it is watched for 2 minutes more, or until the last retry of a run that the trigger hit, for up to 100,000 runs. If
// it is not well any more, the search begins again. Fleets whose attempts take minutes, or in which few runs begin, have
// more time for all of it. Due are the runs that begin, at the latest 2 s after they began, or after the time of all but
// one in a million attempts in a calm if that is longer, times the share that succeeds while no attempt waits in a queue.
// A storm that feeds itself for a minute, or for the longest time that a run takes, ends the seed as lost.
//
// Judge stops after 10 seeds if none of them comes back. When ctx ends, it returns the verdict of the seeds that were
// done, in their order, together with ctx's cause. The same Question has the same Verdict, however many processors
// there are. Other errors are those of Simulate.
func Judge(ctx context.Context, q Question) (Verdict, error) {
	if err := q.validate(); err != nil {
		return Verdict{}, err
	}
	v := Verdict{Trigger: q.trigger()}
	v.Trigger.From = 0
	c, err := q.calm(ctx)
	if err != nil {
		return v, err
	}
	seeds := q.Seeds
	if seeds == 0 {
		seeds = defaultSeeds
	}
	first := min(seeds, enoughLost)
	if err = q.judge(ctx, &v, c, first); err == nil && v.Back > 0 {
		err = q.judge(ctx, &v, c, seeds)
	}
	return v, err
}

// seedOutcome is the simulation of a seed.
type seedOutcome struct {
	outcome   outcome
	calmLost  bool // the seed is lost without the trigger as well
	recovered time.Duration
	calm      runCount
	after     histogram
	watch     time.Duration
	err       error
}

// seed simulates one seed, and if it is lost once more without the trigger.
func (q *Question) seed(ctx context.Context, seed uint64, c calm, progress func(held int)) (o seedOutcome) {
	s, err := q.play(ctx, seed, c, progress)
	o = seedOutcome{outcome: s.decider.outcome, recovered: s.recovered(), calm: s.calm, after: s.after, watch: time.Duration(s.decider.watch), err: err}
	if err != nil || o.outcome == back {
		return o
	}
	if q.trigger().Kind == 0 {
		o.calmLost = true
		return o
	}
	calmly := *q
	calmly.setTrigger(Trigger{})
	s, o.err = calmly.play(ctx, seed, c, progress)
	o.calmLost = s.decider.outcome != back
	return o
}

// judge continues v up to so many seeds, which workers simulate at the same time and which are counted in their order.
func (q *Question) judge(ctx context.Context, v *Verdict, c calm, seeds int) error {
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer func() {
		cancel()
		workers.Wait()
	}()

	held := make(chan int)
	progress := func(n int) {
		select {
		case held <- n:
		case <-ctx.Done():
		}
	}
	next, ended := make(chan int, seeds), make([]chan seedOutcome, seeds)
	for i := v.Seeds; i < seeds; i++ {
		next <- i
		ended[i] = make(chan seedOutcome, 1)
	}
	close(next)
	for range min(runtime.GOMAXPROCS(0), seeds-v.Seeds) {
		workers.Go(func() {
			for i := range next {
				ended[i] <- q.seed(ctx, q.Seed+uint64(i), c, progress)
			}
		})
	}
	for v.Seeds < seeds {
		select {
		case n := <-held:
			q.tell(v, n)
		case o := <-ended[v.Seeds]:
			if o.err != nil {
				return o.err
			}
			v.add(o, q.Seed+uint64(v.Seeds))
			q.tell(v, 0)
		}
	}
	return nil
}

// tell calls Progress.
func (q *Question) tell(v *Verdict, held int) {
	if q.Progress != nil {
		known := *v
		known.Recoveries = slices.Clone(v.Recoveries)
		q.Progress(known, held)
	}
}
