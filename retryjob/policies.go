package retryjob

import (
	"errors"
	"sync"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
)

// Policies finds the policy of a job, before the job's own Spec and TTL, or returns an error, ErrUnknownPolicy if there
// is none. It is asked when the job is enqueued and at each attempt, with what the job's Record has of it: ID, Kind,
// Policy, Correlation, Spec, TTL, Budget and Due, but no Payload, Queue, Priority or Tags. It must be safe for
// concurrent use, change nothing of the job and not keep the pointer.
type Policies func(j *Job) (retry.Policy, error)

// FromCatalog finds what c means by Job.Policy at the time it is asked, and the zero Policy for a job with a Spec that
// names none.
func FromCatalog(c *retryconf.Catalog) Policies {
	return func(j *Job) (retry.Policy, error) {
		if ref, ok := c.Lookup(j.Policy); ok {
			return ref.Policy(), nil
		}
		return unnamed(j)
	}
}

// FromMap finds the policies of m, which must not change any more, by Job.Policy. What m has for "" is that of the jobs
// that name none; without it, they have the zero Policy if they have a Spec.
func FromMap(m map[string]retry.Policy) Policies {
	return func(j *Job) (retry.Policy, error) {
		if p, ok := m[j.Policy]; ok {
			return p, nil
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

// Within returns p with limits for what jobs bring along: Job.Validate refuses a job with a Spec if its policy in all
// exceeds l, and one with a TTL above l.MaxTTL. A job that is enqueued stays as it is, whatever the limits and its
// named policy become.
func (p Policies) Within(l retryconf.Limits) Policies {
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
			if err := limits.Validate(whole); err != nil {
				return retry.Policy{}, err
			}
		}
		return p(j)
	}
}

// Of returns the policy of a job: that which p finds, named for errors and events (a Name that it has stays, also that
// of a preset), under the job's Spec and TTL. Code such as Classify stays the policy's, but for Wait if the Spec has a
// schedule. The error is that of p, or retry.FieldErrors if the policy does not validate. An AttemptTimeout above the
// TTL is none: an attempt that starts in time may end later.
func (p Policies) Of(j *Job) (found retry.Policy, err error) {
	if p == nil {
		return found, ErrUnknownPolicy
	}
	found, err = p(j)
	if err == nil && j.Spec != nil {
		found, err = over(j.Spec, found)
	}
	if err != nil {
		return retry.Policy{}, err
	}
	if found.Name == "" {
		found.Name = j.Policy
	}
	if j.TTL > 0 {
		found.TTL = j.TTL
	}
	return found, found.Validate()
}

// ask is Of for a job that is nowhere else yet. What a function of the caller's gets a pointer to would be allocated
// each time.
func (p Policies) ask(j *Job, enqueued bool) (found retry.Policy, err error) {
	asked := jobsAsked.Get().(*Job)
	*asked = Job{
		ID: j.ID, Kind: j.Kind, Policy: j.Policy, Correlation: j.Correlation, Spec: j.Spec, Budget: j.Budget, Due: j.Due,
		TTL: max(j.TTL, 0), enqueued: enqueued, // a negative TTL is a fault of its own
	}
	found, err = p.Of(asked)
	*asked = Job{}
	jobsAsked.Put(asked)
	return found, err
}

var jobsAsked = sync.Pool{New: func() any { return new(Job) }}

// over returns p with what s gives in the place of its own.
func over(s *retryconf.Spec, p retry.Policy) (retry.Policy, error) {
	below, err := retryconf.FromPolicy(p)
	if code := (*retryconf.CodeError)(nil); err != nil && !errors.As(err, &code) {
		return retry.Policy{}, p.Validate()
	}
	whole, err := s.Or(below).Policy()
	if err != nil {
		return retry.Policy{}, err
	}
	whole.Classify, whole.Budget, whole.Pay, whole.Gate, whole.Observe, whole.Rand = p.Classify, p.Budget, p.Pay, p.Gate, p.Observe, p.Rand
	if s.Extends == "" && s.Mode == 0 && s.Base == 0 && s.Factor == 0 && len(s.Delays) == 0 {
		whole.Wait = p.Wait
	}
	return whole, nil
}
