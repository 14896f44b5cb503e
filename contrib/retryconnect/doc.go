// Package retryconnect repeats the calls of connectrpc.com/connect. Its interceptor puts retry.Do around unary calls,
// and around server streams up to their first message, in all three protocols, Connect, gRPC and gRPC-Web.
//
//	interceptor, err := retryconnect.NewInterceptor(policy, retryconnect.Options{})
//	...
//	client := pingv1connect.NewPingServiceClient(http.DefaultClient, url, connect.WithInterceptors(interceptor))
//
// Package retryrpc has the table of the codes that are repeated, and says which failure is an answer, which hints of a
// server count, and which calls are in doubt. UNAVAILABLE is repeated, also for a procedure that is not idempotent.
// DEADLINE_EXCEEDED is repeated for idempotent procedures, RESOURCE_EXHAUSTED after a hint of the server, and others by
// opt-in with Options.RetryCodes or Policy.Classify. A procedure is idempotent if its schema has option idempotency_level =
// NO_SIDE_EFFECTS or IDEMPOTENT, which generated code passes on, or if Options.Idempotent returns true for it.
//
// These things are Connect's own:
//
//   - An HTTP status without an error of Connect, such as a proxy's, becomes a code. 429, 502, 503 and 504 are
//     UNAVAILABLE, 400 is INTERNAL, 401 UNAUTHENTICATED, 403 PERMISSION_DENIED, 404 UNIMPLEMENTED, every other UNKNOWN.
//   - A connection that was reset is CANCELED in Connect, and UNAVAILABLE in retryrpc.AttemptError.Code. A truncated
//     response is UNKNOWN or INTERNAL.
//   - RESOURCE_EXHAUSTED that did not come from a server is never repeated (retryrpc.Local). A message is larger than
//     connect.WithSendMaxBytes or connect.WithReadMaxBytes, or an HTTP/2 peer has sent ENHANCE_YOUR_CALM.
//   - A GET that is answered with 304 Not Modified is an answer.
//   - The metadata Retry-After is a hint too.
//   - Each attempt has a copy of the request's header. Connect writes the attempt's timeout there, which a later attempt
//     without a timeout would send again, and a canceled attempt may still be reading it.
//
// # One layer
//
// If a client has several interceptors of this package, the outermost repeats and the others pass its attempts through.
// To repeat the calls with a retry.Do of your own, use retry.OneAttempt. Every call under it makes one attempt.
//
// A transport that repeats, such as that of package retryhttp, multiplies. 3 attempts of each made 9 requests
// (TestLostTheOtherLayer). It also knows less, because it sees HTTP statuses only. Use a plain transport below the
// interceptor, or retryhttp with a Policy.Classify that is Terminal for each AttemptError with a StatusCode.
//
// # Servers that call others
//
// With NewHandlerInterceptor the attempts of services in a chain do not multiply (see package retryrpc).
//
// # Limits
//
// An interceptor does not see the header of an HTTP response that Connect did not write, so the Retry-After of a
// proxy's 429 is lost. It also does not see whether a header came before the error of a unary call, because Connect has
// merged headers and trailers by then. So UNAVAILABLE is repeated even if the handler has set a header, while retrygrpc
// does not repeat it. It does not see whether a call that timed out had a connection. If it is not idempotent, it is in
// doubt. A stream is not repeated after its first message. Client and bidirectional streams and handlers pass through.
//
// This package may change until it says otherwise.
package retryconnect
