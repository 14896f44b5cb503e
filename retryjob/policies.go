package retryjob

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

// Policies returns the policy of a job, without the job's own Spec and TTL, or an error: ErrUnknownPolicy if there is
// no policy. Engines call it when a job is enqueued and at each attempt. j has the fields that a Record has: ID, Kind,
// Policy, Correlation, Spec, TTL, BudgetKey and Due, but not Payload, Queue, Priority and Tags. The function must be safe
// for concurrent use, and must not change or keep j.
type Policies func(j *Job) (retry.Policy, error)

// PutOff is how long an engine puts off a job whose policy Policies cannot return at the moment.
const PutOff = time.Minute

// FromCatalog returns the policies that c has for Job.Policy at the time of the call. A job with a Spec and without a
// name has the zero Policy.
func FromCatalog(c *retryconf.Catalog) Policies {
	return func(j *Job) (retry.Policy, error) {
		if ref, ok := c.Lookup(j.Policy); ok {
			return ref.Policy(), nil
		}
		return unnamed(j)
	}
}

// FromMap returns the policies of m, which it copies, by Job.Policy. Jobs without a name have the policy that m has for
// "" or, if they have a Spec, the zero Policy.
func FromMap(m map[string]retry.Policy) Policies {
	policies := make(map[string]*retry.Policy, len(m))
	for name, p := range m {
		policies[name] = &p
	}
	return func(j *Job) (retry.Policy, error) {
		if p := policies[j.Policy]; p != nil {
			return *p, nil
		}
		return unnamed(j)
	}
}

func unnamed(j *Job) (retry.Policy, error) {
	if j.Policy == "" && j.Spec != nil {
		return retry.Policy{}, nil
	}
	return retry.Policy{}, ErrUnknownPolicy
}

// Within returns p with limits for the settings of jobs: Job.Validate refuses a job with a Spec if the resulting policy
// exceeds l, and a job with a TTL above l.MaxTTL. The limits apply when a job is enqueued; later changes of the limits
// or of the named policy do not affect it. Within of nil Policies is nil, which engines refuse.
func (p Policies) Within(l retryconf.Limits) Policies {
	if p == nil {
		return nil
	}
	return func(j *Job) (retry.Policy, error) {
		if j.enqueued && (j.Spec != nil || j.TTL > 0) {
			whole, err := p.Of(j)
			if err != nil {
				return retry.Policy{}, err
			}
			limits := l
			if j.Spec == nil {
				limits = retryconf.Limits{MaxTTL: l.MaxTTL, MaxName: -1}
			}
			if err := limits.Check(whole); err != nil {
				return retry.Policy{}, err
			}
		}
		return p(j)
	}
}

// Of returns the policy of a job: the policy that p returns with the fields that the job's Spec and TTL replace. If the
// policy has no Name, its Name is Job.Policy; a name in the Spec counts only if both are empty, since a name is a label
// of metrics and budgets. Functions such as Classify stay those of the policy, except that a schedule in the Spec
// replaces the delays of Wait. Its Stop still ends the job. The error is that of p, or retry.FieldErrors if the resulting policy is not
// valid. An AttemptTimeout above the TTL is valid: an attempt that starts in time may end later.
func (p Policies) Of(j *Job) (found retry.Policy, err error) {
	if p == nil {
		return found, ErrUnknownPolicy
	}
	found, err = p(j)
	name := cmp.Or(found.Name, j.Policy)
	if err == nil && j.Spec != nil {
		found, err = over(j.Spec, found)
	}
	if err != nil {
		return retry.Policy{}, err
	}
	if name != "" {
		found.Name = name
	}
	if j.TTL > 0 {
		found.TTL = j.TTL
	}
	return found, found.Validate()
}

// ask is Of for a copy of j, from a pool because the pointer escapes to a function of the caller.
func (p Policies) ask(j *Job, enqueued bool) (found retry.Policy, err error) {
	asked := jobsAsked.Get().(*Job)
	*asked = Job{
		ID: j.ID, Kind: j.Kind, Policy: j.Policy, Correlation: j.Correlation, Spec: j.Spec, BudgetKey: j.BudgetKey, Due: j.Due,
		TTL: max(j.TTL, 0), enqueued: enqueued, // a negative TTL is an error of the job, not of its policy
	}
	found, err = p.Of(asked)
	*asked = Job{}
	jobsAsked.Put(asked)
	return found, err
}

var jobsAsked = sync.Pool{New: func() any { return new(Job) }}

// onlyStop returns a Wait that keeps the computed delays and the limits of another one.
func onlyStop(wait func(int, error, time.Duration) time.Duration) func(int, error, time.Duration) time.Duration {
	return func(attempt int, err error, computed time.Duration) time.Duration {
		if wait(attempt, err, computed) < 0 {
			return retry.Stop
		}
		return computed
	}
}

// over returns p with the fields that s replaces.
func over(s *retryconf.Spec, p retry.Policy) (retry.Policy, error) {
	below, err := retryconf.FromPolicy(p)
	if code := (*retryconf.NotDataError)(nil); err != nil && !errors.As(err, &code) {
		return retry.Policy{}, p.Validate()
	}
	whole, err := s.Or(below).Policy()
	if err != nil {
		return retry.Policy{}, err
	}
	whole.Classify = p.Classify
	whole.Budget = p.Budget
	whole.Pay = p.Pay
	whole.Gate = p.Gate
	whole.Observe = p.Observe
	whole.Rand = p.Rand
	whole.Wait = p.Wait
	if p.Wait != nil && hasSchedule(s) {
		whole.Wait = onlyStop(p.Wait)
	}
	return whole, nil
}

// hasSchedule reports whether s replaces the delays of a policy.
func hasSchedule(s *retryconf.Spec) bool {
	if s.Extends != "" || len(s.Delays) > 0 {
		return true
	}
	return s.Mode != 0 || s.Base != 0 || s.Factor != 0
}
