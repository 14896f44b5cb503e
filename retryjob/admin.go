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
	Kind    string          `json:"kind"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Admin looks at the jobs of an engine and changes them, the same for each engine. Its methods are safe for concurrent
// use. A list shows a job that changes while the list is read as it was or as it is, and at most once.
type Admin interface {
	// Get returns the job with the given ID, or ErrUnknownJob; an engine that knows more returns ErrAgedOut or ErrNeverKnown,
	// which match it.
	Get(ctx context.Context, id string) (Info, error)
	// List returns the jobs that f selects, the one that changed last first. The sequence reads as it goes, page by page;
	// an error ends it.
	List(ctx context.Context, f Filter) iter.Seq2[Info, error]
	// DeadLetters is List of those that are DeadLettered, whatever f.Statuses says.
	DeadLetters(ctx context.Context, f Filter) iter.Seq2[Info, error]
	// Replay makes a job Pending again, due at once, with the same ID, a fresh first fire time and no attempts. It
	// returns ErrNotReplayable unless the job is DeadLettered, Expired or Failed. Of two calls at once, one succeeds.
	Replay(ctx context.Context, id string) error
	// ReplayAll replays what f selects of those, and returns how many. An error comes with the number done until then.
	ReplayAll(ctx context.Context, f Filter) (int, error)
	// Cancel makes a job that is not final Canceled; the context of an attempt under way ends with ErrCanceled as its
	// cause. A final job is an error.
	Cancel(ctx context.Context, id string) error
	// Purge removes what f selects of the final jobs, and returns how many. An error comes with the number done until then.
	Purge(ctx context.Context, f Filter) (int, error)
}

// Filter selects jobs: those to which everything applies that is set. The zero Filter selects all.
type Filter struct {
	Statuses []Status       // one of these; empty means any
	Reasons  []retry.Reason // one of these; empty means any
	Policies []string       // one of these; empty means any
	Kinds    []string       // one of these; empty means any
	Since    time.Time      // Record.Changed is not before it; zero means any
	Until    time.Time      // Record.Changed is before it; zero means any
	Limit    int            // how many at most; 0 and below means no limit
	PageSize int            // how many a page of the engine holds; 0 and below means 100
}

// Selects reports whether the filter selects the job. It does not look at Limit.
func (f *Filter) Selects(i *Info) bool {
	changed := i.Changed()
	return oneOf(f.Statuses, i.Status) && oneOf(f.Reasons, i.Reason) && oneOf(f.Policies, i.Policy) && oneOf(f.Kinds, i.Kind) &&
		(f.Since.IsZero() || !changed.Before(f.Since)) && (f.Until.IsZero() || changed.Before(f.Until))
}

func oneOf[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// Page returns PageSize or what it means.
func (f *Filter) Page() int {
	if f.PageSize > 0 {
		return f.PageSize
	}
	return 100
}
