package retryplan

import (
	"cmp"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryhedge"
)

// Hedge says when an attempt that is slow gets a second call beside it, as with package retryhedge. A hedge takes a token
// of the budget that pays for retries, and is free without one. The zero Hedge makes none.
type Hedge struct {
	// Delay is the time for which an attempt is under way before the second call. Zero means that Share chooses.
	Delay time.Duration
	// Share is the share of the attempts that get one, in (0,0.5]. Each client tracks the delay for it. Zero means Delay.
	Share float64
}

func (h Hedge) validate(bad *retry.FieldErrors, field string) {
	negative(bad, field+".Delay", h.Delay)
	refuse(bad, h.Delay > 0 && h.Share != 0, field+".Delay", h.Delay, "is set beside Share, which chooses it")
	refuse(bad, !(h.Share >= 0 && h.Share <= 0.5), field+".Share", h.Share, "is outside [0,0.5]")
}

// tracker returns the tracker of a client. It begins with the delay of a long calm.
func (c *clients) tracker(client uint32) *retryhedge.Tracker {
	if c.trackers[client] == nil {
		t, _ := retryhedge.NewTracker(retryhedge.TrackerConfig{Share: c.Hedge.Share}) // validate has accepted it
		usual := 1 - c.Hedge.Share
		warm := cmp.Or(c.warm, c.Server.Service.At(usual))
		for before := maxDuration; before > t.Delay() && t.Delay() > warm; t.Note(false) { // it begins at its Max
			before = t.Delay()
		}
		c.trackers[client] = t
	}
	return c.trackers[client]
}

// planHedge plans a look at the attempt that a run begins, and returns its time, or 0 for a run that makes no hedges.
func (s *simulation) planHedge(i uint32) (due int64) {
	r := s.runs.At(i)
	n := &s.nodes[r.layer]
	delay := n.Hedge.Delay
	if n.trackers != nil {
		delay = n.tracker(r.client).Delay()
	}
	if delay == 0 || s.once(r) {
		return 0
	}
	due = later(s.events.Now, int64(delay))
	a := s.attempts.Take()
	*s.attempts.At(a) = simAttempt{giveUp: s.giveUp(r), hedge: int64(delay), run: i, attempt: r.attempt, layer: r.layer}
	s.events.Plan(due, hedgeDue, a)
	return due
}

// hedge makes the second call of an attempt that is still under way, if its budget pays for it.
func (s *simulation) hedge(a uint32) {
	attempt := *s.attempts.At(a)
	if s.stale(&attempt) {
		s.attempts.Release(a)
		return
	}
	r := s.runs.At(attempt.run)
	n := &s.nodes[r.layer]
	if n.trackers != nil {
		n.tracker(r.client).Note(true)
	}
	pr := retryhedge.Progress{Calls: 1, Running: 1, Since: time.Duration(attempt.hedge), Delay: time.Duration(attempt.hedge)}
	if attempt.giveUp != never {
		pr.Left = time.Duration(attempt.giveUp - s.events.Now)
	}
	starts := retryhedge.Policy{}.Decide(pr).Action == retryhedge.Start
	if !starts || !s.spare(r) || s.spend(r.layer, r.client, retry.Decision{Status: retry.WaitingRetry}).Status != retry.WaitingRetry {
		s.attempts.Release(a)
		return
	}
	s.result.Hedges++
	s.call(attempt.run, a, 0)
}

// spare reports whether the budget of r has a token for a hedge and one for a retry after it, as retryhedge asks for.
func (s *simulation) spare(r *simRun) bool {
	enough := true
	s.nodes[r.layer].pay(r.client, func(b *retry.Budget) { enough = b.Tokens() >= 2 })
	return enough
}

// stale reports whether an attempt is over for its client, and with it this call of it.
func (s *simulation) stale(a *simAttempt) bool {
	r := s.runs.At(a.run)
	return r.attempt != a.attempt || r.calls == 0
}

// goesOn reports whether an attempt waits for its other call after one that ended with err. It notes a first call that
// was quick.
func (s *simulation) goesOn(call *simAttempt, err error) bool {
	r := s.runs.At(call.run)
	n := &s.nodes[r.layer]
	if err == nil && n.trackers != nil && s.events.Now < call.hedge {
		n.tracker(r.client).Note(false)
	}
	if r.calls == 1 {
		return false
	}
	pr := retryhedge.Progress{Calls: 2, Running: 1, HasEnded: true}
	if err != nil {
		pr.Ended, _ = n.policy.Judge(err)
	}
	if (retryhedge.Policy{}).Decide(pr).Action == retryhedge.End {
		return false
	}
	r.calls--
	return true
}
