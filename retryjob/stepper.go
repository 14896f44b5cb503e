package retryjob

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/retrygo/retry"
)

// Stepper is what all engines share: it makes one attempt of a job, decides what follows and records it. It neither
// sleeps nor stores, so that an engine does nothing but that. The zero Stepper but for Policies is ready; a Stepper is safe
// for concurrent use as far as its functions are.
//
// Jitter is no chance here: the same attempt of the same job gets the same delay whoever decides, and Policy.Rand is not
// asked. A token of the Budget is taken when a retry is decided on, in the process that decides, and is not paid back where
// that retry is not made. Gate, Observe and the handler get a context from which RunFrom tells the job.
type Stepper struct {
	// Policies finds a record's policy. It must be set.
	Policies Policies
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Code returns a short code for an error, such as an HTTP status, for Run.Code. Nil means none.
	Code func(error) string
}

// Verdict is what an engine does with a job after a step.
type Verdict struct {
	Status Status
	Reason retry.Reason // zero where Status is not final, and for Succeeded
	Due    time.Time    // of the next attempt; zero where Status is final
	// Deferred: the attempt was not made and does not count. A gate wants it later, or the engine is being shut down.
	Deferred bool
}

// mostLost is how many attempts can have left nothing in a record. More are no crashes but a wrong number.
const mostLost = 10_000

// ErrCanceled is the cause with which an engine ends the context of a job that is canceled while it runs.
var ErrCanceled = errors.New("retryjob: the job was canceled")

// Step makes the given attempt of the job that rec tells of: it runs fn under the policy's AttemptTimeout, decides and
// changes rec accordingly. attempt counts from 1 as the engine does, also where an earlier attempt has left nothing in rec:
// that one is then recorded as lost, with ErrLost, and decided about before fn is called. fn is not called where the policy
// forbids another attempt, where the TTL is over, where a gate wants the job later and where ctx has ended already: that
// defers the attempt, or cancels the job, as below.
//
// A panic in fn is its failure, with a *PanicError. runtime.Goexit is too: rec is up to date when the goroutine's deferred
// functions run. Where ctx ends while fn runs, its cause decides: with ErrShutdown the attempt does not count and is due
// again at once, else the job is Canceled; a deadline is an ordinary failure.
//
// The error is not nil where nothing was done and rec is unchanged: an unknown policy (ErrUnknownPolicy), a record that
// Check refuses, a job that is final, an attempt that rec has already or that is more than 10,000 after the last it has.
func (s *Stepper) Step(ctx context.Context, rec *Record, attempt int, fn func(context.Context) error) (Verdict, error) {
	p, err := s.open(rec, attempt)
	if err != nil {
		return Verdict{}, err
	}
	st := step{stepper: s, policy: &p, rec: rec, attempt: attempt}
	ctx = st.mark(ctx)
	if d := st.settle(ctx, false); d.Status != retry.Waiting {
		return st.refuse(ctx, d, ErrLost), nil
	}
	d, now := st.admit(ctx)
	if now {
		return st.run(ctx, fn), nil
	}
	rec.release(attempt)
	if d.Status == retry.Waiting {
		rec.wait(s.now().Add(d.Delay))
		return Verdict{Status: rec.Status, Due: rec.Due, Deferred: true}, nil
	}
	return st.refuse(ctx, d, nil), nil
}

// Lost decides about the given attempt, whose worker has died, and records it: a failure with ErrLost, which a
// Classifier may call terminal so that nothing is ever done twice. It is for engines that notice a death before another
// attempt begins. An error is not nil as with Step.
func (s *Stepper) Lost(ctx context.Context, rec *Record, attempt int) (Verdict, error) {
	p, err := s.open(rec, attempt)
	if err != nil {
		return Verdict{}, err
	}
	st := step{stepper: s, policy: &p, rec: rec, attempt: attempt}
	ctx = st.mark(ctx)
	st.attempt++
	d := st.settle(ctx, true)
	if d.Status != retry.Waiting {
		return st.refuse(ctx, d, ErrLost), nil
	}
	rec.wait(rec.Last().Due)
	return Verdict{Status: rec.Status, Due: rec.Due}, nil
}

// open returns the policy of a record whose given attempt may be made.
func (s *Stepper) open(rec *Record, attempt int) (retry.Policy, error) {
	if err := rec.Check(); err != nil {
		return retry.Policy{}, err
	}
	p, ok := s.Policies.lookup(rec.Policy)
	switch {
	case !ok:
		return p, fmt.Errorf("retryjob: job %s: policy %q: %w", rec.JobID, rec.Policy, ErrUnknownPolicy)
	case rec.Status.Final():
		return p, fmt.Errorf("retryjob: job %s is %s already", rec.JobID, rec.Status)
	case attempt < 1:
		return p, fmt.Errorf("retryjob: attempt %d of job %s is below 1", attempt, rec.JobID)
	case attempt > rec.Attempts+mostLost:
		return p, fmt.Errorf("retryjob: attempt %d of job %s is more than %d after attempt %d, the last in its record", attempt, rec.JobID, mostLost, rec.Attempts)
	case attempt <= rec.Attempts && !(rec.Status == Leased && attempt == rec.Attempts):
		return p, fmt.Errorf("retryjob: attempt %d of job %s %w", attempt, rec.JobID, errRecorded)
	}
	return p, nil
}

func (s *Stepper) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// step is one call of Step.
type step struct {
	stepper *Stepper
	policy  *retry.Policy
	rec     *Record
	attempt int
	runID   string
	start   time.Time
}

// mark returns ctx with what RunFrom tells.
func (s *step) mark(ctx context.Context) context.Context {
	s.runID = s.rec.RunID(s.attempt)
	return context.WithValue(ctx, runKey{}, &RunInfo{
		JobID: s.rec.JobID, RunID: s.runID, Correlation: s.rec.Correlation,
		Attempt: s.attempt, Replays: s.rec.Replays, First: s.rec.First,
	})
}

// canceled reports whether a ctx that has ended cancels the job: not with the engine's shutdown, nor with a deadline.
func (s *step) canceled(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.Canceled) && !errors.Is(context.Cause(ctx), ErrShutdown)
}

// settle records the attempts before this one of which the record knows nothing, or not how they ended. It returns the
// ending that one of them means, else Waiting with the delay after the last of them. That delay is yet to come where the
// attempt waits for it, and over where it is about to be made.
func (s *step) settle(ctx context.Context, waits bool) retry.Decision {
	d := retry.Decision{Status: retry.Waiting}
	first := s.rec.Attempts + 1
	if s.rec.Status == Leased && s.rec.Attempts > 0 {
		first-- // begun, and left so
	}
	for n := first; n < s.attempt; n++ {
		run := Run{ID: s.rec.RunID(n), Attempt: n, Status: WaitingRetry, Err: text(ErrLost)}
		if last := s.rec.Last(); last.Attempt == n {
			run.Start = last.Start
		}
		now, ttl := s.stepper.now(), s.policy.TTL
		if !waits && !s.late(0) {
			s.policy.TTL = 0 // the delay is over, and the TTL is not
		}
		d = s.decide(n, ErrLost)
		s.policy.TTL = ttl
		run.Status, run.Reason = of(d), Reason{d.Reason}
		if d.Status == retry.Waiting {
			run.Due = now
			if waits && n == s.attempt-1 {
				run.Due = now.Add(d.Delay)
			}
		}
		s.rec.note(run)
		s.tell(ctx, &run, d, ErrLost)
		if d.Status != retry.Waiting {
			return d
		}
	}
	return d
}

// admit reports whether the attempt may start now. Where it may not, d is Waiting with the delay after which it may, and else
// how the job ends.
func (s *step) admit(ctx context.Context) (d retry.Decision, now bool) {
	if s.attempt > 1 { // the policy may have changed since the last attempt
		p := *s.policy
		p.TTL = 0
		d = p.Decide(retry.Progress{Attempt: s.attempt - 1}, retry.Transient(ErrLost), 0)
		if d.Status != retry.Waiting {
			return d, false
		}
	}
	var delay time.Duration
	if s.policy.Gate != nil && ctx.Err() == nil && !s.late(0) {
		delay = max(s.policy.Gate(ctx), 0)
	}
	switch {
	case s.canceled(ctx): // first, as Do does
		return retry.Decision{Status: retry.Canceled, Reason: retry.CallerCanceled}, false
	case s.late(delay):
		return retry.Decision{Status: retry.Expired, Reason: retry.TTLElapsed}, false
	default:
		return retry.Decision{Status: retry.Waiting, Delay: delay}, delay == 0 && ctx.Err() == nil
	}
}

// late reports whether an attempt that starts delay from now starts beyond the TTL.
func (s *step) late(delay time.Duration) bool {
	elapsed := max(s.stepper.now().Sub(s.rec.First), 0)
	return s.policy.TTL > 0 && delay > s.policy.TTL-elapsed
}

// refuse ends the job without the attempt.
func (s *step) refuse(ctx context.Context, d retry.Decision, last error) Verdict {
	now := s.stepper.now()
	s.rec.end(of(d), d.Reason, now)
	s.tellEnd(ctx, d, now, last)
	return Verdict{Status: s.rec.Status, Reason: d.Reason}
}

// run makes the attempt.
func (s *step) run(ctx context.Context, fn func(context.Context) error) (v Verdict) {
	s.start = s.stepper.now()
	var err error
	finished := false
	defer func() {
		switch value := recover(); {
		case value != nil:
			err = &PanicError{Value: value, Stack: debug.Stack()}
		case !finished:
			err = &PanicError{Stack: debug.Stack()}
		}
		v = s.finish(ctx, err)
	}()
	err = s.call(ctx, fn)
	finished = true
	return
}

// call calls fn with the context of the attempt.
func (s *step) call(ctx context.Context, fn func(context.Context) error) error {
	if timeout := s.policy.AttemptTimeout; timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, retry.ErrAttemptTimeout)
		defer cancel()
	}
	return fn(ctx)
}

// finish decides about the attempt that ended with err and records it.
func (s *step) finish(ctx context.Context, err error) Verdict {
	now := s.stepper.now()
	if err != nil && errors.Is(context.Cause(ctx), ErrShutdown) {
		s.rec.release(s.attempt)
		s.rec.wait(now)
		return Verdict{Status: s.rec.Status, Due: now, Deferred: true}
	}
	run := Run{ID: s.runID, Attempt: s.attempt, Start: s.start, End: now}
	d := retry.Decision{Status: retry.Canceled, Reason: retry.CallerCanceled}
	if err == nil || !s.canceled(ctx) {
		d = s.decide(s.attempt, err)
	}
	if d.Status == retry.Waiting {
		run.Due = now.Add(d.Delay)
	}
	run.Status, run.Reason = of(d), Reason{d.Reason}
	if err != nil {
		run.Err = text(err)
		if s.stepper.Code != nil {
			run.Code = clean(s.stepper.Code(err))
		}
	}
	s.rec.note(run)
	if d.Status == retry.Waiting {
		s.rec.wait(run.Due)
	} else {
		s.rec.end(run.Status, d.Reason, now)
	}
	s.tell(ctx, &run, d, err)
	if d.Status != retry.Waiting {
		s.tellEnd(ctx, d, now, err)
	}
	return Verdict{Status: run.Status, Reason: d.Reason, Due: run.Due}
}

// decide asks the policy about an attempt that has just ended with err, and the budget last.
func (s *step) decide(attempt int, err error) retry.Decision {
	now := s.stepper.now()
	if err == nil {
		s.policy.Budget.Deposit()
		return retry.Decision{Status: retry.Succeeded}
	}
	u := spread(s.rec.JobID, s.rec.Replays, attempt)
	d := s.policy.Decide(retry.Progress{Attempt: attempt, Elapsed: now.Sub(s.rec.First), Prev: s.rec.Prev}, err, u)
	if d.Status != retry.Waiting {
		return d
	}
	if s.policy.Jitter == retry.DecorrelatedJitter {
		s.rec.Prev = s.policy.Jittered(attempt, s.rec.Prev, u)
	}
	if !s.policy.Budget.Withdraw(now) {
		return retry.Decision{Status: retry.DeadLettered, Reason: retry.BudgetExhausted}
	}
	return d
}

// tell tells the policy's Observe of an attempt that failed.
func (s *step) tell(ctx context.Context, run *Run, d retry.Decision, err error) {
	if s.policy.Observe != nil && err != nil {
		a := run.attempt(err)
		a.Delay = d.Delay
		s.policy.Observe(ctx, retry.Event{
			Policy:   s.policy.Name,
			Elapsed:  a.Start.Add(a.Duration).Sub(s.rec.First),
			Attempt:  a,
			Decision: d,
		})
	}
}

// tellEnd tells it of the end of the job.
func (s *step) tellEnd(ctx context.Context, d retry.Decision, now time.Time, err error) {
	if s.policy.Observe == nil {
		return
	}
	event := retry.Event{Policy: s.policy.Name, Decision: d, Outcome: s.rec.outcome(d, now, err)}
	event.Outcome.Policy, event.Elapsed = s.policy.Name, event.Outcome.Elapsed
	if d.Status != retry.Succeeded {
		if err == nil && len(event.Outcome.History) > 0 {
			err = event.Outcome.History[len(event.Outcome.History)-1].Err
		}
		failed := &retry.Error{Outcome: *event.Outcome, Last: err}
		if d.Reason == retry.CallerCanceled {
			failed.Cause = context.Cause(ctx)
		}
		event.Err = failed
	}
	s.policy.Observe(ctx, event)
}

// spread returns the u in [0,1) of the wait after an attempt: the same whoever asks, so that a worker that takes over from
// one that died comes to the same delay. It is FNV-1a (64 bits) of the job's ID with SplitMix64's finalizer over the
// counts, of which the upper 53 bits make a float64.
func spread(jobID string, replays, attempt int) float64 {
	h := uint64(14695981039346656037)
	for i := range len(jobID) {
		h = (h ^ uint64(jobID[i])) * 1099511628211
	}
	for _, n := range [...]int{replays, attempt} {
		h += uint64(n)*0x9e3779b97f4a7c15 + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return float64(h>>11) / (1 << 53)
}

// RunInfo tells a handler which attempt of which job it makes.
type RunInfo struct {
	JobID       string // the same over all attempts and replays: what an idempotency key is made of
	RunID       string // of this attempt alone
	Correlation string
	Attempt     int // from 1
	Replays     int
	First       time.Time
}

type runKey struct{}

// RunFrom returns the attempt that ctx belongs to: that of a handler, and of a policy's Gate and Observe. It reports false where
// ctx does not come from a Stepper.
func RunFrom(ctx context.Context) (RunInfo, bool) {
	if info, ok := ctx.Value(runKey{}).(*RunInfo); ok {
		return *info, true
	}
	return RunInfo{}, false
}
