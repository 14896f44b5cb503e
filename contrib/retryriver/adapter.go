package retryriver

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// Options are the policies and settings of an Adapter. Only Policies must be set.
type Options struct {
	// Policies returns the policies of jobs: use retryjob.FromCatalog or retryjob.FromMap. It must be set.
	Policies retryjob.Policies
	// PolicyOf maps the kinds of plain River jobs to names of policies; its entry for "" is for all other kinds. A
	// plain job of a kind without a policy is refused when it is inserted. Nil means that there are no plain jobs.
	PolicyOf map[string]string
	// Retention is how long Admin keeps jobs that ended without success. Zero means 14 days.
	Retention time.Duration
	// Code returns a short code for an error, for retryjob.Attempt.Code. Nil means the default of
	// retryjob.Stepper.Code.
	Code func(error) string
}

const (
	defaultRetention = 14 * 24 * time.Hour
	keptSuccesses    = 24 * time.Hour // River's own default
	defaultTimeout   = time.Minute    // River's own default
	grace            = 10 * time.Second
)

// Adapter makes River follow the policies. New makes one: the zero Adapter is not usable. It is safe for concurrent
// use, and serves one river.Client, that of NewClient.
type Adapter struct {
	options Options
	stepper retryjob.Stepper
	judge   retryjob.Stepper // decides like stepper, but does not call Pay or Observe
	due     sync.Map         // attemptKey → time.Time: the decision of Work, for NextRetry
	ends    sync.Map         // attempt ID → ending: the arguments of Observe, until the end is written
	telling sync.WaitGroup   // the calls of Observe in progress
	fence   atomic.Pointer[fence]
	logger  *slog.Logger
	rescue  time.Duration // RescueStuckJobsAfter: an attempt that takes longer may be treated as lost
}

// Validate returns nil or retry.FieldErrors: every bad field with its value and the rule that it breaks. It refuses nil
// Policies, a name in PolicyOf that Policies does not find (retryjob.ErrUnknownPolicy) or whose policy does not
// validate, and a negative Retention.
func (o Options) Validate() error {
	var bad retry.FieldErrors
	if o.Policies == nil {
		bad.Refuse("retryriver.Options.Policies", "<nil>", "must be set")
	} else {
		for _, kind := range slices.Sorted(maps.Keys(o.PolicyOf)) {
			refused := retry.FieldError{
				Package: "retryriver", Field: fmt.Sprintf("Options.PolicyOf[%q]", kind), Value: strconv.Quote(o.PolicyOf[kind]), Rule: "is not a valid policy",
			}
			if _, err := o.Policies.Of(&retryjob.Job{Kind: kind, Policy: o.PolicyOf[kind]}); err != nil {
				bad.Append(fmt.Errorf("%w: %w", &refused, err))
			}
		}
	}
	if o.Retention < 0 {
		bad.Refuse("retryriver.Options.Retention", o.Retention, "is negative")
	}
	return bad.Err()
}

// New returns an adapter, or the error of o.Validate.
func New(o Options) (*Adapter, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Retention == 0 {
		o.Retention = defaultRetention
	}
	o.PolicyOf = maps.Clone(o.PolicyOf)
	now := func() time.Time { return time.Now().UTC() }
	a := &Adapter{options: o, logger: slog.Default()}
	a.stepper = retryjob.Stepper{Policies: o.Policies, Now: now, Code: o.Code}
	a.judge = retryjob.Stepper{Now: now, Policies: func(j *retryjob.Job) (retry.Policy, error) {
		p, err := o.Policies(j)
		p.Budget, p.Pay, p.Observe = nil, nil, nil
		return p, err
	}}
	return a, nil
}

// configure returns the config of a client, as NewClient describes it.
func (a *Adapter) configure(set river.Config) (river.Config, error) {
	longest, by := a.longestAttempt()
	if set.JobTimeout == 0 {
		set.JobTimeout = max(defaultTimeout, longest+grace)
	}
	if set.RescueStuckJobsAfter == 0 && set.JobTimeout > 0 {
		set.RescueStuckJobsAfter = set.JobTimeout + time.Minute
	}
	if set.CompletedJobRetentionPeriod == 0 {
		set.CompletedJobRetentionPeriod = keptSuccesses
	}
	var bad retry.FieldErrors
	refuse := func(field string, value any, rule string, named ...any) {
		bad.Refuse("retryriver.river.Config."+field, value, rule, named...)
	}
	switch {
	case set.JobTimeout < 0:
		refuse("JobTimeout", set.JobTimeout, "is negative, with which a lost job is never found")
	case set.JobTimeout < longest:
		refuse("JobTimeout", set.JobTimeout, fmt.Sprintf("is below the AttemptTimeout of policy %q,", by), longest)
	case set.RescueStuckJobsAfter <= set.JobTimeout:
		refuse("RescueStuckJobsAfter", set.RescueStuckJobsAfter, "is not above JobTimeout", set.JobTimeout)
	}
	if set.CompletedJobRetentionPeriod < 0 {
		refuse("CompletedJobRetentionPeriod", set.CompletedJobRetentionPeriod, "is negative, which SQLite takes for no time at all")
	}
	for _, retention := range []struct {
		name  string
		field *time.Duration
	}{{"CancelledJobRetentionPeriod", &set.CancelledJobRetentionPeriod}, {"DiscardedJobRetentionPeriod", &set.DiscardedJobRetentionPeriod}} {
		if v := *retention.field; v != 0 && v != a.options.Retention {
			refuse(retention.name, v, "is not Options.Retention", a.options.Retention)
		}
		*retention.field = a.options.Retention
	}
	if set.RetryPolicy != nil {
		refuse("RetryPolicy", fmt.Sprintf("%T", set.RetryPolicy), "must not be set, as the policies decide")
	}
	if set.MaxAttempts != 0 {
		refuse("MaxAttempts", set.MaxAttempts, "must not be set, as the policies have it")
	}
	if err := bad.Err(); err != nil {
		return set, err
	}
	p := &plugin{adapter: a}
	set.RetryPolicy = p
	set.Plugins = slices.Insert(slices.Clone(set.Plugins), 0, pluginOf(p))
	if set.Logger != nil {
		a.logger = set.Logger
	}
	a.rescue = set.RescueStuckJobsAfter
	return set, nil
}

// ending is the end of a job that Observe has not reported yet.
type ending struct {
	next retryjob.Next
	free context.CancelCauseFunc // of the context of Observe
}

// tell calls Observe with the end of a job, if the attempt ended it. It does not wait for Observe, which may wait for
// other jobs whose results the same goroutine writes.
func (a *Adapter) tell(attemptID string) {
	v, ok := a.ends.LoadAndDelete(attemptID)
	if !ok {
		return
	}
	a.telling.Go(func() {
		e := v.(ending)
		defer e.free(nil)
		defer func() {
			if value := recover(); value != nil {
				a.logger.Error("retryriver: Observe panicked", "attempt", attemptID, "value", fmt.Sprint(value))
			}
		}()
		e.next.Tell()
	})
}

// forget drops the end of a job that was not written.
func (a *Adapter) forget(attemptID string) {
	if v, ok := a.ends.LoadAndDelete(attemptID); ok {
		v.(ending).free(nil)
	}
}

// longestAttempt returns the longest AttemptTimeout of PolicyOf, and the name of its policy.
func (a *Adapter) longestAttempt() (longest time.Duration, by string) {
	for _, kind := range slices.Sorted(maps.Keys(a.options.PolicyOf)) {
		name := a.options.PolicyOf[kind]
		p, err := a.options.Policies.Of(&retryjob.Job{Kind: kind, Policy: name})
		if err == nil && p.AttemptTimeout > longest {
			longest, by = p.AttemptTimeout, name
		}
	}
	return longest, by
}

// policyOf returns the name of the policy of plain jobs of a kind, and whether there is one.
func (a *Adapter) policyOf(kind string) (name string, ok bool) {
	if name, ok = a.options.PolicyOf[kind]; !ok {
		name, ok = a.options.PolicyOf[""]
	}
	return name, ok
}
