package retryjob

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/retrygo/retry"
)

// Info is a job as an engine holds it.
type Info struct {
	Record
	Queue    string          `json:"queue,omitempty"`
	Priority int             `json:"priority,omitempty"`
	Tags     []string        `json:"tags,omitempty"`
	Payload  json.RawMessage `json:"payload,omitempty"`
}

// Admin reads and changes the jobs of an engine, in the same way for each engine. Its methods are safe for concurrent
// use. A list has a job that changes while it is read at most once, as it was or as it is.
type Admin interface {
	// Get returns the job with the given ID, or ErrUnknownJob; an engine that can distinguish them returns ErrAgedOut
	// or ErrNeverKnown, which match it.
	Get(ctx context.Context, id string) (Info, error)
	// List returns the jobs that f selects, the one that changed last first. The sequence reads page by page; an error
	// ends it.
	List(ctx context.Context, f Filter) iter.Seq2[Info, error]
	// DeadLetters is List of the jobs that are DeadLettered. It ignores f.Statuses.
	DeadLetters(ctx context.Context, f Filter) iter.Seq2[Info, error]
	// Count returns how many jobs f selects, by their Status, and since when. It ignores f.Limit and f.After.
	Count(ctx context.Context, f Filter) (map[Status]Tally, error)
	// Replay makes a job Pending again, due at once, with the same ID, a fresh first fire time and no attempts. It
	// returns ErrNotReplayable unless the job is DeadLettered, Expired or Failed. Of two calls at once, one succeeds.
	Replay(ctx context.Context, id string) error
	// ReplayAll replays the jobs of that kind that f selects, and returns how many. A zero Filter also selects Expired
	// and Failed jobs, which get a fresh TTL; for what DeadLetters lists, set Statuses. With an error it returns the
	// number replayed until then.
	ReplayAll(ctx context.Context, f Filter) (int, error)
	// Cancel makes a job that is not final Canceled; the context of an attempt under way ends with ErrCanceled as its
	// cause. A final job is an error.
	Cancel(ctx context.Context, id string) error
	// Purge removes the final jobs that f selects, and returns how many. With an error it returns the number removed
	// until then.
	Purge(ctx context.Context, f Filter) (int, error)
}

// Tally is the jobs of one Status.
type Tally struct {
	Jobs int
	// Oldest is the earliest Due of those that wait, Pending or WaitingRetry, and the earliest Changed of others. So
	// time.Since(Oldest) is how far those that wait are behind, negative if none is due.
	Oldest time.Time
}

// Add counts a job.
func (t *Tally) Add(i *Info) {
	at := i.Due
	if at.IsZero() {
		at = i.Changed()
	}
	t.add(at)
}

func (t *Tally) add(at time.Time) {
	if t.Jobs++; t.Oldest.IsZero() || at.Before(t.Oldest) {
		t.Oldest = at
	}
}

// Filter selects the jobs that match all fields that are set. The zero Filter selects all.
type Filter struct {
	IDs      []string       // one of these; empty means any
	Statuses []Status       // one of these; empty means any
	Reasons  []retry.Reason // one of these; empty means any
	Policies []string       // one of these; empty means any
	Kinds    []string       // one of these; empty means any
	Since    time.Time      // Record.Changed is not before it; zero means any
	Until    time.Time      // Record.Changed is before it; zero means any
	After    Cursor         // those that come after it in the list; zero means from the beginning
	Limit    int            // how many at most; 0 and below means no limit
	PageSize int            // how many a page of the engine holds; 0 and below means 100
}

// Cursor is the place in a list after a job, where the next page begins. The page has the jobs that changed before it
// and, of those that changed in the same microsecond, the ones that follow it. If the job is gone, all of the latter
// follow.
type Cursor struct {
	Changed time.Time
	ID      string
}

// Cursor returns the place after the job.
func (i *Info) Cursor() Cursor { return Cursor{i.Changed(), i.JobID} }

// Selects reports whether the filter selects the job. It does not look at Limit and, of After, at the ID.
func (f *Filter) Selects(i *Info) bool {
	changed := i.Changed()
	return oneOf(f.IDs, i.JobID) && oneOf(f.Statuses, i.Status) && oneOf(f.Reasons, i.Reason) && oneOf(f.Policies, i.Policy) && oneOf(f.Kinds, i.Kind) &&
		(f.Since.IsZero() || !changed.Before(f.Since)) && (f.Until.IsZero() || changed.Before(f.Until)) &&
		(f.After == Cursor{} || changed.UnixMicro() <= f.After.Changed.UnixMicro())
}

func oneOf[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// Page returns PageSize, or 100 if PageSize is 0 or below.
func (f *Filter) Page() int {
	if f.PageSize > 0 {
		return f.PageSize
	}
	return 100
}
