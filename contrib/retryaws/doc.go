// Package retryaws lets a retry.Policy decide the retries of clients of the AWS SDK for Go v2. [Middleware] replaces the
// SDK's retries by a retry.Do for each operation, with the whole policy:
//
//	option, err := retryaws.Middleware(policy)
//	cfg.APIOptions = append(cfg.APIOptions, option)
//
// There is no aws.Retryer. Its interface has no place for a TTL, an attempt timeout or an observer, and whatever takes
// a Retryer (a configuration, a client, one operation) also takes APIOptions.
//
// # What is repeated
//
// Marks such as retry.Permanent are checked first, then Policy.Classify. An attempt that timed out is repeated. For any
// other error the SDK's own list decides, retry.DefaultRetryables of aws-sdk-go-v2. It repeats 500, 502, 503 and 504,
// throttling codes such as SlowDown, connection errors, timeouts, and requests that were signed with a wrong clock. An
// error that is not on the list ends the run.
//
// A status from 300 to 499, other than 408 and 429, that is not repeated is the service's answer, not a failure. The
// operation returns the SDK's own error, and the run is Succeeded, funds Policy.Budget and is a success for
// Policy.Observe. NoSuchKey with 404, PreconditionFailed with 412 and AccessDenied with 403 are answers.
//
// # Hints of a service
//
// Retry-After (seconds or a date) and X-Amz-Retry-After (milliseconds) are hints in the sense of retry.After. The next
// attempt does not start earlier, jitter only adds to the delay, and a hint above Policy.MaxHint ends the run.
//
// # One layer
//
// Layers multiply. Do not add retries to the client's HTTPClient, or a retry.Do around an operation. If there is one
// anyway, retry.OneAttempt makes each operation under it a single attempt.
//
// This package may change until it says otherwise.
package retryaws
