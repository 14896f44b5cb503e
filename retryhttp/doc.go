// Package retryhttp repeats HTTP requests. Its Transport is an http.RoundTripper for any http.Client, and it does what
// such a client needs beyond a loop: it knows which requests may be sent twice, sends their bodies again only if that
// is safe, lets a body be read for as long as it takes, obeys Retry-After, and gives the caller the last response or
// error instead of one of its own.
//
//	client := retryhttp.NewClient(retry.Inline())
//	resp, err := client.Get("https://prices.example.com/EUR")
//
// # What ends a run
//
// An answer is not a failure, and the caller gets the last response whatever it is. How the run ended counts for the
// budget, for Observe and for OutcomeOf:
//
//   - 2xx and 101: a success.
//   - 3xx and 4xx except 408 and 429: an answer, and so a success. With Transport.Delivery: a dead letter
//     (TerminalError).
//   - 408, 429, 5xx, a status outside 100 to 599, a fault: repeated; a failure once the policy ends the run.
//   - one of these, if the request must not be repeated or the caller's rules forbid it: a dead letter at once
//     (TerminalError).
//   - any status but a success with a header that forbids a retry (X-Should-Retry or Stripe-Should-Retry: false,
//     X-Envoy-Overloaded, Finagle-Http-Nonretryable-Nack): a dead letter at once.
//
// A status that the caller's rules repeat, such as a 409 by OnStatus, is a failure like a 503.
//
// # Layers
//
// Services that all retry multiply their attempts: three layers of four are 64 calls at the bottom. Two things stop
// that. An answer: a handler that gives up answers by WriteError, and a Transport obeys X-Should-Retry: false. If the
// work may have been done all the same, Retry-In-Doubt: true says so beside it. A
// request: a Transport with an AttemptHeader says which attempt it makes, and Handler turns the retries of a client
// that it trusts into a context in which the work is done once. Headers lower the number of attempts; none raises it
// but by an option, such as a classifier, and never beyond MaxAttempts, TTL, Budget and MaxHint.
//
// This package is of the stable core: its names are meant for v1.
package retryhttp
