package jobsui

import (
	"context"
	"time"

	"github.com/retrygo/retry/retryjob"
)

// span is a time over which the page shows counts.
type span struct {
	Key, Title string
	width      time.Duration // of a bucket
	buckets    int
}

var spans = []span{
	{"1h", "1 hour", 2 * time.Minute, 30},
	{"24h", "24 hours", time.Hour, 24},
	{"14d", "14 days", 12 * time.Hour, 28},
}

const (
	countTime  = time.Second     // for all counts of a page
	countedFor = 5 * time.Second // how long counts are shown
)

// counts is numbers of jobs by status. Index 0 has their sum.
type counts [retryjob.Canceled + 1]int

func (c *counts) add(s retryjob.Status, n int) {
	if s >= retryjob.Pending && s <= retryjob.Canceled {
		c[s] += n
		c[0] += n
	}
}

// overview is the counts at a time.
type overview struct {
	taken    time.Time
	total    counts
	err      error
	begin    time.Time // of the first bucket
	buckets  []counts  // of jobs by when they came to the status that they have
	failures []retryjob.Failures
}

// overview returns the counts, which may be some seconds old. One request counts at a time.
func (h *handler) overview(ctx context.Context, s *span) *overview {
	select {
	case h.counting <- struct{}{}:
	case <-ctx.Done():
		return &overview{err: ctx.Err()}
	}
	defer func() { <-h.counting }()
	now := time.Now()
	if known := h.counted[s.Key]; known != nil && now.Sub(known.taken) < countedFor {
		return known
	}
	o := h.count(ctx, s, now)
	if o.err == nil {
		if h.counted == nil {
			h.counted = map[string]*overview{}
		}
		h.counted[s.Key] = o
	}
	return o
}

// count asks for each kind of counts once, since an engine may read every job for it.
func (h *handler) count(ctx context.Context, s *span, now time.Time) *overview {
	o := &overview{taken: now, buckets: make([]counts, s.buckets)}
	o.begin = now.Truncate(s.width).Add(-time.Duration(s.buckets-1) * s.width)
	ctx, cancel := context.WithTimeout(ctx, countTime)
	defer cancel()
	if o.total, o.err = h.tally(ctx, retryjob.Filter{}); o.err != nil {
		return o
	}
	f := retryjob.Filter{Since: o.begin, Until: o.begin.Add(time.Duration(s.buckets) * s.width)}
	buckets, err := h.Admin.Histogram(ctx, f, s.width)
	for i, bucket := range buckets {
		for status, n := range bucket {
			o.buckets[i].add(status, n)
		}
	}
	var groups []retryjob.Group
	if o.err = err; err == nil && o.total[retryjob.DeadLettered] > 0 {
		groups, o.err = h.Admin.Groups(ctx, retryjob.Filter{Statuses: []retryjob.Status{retryjob.DeadLettered}})
	}
	o.failures = retryjob.FailuresOf(groups, retryjob.DeadLettered)
	return o
}

// tally returns how many jobs f selects, by status.
func (h *handler) tally(ctx context.Context, f retryjob.Filter) (n counts, err error) {
	byStatus, err := h.Admin.Count(ctx, f)
	for status, of := range byStatus {
		n.add(status, of.Jobs)
	}
	return n, err
}
