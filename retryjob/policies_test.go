package retryjob_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryjob"
)

func TestPoliciesOf(t *testing.T) {
	list := retry.Policy{Name: "slow", Backoff: retry.Backoff{Delays: []time.Duration{sec, 2 * sec}}, TTL: time.Hour, AttemptTimeout: time.Minute}
	policies := retryjob.FromMap(map[string]retry.Policy{
		"list": list, "even": evenly(5, sec), "bad": {MaxAttempts: -7, TTL: -1},
	})
	change := func(p retry.Policy, change func(*retry.Policy)) retry.Policy {
		change(&p)
		return p
	}
	for _, row := range []struct {
		name string
		job  retryjob.Job
		want retry.Policy
		err  string // empty means none
	}{
		{"the named policy", retryjob.Job{Policy: "list"}, list, ""},
		{"a label for one without a name", retryjob.Job{Policy: "even"}, change(evenly(5, sec), func(p *retry.Policy) { p.Name = "even" }), ""},
		{"a Spec goes over it, except its name", retryjob.Job{Policy: "list", Spec: &retryconf.Spec{TTL: retryconf.Duration(sec), Name: "own"}},
			change(list, func(p *retry.Policy) { p.TTL = sec }), ""},
		{"an empty Spec changes nothing", retryjob.Job{Policy: "list", Spec: &retryconf.Spec{}}, list, ""},
		{"a formula takes the place of a list", retryjob.Job{Policy: "list", Spec: &retryconf.Spec{Base: retryconf.Duration(sec)}},
			change(list, func(p *retry.Policy) { p.Backoff = retry.Backoff{Base: sec} }), ""},
		{"a TTL goes over both", retryjob.Job{Policy: "list", TTL: 3 * sec, Spec: &retryconf.Spec{TTL: retryconf.Duration(sec)}},
			change(list, func(p *retry.Policy) { p.TTL = 3 * sec }), ""},
		{"a Spec alone", retryjob.Job{Spec: &retryconf.Spec{MaxAttempts: 2}}, retry.Policy{MaxAttempts: 2}, ""},
		{"a policy that is not valid", retryjob.Job{Policy: "bad"}, retry.Policy{}, "retry: Policy.MaxAttempts -7 is below -1, which is Unlimited; Policy.TTL -1ns is negative"},
		{"the same below a Spec", retryjob.Job{Policy: "bad", Spec: &retryconf.Spec{}}, retry.Policy{}, "retry: Policy.MaxAttempts -7 is below -1, which is Unlimited; Policy.TTL -1ns is negative"},
		{"a Spec that is not valid", retryjob.Job{Policy: "even", Spec: &retryconf.Spec{JitterRatio: 2}}, retry.Policy{},
			"retryconf: jitter_ratio 2 is set without ratio jitter; jitter_ratio 2 is outside (0,1]"},
		{"no such policy", retryjob.Job{Policy: "none"}, retry.Policy{}, "retryjob: unknown policy"},
	} {
		t.Run(row.name, func(t *testing.T) {
			before := row.job
			got, err := policies.Of(&row.job)
			require.Equal(t, before, row.job)
			if row.err != "" {
				require.EqualError(t, err, row.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, row.want, got)
		})
	}
	t.Run("code stays the policy's, as do the limits of Wait under another schedule", func(t *testing.T) {
		coded := retry.Policy{
			Classify: func(error) retry.Class { return retry.Terminal }, Budget: retry.NewBudget(retry.BudgetConfig{}),
			Pay: func(context.Context, retry.Decision) bool { return true }, Gate: func(context.Context) time.Duration { return 0 },
			Observe: func(context.Context, retry.Event) {}, Rand: func() float64 { return 0 },
			Wait: func(attempt int, _ error, _ time.Duration) time.Duration {
				if attempt == 2 {
					return retry.Stop
				}
				return sec
			},
		}
		of := retryjob.FromMap(map[string]retry.Policy{"coded": coded}).Of
		for _, row := range []struct {
			spec retryconf.Spec
			wait time.Duration // after attempt 1
		}{
			{retryconf.Spec{MaxAttempts: 3}, sec}, {retryconf.Spec{Base: 7}, 7}, {retryconf.Spec{Extends: "standard"}, time.Minute},
			{retryconf.Spec{Delays: []retryconf.Delay{9}}, 9},
		} {
			p, err := of(&retryjob.Job{Policy: "coded", Spec: &row.spec})
			require.NoError(t, err)
			require.Equal(t, []bool{true, true, true, true, true, true}, []bool{
				p.Classify != nil, p.Budget == coded.Budget, p.Pay != nil, p.Gate != nil, p.Observe != nil, p.Rand != nil,
			})
			p.Classify = nil
			require.Equal(t, row.wait, p.Decide(retry.Progress{}, errFlaky, 0).Delay)
			p.MaxAttempts = retry.Unlimited
			require.Equal(t, retry.AttemptsExhausted, p.Decide(retry.Progress{Attempt: 2}, errFlaky, 0).Reason)
		}
	})
}

func TestNewRefusesLimitsOfNilPolicies(t *testing.T) {
	_, err := retryjob.New(retryjob.Options{Policies: retryjob.Policies(nil).Within(retryconf.Limits{})})
	require.EqualError(t, err, "retryjob: Options.Policies <nil> must be set")
}

func TestWithin(t *testing.T) {
	named := retryjob.FromMap(map[string]retry.Policy{"p": {}, "endless": {MaxAttempts: retry.Unlimited}, "bad": {TTL: -1}})
	policies := named.Within(retryconf.Limits{MaxAttempts: 9, MaxTTL: time.Hour})
	for _, row := range []struct {
		name string
		job  retryjob.Job
		want string // of the error; empty means none
	}{
		{"a job that brings nothing goes by its policy, whatever that is", retryjob.Job{Policy: "endless"}, ""},
		{"a Spec within them", retryjob.Job{Policy: "p", Spec: &retryconf.Spec{MaxAttempts: 9, TTL: retryconf.Duration(time.Hour)}}, ""},
		{"all faults at once", retryjob.Job{Policy: "p", Priority: 9, Spec: &retryconf.Spec{MaxAttempts: 10}},
			`retryjob: Job.Spec.max_attempts 10 is outside 1 to 9; Job.Spec.ttl unlimited (the default) is above 1h; Job.Priority 9 is outside 0 to 4`},
		{"what a Spec leaves to its policy counts", retryjob.Job{Policy: "endless", Spec: &retryconf.Spec{TTL: 1}},
			`retryjob: Job.Spec.max_attempts unlimited is outside 1 to 9`},
		{"a TTL within them", retryjob.Job{Policy: "endless", TTL: time.Hour}, ""},
		{"a TTL beyond them", retryjob.Job{Policy: "p", TTL: time.Hour + 1}, `retryjob: Job.TTL 1h0m0.000000001s is above 1h`},
		{"a TTL beyond them beside a Spec", retryjob.Job{Policy: "p", TTL: 2 * time.Hour, Spec: &retryconf.Spec{MaxAttempts: 3}}, `retryjob: Job.TTL 2h is above 1h`},
		{"a negative TTL hides no other fault", retryjob.Job{Policy: "p", TTL: -1, Spec: &retryconf.Spec{MaxAttempts: 10, TTL: retryconf.Duration(sec)}},
			`retryjob: Job.Spec.max_attempts 10 is outside 1 to 9; Job.TTL -1ns is negative`},
		{"a TTL within them of a Spec beyond", retryjob.Job{Policy: "p", TTL: sec, Spec: &retryconf.Spec{TTL: retryconf.Duration(2 * time.Hour)}}, ""},
		{"an unknown policy stays one", retryjob.Job{Policy: "q", TTL: sec}, `retryjob: Job.Policy "q" is not the name of a policy`},
		{"a policy that is not valid stays one", retryjob.Job{Policy: "bad", Spec: &retryconf.Spec{MaxAttempts: 1}}, `retryjob: Job.Policy.TTL -1ns is negative`},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.job.Kind = "mail"
			if err := row.job.Validate(policies); row.want != "" {
				require.EqualError(t, err, row.want)
			} else {
				require.NoError(t, err)
			}
		})
	}
	t.Run("a job that waits is not judged again", func(t *testing.T) {
		r := retryjob.NewRecord(&retryjob.Job{ID: "j", Kind: "mail", Policy: "p", Spec: &retryconf.Spec{MaxAttempts: 10}}, epoch)
		s := retryjob.Stepper{Policies: policies, Now: func() time.Time { return epoch }}
		_, err := s.Step(t.Context(), &r, 1, ending(errFlaky))
		require.NoError(t, err)
		require.Equal(t, retryjob.WaitingRetry, r.Status)
	})
}

func TestPoliciesOfTheirOwnErrorRefuseTheJob(t *testing.T) {
	down := errors.New("no settings for this tenant")
	j := retryjob.Job{Kind: "mail", Policy: "p"}
	err := j.Validate(func(*retryjob.Job) (retry.Policy, error) { return retry.Policy{}, down })
	require.ErrorIs(t, err, down)
	require.EqualError(t, err, `retryjob: Job.Policy "p" has no policy: no settings for this tenant`)
	var field *retry.FieldError
	require.ErrorAs(t, err, &field)
	require.Equal(t, "Job.Policy", field.Field)
}
