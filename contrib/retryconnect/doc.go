// Package retryconnect repeats the calls of connectrpc.com/connect. Its interceptor puts retry.Do around unary calls, and
// around server streams up to their first message, in all three protocols: Connect, gRPC and gRPC-Web.
//
//	interceptor, err := retryconnect.NewInterceptor(policy, retryconnect.Options{})
//	...
//	client := pingv1connect.NewPingServiceClient(http.DefaultClient, url, connect.WithInterceptors(interceptor))
//
// # What is repeated
//
// The table is that of package retrygrpc:
//
//	code                       repeated                                    why
//	UNAVAILABLE                yes, also if not idempotent                 the one code for automatic retries (AIP-194)
//	RESOURCE_EXHAUSTED         if the server says when, or by opt-in       often a quota, which retries only use up
//	ABORTED                    by opt-in                                   to be repeated at a higher level: the whole transaction
//	DEADLINE_EXCEEDED          the caller's: never
//	                           the attempt's, the server's: if idempotent  it may have taken effect
//	CANCELED                   never, but for a connection that was reset  given up
//	INTERNAL, UNKNOWN,
//	DATA_LOSS                  by opt-in, if idempotent                    they may have taken effect; a handler's plain error is UNKNOWN
//	FAILED_PRECONDITION        never                                       the state has to be fixed first
//	every other                by opt-in                                   the same request gets the same answer
//
// Idempotent is a procedure whose schema has option idempotency_level = NO_SIDE_EFFECTS or IDEMPOTENT, which generated
// code passes on, or of which Options.Idempotent says so. Opt-in is by Options.RetryCodes, or by Policy.Classify, which
// is asked first and may say anything but against a Veto. Classify is the table without opt-ins, for other policies.
//
// A connection that is lost before a response is UNAVAILABLE, too, or, if it was reset, CANCELED, and the call may have
// taken effect: it is repeated even if it is not idempotent. If that must not happen, set Policy.Classify, or make the
// call under retry.OneAttempt, which a call that must never be repeated needs in any case. A response that breaks off is
// UNKNOWN or INTERNAL.
//
// Connect turns an HTTP status without an error of its own, such as a proxy's, into a code: 429, 502, 503 and 504 are
// UNAVAILABLE, 400 is INTERNAL, 401 UNAUTHENTICATED, 403 PERMISSION_DENIED, 404 UNIMPLEMENTED, every other UNKNOWN.
//
// DEADLINE_EXCEEDED has three origins and one code. The caller's context is looked at first, then the attempt's; what
// is left is the server's. AttemptError.Origin says which.
//
// RESOURCE_EXHAUSTED that no server has written is never repeated (Local): a message is larger than
// connect.WithSendMaxBytes or connect.WithReadMaxBytes, or an HTTP/2 peer has said ENHANCE_YOUR_CALM.
//
// # What is a failure
//
// A server that works answers some calls with INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED,
// UNAUTHENTICATED, FAILED_PRECONDITION, ABORTED or OUT_OF_RANGE, and a GET with 304 Not Modified. Unless one of these is
// to be repeated or comes with a pushback that forbids it, it is an answer and not a failure: the call returns connect's
// own error, and its run has succeeded, funds Policy.Budget and is a success to Policy.Observe. Any other code is a
// failure whether it is repeated or not.
//
// # What a server says
//
// The error detail google.rpc.RetryInfo, the metadata grpc-retry-pushback-ms and the metadata Retry-After are hints in
// the sense of retry.After: the next attempt starts no earlier, jitter goes upwards, and beyond Policy.MaxHint the run
// ends. Of several hints the longest wins, and a negative RetryInfo is none. A pushback that is negative, not a number,
// beyond 32 bits or there more than once ends the run, whatever the rules say.
//
// A retry carries the header grpc-previous-rpc-attempts, 1 for the second attempt, in all three protocols. First
// attempts carry none, also if the caller's request has one.
//
// Each attempt has a copy of the request's header. connect writes the attempt's timeout there, which a later attempt
// without one would send again, and an attempt that was cut off may still be reading it.
//
// # One layer
//
// If a client has several interceptors of this package, the outermost repeats and the others pass its attempts through.
// If a retry.Do of your own is to repeat, use retry.OneAttempt: every call under it makes one attempt.
//
// A transport that repeats, such as that of package retryhttp, multiplies: 3 attempts of each made 9 requests
// (TestLostTheOtherLayer). It also knows less, because it sees HTTP statuses only: gRPC's failures have status 200, and
// the Connect protocol's UNIMPLEMENTED and INTERNAL look like a 501 and a 500. Use a plain transport beneath, or
// retryhttp with a Policy.Classify that is Terminal for each AttemptError with a StatusCode.
//
// # Servers that call others
//
// Services that all retry multiply their attempts. NewHandlerInterceptor makes a server answer that it has given up, by
// the metadata grpc-retry-pushback-ms: -1, and do once what a trusted client repeats. Options.PassAttempt passes that
// client's number on.
//
// # Limits
//
// An interceptor sees neither the header of an HTTP response that is not an answer of connect's, so that the Retry-After of
// a proxy's 429 is lost, nor whether a header came before the error of a unary call: connect has joined headers and
// trailers by then. So UNAVAILABLE is repeated also if the handler has set a header, whereas retrygrpc does not repeat
// it (AnswerBegun). What a stream has begun to bring is not repeated. Client and bidirectional streams and handlers
// pass through. Hedging is not offered: it makes load of latency.
package retryconnect
