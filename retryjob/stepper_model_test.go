package retryjob_test

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// outcome is how an attempt of a script ends.
type outcome uint8

const (
	succeeds outcome = iota
	fails
	isTerminal
	asksForSevenSeconds
	asksForTooLong
	givesUp // context.Canceled although the job is not canceled
	panics
	isShutDown
	isCanceled
	loses // ErrLost: nothing is known of it
	outcomes
	progresses // after some work; the model does not know it
)

// err is the error that the handler returns, or nil.
func (o outcome) err() error {
	switch o {
	case succeeds:
		return nil
	case progresses:
		return retry.Progressed(errFlaky)
	case isTerminal:
		return retry.Permanent(errFlaky)
	case asksForSevenSeconds:
		return retry.After(7*sec, errFlaky)
	case asksForTooLong:
		return retry.After(2*time.Hour, errFlaky)
	case givesUp:
		return context.Canceled
	case loses:
		return retryjob.ErrLost
	default:
		return errFlaky
	}
}

// modelPolicies are the policies of the model. Tokens is the budget's: -1 is none, for no budget.
var modelPolicies = []struct {
	retry.Policy
	tokens int
}{
	{retry.Policy{}, -1},
	{evenly(3, sec), -1},
	{retry.Policy{MaxAttempts: 4, TTL: 12 * sec, Backoff: retry.Backoff{Base: 3 * sec}}, -1},
	{retry.Policy{Disabled: true, TTL: time.Minute}, -1},
	{retry.Policy{MaxAttempts: retry.Unlimited, TTL: time.Hour, Backoff: retry.Backoff{Base: sec, Cap: 9 * sec, Jitter: retry.DecorrelatedJitter}}, -1},
	{retry.Policy{MaxAttempts: 6, Backoff: retry.Backoff{Base: sec, Jitter: retry.FullJitter}}, 2},
	{retry.Policy{Backoff: retry.Backoff{Delays: []time.Duration{sec, 0, 5 * sec}, Jitter: retry.RatioJitter}}, 1},
	{retry.Policy{MaxAttempts: 5, TTL: 20 * sec, Classify: retry.StopOn(retryjob.ErrLost)}, 0},
	{retry.Policy{MaxAttempts: 80, TTL: 10 * time.Minute, Backoff: retry.Backoff{Mode: retry.Fixed, Base: sec, Jitter: retry.EqualJitter}}, -1},
}

// model is the expected state of a job, by the rules one after the other, without regard to speed.
type model struct {
	policy            retry.Policy
	tokens            float64 // below 0 if there is no budget
	now, first        time.Time
	due, ended        time.Time
	status            retryjob.Status
	reason            retry.Reason
	attempts, replays int
	prev              time.Duration
	told, ends        int // events
	runs              []retryjob.Status
}

// decide returns the first ending that applies, in the order of Policy.Decide.
func (m *model) decide(attempt int, o outcome, ttl bool) (retryjob.Status, retry.Reason, time.Duration) {
	p := m.policy
	limit := p.MaxAttempts
	if limit == 0 {
		if limit = 8; p.Delays != nil {
			limit = len(p.Delays) + 1
		}
	}
	terminal := o == isTerminal || o == givesUp || o == loses && p.Classify != nil
	next := p.Jittered(attempt, m.prev, u("j", m.replays, attempt))
	delay := next
	if o == asksForSevenSeconds {
		lo, _ := p.Bounds(attempt)
		delay = max(next, 7*sec+next-lo)
	}
	switch {
	case o == succeeds:
		if m.tokens >= 0 {
			m.tokens = min(m.tokens+0.1, 10)
		}
		return retryjob.Succeeded, 0, 0
	case p.Disabled:
		return retryjob.FailedNoRetries, retry.RetriesDisabled, 0
	case terminal:
		return retryjob.DeadLettered, retry.TerminalError, 0
	case limit > 0 && attempt >= limit:
		return retryjob.DeadLettered, retry.AttemptsExhausted, 0
	case o == asksForTooLong:
		return retryjob.Expired, retry.HintTooLong, 0
	case ttl && p.TTL > 0 && m.now.Add(delay).After(m.first.Add(p.TTL)):
		return retryjob.Expired, retry.TTLElapsed, 0
	}
	if p.Jitter == retry.DecorrelatedJitter {
		m.prev = next
	}
	if m.tokens >= 0 {
		if m.tokens < 1-1e-9 {
			return retryjob.DeadLettered, retry.BudgetExhausted, 0
		}
		m.tokens--
	}
	return retryjob.WaitingRetry, 0, delay
}

// over reports whether an attempt that starts after the given wait is beyond the TTL.
func (m *model) over(later time.Duration) bool {
	return m.policy.TTL > 0 && m.now.Add(later).After(m.first.Add(m.policy.TTL))
}

func (m *model) end(s retryjob.Status, r retry.Reason) {
	m.status, m.reason, m.due, m.ended = s, r, time.Time{}, m.now
}

func (m *model) wait(delay time.Duration) {
	m.status, m.due = retryjob.WaitingRetry, m.now.Add(delay)
	if m.attempts == 0 {
		m.status = retryjob.Pending
	}
}

// lose records the attempts up to the given one as lost. waits reports whether the wait after the last one has not
// begun.
func (m *model) lose(upTo int, waits bool) bool {
	for n := m.attempts + 1; n <= upTo; n++ {
		s, r, delay := m.decide(n, loses, waits && n == upTo || m.over(0))
		m.attempts, m.told = n, m.told+1
		m.runs = append(m.runs, s)
		if s != retryjob.WaitingRetry {
			m.end(s, r)
			m.ends++
			return false
		}
		if waits {
			m.wait(delay)
		}
	}
	return true
}

// step makes an attempt and reports whether it was made.
func (m *model) step(attempt int, o outcome, took, gate time.Duration) bool {
	if !m.lose(attempt-1, false) {
		return false
	}
	switch {
	case m.over(0) || m.over(gate):
		m.end(retryjob.Expired, retry.TTLElapsed)
		m.ends++
		return false
	case gate > 0:
		m.wait(gate)
		return false
	}
	m.now = m.now.Add(took)
	if o == isShutDown {
		m.wait(0)
		return true
	}
	s, r, delay := retryjob.Canceled, retry.CallerCanceled, time.Duration(0)
	if o != isCanceled {
		s, r, delay = m.decide(attempt, o, true)
	}
	m.attempts = attempt
	m.runs = append(m.runs, s)
	if o != succeeds {
		m.told++
	}
	if s == retryjob.WaitingRetry {
		m.wait(delay)
		return true
	}
	m.end(s, r)
	m.ends++
	return true
}

// transitions are those that the comment of Status allows, with a lost and a leased attempt as one.
var transitions = map[retryjob.Status][]retryjob.Status{
	retryjob.Pending:         retryjob.Statuses(),
	retryjob.WaitingRetry:    {retryjob.WaitingRetry, retryjob.Succeeded, retryjob.DeadLettered, retryjob.Expired, retryjob.FailedNoRetries, retryjob.Canceled},
	retryjob.DeadLettered:    {retryjob.DeadLettered, retryjob.Pending},
	retryjob.Expired:         {retryjob.Expired, retryjob.Pending},
	retryjob.FailedNoRetries: {retryjob.FailedNoRetries, retryjob.Pending},
	retryjob.Succeeded:       {retryjob.Succeeded},
	retryjob.Canceled:        {retryjob.Canceled},
}

// walk plays a script against the core and the model. Each move is two bytes.
func walk(t *testing.T, policy int, script []byte) {
	chosen := modelPolicies[policy%len(modelPolicies)]
	m := &model{policy: chosen.Policy, tokens: float64(chosen.tokens), now: epoch, first: epoch, due: epoch, status: retryjob.Pending}
	c := &clock{epoch}
	p := chosen.Policy
	if chosen.tokens >= 0 {
		initial := chosen.tokens
		if initial == 0 {
			initial = -1
		}
		p.Budget = retry.NewBudget(retry.BudgetConfig{Initial: initial})
	}
	gate, failed, ends := time.Duration(0), 0, 0
	p.Gate = func(context.Context) time.Duration { return gate }
	p.Observe = func(_ context.Context, e retry.Event) {
		if e.Outcome != nil {
			ends++
		} else {
			failed++
		}
	}
	s := stepper(p, c)
	r := record(c)
	for len(script) >= 2 && m.attempts < 150 {
		move, arg := script[0], script[1]
		script = script[2:]
		before, was := clone(r), m.status
		next := m.attempts + 1 + int(arg>>6)
		took := time.Duration(arg&3) * sec
		var v retryjob.Next
		var err error
		decided := false
		switch move % 8 {
		case 0, 1, 2:
			o := outcome(arg>>2&15) % outcomes
			if gate = 0; move&64 != 0 {
				gate = time.Duration(move>>3&7) * sec
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			called := false
			v, err = s.Step(ctx, &r, next, func(context.Context) error {
				called = true
				c.pass(took)
				switch o {
				case panics:
					panic(errFlaky)
				case isShutDown:
					cancel(retryjob.ErrShutdown)
				case isCanceled:
					cancel(retryjob.ErrCanceled)
				}
				return o.err()
			})
			cancel(nil)
			if decided = !was.Final(); decided {
				require.Equal(t, m.step(next, o, took, gate), called)
			} else {
				require.False(t, called)
			}
		case 3:
			v, err = s.Lost(t.Context(), &r, next)
			if decided = !was.Final(); decided {
				m.lose(next, true)
			}
		case 4:
			c.pass(took)
			m.now = c.now
		case 5:
			if !m.due.IsZero() && m.due.After(c.now) {
				c.now = m.due
				m.now = c.now
			}
		case 6:
			err = r.Replay(c.now)
			if decided = was.Replayable(); decided {
				m.status, m.reason, m.first, m.due, m.ended = retryjob.Pending, 0, c.now, c.now, time.Time{}
				m.attempts, m.prev, m.runs, m.replays = 0, 0, nil, m.replays+1
			} else {
				require.ErrorIs(t, err, retryjob.ErrNotReplayable)
			}
		case 7:
			if arg < 16 {
				err = r.Cancel(c.now)
				if decided = !was.Final(); decided {
					m.end(retryjob.Canceled, retry.CallerCanceled)
				}
				break
			}
			text, failed := json.Marshal(r)
			require.NoError(t, failed)
			r = retryjob.Record{}
			require.NoError(t, json.Unmarshal(text, &r))
			require.Equal(t, before, r)
		}
		switch {
		case decided:
			require.NoError(t, err)
			if move%8 < 4 {
				require.Equal(t, retryjob.Next{Status: m.status, Reason: m.reason, Due: m.due, Deferred: v.Deferred}, tell(v))
			}
		case err != nil || move%8 < 4:
			require.Error(t, err)
			require.Equal(t, before, r)
		}
		require.Equal(t, m.now, c.now)
		compare(t, m, &r)
		require.Contains(t, transitions[was], r.Status)
		require.Equal(t, m.told, failed, "failed attempts told of")
		require.Equal(t, m.ends, ends, "ends told of")
		if p.Budget != nil {
			require.InDelta(t, m.tokens, p.Budget.Tokens(), 1e-6)
		}
	}
}

// compare compares a record with the model.
func compare(t *testing.T, m *model, r *retryjob.Record) {
	require.NoError(t, r.Validate())
	want := retryjob.Record{
		Version: retryjob.RecordVersion, JobID: "j", Kind: "mail", Policy: "p", Correlation: "trace", FirstDue: m.first, Replays: m.replays, Status: m.status,
		Reason: m.reason, Due: m.due, Ended: m.ended, Attempts: m.attempts, Prev: m.prev, History: r.History, Earlier: r.Earlier,
	}
	require.Equal(t, want, *r)
	require.Len(t, r.Earlier, min(m.replays, 8))
	require.Len(t, r.History, min(m.attempts, 64))
	for i, a := range r.History {
		n := i + 1
		if i > 0 {
			n = m.attempts - len(r.History) + 1 + i
		}
		require.Equal(t, n, a.Number)
		require.Equal(t, r.AttemptID(n), a.ID)
		require.Equal(t, m.runs[n-1], a.Status)
		require.Equal(t, a.Status != retryjob.WaitingRetry, a.Due.IsZero())
		require.Equal(t, a.Status.Final() && a.Status != retryjob.Succeeded, a.Reason != 0)
		require.False(t, a.Status.Final() && n < m.attempts)
	}
}

// TestStepperAgreesWithTheModel walks random scripts through all policies.
func TestStepperAgreesWithTheModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	scripts := 3000
	if testing.Short() {
		scripts = 600
	}
	for n := range scripts {
		script := make([]byte, 2*(1+rnd.IntN(40)))
		for i := range script {
			script[i] = byte(rnd.UintN(256))
		}
		walk(t, n, script)
	}
	t.Run("the model agrees over more attempts than a record keeps", func(t *testing.T) {
		for policy := range modelPolicies {
			walk(t, policy, slices.Repeat([]byte{0, byte(fails) << 2, 7, 255, 5, 0}, 150))
		}
	})
}

// FuzzStepper checks that a Stepper does what the model does for any script.
func FuzzStepper(f *testing.F) {
	for policy := range modelPolicies {
		f.Add(policy, []byte{0, 4, 5, 0, 0, 4, 5, 0, 0, 0})
		f.Add(policy, []byte{0, 64 + 4, 7, 99, 3, 128, 5, 0, 64 + 24, 4, 6, 0, 0, 0})
	}
	f.Fuzz(func(t *testing.T, policy int, script []byte) {
		if policy < 0 || len(script) > 400 {
			return
		}
		walk(t, policy, script)
	})
}
