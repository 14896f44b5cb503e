// Package retryhttp repeats HTTP requests. Its Transport is an http.RoundTripper for any http.Client. It does more than
// a loop around Do can. It knows which requests may be sent twice, sends a body again only if that is safe, does not
// limit how long a response's body is read, and obeys Retry-After. The caller gets the last response or error, not one
// that the Transport has made up.
//
//	policy := retry.Inline()
//	policy.AttemptTimeout = 2 * time.Second // until the headers of the response
//	client := retryhttp.NewClient(policy)
//	resp, err := client.Get("https://prices.example.com/EUR")
//
// # How a run ends
//
// An answer is not a failure. The caller gets the last response, whatever its status is. How the run ended counts for
// the budget, for Observe and for OutcomeOf:
//
//   - 2xx and 101: a success.
//   - 3xx and 4xx except 408 and 429: an answer, and so a success. With Transport.Delivery: a dead letter
//     (TerminalError).
//   - 408, 429, 5xx, a status outside 100 to 599, a fault: repeated; a failure once the policy ends the run.
//   - one of these, if the request must not be repeated or the caller's rules forbid it: a dead letter at once
//     (TerminalError).
//   - any other status than a success, with a header that forbids a retry (X-Should-Retry or Stripe-Should-Retry:
//     false, X-Envoy-Overloaded, Finagle-Http-Nonretryable-Nack): a dead letter at once.
//
// A status that the caller's rules repeat, such as a 409 by OnStatus, is a failure like a 503.
//
// # Layers
//
// Services that all retry multiply their attempts. Three layers of four attempts each make 64 calls at the bottom. Two
// things prevent that. The first is in the answer. A handler that gives up answers by WriteError, and a Transport obeys
// its X-Should-Retry: false. If the work may have been done all the same, WriteError also sends Retry-In-Doubt: true.
// The second is in the request. A Transport with an AttemptHeader sends the number of its attempt, and Handler turns
// the retries of a trusted client into a context in which the work is attempted once. Headers only lower the number of
// attempts. An option, such as a classifier, can make a header raise it, but never beyond MaxAttempts, TTL, Budget and
// MaxHint.
//
// This package is of the stable core. Its names are meant for v1.
package retryhttp
