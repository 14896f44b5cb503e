package retryjob

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryshell"
)

// Stepper is the part that all engines share: it makes one attempt of a job, asks the policy for the decision and records
// it. The engine sleeps and stores. Only Policies is required. A Stepper is safe for concurrent use if its functions
// are.
//
// Jitter is deterministic: the same attempt of the same job gets the same delay in every process, and Policy.Rand is
// not called. The decision to retry takes a token of the Budget, in the process that decides. If the job ends without
// that retry, the process that ends it returns the token. AttemptFrom returns the attempt in the contexts of Gate,
// Observe, Pay and the handler.
type Stepper struct {
	// Policies returns the policy of a job. It must be set.
	Policies Policies
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
	// Code returns a short code for an error, for Attempt.Code. If Code is nil or returns "", the code is the HTTP
	// status of an error with a method HTTPStatus() int, such as the errors of package retryhttp. For a code of errors
	// without a status too, return string(retryhttp.ReasonOf(err)).
	Code func(error) string

	unnamed bool // attempts get no ID: the engine in memory makes the IDs when it returns a Record
}

// codeOf returns the code of err, or "".
func (s *Stepper) codeOf(err error) string {
	if s.Code != nil {
		if code := clean(s.Code(err)); code != "" {
			return code
		}
	}
	var answered interface{ HTTPStatus() int }
	if errors.As(err, &answered) && answered.HTTPStatus() > 0 {
		return strconv.Itoa(answered.HTTPStatus())
	}
	return ""
}

// Next is the next step of an engine with a job.
type Next struct {
	Status Status       // of the record
	Reason retry.Reason // zero if Status is not final, and for Succeeded
	Due    time.Time    // of the next attempt; zero if Status is final
	// Deferred means that the attempt does not count: a gate deferred it, its handler returned Snooze, or the engine is
	// shutting down.
	Deferred bool
	end      func() // calls Observe with the end
}

// Tell calls the policy's Observe with the end of the job, if the job has ended. An engine calls it once, after it has
// stored the record, so that Observe can replay the job, and before it ends the context of the attempt.
func (n Next) Tell() {
	if n.end != nil {
		n.end()
	}
}

// Tells reports whether Tell calls Observe.
func (n Next) Tells() bool { return n.end != nil }

// mostLost is the maximum number of attempts that may be missing in a record. If more are missing, the number of the
// attempt is wrong.
const mostLost = 10_000

// ErrCanceled is the cause with which an engine ends the context of an attempt whose job is canceled.
var ErrCanceled = errors.New("retryjob: the job was canceled")

// Step makes the given attempt of the job of rec: it calls fn under the policy's AttemptTimeout, decides whether a retry follows
// and changes rec accordingly. attempt counts from 1. Step first records each earlier attempt that is missing in rec as
// lost, with ErrLost, and decides about it. It does not call fn if the policy forbids another attempt, if the TTL
// is over, if a gate defers the attempt, or if ctx has ended, which defers the attempt or cancels the job as described
// below.
//
// A panic in fn is a failure with a *PanicError. So is runtime.Goexit. Then rec is up to date, and Next.Tell was
// called, when the deferred functions of the goroutine run. If ctx ends while fn runs and fn fails, the cause of ctx
// decides. If it is ErrShutdown, the attempt does not count and is due again at once, unless retry.IsAmbiguous reports
// true for the error of fn: the job then ends in doubt. After any other cancellation the job is Canceled. A deadline is
// an ordinary failure. If fn succeeds although the cause is ErrCanceled, the attempt is recorded as Succeeded, and the
// job as Canceled.
//
// Step recovers a panic of a function of the policy. If it came after the decision, as one of Observe does, its text is
// added to Attempt.Err, and the decision holds. Otherwise the job is DeadLettered with TerminalError.
//
// If Step returns an error, it did nothing and rec is unchanged: Policies returned an error or panicked, Record.Validate refused
// rec, the job is final, or attempt is below 1, in rec already, or more than 10,000 after the last attempt in rec.
func (s *Stepper) Step(ctx context.Context, rec *Record, attempt int, fn func(context.Context) error) (Next, error) {
	st, ctx := s.begin(ctx, rec, attempt)
	if err := st.find(); err != nil {
		return Next{}, err
	}
	return st.step(ctx, s.now(), fn), nil
}

// begin returns the state of a call for an attempt, and ctx with the info of the attempt.
func (s *Stepper) begin(ctx context.Context, rec *Record, attempt int) (*step, context.Context) {
	info := infoOf(rec, attempt)
	return &step{Stepper: s, rec: rec, info: &info}, context.WithValue(ctx, retryshell.HandledJob{}, &info)
}

// step is Step at now, with a policy and with a context that has the info.
func (s *step) step(ctx context.Context, now time.Time, fn func(context.Context) error) (next Next) {
	defer func() {
		value := recover()
		switch {
		case value != nil:
			next = s.abandon(panicked(s.rec.Policy, value), true)
		case next.Status == 0 && !errors.Is(context.Cause(ctx), ErrShutdown): // steps did not return; a shutdown undoes the attempt
			s.abandon(fmt.Errorf("retryjob: a function of policy %q ended its goroutine", s.rec.Policy), false)
		}
	}()
	return s.steps(ctx, now, fn)
}

// abandon records an attempt that a panic of a function of the policy, or the end of its goroutine, has left as it is.
// Without a decision, the job is DeadLettered, since another attempt would end in the same way.
func (s *step) abandon(err error, afterPanic bool) Next {
	r, n := s.rec, len(s.rec.History)
	switch {
	case r.Attempts < s.info.Number && !r.Status.Final():
		now := s.now()
		r.note(Attempt{
			ID: r.AttemptID(s.info.Number), Number: s.info.Number, Start: now, End: now, Status: DeadLettered, Reason: retry.TerminalError, Err: text(err),
		})
		r.end(DeadLettered, retry.TerminalError, now)
	case afterPanic && n > 0 && r.Attempts == s.info.Number:
		r.History[n-1].Err = afterwards(r.History[n-1].Err, err)
	}
	return Next{Status: r.Status, Reason: r.Reason, Due: r.Due}
}

func panicked(policy string, value any) error {
	return fmt.Errorf("retryjob: a function of policy %q panicked: %v", policy, value)
}

// afterwards adds an error that came after the decision to the text of an attempt.
func afterwards(attempt string, err error) string {
	if attempt != "" {
		attempt += "; "
	}
	return text(recorded(fmt.Sprintf("%safter it was decided: %v", attempt, err)))
}

// steps is step without the recovery.
func (s *step) steps(ctx context.Context, now time.Time, fn func(context.Context) error) Next {
	if last := s.info.Number - 1; last >= s.firstLost() {
		if d := s.recordLost(ctx, last); d.Status != retry.WaitingRetry {
			return s.refuse(ctx, d, ErrLost)
		}
		now = s.now()
	}
	switch d, now := s.admit(ctx, now); {
	case d.Status != retry.WaitingRetry:
		return s.unmade(ctx, d)
	case d.Delay > 0 || ctx.Err() != nil:
		return s.postpone(s.now().Add(d.Delay))
	default:
		return s.make(ctx, now, fn)
	}
}

// Lost records the given attempt, whose worker has died, as a failure with ErrLost and decides about the job. A
// Classifier may return Terminal for ErrLost, so that no work is done twice. Lost is for engines that notice the death
// of a worker before the next attempt begins. The errors are those of Step.
func (s *Stepper) Lost(ctx context.Context, rec *Record, attempt int) (Next, error) {
	st, ctx := s.begin(ctx, rec, attempt)
	if err := st.find(); err != nil {
		return Next{}, err
	}
	if d := st.recordLost(ctx, attempt); d.Status != retry.WaitingRetry {
		return st.refuse(ctx, d, ErrLost), nil
	}
	rec.wait(rec.Last().Due)
	return Next{Status: rec.Status, Due: rec.Due}, nil
}

// An engine calls Canceled after it has stored a record that Record.Cancel changed while no attempt was under way.
// Canceled returns the budget's token for the retry that is not made, and calls Observe with the end of the job. It
// does nothing if Policies returns an error.
func (s *Stepper) Canceled(ctx context.Context, rec *Record) {
	st, ctx := s.begin(ctx, rec, rec.Attempts)
	if st.ask() == nil {
		st.refund()
		d := retry.Decision{Status: retry.Canceled, Reason: retry.CallerCanceled}
		Next{end: st.ending(ctx, d, rec.Ended, nil)}.Tell()
	}
}

// ask looks up the policy. A panic of Policies is an error.
func (s *step) ask() (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked(s.rec.Policy, value)
		}
	}()
	job := s.rec.Job()
	s.policy, err = s.Policies.ask(&job, false)
	return err
}

// find looks up the policy and returns the errors of Step.
func (s *step) find() error {
	rec, attempt := s.rec, s.info.Number
	if err := rec.Validate(); err != nil {
		return err
	}
	switch err := s.ask(); {
	case err != nil:
		return fmt.Errorf("retryjob: job %s: policy %q: %w", rec.JobID, rec.Policy, err)
	case rec.Status.Final():
		return fmt.Errorf("retryjob: job %s is %s already", rec.JobID, rec.Status)
	case attempt < 1:
		return fmt.Errorf("retryjob: attempt %d of job %s is below 1", attempt, rec.JobID)
	case attempt > rec.Attempts+mostLost:
		return fmt.Errorf("retryjob: attempt %d of job %s is more than %d after attempt %d, the last in its record", attempt, rec.JobID, mostLost, rec.Attempts)
	case attempt <= rec.Attempts && !(rec.Status == Leased && attempt == rec.Attempts):
		return fmt.Errorf("retryjob: attempt %d of job %s %w", attempt, rec.JobID, errRecorded)
	}
	rec.Version = RecordVersion
	return nil
}

func (s *Stepper) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// step is the state of one call of Step, Lost or Canceled.
type step struct {
	*Stepper
	policy retry.Policy
	rec    *Record
	info   *AttemptInfo
	gated  bool // the wait that the gate asked for ended the job
}

// progress returns the progress of the job at now, after the given attempt. 0 means before the first one.
func (s *step) progress(attempt int, now time.Time) retry.Progress {
	return retry.Progress{Attempt: attempt, Forgiven: s.rec.Forgiven, Prev: s.rec.Prev, Elapsed: now.Sub(s.rec.FirstDue)}
}

// caller returns CallerCanceled if ctx has ended and that cancels the job. A shutdown of the engine and a deadline do
// not cancel it.
func caller(ctx context.Context) retry.Reason {
	if errors.Is(ctx.Err(), context.Canceled) && !errors.Is(context.Cause(ctx), ErrShutdown) {
		return retry.CallerCanceled
	}
	return 0
}

// firstLost returns the number of the first attempt whose end is missing in the record.
func (s *step) firstLost() int {
	if s.rec.Status == Leased && s.rec.Attempts > 0 {
		return s.rec.Attempts // it began and did not end
	}
	return s.rec.Attempts + 1
}

// recordLost records the attempts from firstLost to last as lost. It returns the ending that follows from one of them,
// or WaitingRetry.
func (s *step) recordLost(ctx context.Context, last int) retry.Decision {
	d := retry.Decision{Status: retry.WaitingRetry}
	for n := s.firstLost(); n <= last && d.Status == retry.WaitingRetry; n++ {
		now := s.now()
		pr := s.progress(n, now)
		pr.Waited = n < s.info.Number // because the next attempt has begun or is about to begin
		d = s.decide(ctx, pr, now, ErrLost)
		a := Attempt{ID: s.rec.AttemptID(n), Number: n, Status: of(d), Reason: d.Reason, Err: text(ErrLost)}
		if begun := s.rec.Last(); begun.Number == n {
			a.Start = begun.Start
		}
		if pr.Waited {
			d.Delay = 0
		}
		if d.Status == retry.WaitingRetry {
			a.Due = now.Add(d.Delay)
		}
		s.rec.note(a)
		s.tell(ctx, &a, now, d, ErrLost)
	}
	return d
}

// admit returns WaitingRetry without a Delay if the attempt may start now, Waiting with a Delay if the gate defers it, and
// otherwise the ending of the job. It also returns the time of that decision.
func (s *step) admit(ctx context.Context, now time.Time) (retry.Decision, time.Time) {
	pr := s.progress(s.info.Number-1, now)
	pr.Caller = caller(ctx)
	d := s.policy.Admit(pr, 0)
	if s.policy.Gate == nil || d.Status != retry.WaitingRetry || ctx.Err() != nil {
		return d, now
	}
	wait := s.policy.Gate(ctx)
	now = s.now()
	pr = s.progress(pr.Attempt, now)
	pr.Caller = caller(ctx)
	d = s.policy.Admit(pr, wait)
	s.gated = d.Status != retry.WaitingRetry && s.policy.Admit(pr, 0).Status == retry.WaitingRetry
	return d, now
}

// refund returns the token of a retry that is not made.
func (s *step) refund() {
	if s.rec.Last().Status == WaitingRetry {
		s.policy.Budget.Refund()
	}
}

// postpone makes the job wait until due for an attempt that was not made.
func (s *step) postpone(due time.Time) Next {
	s.rec.release(s.info.Number)
	s.rec.wait(due)
	return Next{Status: s.rec.Status, Due: due, Deferred: true}
}

// unmade ends the job instead of making the attempt, which does not count.
func (s *step) unmade(ctx context.Context, d retry.Decision) Next {
	s.rec.release(s.info.Number)
	s.refund()
	return s.refuse(ctx, d, nil)
}

// refuse ends the job by d. last is the error of the last attempt if d is the decision about it, and otherwise nil.
func (s *step) refuse(ctx context.Context, d retry.Decision, last error) Next {
	now := s.now()
	s.rec.end(of(d), d.Reason, now)
	return Next{Status: s.rec.Status, Reason: d.Reason, end: s.ending(ctx, d, now, last)}
}

// make makes the attempt.
func (s *step) make(ctx context.Context, start time.Time, fn func(context.Context) error) (next Next) {
	before := retry.Progress{Attempt: s.info.Number - 1, Forgiven: s.rec.Forgiven}
	own := retryshell.WithAttempt(ctx, s.policy, before)
	cancel := func() {}
	if timeout := s.policy.AttemptTimeout; timeout > 0 {
		own, cancel = context.WithTimeoutCause(own, timeout, retry.ErrAttemptTimeout)
	}
	err := errGoexit // until fn returns or panics
	defer func() {
		timedOut := err != nil && context.Cause(own) == retry.ErrAttemptTimeout && context.Cause(ctx) != retry.ErrAttemptTimeout
		cancel()
		if err == errGoexit {
			s.finish(ctx, start, &PanicError{Stack: debug.Stack()}, timedOut).Tell() // Step does not return it
			return
		}
		next = s.finish(ctx, start, err, timedOut)
	}()
	err = call(own, fn)
	return next
}

// errGoexit takes the place of the error of a function that ended its goroutine.
var errGoexit = errors.New("retryjob: runtime.Goexit")

// call calls fn. A panic is a *PanicError.
func call(ctx context.Context, fn func(context.Context) error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return fn(ctx)
}

// finish decides about an attempt that ended with err, and records it. timedOut reports whether its AttemptTimeout was
// over.
func (s *step) finish(ctx context.Context, start time.Time, err error, timedOut bool) Next {
	now := s.now()
	if timedOut {
		err = retryshell.MarkTimeout(err)
	}
	if err != nil && errors.Is(context.Cause(ctx), ErrShutdown) && !retry.IsAmbiguous(err) {
		return s.postpone(now)
	}
	if wait, ok := snoozed(err); ok && caller(ctx) == 0 {
		return s.snooze(ctx, now, wait)
	}
	pr := s.progress(s.info.Number, now)
	pr.Lasted, pr.Caller = now.Sub(start), caller(ctx)
	d := s.decide(ctx, pr, now, err)
	a := Attempt{Number: s.info.Number, Start: start, End: now, Status: of(d), Reason: d.Reason}
	if !s.unnamed {
		a.ID = s.rec.AttemptID(a.Number)
	}
	if err != nil {
		a.Err = text(err)
		a.Code = s.codeOf(err)
		a.Ambiguous = retry.IsAmbiguous(err)
		if timedOut && !errors.Is(err, retry.ErrAttemptTimeout) { // another error, which the timeout may have caused
			a.Err = clean(retry.ErrAttemptTimeout.Error() + ": " + a.Err)
		}
	}
	next := Next{Status: a.Status, Reason: d.Reason}
	if d.Status == retry.WaitingRetry {
		a.Due = now.Add(d.Delay)
		next.Due = a.Due
		s.rec.note(a)
		s.rec.wait(a.Due)
	} else {
		s.rec.note(a)
		if err == nil && errors.Is(context.Cause(ctx), ErrCanceled) { // which was promised to the caller of Cancel
			d = retry.Decision{Status: retry.Canceled, Reason: retry.CallerCanceled}
			next.Status, next.Reason = Canceled, d.Reason
		}
		s.rec.end(next.Status, d.Reason, now)
		next.end = s.ending(ctx, d, now, err)
	}
	s.tell(ctx, &a, now, d, err)
	return next
}

// snooze puts the job off by wait, or ends it if the policy forbids an attempt after that.
func (s *step) snooze(ctx context.Context, now time.Time, wait time.Duration) Next {
	if d := s.policy.Admit(s.progress(s.info.Number-1, now), wait); d.Status != retry.WaitingRetry {
		return s.unmade(ctx, d)
	}
	s.rec.PutOff++
	return s.postpone(now.Add(wait))
}

// decide asks the policy, and then its budget, for the decision about an attempt that ended with err.
func (s *step) decide(ctx context.Context, pr retry.Progress, now time.Time, err error) retry.Decision {
	u := 0.0
	if err != nil {
		u = spread(s.rec.JobID, s.rec.Replays, pr.Attempt)
	}
	d := s.policy.Decide(pr, err, u)
	if d.Status == retry.WaitingRetry {
		s.rec.Forgiven = d.Forgiven
		if s.policy.Jitter == retry.DecorrelatedJitter {
			s.rec.Prev = d.Backoff
		}
	}
	return s.policy.Spend(ctx, d, now)
}

// tell calls the policy's Observe with an attempt that failed. now is its end, or when it was found lost.
func (s *step) tell(ctx context.Context, a *Attempt, now time.Time, d retry.Decision, err error) {
	if s.policy.Observe == nil || err == nil {
		return
	}
	failed := a.failed(d.Class, err)
	failed.Delay = d.Delay
	elapsed := max(now.Sub(s.rec.FirstDue), 0)
	s.policy.Observe(s.reported(ctx), retry.Event{Policy: s.policy.Name, Elapsed: elapsed, Attempt: failed, Decision: d})
}

// ending returns a function that calls the policy's Observe with the current state of the job as its end. last is the
// error of the attempt if d is the decision about one, and otherwise nil.
func (s *step) ending(ctx context.Context, d retry.Decision, now time.Time, last error) func() {
	if s.policy.Observe == nil {
		return nil
	}
	o := retry.Outcome{
		Policy: s.policy.Name, Status: d.Status, Reason: d.Reason, Attempts: s.rec.Attempts,
		Elapsed: max(now.Sub(s.rec.FirstDue), 0), EndedByGate: s.gated,
	}
	for i := range s.rec.History {
		a := &s.rec.History[i]
		if a.Status == Succeeded {
			continue
		}
		failed := a.failed(retry.Retryable, recorded(a.Err)) // another attempt followed
		if last != nil && i == len(s.rec.History)-1 {
			failed.Class, failed.Err = d.Class, last
		}
		o.History = append(o.History, failed)
	}
	e := retry.Event{Policy: s.policy.Name, Elapsed: o.Elapsed, Decision: d, Outcome: &o}
	if d.Status != retry.Succeeded {
		if last == nil && len(o.History) > 0 {
			last = o.History[len(o.History)-1].Err
		}
		failed := s.policy.NewError(ctx, o, last)
		e.Outcome, e.Err = &failed.Outcome, failed
	}
	observe, ctx := s.policy.Observe, s.reported(ctx) // without s, so that s stays on the stack
	return func() { observe(ctx, e) }
}

// reported returns the context of Observe, which has the job for reports.
func (s *step) reported(ctx context.Context) context.Context {
	return context.WithValue(ctx, retryshell.ReportedJob{}, s.info)
}

// spread returns the u in [0,1) of the wait after an attempt. It is deterministic, so that a worker that takes over
// from one that died computes the same delay: the upper 53 bits of FNV-1a (64 bits) of the job's ID, with SplitMix64's
// finalizer over the counts, make a float64.
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

// AttemptInfo describes the attempt that a handler makes.
type AttemptInfo struct {
	JobID       string    // the same for all attempts and replays: use it as an idempotency key
	Kind        string    // of the job
	AttemptID   string    // unique to this attempt
	Correlation string    // of the job; empty means no correlation
	Number      int       // of the attempt, from 1; it begins again after a replay
	Replays     int       // Record.Replays
	FirstDue    time.Time // Record.FirstDue
}

// infoOf returns the info of an attempt without AttemptID. AttemptFrom adds the AttemptID, since few handlers ask for
// it.
func infoOf(rec *Record, attempt int) AttemptInfo {
	return AttemptInfo{
		JobID: rec.JobID, Kind: rec.Kind, Correlation: rec.Correlation, Number: attempt, Replays: rec.Replays, FirstDue: rec.FirstDue,
	}
}

// LogValue returns a group of id and kind, for reports in the context of Observe.
func (i *AttemptInfo) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", i.JobID), slog.String("kind", i.Kind))
}

// AttemptFrom returns the attempt of the context of a handler or of a policy's Gate, Pay or Observe. It reports false
// if ctx does not come from a Stepper.
func AttemptFrom(ctx context.Context) (AttemptInfo, bool) {
	info, ok := ctx.Value(retryshell.HandledJob{}).(*AttemptInfo)
	if !ok {
		return AttemptInfo{}, false
	}
	i := *info
	i.AttemptID = (&Record{JobID: i.JobID, Replays: i.Replays, FirstDue: i.FirstDue}).AttemptID(i.Number)
	return i, true
}
