// Package retryaws lets a retry.Policy decide the retries of clients of the AWS SDK for Go v2. There are two ways:
//
//   - [Middleware] replaces the SDK's retries by a retry.Do for each operation, and keeps the whole policy:
//
//     cfg.APIOptions = append(cfg.APIOptions, retryaws.Middleware(policy))
//
//   - [Retryer] returns an aws.RetryerV2 for config.WithRetryer, and a list of what the SDK's interface cannot express.
//
// # What is repeated
//
// Marks such as retry.Permanent are looked at first, then Policy.Classify. An attempt that its timeout has ended is
// repeated. What is left is judged by the SDK's own list, retry.DefaultRetryables of aws-sdk-go-v2: it repeats 500,
// 502, 503 and 504, throttling codes such as SlowDown, connection errors, timeouts, and requests that were signed with
// a wrong clock. What that list does not know ends the run.
//
// A status from 300 to 499, other than 408 and 429, that is not repeated is the service's answer and not a failure: the
// operation returns the SDK's own error, and the run has succeeded, funds Policy.Budget and is a success to
// Policy.Observe. NoSuchKey with 404 and PreconditionFailed with 412 are answers; AccessDenied with 403 is one.
//
// # What a service says
//
// Retry-After (seconds or a date) and X-Amz-Retry-After (milliseconds) are hints in the sense of retry.After: the next
// attempt starts no earlier, jitter goes upwards, and beyond Policy.MaxHint the run ends.
//
// # One layer
//
// Layers multiply. Leave the client's HTTPClient without retries, and put no retry.Do around an operation; if there is
// one all the same, retry.OneAttempt makes the operations under it single attempts.
package retryaws
