// Package retryfailsafe makes a retry.Policy a policy of failsafe-go, so that one schedule serves both. failsafe-go
// composes it with its circuit breaker, bulkhead, hedge, timeout and fallback, and the waits, classifiers, marks,
// hints, budget, gate and observer are those of retry.Do.
//
//	retries, lost, err := retryfailsafe.Policy[string](policy)
//	page, err := failsafe.With[string](fallback, retries, breaker).Get(fetch)
//
// # Errors
//
// A failed execution returns the last attempt's result and a *retry.Error, which errors.As finds. If the run ended
// although its last error was one to retry (AttemptsExhausted, BudgetExhausted, TTLElapsed, DeadlineTooNear,
// HintTooLong), it is the LastError of a retrypolicy.ExceededError, as policies outside expect. However, a fallback, a
// hedge and a retry policy of failsafe-go replace it by the bare error of the execution's context when that context has
// ended, even if the run ended earlier. Only Policy.Observe then gets the *retry.Error. After ExecutionResult.Cancel the
// error is failsafe.ErrExecutionCanceled, as failsafe-go promises.
//
// # Order of composition
//
// The order of composition determines the meaning of an attempt. A policy inside refuses an attempt with its own error,
// such as circuitbreaker.ErrOpen, which is retried like any other unless Policy.Classify says otherwise. Policies
// outside see one execution. A hedge outside makes each of its executions a separate run. The run does not know the
// limit of a timeout outside, which is not a deadline of the context, so a wait is begun and then interrupted.
//
// # Results
//
// Results are not judged. In package failsafehttp, a 503 is a success, and so lost has a line if the result type is
// *http.Response. For HTTP use retryhttp.Transport inside, or a function that returns an error for such a response.
// failsafe-go passes its own contexts to fn, so retry.AttemptNumber does not see the number. Use Retries()+1 of the
// Execution.
//
// This package may change until it says otherwise.
package retryfailsafe

import (
	"context"
	"errors"
	"reflect"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/common"
	"github.com/failsafe-go/failsafe-go/policy"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/contrib/retryexport"
	"github.com/retrygo/retry/retryshell"
)

// Policy returns p as a retry policy of failsafe-go for executions with the result type R, and the fields of p that
// differ there. Each execution is one retry.Do under p around the policies inside, with the execution's context, so all
// other fields mean the same as in Do. The result is safe for concurrent use and has no state between executions.
//
// lost has a line for each thing that failsafe-go cannot carry in full. These are AttemptTimeout, since a policy cannot set a
// deadline or a cause of failsafe-go's contexts, and responses of HTTP, which are not judged. It can be
// nil. err is the error of p.Validate, with a nil rp.
func Policy[R any](p retry.Policy) (rp retrypolicy.RetryPolicy[R], lost []string, err error) {
	if err := p.Validate(); err != nil {
		return nil, nil, err
	}
	lost = retryexport.Lost(p, map[string]string{
		"AttemptTimeout": "the attempt's context is canceled then, but without a Deadline that fn could read and with " +
			"context.Canceled as its error and cause; the run gets retry.ErrAttemptTimeout",
	})
	if result := reflect.TypeFor[R]().String(); result == "*http.Response" { // by its name, which needs no net/http
		lost = append(lost, result+": a response without an error is a success, whatever its status: use retryhttp.Transport")
	}
	return &retryPolicy[R]{p}, lost, nil
}

// retryPolicy is a policy of failsafe-go, and the executor of all its executions, without a state of theirs.
type retryPolicy[R any] struct{ policy retry.Policy }

// execute is a function that makes an execution. failsafe-go composes these.
type execute[R any] = func(failsafe.Execution[R]) *common.PolicyResult[R]

// ToExecutor is for failsafe-go.
func (r *retryPolicy[R]) ToExecutor(R) any { return r }

// Apply is for failsafe-go. One result of it can be called at once by several goroutines, as a hedge outside does.
func (r *retryPolicy[R]) Apply(inner execute[R]) execute[R] {
	return func(exec failsafe.Execution[R]) *common.PolicyResult[R] {
		shared := exec.(policy.ExecutionInternal[R]) // as every policy of failsafe-go does
		var last *common.PolicyResult[R]
		err := retry.Do(exec.Context(), r.policy, func(ctx context.Context) error {
			if last != nil {
				// Do has just looked at the context. The attempt sees a later cancellation by its own.
				shared.InitializeRetry()
			}
			last = r.attempt(ctx, shared, inner)
			if last.Error != nil {
				shared.RecordResult(last) // for Execution.LastError of the next attempt
			}
			return last.Error
		})
		if err == nil {
			return last.WithDone(true, true)
		}
		if canceled, by := shared.IsCanceledWithResult(); canceled && by.Error == failsafe.ErrExecutionCanceled {
			return by // of ExecutionResult.Cancel. Another result can be that of a timeout inside
		}
		failed := &common.PolicyResult[R]{Error: err, Done: true}
		if last != nil {
			failed.Result = last.Result
		}
		if exceeded(err) {
			failed.Error = retrypolicy.ExceededError{LastResult: failed.Result, LastError: err}
		}
		return failed
	}
}

// attempt makes one attempt. If it has a timeout, ctx ends with that, and then so does the execution's own context.
func (r *retryPolicy[R]) attempt(ctx context.Context, exec policy.ExecutionInternal[R], inner execute[R]) *common.PolicyResult[R] {
	if r.policy.AttemptTimeout == 0 {
		return inner(exec)
	}
	child := exec.CopyForCancellable().(policy.ExecutionInternal[R])
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(cut)
		if context.Cause(ctx) == retry.ErrAttemptTimeout {
			end(child)
		}
	})
	defer func() {
		if !stop() {
			<-cut // or it could meddle with the next attempt
		}
		child.Cancel(nil)
	}()
	result := inner(child)
	if context.Cause(ctx) == retry.ErrAttemptTimeout && result.Error != nil {
		result = result.WithFailure() // a copy
		result.Error = retryshell.MarkTimeout(result.Error)
	}
	return result
}

// end cancels the context of one attempt. It does not hand over a result. All attempts share one place for that, and
// failsafe-go would take a result there for the end of a run that is canceled later.
func end[R any](attempt policy.ExecutionInternal[R]) {
	attempt.Cancel(nil)
	if attempt.Context().Err() == nil {
		// The execution has put that off until its result has been read. Taking that back cancels, and then it is put
		// off again.
		attempt.DeferCancel()()
		attempt.DeferCancel()
	}
}

// exceeded reports whether a run ended although its last error was one to retry.
func exceeded(err error) bool {
	var gaveUp *retry.Error
	if !errors.As(err, &gaveUp) {
		return false
	}
	switch gaveUp.Reason {
	case retry.AttemptsExhausted, retry.BudgetExhausted, retry.TTLElapsed, retry.DeadlineTooNear, retry.HintTooLong:
		return true
	default:
		return false
	}
}
