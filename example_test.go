package retry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/retrygo/retry"
)

// quick is a policy for examples: its waits are too short to notice.
var quick = retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Millisecond}}

func ExampleDo() {
	err := retry.Do(context.Background(), quick, func(ctx context.Context) error {
		fmt.Println("attempt", retry.AttemptNumber(ctx))
		if retry.AttemptNumber(ctx) < 3 {
			return errors.New("connection reset")
		}
		return nil
	})
	fmt.Println("err:", err)
	// Output:
	// attempt 1
	// attempt 2
	// attempt 3
	// err: <nil>
}

func ExampleDo_gaveUp() {
	err := retry.Do(context.Background(), quick, func(context.Context) error {
		return fmt.Errorf("load profile: %w", io.ErrUnexpectedEOF)
	})
	var failed *retry.Error
	fmt.Println(errors.As(err, &failed))
	fmt.Println(failed.Status, failed.Reason, failed.Attempts)
	fmt.Println(errors.Is(err, retry.AttemptsExhausted), errors.Is(err, io.ErrUnexpectedEOF))
	fmt.Println(failed.Last)
	// Output:
	// true
	// dead_letter attempts_exhausted 3
	// true true
	// load profile: unexpected EOF
}

func ExampleDo_deadline() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	hourly := retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Hour}}
	err := retry.Do(ctx, hourly, func(context.Context) error { return errors.New("busy") }) // returns at once
	fmt.Println(errors.Is(err, retry.DeadlineTooNear))
	// Output: true
}

func ExampleDoValue() {
	page, err := retry.DoValue(context.Background(), quick, func(ctx context.Context) (string, error) {
		if retry.AttemptNumber(ctx) == 1 {
			return "", errors.New("connection reset")
		}
		return "hello", nil
	})
	fmt.Println(page, err)
	// Output: hello <nil>
}

func ExampleWrap() {
	lookUp := retry.Wrap(quick, func(ctx context.Context, host string) (int, error) {
		if retry.AttemptNumber(ctx) == 1 {
			return 0, errors.New("server misbehaving")
		}
		return len(host), nil
	})
	n, err := lookUp(context.Background(), "example.org")
	fmt.Println(n, err)
	// Output: 11 <nil>
}

func ExampleAttemptNumber() {
	_ = retry.Do(context.Background(), quick, func(ctx context.Context) error {
		fmt.Printf("GET /orders attempt=%d\n", retry.AttemptNumber(ctx))
		return errors.New("503")
	})
	// Output:
	// GET /orders attempt=1
	// GET /orders attempt=2
	// GET /orders attempt=3
}

func ExampleDo_attemptTimeout() {
	p := quick
	p.AttemptTimeout = time.Millisecond
	err := retry.Do(context.Background(), p, func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	fmt.Println(errors.Is(err, retry.ErrAttemptTimeout), errors.Is(err, context.DeadlineExceeded))
	// Output: true true
}

func ExamplePermanent() {
	err := retry.Do(context.Background(), quick, func(ctx context.Context) error {
		fmt.Println("attempt", retry.AttemptNumber(ctx))
		return retry.Permanent(errors.New("no such account"))
	})
	fmt.Println(errors.Is(err, retry.TerminalError))
	// Output:
	// attempt 1
	// true
}

func ExampleTransient() {
	p := quick
	p.Classify = retry.Otherwise(retry.Terminal) // stop unless marked
	err := retry.Do(context.Background(), p, func(ctx context.Context) error {
		fmt.Println("attempt", retry.AttemptNumber(ctx))
		return retry.Transient(errors.New("leader changed"))
	})
	fmt.Println(errors.Is(err, retry.AttemptsExhausted))
	// Output:
	// attempt 1
	// attempt 2
	// attempt 3
	// true
}

func ExampleAfter() {
	busy := retry.After(30*time.Second, errors.New("429 Too Many Requests")) // as its Retry-After says
	fmt.Println(retry.Policy{}.Decide(retry.Progress{Attempt: 1}, busy, 0))
	fmt.Println(retry.Policy{MaxHint: 10 * time.Second}.Decide(retry.Progress{Attempt: 1}, busy, 0))
	// Output:
	// waiting_retry 30s
	// expired (hint_too_long)
}

// An answer to COMMIT is lost: the transaction may have taken effect, so that no run around it may repeat it.
func ExampleAmbiguous() {
	transfer := func(ctx context.Context) error {
		return retry.Do(ctx, quick, func(context.Context) error {
			fmt.Println("transfer")
			return retry.Ambiguous(errors.New("commit: connection reset"))
		})
	}
	err := retry.Do(context.Background(), quick, transfer)
	fmt.Println(errors.Is(err, retry.TerminalError), err)
	// Output:
	// transfer
	// true commit: connection reset
}

func ExampleFirstOf() {
	errInvalid := errors.New("invalid order")
	p := retry.Policy{Classify: retry.FirstOf(
		retry.StopOn(errInvalid, io.ErrClosedPipe),
		retry.RetryIf(func(err error) bool { var e net.Error; return errors.As(err, &e) && e.Timeout() }),
		retry.Otherwise(retry.Terminal),
	)}
	for _, err := range []error{fmt.Errorf("order 7: %w", errInvalid), &net.DNSError{IsTimeout: true}, errors.New("?")} {
		class, _ := p.Judge(err)
		fmt.Println(class)
	}
	// Output:
	// terminal
	// retryable
	// terminal
}

func ExampleRetryOn() {
	classify := retry.RetryOn(io.ErrUnexpectedEOF)
	fmt.Println(classify(fmt.Errorf("read: %w", io.ErrUnexpectedEOF)), classify(io.EOF))
	// Output: retryable unknown
}

func ExampleStopOn() {
	classify := retry.StopOn(io.EOF)
	fmt.Println(classify(io.EOF), classify(io.ErrUnexpectedEOF))
	// Output: terminal unknown
}

func ExampleRetryIf() {
	classify := retry.RetryIf(func(err error) bool { var e *net.OpError; return errors.As(err, &e) && e.Op == "dial" })
	fmt.Println(classify(&net.OpError{Op: "dial", Err: io.EOF}), classify(io.EOF))
	// Output: retryable unknown
}

func ExampleStopIf() {
	classify := retry.StopIf(func(err error) bool { return err.Error() == "bad request" })
	fmt.Println(classify(errors.New("bad request")), classify(io.EOF))
	// Output: terminal unknown
}

func ExampleOtherwise() {
	classify := retry.FirstOf(retry.RetryOn(io.ErrUnexpectedEOF), retry.Otherwise(retry.Terminal))
	fmt.Println(classify(io.ErrUnexpectedEOF), classify(io.EOF))
	// Output: retryable terminal
}

func ExamplePolicy_Decide() {
	p := retry.Policy{MaxAttempts: 3, Backoff: retry.Backoff{Base: time.Second}, TTL: time.Minute}
	failure := errors.New("busy")
	fmt.Println(p.Decide(retry.Progress{Attempt: 2, Elapsed: 5 * time.Second}, failure, 0))
	fmt.Println(p.Decide(retry.Progress{Attempt: 2, Elapsed: time.Minute}, failure, 0))
	fmt.Println(p.Decide(retry.Progress{Attempt: 3}, failure, 0))
	// Output:
	// waiting_retry 2s
	// expired (ttl_elapsed)
	// dead_letter (attempts_exhausted)
}

// Judge is the question whether an error is worth another attempt, without a run.
func ExamplePolicy_Judge() {
	p := retry.Policy{Classify: retry.StopOn(io.ErrClosedPipe)}
	fmt.Println(p.Judge(fmt.Errorf("write: %w", io.ErrClosedPipe)))
	fmt.Println(p.Judge(retry.After(30*time.Second, errors.New("503"))))
	fmt.Println(p.Judge(nil))
	// Output:
	// terminal 0s
	// retryable 30s
	// unknown 0s
}

// Spend is the last question before a wait: may this retry be made at all?
func ExamplePolicy_Spend() {
	p := retry.Policy{
		Budget: retry.NewBudget(retry.BudgetConfig{Initial: 1}),
		Pay:    func(context.Context, retry.Decision) bool { fmt.Println("close the failed response"); return true },
	}
	for range 2 {
		d := p.Decide(retry.Progress{Attempt: 1}, errors.New("503"), 0)
		fmt.Println(p.Spend(context.Background(), d, time.Now()))
	}
	// Output:
	// close the failed response
	// waiting_retry 5s
	// dead_letter (budget_exhausted)
}

func ExamplePolicy_Effective() {
	p := retry.Policy{Backoff: retry.Backoff{Jitter: retry.RatioJitter}}.Effective()
	fmt.Println(p.MaxAttempts, p.Mode, p.Base, p.Factor, p.Cap, p.JitterRatio, p.MaxHint)
	// Output: 8 exponential 5s 2 1h0m0s 0.2 1h0m0s
}

// A client whose callers wait has a schedule of its own for a policy that names none.
func ExamplePolicy_OrSchedule() {
	fmt.Println(retry.Policy{Name: "search", TTL: time.Second}.OrSchedule(retry.Inline()))
	fmt.Println(retry.Policy{Name: "report", MaxAttempts: 3}.OrSchedule(retry.Inline()))
	// Output:
	// search: 4 attempts, exponential 50ms ×2, cap 1s, full jitter, TTL 1s: 50ms 100ms 200ms (0s to 350ms in all)
	// report: 3 attempts, exponential 50ms ×2, cap 1s, full jitter: 50ms 100ms (0s to 150ms in all)
}

func ExamplePolicy_Schedule() {
	for attempt, delay := range retry.Standard().Schedule(nil) {
		fmt.Println(attempt, delay)
	}
	// Output:
	// 1 1m0s
	// 2 30m0s
	// 3 3h0m0s
}

// A delay that no formula says: at once after a reset, otherwise what the backoff says.
func ExamplePolicy_wait() {
	errReset := errors.New("connection reset")
	p := retry.Policy{Wait: func(attempt int, err error, computed time.Duration) time.Duration {
		if attempt == 1 && errors.Is(err, errReset) {
			return 0
		}
		return computed
	}}
	fmt.Println(p.Decide(retry.Progress{Attempt: 1}, errReset, 0))
	fmt.Println(p.Decide(retry.Progress{Attempt: 2}, errReset, 0))
	fmt.Println(p.Decide(retry.Progress{Attempt: 1}, errors.New("no route to host"), 0))
	// Output:
	// waiting_retry 0s
	// waiting_retry 10s
	// waiting_retry 5s
}

// A loop that keeps a connection up: a connection that was up for a minute restarts attempts and delays.
func ExamplePolicy_resetAfter() {
	p := retry.Policy{MaxAttempts: 3, ResetAfter: time.Minute}
	lost := errors.New("connection lost")
	short := p.Decide(retry.Progress{Attempt: 3, Lasted: time.Second}, lost, 0)
	long := p.Decide(retry.Progress{Attempt: 3, Lasted: time.Hour}, lost, 0)
	fmt.Println(short)
	fmt.Println(long)
	// Output:
	// dead_letter (attempts_exhausted)
	// waiting_retry 5s
}

// A shell other than Do returns the same errors.
func ExamplePolicy_NewError() {
	o := retry.Outcome{Policy: "orders", Status: retry.Expired, Reason: retry.HintTooLong, Attempts: 2, Elapsed: time.Second}
	err := retry.Policy{}.NewError(context.Background(), o, retry.After(2*time.Hour, errors.New("503")))
	fmt.Println(err)
	fmt.Println("come back in", err.Hint())
	// Output:
	// retry: orders: gave up after 2 attempts in 1s (hint_too_long: 2h is above MaxHint 1h): 503
	// come back in 2h0m0s
}

// A type with a policy of its own reports its bad fields and the policy's alike.
func ExampleFieldErrors() {
	var bad retry.FieldErrors
	bad.Refuse("mailer.Options.Workers", -1, "is negative")
	bad.Append(retry.Policy{TTL: -time.Second}.Validate())
	fmt.Println(bad.Err())
	// Output: mailer: Options.Workers -1 is negative; retry: Policy.TTL -1s is negative
}

func ExamplePolicy_Validate() {
	p := retry.Policy{MaxAttempts: -5, Backoff: retry.Backoff{Base: 5 * time.Second, Cap: time.Second}}
	fmt.Println(p.Validate())
	// Output: retry: Policy.Cap 1s is below Base 5s; Policy.MaxAttempts -5 is below -1, which is Unlimited
}

func ExampleFieldError() {
	err := retry.Policy{TTL: -time.Second}.Validate()
	var field *retry.FieldError
	fmt.Println(errors.As(err, &field))
	fmt.Printf("%q %q %q\n", field.Field, field.Value, field.Rule)
	// Output:
	// true
	// "Policy.TTL" "-1s" "is negative"
}

func ExamplePolicy_Or() {
	defaults := retry.Policy{MaxAttempts: 5, Backoff: retry.Backoff{Base: time.Second, Cap: time.Minute}, TTL: time.Hour}
	fmt.Println(retry.Policy{MaxAttempts: 3}.Or(defaults))
	fmt.Println(retry.Policy{Backoff: retry.Backoff{Mode: retry.Fixed, Base: time.Second}}.Or(defaults))
	// Output:
	// 3 attempts, exponential 1s ×2, cap 1m, TTL 1h: 1s 2s (3s in all)
	// 5 attempts, fixed 1s, cap 1m, TTL 1h: 1s 1s 1s 1s (4s in all)
}

func ExamplePolicy_TotalWait() {
	lo, hi := retry.Policy{Backoff: retry.Backoff{Jitter: retry.EqualJitter}}.TotalWait()
	fmt.Println(lo, "to", hi)
	// Output: 5m17.5s to 10m35s
}

func ExamplePolicy_String() {
	fmt.Println(retry.Policy{})
	fmt.Println(retry.Policy{MaxAttempts: 12, Backoff: retry.Backoff{Base: 10 * time.Second, Cap: 30 * time.Minute}})
	// Output:
	// 8 attempts, exponential 5s ×2, cap 1h: 5s 10s 20s 40s 1m20s 2m40s 5m20s (10m35s in all)
	// 12 attempts, exponential 10s ×2, cap 30m: 10s 20s 40s 1m20s 2m40s 5m20s 10m40s 21m20s 30m 30m 30m (2h12m30s in all)
}

func ExampleInline() {
	fmt.Println(retry.Inline())
	// Output: inline: 4 attempts, exponential 50ms ×2, cap 1s, full jitter: 50ms 100ms 200ms (0s to 350ms in all)
}

func ExampleAggressive() {
	fmt.Println(retry.Aggressive())
	// Output: aggressive: 4 attempts, list: 10s 1m 5m (6m10s in all)
}

func ExampleStandard() {
	fmt.Println(retry.Standard())
	// Output: standard: 4 attempts, list: 1m 30m 3h (3h31m in all)
}

func ExamplePatient() {
	fmt.Println(retry.Patient())
	// Output: patient: 4 attempts, list: 5m 1h 6h (7h5m in all)
}

func ExampleCautious() {
	fmt.Println(retry.Cautious())
	// Output: cautious: 6 attempts, list: 1m 10m 1h 4h 12h (17h11m in all)
}

// One line for a library that retries by itself and asks how long to wait.
func ExamplePolicy_DrawDelay() {
	p := retry.Policy{Backoff: retry.Backoff{Base: 100 * time.Millisecond, Jitter: retry.EqualJitter}}
	p.Rand = func() float64 { return 0.5 } // for the example; nil means math/rand/v2

	var client struct {
		RetryBackoff func(attempt int) time.Duration
	} // of another library
	client.RetryBackoff = p.DrawDelay
	fmt.Println(client.RetryBackoff(1), client.RetryBackoff(2), client.RetryBackoff(3))

	var queue struct {
		RetryDelay func(retried int) time.Duration
	} // one that counts from 0
	queue.RetryDelay = func(retried int) time.Duration { return p.DrawDelay(retried + 1) }
	fmt.Println(queue.RetryDelay(0), queue.RetryDelay(1), queue.RetryDelay(2))
	// Output:
	// 75ms 150ms 300ms
	// 75ms 150ms 300ms
}

func ExampleBackoff_Delay() {
	b := retry.Backoff{Base: 100 * time.Millisecond, Factor: 1.5, Cap: time.Second}
	for _, attempt := range []int{1, 2, 3, 100} {
		fmt.Println(b.Delay(attempt))
	}
	// Output:
	// 100ms
	// 150ms
	// 225ms
	// 1s
}

func ExampleBackoff_Jittered() {
	b := retry.Backoff{Base: 100 * time.Millisecond, Cap: 250 * time.Millisecond, Jitter: retry.RatioJitter}
	for _, attempt := range []int{1, 2, 3} {
		fmt.Println(b.Jittered(attempt, 0, 0), b.Jittered(attempt, 0, 0.5))
	}
	// Output:
	// 80ms 100ms
	// 160ms 200ms
	// 200ms 225ms
}

func ExampleBackoff_Bounds() {
	b := retry.Backoff{Base: 100 * time.Millisecond, Cap: time.Second, Jitter: retry.EqualJitter}
	for _, attempt := range []int{1, 2, 100} {
		lo, hi := b.Bounds(attempt)
		fmt.Println(lo, hi)
	}
	// Output:
	// 50ms 100ms
	// 100ms 200ms
	// 500ms 1s
}

func ExampleEvent() {
	p := quick
	p.Name = "profile"
	p.Observe = func(_ context.Context, e retry.Event) {
		if e.Outcome != nil {
			fmt.Println(e.Policy, e.Outcome.Status, "after", e.Outcome.Attempts, "attempts")
			return
		}
		fmt.Println(e.Policy, "attempt", e.Attempt.Number, e.Attempt.Err, "→", e.Decision)
	}
	_ = retry.Do(context.Background(), p, func(ctx context.Context) error {
		if retry.AttemptNumber(ctx) < 3 {
			return errors.New("busy")
		}
		return nil
	})
	// Output:
	// profile attempt 1 busy → waiting_retry 1ms
	// profile attempt 2 busy → waiting_retry 2ms
	// profile succeeded after 3 attempts
}

// A circuit breaker as a gate: while it is open, attempts stay away. If that would take longer than the TTL allows, the
// run ends at once.
func ExamplePolicy_gate() {
	openFor := time.Hour
	p := quick
	p.TTL = time.Minute
	p.Gate = func(context.Context) time.Duration { return openFor }
	err := retry.Do(context.Background(), p, func(context.Context) error { return nil })
	fmt.Println(errors.Is(err, retry.TTLElapsed))
	// Output: true
}

// A shell of your own needs no more than Admit, Decide, Spend and Refund.
func ExamplePolicy_Admit() {
	p := retry.Policy{MaxAttempts: 3, TTL: time.Minute}
	fmt.Println(p.Admit(retry.Progress{}, 0))
	fmt.Println(p.Admit(retry.Progress{Attempt: 1, Elapsed: 50 * time.Second}, 10*time.Second))
	fmt.Println(p.Admit(retry.Progress{Attempt: 1, Elapsed: 50 * time.Second}, 11*time.Second))
	fmt.Println(p.Admit(retry.Progress{Attempt: 3, Elapsed: 50 * time.Second}, 0))
	// Output:
	// waiting_retry 0s
	// waiting_retry 10s
	// expired (ttl_elapsed)
	// dead_letter (attempts_exhausted)
}
