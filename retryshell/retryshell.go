// Package retryshell is for shells that repeat work without retry.Do, such as interceptors, job engines and adapters of
// other libraries. They ask the methods Judge, Decide, Admit and Spend of a retry.Policy, and find the rest here.
// docs/architecture.md in the repository has a complete shell of about 30 lines.
//
// Code that only calls retry.Do does not need this package. A context made from a nil one is nil, which retry.Do refuses.
//
// This package is of the stable core. Its names are meant for v1.
package retryshell

import (
	"context"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/internal/attempt"
)

// WithAttempt returns the context of an attempt that follows pr under p, for retry.AttemptNumber and retry.LastAttempt.
// Only Attempt and Forgiven of pr count. It switches no retries off.
func WithAttempt(ctx context.Context, p retry.Policy, pr retry.Progress) context.Context {
	if ctx == nil {
		return nil
	}
	number := max(pr.Attempt, 0) + 1
	after := p.Admit(retry.Progress{Attempt: number, Forgiven: pr.Forgiven}, 0)
	return attempt.Mark(ctx, number, after.Status != retry.WaitingRetry)
}

// WithRemoteAttempt is retry.OneAttempt for work that is an attempt of a run in another process, such as a request with
// the attempt's number in a header. It returns a context whose retry.AttemptNumber and OuterAttemptNumber are number.
// If number is 1 or less, the work is not a retry, and WithRemoteAttempt returns ctx. Such a request switches off the
// retries of the work that it causes, so believe only callers that make retries themselves.
func WithRemoteAttempt(ctx context.Context, number int) context.Context {
	if number <= 1 {
		return ctx
	}
	return attempt.Remote(ctx, number)
}

// WithAttemptOf returns ctx with the attempt numbers of other, and under retry.OneAttempt if and only if other is. Use
// it for a context that outlives an attempt, such as a stream's, if the work under it belongs to other.
func WithAttemptOf(ctx, other context.Context) context.Context { return attempt.Of(ctx, other) }

// OuterAttemptNumber returns the number of the attempt that other code makes of the work. If ctx is from
// WithRemoteAttempt, or derived from such a context, that is the number given to it. If ctx is from retry.OneAttempt,
// it is the retry.AttemptNumber of the context given to that. Otherwise OuterAttemptNumber returns 0. It is for clients
// that report the number of their attempt to servers.
func OuterAttemptNumber(ctx context.Context) int { return attempt.Outer(ctx) }

// IsOneAttempt reports whether ctx is from retry.OneAttempt or WithRemoteAttempt, or derived from such a context. A
// shell then makes one attempt, asks no budget, and ends a failed run as retry.FailedNoRetries with retry.RetriesDisabled.
func IsOneAttempt(ctx context.Context) bool { return attempt.Outer(ctx) > 0 }

// MarkTimeout returns err as the error of an attempt that its AttemptTimeout has ended. If err matches
// context.DeadlineExceeded or context.Canceled, the result matches retry.ErrAttemptTimeout and
// context.DeadlineExceeded, never context.Canceled, and all other targets of err. Any other err, and nil, is returned
// unchanged.
func MarkTimeout(err error) error { return attempt.MarkTimeout(err) }

// ReportedJob is a context key for engines of jobs. In the context that Policy.Observe gets for a job, its value is a
// slog.LogValuer whose group names the job, and package retryslog adds that group to each record of the job. The
// context of the job's handler does not have the value, since a run inside the handler is not the job.
type ReportedJob struct{}

// HandledJob is a context key for engines of jobs. In the context of a job's handler, its value is a slog.LogValuer for
// a group with the attribute "id", the job's ID. Package retryhttp derives idempotency keys from that ID.
type HandledJob struct{}
