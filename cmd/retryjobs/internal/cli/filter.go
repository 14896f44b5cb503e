package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry/retryjob"
)

// selection holds the flags that select jobs.
type selection struct {
	able                               []retryjob.Status // the statuses that the command applies to
	statuses, reasons, policies, kinds []string
	since, until                       string
	limit                              int
}

// selectionFlags are the names of the flags that make a filter. --limit is not one of them: it does not select jobs.
var selectionFlags = []string{"status", "reason", "policy", "kind", "since", "until"}

// add defines the flags.
func (s *selection) add(cmd *cobra.Command, limit int) {
	flags := cmd.Flags()
	flags.StringSliceVar(&s.statuses, "status", nil, "only jobs of this `status`: "+listed(s.able))
	flags.StringSliceVar(&s.reasons, "reason", nil, "only jobs that ended for this `reason`: "+listed(retryjob.Reasons()))
	flags.StringSliceVar(&s.policies, "policy", nil, "only jobs of the policy with this `name`")
	flags.StringSliceVar(&s.kinds, "kind", nil, "only jobs of this `kind`")
	flags.StringVar(&s.since, "since", "", "only jobs that changed since this `time`: 24h or 7d ago, or RFC 3339")
	flags.StringVar(&s.until, "until", "", "only jobs that changed before this `time`")
	flags.IntVar(&s.limit, "limit", limit, "at most this `number` of jobs; 0 means all of them")
}

// given reports whether a flag selects jobs.
func (s *selection) given(cmd *cobra.Command) bool {
	return slices.ContainsFunc(selectionFlags, cmd.Flags().Changed)
}

// filter returns the filter of the flags at now. A flag with an empty value is refused: it is probably an unset
// variable of a script, and must not mean all jobs.
func (s *selection) filter(cmd *cobra.Command, now time.Time) (retryjob.Filter, error) {
	f := retryjob.Filter{Policies: s.policies, Kinds: s.kinds, Limit: s.limit}
	for i, values := range [][]string{s.statuses, s.reasons, s.policies, s.kinds} {
		if name := selectionFlags[i]; cmd.Flags().Changed(name) && (len(values) == 0 || slices.Contains(values, "")) {
			return f, fmt.Errorf("--%s has no value", name)
		}
	}
	var err error
	if f.Statuses, err = chosen("status", s.statuses, s.able); err != nil {
		return f, err
	}
	if f.Reasons, err = chosen("reason", s.reasons, retryjob.Reasons()); err != nil {
		return f, err
	}
	for _, bound := range []struct {
		name, value string
		to          *time.Time
	}{{"since", s.since, &f.Since}, {"until", s.until, &f.Until}} {
		if !cmd.Flags().Changed(bound.name) {
			continue
		}
		if *bound.to, err = parseTime(bound.value, now); err != nil {
			return f, fmt.Errorf("--%s %q %w", bound.name, bound.value, err)
		}
	}
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return f, fmt.Errorf("--since %s is not before --until %s", s.since, s.until)
	}
	if s.limit < 0 {
		return f, fmt.Errorf("--limit %d is below 0", s.limit)
	}
	return f, nil
}

// change returns the filter of a command that changes the jobs it selects. It refuses to change all jobs unless a flag
// says so.
func (s *selection) change(cmd *cobra.Command, now time.Time, all bool, flag string) (retryjob.Filter, error) {
	f, err := s.filter(cmd, now)
	if err == nil && !all && !s.given(cmd) {
		err = fmt.Errorf("no filter selects the jobs to %s: give one (--%s), or %s for all of them",
			cmd.Name(), strings.Join(selectionFlags, ", --"), flag)
	}
	if len(f.Statuses) == 0 {
		f.Statuses = s.able
	}
	return f, err
}

// chosen returns the elements of all whose texts the flag was given.
func chosen[T any](flag string, given []string, all []T) ([]T, error) {
	var found []T
	for _, text := range given {
		i := slices.IndexFunc(all, func(v T) bool { return fmt.Sprint(v) == text })
		if i < 0 {
			return nil, fmt.Errorf("--%s %q is not one of %s", flag, text, listed(all))
		}
		found = append(found, all[i])
	}
	return found, nil
}

func listed[T any](all []T) string { return strings.Join(texts(all), ", ") }

func texts[T any](all []T) []string {
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = fmt.Sprint(v)
	}
	return texts
}

// longestAgo is the maximum number of days ago: more than a hundred years, less than a Duration can hold.
const longestAgo = 40_000

// parseTime returns the time of value at now: RFC 3339, or a time ago in the form of time.ParseDuration or in days of
// 24 hours ("7d"). A negative time ago is refused: it would be in the future.
func parseTime(value string, now time.Time) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return at, nil
	}
	if days, ok := strings.CutSuffix(value, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 32); err == nil && n <= longestAgo {
			return now.Add(-time.Duration(n) * 24 * time.Hour), nil
		}
	}
	if ago, err := time.ParseDuration(value); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	return time.Time{}, fmt.Errorf("is neither a time ago (90m, 24h, 7d) nor a time as in RFC 3339 (%s)", now.UTC().Format(time.RFC3339))
}
