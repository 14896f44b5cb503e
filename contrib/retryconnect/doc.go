// Package retryconnect repeats the calls of connectrpc.com/connect. Its interceptor puts retry.Do around unary calls, and
// around server streams up to their first message, in all three protocols: Connect, gRPC and gRPC-Web.
//
//	interceptor, err := retryconnect.NewInterceptor(policy, retryconnect.Options{})
//	...
//	client := pingv1connect.NewPingServiceClient(http.DefaultClient, url, connect.WithInterceptors(interceptor))
//
// # What is repeated
//
// The table is the same as in package retrygrpc:
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
// A procedure is idempotent if its schema has option idempotency_level = NO_SIDE_EFFECTS or IDEMPOTENT, which generated
// code passes on, or if Options.Idempotent returns true for it. Opt in with Options.RetryCodes, or with
// Policy.Classify, which is called first and overrides everything except a Veto. Classify is the table without opt-ins,
// for other policies.
//
// If the connection is lost before a response, the code is UNAVAILABLE or, after a reset, CANCELED, and the call may
// have taken effect. It is repeated even if it is not idempotent. To prevent that, set Policy.Classify, or make the
// call under retry.OneAttempt, which a call that must never be repeated needs in any case. A truncated response is
// UNKNOWN or INTERNAL.
//
// Connect turns an HTTP status without an error of its own, such as a proxy's, into a code: 429, 502, 503 and 504 are
// UNAVAILABLE, 400 is INTERNAL, 401 UNAUTHENTICATED, 403 PERMISSION_DENIED, 404 UNIMPLEMENTED, every other UNKNOWN.
//
// DEADLINE_EXCEEDED has three origins and one code. The caller's context is checked first, then the attempt's;
// otherwise the origin is the server. AttemptError.Origin reports it.
//
// RESOURCE_EXHAUSTED that did not come from a server is never repeated (Local): a message is larger than
// connect.WithSendMaxBytes or connect.WithReadMaxBytes, or an HTTP/2 peer has sent ENHANCE_YOUR_CALM.
//
// # What is a failure
//
// A healthy server answers some calls with INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED,
// UNAUTHENTICATED, FAILED_PRECONDITION, ABORTED or OUT_OF_RANGE, and a GET with 304 Not Modified. Unless such a code is
// repeated or comes with a pushback that forbids a retry, it is an answer, not a failure: the call returns connect's
// own error, and its run is Succeeded, funds Policy.Budget and is a success for Policy.Observe. Any other code is a
// failure, whether it is repeated or not.
//
// # Hints of the server
//
// The error detail google.rpc.RetryInfo, the metadata grpc-retry-pushback-ms and the metadata Retry-After are hints in
// the sense of retry.After: the next attempt does not start earlier, jitter only adds to the delay, and a hint above
// Policy.MaxHint ends the run. The longest of several hints applies; a negative RetryInfo is ignored. A pushback that
// is negative, not a number, larger than 32 bits or present more than once ends the run, whatever the code.
//
// A retry carries the header grpc-previous-rpc-attempts, 1 for the second attempt, in all three protocols. First
// attempts do not carry it, even if the caller's request does.
//
// Each attempt has a copy of the request's header. connect writes the attempt's timeout there, which a later attempt
// without a timeout would send again, and a canceled attempt may still be reading it.
//
// # One layer
//
// If a client has several interceptors of this package, the outermost repeats and the others pass its attempts through.
// To repeat the calls with a retry.Do of your own, use retry.OneAttempt: every call under it makes one attempt.
//
// A transport that repeats, such as that of package retryhttp, multiplies: 3 attempts of each made 9 requests
// (TestLostTheOtherLayer). It also knows less, because it sees HTTP statuses only: gRPC's failures have status 200, and
// the Connect protocol's UNIMPLEMENTED and INTERNAL look like a 501 and a 500. Use a plain transport below the
// interceptor, or retryhttp with a Policy.Classify that is Terminal for each AttemptError with a StatusCode.
//
// # Servers that call others
//
// If every service in a chain retries, their attempts multiply. With NewHandlerInterceptor a server that has given up
// answers with the metadata grpc-retry-pushback-ms: -1, and makes only one attempt for a repeat by a trusted client.
// Options.PassAttempt passes that client's attempt number on.
//
// # Limits
//
// An interceptor does not see the header of an HTTP response that connect did not write, so the Retry-After of a
// proxy's 429 is lost. It also does not see whether a header came before the error of a unary call, because connect has
// merged headers and trailers by then. So UNAVAILABLE is repeated even if the handler has set a header, while retrygrpc
// does not repeat it (AnswerBegun). A stream is not repeated after its first message. Client and bidirectional streams
// and handlers pass through. Hedging is not supported: it trades load for latency.
package retryconnect
