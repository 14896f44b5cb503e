//go:build unix

package killtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryjob"
)

// behavior is what the handler of one kind does, and how its jobs may end.
type behavior struct {
	policy   retry.Policy
	failures int           // attempts that fail before one succeeds
	terminal bool          // the failures are terminal
	replayed bool          // it is refused until it is replayed
	putOff   time.Duration // since it was first due; until then its handler puts it off
	// status and reason are the end of a job without lost attempts.
	status retryjob.Status
	reason retry.Reason
}

const always = 1 << 30 // failures

// waits are longer than River's batches of completions, and varied.
var waits = retry.Backoff{Mode: retry.Fixed, Base: 500 * time.Millisecond, Jitter: retry.RatioJitter}

// behaviors are by kind, which is also the name of the policy. Kinds that succeed have enough attempts for several
// kills.
var behaviors = map[string]behavior{
	"succeeds":      {policy: retry.Policy{MaxAttempts: 8, Backoff: waits}, status: retryjob.Succeeded},
	"fails_once":    {policy: retry.Policy{MaxAttempts: 8, Backoff: waits}, failures: 1, status: retryjob.Succeeded},
	"fails_twice":   {policy: retry.Policy{MaxAttempts: 8, Backoff: waits}, failures: 2, status: retryjob.Succeeded},
	"has_one_shot":  {policy: retry.Policy{MaxAttempts: 1}, status: retryjob.Succeeded}, // its first attempt is its last
	"is_terminal":   {policy: retry.Policy{MaxAttempts: 8, Backoff: waits}, failures: always, terminal: true, status: retryjob.DeadLettered, reason: retry.TerminalError},
	"exhausts":      {policy: retry.Policy{MaxAttempts: 3, Backoff: waits}, failures: always, status: retryjob.DeadLettered, reason: retry.AttemptsExhausted},
	"runs_late":     {policy: retry.Policy{MaxAttempts: retry.Unlimited, Backoff: waits, TTL: 3 * time.Second}, failures: always, status: retryjob.Expired, reason: retry.TTLElapsed},
	"never_retries": {policy: retry.Policy{Disabled: true}, failures: always, status: retryjob.FailedNoRetries, reason: retry.RetriesDisabled},
	"is_replayed":   {policy: retry.Policy{MaxAttempts: 8, Backoff: waits}, replayed: true, status: retryjob.Succeeded},
	"is_put_off":    {policy: retry.Policy{MaxAttempts: 8, Backoff: waits}, putOff: 1200 * time.Millisecond, status: retryjob.Succeeded},
	// Jobs with a worker of River's own.
	"plain_succeeds":   {policy: retry.Policy{MaxAttempts: 8, Backoff: waits}, status: retryjob.Succeeded},
	"plain_fails_once": {policy: retry.Policy{MaxAttempts: 8, Backoff: waits}, failures: 1, status: retryjob.Succeeded},
}

// kinds are in the order in which jobs take turns.
var kinds = []string{
	"succeeds", "fails_once", "fails_twice", "has_one_shot", "is_terminal", "exhausts", "runs_late", "never_retries",
	"is_replayed", "is_put_off",
	"plain_succeeds", "plain_fails_once",
}

func policies() retryjob.Policies {
	m := map[string]retry.Policy{}
	for kind, b := range behaviors {
		m[kind] = b.policy
	}
	return retryjob.FromMap(m)
}

// times is the payload or the args of a job: how long an attempt works before its effect, and how long between the
// effect and its return.
type times struct {
	Work          time.Duration `json:"work_ns"`
	Linger        time.Duration `json:"linger_ns"`
	IgnoreContext bool          `json:"deaf,omitempty"` // an attempt ignores its context
}

// newTimes draws them so that kills hit attempts in each of the two phases, and between attempts.
func newTimes(rnd *rand.Rand) times {
	return times{upTo(rnd, 400*time.Millisecond), upTo(rnd, 100*time.Millisecond), rnd.IntN(2) == 0}
}

// upTo draws from [0,limit).
func upTo(rnd *rand.Rand, limit time.Duration) time.Duration {
	return time.Duration(rnd.Int64N(int64(limit)))
}

// effect is the line that an attempt writes to the file.
type effect struct {
	Job    string `json:"job"`
	ID     string `json:"id"` // of the attempt
	Number int    `json:"number"`
	Life   int    `json:"life"` // the replays before it
	Did    deed   `json:"did"`
}

type deed string

const (
	done    deed = "done"
	failed  deed = "failed"
	refused deed = "refused" // failed for good
	cut     deed = "cut"     // its context has ended
)

var errOf = map[deed]error{
	done:    nil,
	failed:  errors.New("not this time"),
	refused: retry.Permanent(errors.New("never")),
	cut:     errors.New("out of time"),
}

// attempt makes one attempt, which appends to effects.
func (b behavior) attempt(ctx context.Context, took times, effects *os.File) error {
	attempt, _ := retryjob.AttemptFrom(ctx)
	if took.IgnoreContext {
		ctx = context.WithoutCancel(ctx)
	}
	if time.Since(attempt.FirstDue) < b.putOff {
		return retryjob.Snooze(300 * time.Millisecond)
	}
	e := effect{Job: attempt.JobID, ID: attempt.AttemptID, Number: attempt.Number, Life: attempt.Replays, Did: done}
	switch {
	case !pause(ctx, took.Work):
		e.Did = cut
	case b.replayed && attempt.Replays == 0:
		e.Did = refused
	case attempt.Number <= b.failures && b.terminal:
		e.Did = refused
	case attempt.Number <= b.failures:
		e.Did = failed
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := effects.Write(append(line, '\n')); err != nil { // one write, so that lines do not mix
		return err
	}
	pause(ctx, took.Linger)
	return errOf[e.Did]
}

// pause waits for d and reports whether it did so before ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
