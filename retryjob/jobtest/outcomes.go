package jobtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// outcome is a claim about the end of a job whose attempts all end in the same way.
type outcome struct {
	claim    string
	needs    need // aCrash: the first attempt is under way in a crash, and the others succeed
	status   retryjob.Status
	reason   retry.Reason
	attempts int
	// job returns the policy and the error of each attempt, for a unit of time.
	job func(s *stage) (retry.Policy, error)
}

var outcomes = []outcome{
	{"there are MaxAttempts attempts, the first included, and no more", nothing, retryjob.DeadLettered, retry.AttemptsExhausted, 4,
		func(*stage) (retry.Policy, error) { return fixed(4, short), errFlaky }},
	{"MaxAttempts of one is one attempt", nothing, retryjob.DeadLettered, retry.AttemptsExhausted, 1,
		func(*stage) (retry.Policy, error) { return fixed(1, short), errFlaky }},
	{"a success leaves its attempt, without an error", nothing, retryjob.Succeeded, 0, 1,
		func(*stage) (retry.Policy, error) { return retry.Policy{}, nil }},
	{"a permanent error is a dead letter at once, whatever attempts are left", nothing, retryjob.DeadLettered, retry.TerminalError, 1,
		func(s *stage) (retry.Policy, error) {
			return fixed(5, s.unit), fmt.Errorf("charge: %w", retry.Permanent(errFlaky))
		}},
	{"an error that the policy classifies as terminal is a dead letter at once", nothing, retryjob.DeadLettered, retry.TerminalError, 1,
		func(s *stage) (retry.Policy, error) {
			p, missing := fixed(5, s.unit), errors.New("no such account")
			p.Classify = retry.StopOn(missing)
			return p, missing
		}},
	{"a failure under a disabled policy is failed_no_retries and no dead letter", nothing, retryjob.FailedNoRetries, retry.RetriesDisabled, 1,
		func(*stage) (retry.Policy, error) { return retry.Policy{Disabled: true}, errFlaky }},
	{"a TTL that the next attempt would miss expires the job at once", nothing, retryjob.Expired, retry.TTLElapsed, 1,
		func(s *stage) (retry.Policy, error) { return s.unlucky(5), errFlaky }},
	{"an attempt exactly at the TTL is made", virtualTime, retryjob.Expired, retry.TTLElapsed, 3,
		func(s *stage) (retry.Policy, error) { return within(2*s.unit, fixed(5, s.unit)), errFlaky }},
	{"a hint beyond MaxHint expires the job", nothing, retryjob.Expired, retry.HintTooLong, 1,
		func(s *stage) (retry.Policy, error) {
			return retry.Policy{MaxHint: s.unit}, retry.After(s.unit+1, errFlaky)
		}},
	{"a gate that defers beyond the TTL expires the job", nothing, retryjob.Expired, retry.TTLElapsed, 0,
		func(s *stage) (retry.Policy, error) {
			return retry.Policy{TTL: s.unit, Gate: func(context.Context) time.Duration { return 2 * s.unit }}, nil
		}},
	{"a budget without tokens makes a dead letter of the next failure", nothing, retryjob.DeadLettered, retry.BudgetExhausted, 2,
		func(*stage) (retry.Policy, error) {
			p := fixed(5, short)
			p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: 1})
			return p, errFlaky
		}},
	{"a crash in the last attempt is a dead letter: attempts_exhausted", aCrash, retryjob.DeadLettered, retry.AttemptsExhausted, 1,
		func(*stage) (retry.Policy, error) { return fixed(1, short), nil }},
	{"a crash under a disabled policy is failed_no_retries", aCrash, retryjob.FailedNoRetries, retry.RetriesDisabled, 1,
		func(*stage) (retry.Policy, error) { return retry.Policy{Disabled: true}, nil }},
	{"a classifier that calls ErrLost terminal has nothing done twice", aCrash, retryjob.DeadLettered, retry.TerminalError, 1,
		func(*stage) (retry.Policy, error) {
			p := fixed(3, short)
			p.Classify = retry.StopOn(retryjob.ErrLost)
			return p, nil
		}},
	{"a job whose TTL is over when its lost attempt is noticed expires", aCrash, retryjob.Expired, retry.TTLElapsed, 1,
		func(s *stage) (retry.Policy, error) {
			p := within(s.far(), fixed(3, short))
			p.AttemptTimeout = 2 * p.TTL // no engine takes the attempt for lost before the crash
			return p, nil
		}},
}

// scenario plays the job.
func (o *outcome) scenario() scenario {
	return scenario{claim: o.claim, needs: o.needs, play: func(s *stage) {
		p, result := o.job(s)
		var i retryjob.Info
		if o.needs == aCrash {
			made := s.dieIn("job", p)
			i = s.ends("job", o.status, o.reason, o.attempts)
			require.Equal(s.t, []int{1}, made())
			require.Equal(s.t, retryjob.ErrLost.Error(), i.Last().Err)
		} else {
			var d diary
			s.open(policies{"p": p}, d.always(result))
			s.enqueue("job", "p")
			i = s.ends("job", o.status, o.reason, o.attempts)
			require.Len(s.t, d.all(), o.attempts)
		}
		require.Len(s.t, i.History, o.attempts)
		require.True(s.t, i.Due.IsZero())
		if last := i.Last(); o.attempts > 0 && o.needs != aCrash {
			require.Equal(s.t, []any{o.status, o.reason, result != nil}, []any{last.Status, last.Reason, last.Err != ""})
			require.True(s.t, i.Ended.Equal(last.End), "it waited for what it knew to be too late")
		}
		var letters []string
		if o.status == retryjob.DeadLettered {
			letters = []string{"job"}
		}
		require.Equal(s.t, letters, ids(s, s.q.List(s.t.Context(), dead(retryjob.Filter{}))))
	}}
}

// ends waits for a job to end as it is to, and returns it.
func (s *stage) ends(id string, status retryjob.Status, reason retry.Reason, attempts int) retryjob.Info {
	s.t.Helper()
	i := s.final(id)
	require.Equal(s.t, []any{status, reason, attempts}, []any{i.Status, i.Reason, i.Attempts}, id)
	return i
}

func within(ttl time.Duration, p retry.Policy) retry.Policy {
	p.TTL = ttl
	return p
}
