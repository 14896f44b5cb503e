package retryriver

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// Options are the policies and settings of an Adapter. Only Policies must be set.
type Options struct {
	// Policies returns the policies of jobs. Use retryjob.FromCatalog or retryjob.FromMap. It must be set.
	Policies retryjob.Policies
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

// Adapter makes River follow the policies. New makes one. The zero Adapter is not usable. It is safe for concurrent
// use, and serves one river.Client, that of NewClient.
type Adapter struct {
	options Options
	stepper retryjob.Stepper
	judge   retryjob.Stepper // decides like stepper, but does not call Pay or Observe
	leases  sync.Map         // leaseKey → *lease: the attempts of this process, until their results are written
	telling sync.WaitGroup   // the calls of Observe in progress
	fence   atomic.Pointer[fence]
	logger  *slog.Logger
}

// Validate returns nil or retry.FieldErrors: every bad field with its value and the rule that it breaks. It refuses nil
// Policies and a negative Retention.
func (o Options) Validate() error {
	var bad retry.FieldErrors
	if o.Policies == nil {
		bad.Refuse("retryriver.Options.Policies", "<nil>", "must be set")
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
	o.Retention = cmp.Or(o.Retention, defaultRetention)
	now := func() time.Time { return time.Now().UTC() }
	a := &Adapter{options: o, logger: slog.Default()}
	a.stepper = retryjob.Stepper{Policies: o.Policies, Now: now, Code: o.Code}
	a.judge = retryjob.Stepper{Now: now, Policies: func(j *retryjob.Job) (retry.Policy, error) {
		p, err := o.Policies(j)
		p.Budget = nil
		p.Pay = nil
		p.Observe = nil
		return p, err
	}}
	return a, nil
}

// configure returns the config of a client, as NewClient describes it.
func (a *Adapter) configure(set river.Config) (river.Config, error) {
	set.JobTimeout = cmp.Or(set.JobTimeout, defaultTimeout)
	set.CompletedJobRetentionPeriod = cmp.Or(set.CompletedJobRetentionPeriod, keptSuccesses)
	if set.RescueStuckJobsAfter == 0 && set.JobTimeout > 0 {
		set.RescueStuckJobsAfter = set.JobTimeout + time.Minute
	}
	var bad retry.FieldErrors
	refuse := func(field string, value any, rule string, named ...any) {
		bad.Refuse("retryriver.river.Config."+field, value, rule, named...)
	}
	switch {
	case set.JobTimeout < 0:
		refuse("JobTimeout", set.JobTimeout, "is negative, with which a lost job is never found")
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
	if err := bad.Err(); err != nil {
		return set, err
	}
	p := &plugin{adapter: a, others: cmp.Or[river.ClientRetryPolicy](set.RetryPolicy, &river.DefaultClientRetryPolicy{})}
	set.RetryPolicy = p
	set.Plugins = slices.Insert(slices.Clone(set.Plugins), 0, pluginOf(p))
	if set.Logger != nil {
		a.logger = set.Logger
	}
	return set, nil
}

// tell calls Observe with the end of a job, if the attempt ended it. It does not wait for Observe, which may wait for
// other jobs whose results the same goroutine writes.
func (a *Adapter) tell(m *lease) {
	if !m.next.Status.Final() {
		return
	}
	if !m.next.Tells() {
		m.free(nil)
		return
	}
	a.telling.Go(func() {
		defer m.free(nil)
		defer func() {
			if value := recover(); value != nil {
				a.logger.Error("retryriver: Observe panicked", "attempt", m.line.ID, "value", fmt.Sprint(value))
			}
		}()
		m.next.Tell()
	})
}
