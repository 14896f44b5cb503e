package retryjob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// Filter selects the jobs that match all fields that are set. The zero Filter selects all.
type Filter struct {
	IDs      []string       // one of these. Empty means any.
	Statuses []Status       // one of these. Empty means any.
	Reasons  []retry.Reason // one of these. Empty means any.
	Policies []string       // one of these. Empty means any.
	Kinds    []string       // one of these. Empty means any.
	Causes   []string       // Record.Cause is one of these. Empty means any.
	Tags     []string       // it has one of these. Empty means any.
	InDoubt  Doubt          // the result of Record.InDoubt. Zero means any, but NotInDoubt for ReplayAll.
	Since    time.Time      // Record.Changed is not before it. Zero means any.
	Until    time.Time      // Record.Changed is before it. Zero means any.
	After    Cursor         // the jobs after it in the list. Zero means from the beginning.
	Limit    int            // the maximum number of jobs. 0 and below means no limit.
	PageSize int            // the number of jobs that an engine reads at once. 0 and below means 100.
}

// Doubt is a choice between jobs in doubt and others: see Record.InDoubt.
type Doubt uint8

// The choices. The zero Doubt makes none.
const (
	NotInDoubt  Doubt = iota + 1 // only jobs that are not in doubt
	OnlyInDoubt                  // only jobs in doubt
	InDoubtToo                   // any job, also for ReplayAll
)

// Selects reports whether d selects a job that is in doubt, or one that is not.
func (d Doubt) Selects(inDoubt bool) bool {
	switch d {
	case NotInDoubt:
		return !inDoubt
	case OnlyInDoubt:
		return inDoubt
	default:
		return true
	}
}

// ForReplay returns f as ReplayAll reads it: with NotInDoubt unless InDoubt is set.
func (f Filter) ForReplay() Filter {
	if f.InDoubt == 0 {
		f.InDoubt = NotInDoubt
	}
	return f
}

// Cursor is the place in a list after a job, where the next page begins. That page has the jobs that changed earlier,
// and the jobs that changed in the same microsecond and follow it. If the job is gone, the page has all jobs that
// changed in that microsecond.
type Cursor struct {
	Changed time.Time // Record.Changed of the job
	ID      string    // of the job
}

// Cursor returns the place after the job.
func (i *Info) Cursor() Cursor { return Cursor{i.Changed(), i.JobID} }

// Selects reports whether the filter selects the job. It ignores Limit and After.ID.
func (f *Filter) Selects(i *Info) bool {
	if len(f.Causes) > 0 && !slices.Contains(f.Causes, i.Cause()) {
		return false
	}
	if !f.InDoubt.Selects(i.InDoubt()) {
		return false
	}
	if !oneOf(f.IDs, i.JobID) || !f.selectsRoute(i.Policy, i.Kind, i.Tags) {
		return false
	}
	return f.selectsState(i.Status, i.Reason) && f.selectsTime(i.Changed())
}

// selectsRoute looks at the fields that a job had when it was enqueued.
func (f *Filter) selectsRoute(policy, kind string, tags []string) bool {
	if !oneOf(f.Policies, policy) || !oneOf(f.Kinds, kind) {
		return false
	}
	return len(f.Tags) == 0 || slices.ContainsFunc(tags, func(tag string) bool { return slices.Contains(f.Tags, tag) })
}

func (f *Filter) selectsState(status Status, reason retry.Reason) bool {
	return oneOf(f.Statuses, status) && oneOf(f.Reasons, reason)
}

// selectsTime asks the time of the last change.
func (f *Filter) selectsTime(changed time.Time) bool {
	if !f.Since.IsZero() && changed.Before(f.Since) {
		return false
	}
	if !f.Until.IsZero() && !changed.Before(f.Until) {
		return false
	}
	return f.After == Cursor{} || changed.UnixMicro() <= f.After.Changed.UnixMicro()
}

func oneOf[T comparable](list []T, v T) bool { return len(list) == 0 || slices.Contains(list, v) }

// Page returns PageSize, or 100 if PageSize is 0 or below.
func (f *Filter) Page() int {
	if f.PageSize > 0 {
		return f.PageSize
	}
	return 100
}

// FilterKeys returns the keys of ParseFilter.
func FilterKeys() []string {
	return []string{"status", "reason", "cause", "policy", "kind", "tag", "in-doubt", "since", "until"}
}

// ParseFilter returns the filter of texts, such as the query of a URL. Status, reason, cause, policy, kind and tag have any
// number of values, and in-doubt has "yes", "no" or both. Since and until have one: a time in RFC 3339, or how long before now: "90m", "24h", "7d". It
// returns retry.FieldErrors whose Field is the key of the bad value.
func ParseFilter(values map[string][]string, now time.Time) (f Filter, err error) {
	var bad retry.FieldErrors
	refuse := func(key, value, rule string) {
		bad = append(bad, &retry.FieldError{Package: "retryjob", Field: key, Value: strconv.Quote(value), Rule: rule})
	}
	f.Policies = values["policy"]
	f.Kinds = values["kind"]
	f.Causes = values["cause"]
	f.Tags = values["tag"]
	f.Statuses = parsed(values["status"], Statuses(), func(text, rule string) { refuse("status", text, rule) })
	f.Reasons = parsed(values["reason"], Reasons(), func(text, rule string) { refuse("reason", text, rule) })
	doubts := parsed(values["in-doubt"], []string{"yes", "no"}, func(text, rule string) { refuse("in-doubt", text, rule) })
	switch yes, no := slices.Contains(doubts, "yes"), slices.Contains(doubts, "no"); {
	case yes && no:
		f.InDoubt = InDoubtToo
	case yes:
		f.InDoubt = OnlyInDoubt
	case no:
		f.InDoubt = NotInDoubt
	}
	for key, to := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		for _, text := range values[key] {
			var ok bool
			if *to, ok = parseTime(text, now); !ok {
				refuse(key, text, "is neither a time ago (90m, 24h, 7d) nor a time as in RFC 3339 ("+now.UTC().Format(time.RFC3339)+")")
			}
		}
	}
	if len(bad) == 0 && !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		refuse("until", values["until"][0], "is not after since "+values["since"][0])
	}
	return f, bad.Err()
}

// parsed returns those of all that have the given texts.
func parsed[T any](texts []string, all []T, refuse func(text, rule string)) (found []T) {
	for _, text := range texts {
		if i := slices.IndexFunc(all, func(one T) bool { return fmt.Sprint(one) == text }); i >= 0 {
			found = append(found, all[i])
			continue
		}
		known := make([]string, len(all))
		for i, one := range all {
			known[i] = fmt.Sprint(one)
		}
		refuse(text, "is not one of "+strings.Join(known, ", "))
	}
	return found
}

// longestAgo is the maximum number of days ago: more than a hundred years, less than a Duration can hold.
const longestAgo = 40_000

// parseTime returns the time of a text at now. A negative time ago is refused: it would be in the future.
func parseTime(text string, now time.Time) (time.Time, bool) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, true
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 32)
		return now.Add(-time.Duration(n) * 24 * time.Hour), err == nil && n <= longestAgo
	}
	ago, err := time.ParseDuration(text)
	return now.Add(-ago), err == nil && ago >= 0
}
