package retryriver

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/riverqueue/river"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// Options says how an Adapter decides.
type Options struct {
	// Policies finds the policies that jobs name: retryjob.FromCatalog or retryjob.FromMap. It must be set.
	Policies retryjob.Policies
	// PolicyOf names the policy of plain River jobs by their kind; what it has for "" goes for all kinds that it does not
	// have. A plain job of a kind without a policy is refused when it is inserted. Nil means that there are no plain jobs.
	PolicyOf map[string]string
	// Retention is how long jobs that ended without success are kept for Admin. Zero means 14 days.
	Retention time.Duration
	// Code returns a short code for an error, such as an HTTP status, for retryjob.Run.Code. Nil means none.
	Code func(error) string
}

const (
	defaultRetention = 14 * 24 * time.Hour
	keptSuccesses    = 24 * time.Hour // River's own default
	defaultTimeout   = time.Minute    // River's own default
	grace            = 10 * time.Second
)

// Adapter makes River decide by policies. It is safe for concurrent use, and serves one river.Config.
type Adapter struct {
	options Options
	stepper retryjob.Stepper
	judge   retryjob.Stepper // decides as stepper does, without a budget's tokens being spent or anybody being told
	due     sync.Map         // attemptKey → time.Time: what Work has decided for NextRetry to tell
	logger  *slog.Logger
	rescue  time.Duration // RescueStuckJobsAfter: what takes longer may be taken for lost
}

// New returns an adapter, or an error that names everything that is wrong with o: Policies that is not set, a name in
// PolicyOf that it does not find or whose policy does not validate, a Retention below zero.
func New(o Options) (*Adapter, error) {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("retryriver: Options."+format, args...))
	}
	if o.Policies == nil {
		fault("Policies is not set")
	} else {
		for _, kind := range slices.Sorted(maps.Keys(o.PolicyOf)) {
			name := o.PolicyOf[kind]
			if p, ok := o.Policies(name); !ok {
				fault("PolicyOf[%q] is %q: %w", kind, name, retryjob.ErrUnknownPolicy)
			} else if err := p.Validate(); err != nil {
				fault("PolicyOf[%q] is %q: %w", kind, name, err)
			}
		}
	}
	if o.Retention < 0 {
		fault("Retention %v is below 0", o.Retention)
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if o.Retention == 0 {
		o.Retention = defaultRetention
	}
	o.PolicyOf = maps.Clone(o.PolicyOf)
	now := func() time.Time { return time.Now().UTC() }
	a := &Adapter{options: o, logger: slog.Default()}
	a.stepper = retryjob.Stepper{Policies: o.Policies, Now: now, Code: o.Code}
	a.judge = retryjob.Stepper{Now: now, Policies: func(name string) (retry.Policy, bool) {
		p, ok := o.Policies(name)
		p.Budget, p.Observe = nil, nil
		return p, ok
	}}
	return a, nil
}

// Install is what a program with a river.Config adds, before river.NewClient. It adds a plugin, ahead of those that are
// there, and sets
//   - RetryPolicy,
//   - CancelledJobRetentionPeriod and DiscardedJobRetentionPeriod to Options.Retention,
//   - CompletedJobRetentionPeriod to 24 hours, where it is not set,
//   - JobTimeout to a minute, or to ten seconds more than the longest AttemptTimeout of Options.PolicyOf if that is longer,
//     where it is not set,
//   - RescueStuckJobsAfter to a minute more than JobTimeout, where it is not set.
//
// It refuses what would lose jobs or leave them leased for ever, with an error that names every such setting, its value
// and the value it needs, and changes nothing then: a JobTimeout below zero or below an AttemptTimeout, a
// RescueStuckJobsAfter not above JobTimeout, retention without end, which SQLite takes for none at all, a retention
// other than Options.Retention, a RetryPolicy or MaxAttempts beside those of the policies.
func (a *Adapter) Install(cfg *river.Config) error {
	if cfg == nil {
		return errors.New("retryriver: Install: river.Config is nil")
	}
	set := *cfg
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
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("retryriver: river.Config."+format, args...))
	}
	switch {
	case set.JobTimeout < 0:
		fault("JobTimeout is %d, with which a lost job is never found: it must be above 0", set.JobTimeout)
	case set.JobTimeout < longest:
		fault("JobTimeout is %v: it must be at least %v, the AttemptTimeout of policy %q", set.JobTimeout, longest, by)
	case set.RescueStuckJobsAfter <= set.JobTimeout:
		fault("RescueStuckJobsAfter is %v: it must be above JobTimeout, which is %v", set.RescueStuckJobsAfter, set.JobTimeout)
	}
	if set.CompletedJobRetentionPeriod < 0 {
		fault("CompletedJobRetentionPeriod is %d, which SQLite takes for no time at all: it must be above 0", set.CompletedJobRetentionPeriod)
	}
	for _, retention := range []struct {
		name  string
		field *time.Duration
	}{{"CancelledJobRetentionPeriod", &set.CancelledJobRetentionPeriod}, {"DiscardedJobRetentionPeriod", &set.DiscardedJobRetentionPeriod}} {
		if v := *retention.field; v != 0 && v != a.options.Retention {
			fault("%s is %v: it must not be set, or be Options.Retention, %v", retention.name, v, a.options.Retention)
		}
		*retention.field = a.options.Retention
	}
	if set.RetryPolicy != nil {
		fault("RetryPolicy is a %T: it must not be set, as the policies decide", set.RetryPolicy)
	}
	if set.MaxAttempts != 0 {
		fault("MaxAttempts is %d: it must not be set, as the policies have it", set.MaxAttempts)
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	p := &plugin{adapter: a}
	set.RetryPolicy = p
	set.Plugins = slices.Insert(slices.Clone(set.Plugins), 0, pluginOf(p))
	if set.Logger != nil {
		a.logger = set.Logger
	}
	a.rescue = set.RescueStuckJobsAfter
	*cfg = set
	return nil
}

// longestAttempt returns the longest AttemptTimeout of PolicyOf, and the name of its policy.
func (a *Adapter) longestAttempt() (longest time.Duration, by string) {
	for _, kind := range slices.Sorted(maps.Keys(a.options.PolicyOf)) {
		name := a.options.PolicyOf[kind]
		if p, ok := a.options.Policies(name); ok && p.AttemptTimeout > longest {
			longest, by = p.AttemptTimeout, name
		}
	}
	return longest, by
}

// policyOf returns the name of the policy of plain jobs of a kind, "" for none.
func (a *Adapter) policyOf(kind string) string {
	if name, ok := a.options.PolicyOf[kind]; ok {
		return name
	}
	return a.options.PolicyOf[""]
}
