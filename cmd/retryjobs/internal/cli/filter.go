package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// selection holds the flags that select jobs.
type selection struct {
	able  []retryjob.Status // the statuses that the command applies to
	limit int
}

// add defines the flags.
func (s *selection) add(cmd *cobra.Command, limit int) {
	flags := cmd.Flags()
	for key, usage := range map[string]string{
		"status":   "only jobs of this `status`: " + listed(s.able),
		"reason":   "only jobs that ended for this `reason`: " + listed(retryjob.Reasons()),
		"cause":    "only jobs that failed with this `cause`: a code, or an error as stats shows it",
		"policy":   "only jobs of the policy with this `name`",
		"kind":     "only jobs of this `kind`",
		"tag":      "only jobs with this `tag`",
		"in-doubt": "`yes`: only jobs that failed though their work may have been done; no: only others",
		"since":    "only jobs that changed since this `time`: 24h or 7d ago, or RFC 3339",
		"until":    "only jobs that changed before this `time`",
	} {
		flags.StringSlice(key, nil, usage)
	}
	flags.IntVar(&s.limit, "limit", limit, "at most this `number` of jobs; 0 means all of them")
}

// given reports whether a flag selects jobs. --limit does not.
func (s *selection) given(cmd *cobra.Command) bool {
	return slices.ContainsFunc(retryjob.FilterKeys(), cmd.Flags().Changed)
}

// filter returns the filter of the flags at now. A flag with an empty value is refused: it is probably an unset
// variable of a script, and must not mean all jobs.
func (s *selection) filter(cmd *cobra.Command, now time.Time) (retryjob.Filter, error) {
	values := map[string][]string{}
	for _, key := range retryjob.FilterKeys() {
		of, _ := cmd.Flags().GetStringSlice(key)
		if values[key] = of; cmd.Flags().Changed(key) && (len(of) == 0 || slices.Contains(of, "")) {
			return retryjob.Filter{}, fmt.Errorf("--%s has no value", key)
		}
	}
	f, err := retryjob.ParseFilter(values, now)
	if bad := new(retry.FieldError); errors.As(err, &bad) {
		return f, fmt.Errorf("--%s %s %s", bad.Field, bad.Value, bad.Rule)
	}
	for _, status := range f.Statuses {
		if !slices.Contains(s.able, status) {
			return f, fmt.Errorf("--status %q is not one of %s", status, listed(s.able))
		}
	}
	if f.Limit = s.limit; s.limit < 0 {
		return f, fmt.Errorf("--limit %d is below 0", s.limit)
	}
	return f, nil
}

func listed[T any](all []T) string {
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = fmt.Sprint(v)
	}
	return strings.Join(texts, ", ")
}
