// Package retrygrpc repeats gRPC calls. Its interceptors put retry.Do around unary calls and around server streams up to
// the moment when the server begins to answer:
//
//	opts, err := retrygrpc.DialOptions(policy, retrygrpc.Options{})
//	...
//	conn, err := grpc.NewClient(target, append(opts, creds)...)
//
// ServiceConfig instead converts a policy for grpc-go's own retry layer, and returns what that layer cannot do.
//
// # What is repeated
//
//	code                       repeated                                    why
//	UNAVAILABLE                yes, also if not idempotent                 the one code for automatic retries (AIP-194)
//	RESOURCE_EXHAUSTED         with RetryInfo or pushback, or by opt-in    often a quota, which retries only use up
//	ABORTED                    by opt-in                                   to be repeated at a higher level: the whole transaction
//	DEADLINE_EXCEEDED          the caller's: never
//	                           the attempt's, the server's: if idempotent  it may have taken effect
//	CANCELED                   never                                       given up, or the channel is closing
//	INTERNAL, UNKNOWN,
//	DATA_LOSS                  by opt-in, if idempotent                    they may have taken effect; a handler's plain error is UNKNOWN
//	FAILED_PRECONDITION        never                                       the state has to be fixed first
//	every other                by opt-in                                   the same request gets the same answer
//
// If the connection is lost during a call, the code is also UNAVAILABLE, and the call may have taken effect. It is
// repeated even for a method that is not idempotent. To prevent that, set Policy.Classify to OnCode(retry.Terminal,
// codes.Unavailable), or give the call NoRetry. Whatever its code, a unary call that is not idempotent is not repeated
// once a header has come (AnswerBegun), since the server has then worked on it. A stream is never repeated after its
// header. If a handler fails without setting a header, the server sends none (gRPC's Trailers-Only).
//
// Opt in with Options.RetryCodes, or with Policy.Classify, which is called first and overrides everything except a
// Veto. A method is idempotent if Options.Idempotent reports it, and a single call if it has the option Idempotent.
// Classify is the table without opt-ins, for other policies.
//
// DEADLINE_EXCEEDED has three origins and one code. The caller's context is checked first, then the attempt's;
// otherwise the origin is the server. AttemptError.Origin reports it. An error of gRPC never matches
// context.DeadlineExceeded; the errors of a run whose caller's deadline has passed and of an attempt that
// AttemptTimeout has ended do.
//
// # What is a failure
//
// A healthy server answers some calls with INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED,
// UNAUTHENTICATED, FAILED_PRECONDITION, ABORTED or OUT_OF_RANGE. Unless such a code is repeated or comes with a
// pushback that forbids a retry, it is an answer, not a failure: the call returns gRPC's own error, and its run is
// Succeeded, funds Policy.Budget and is a success for Policy.Observe. Any other code is a failure, whether it is
// repeated or not.
//
// # Hints of the server
//
// The trailer grpc-retry-pushback-ms and the status detail RetryInfo are hints in the sense of retry.After: the next
// attempt does not start earlier, jitter only adds to the delay, and a hint above Policy.MaxHint ends the run. gRPC's
// own retry layer waits for exactly the pushback and restarts its backoff. Here a pushback below the backoff's delay, 0
// included, does not shorten it, and the backoff continues. The longest of several hints applies; a negative RetryInfo
// is ignored. A pushback that is negative, not a number, larger than 32 bits (2147483647, or 24 days) or present more
// than once ends the run, whatever the code.
//
// A retry carries grpc-previous-rpc-attempts, 1 for the second attempt, as grpc-go's own do. First attempts do not
// carry it, even if the caller's outgoing metadata, which a proxy may pass on, does.
//
// # One layer
//
// grpc-go repeats calls by itself: always those that no server has seen, once, and others if the channel's service
// config, which name resolution may bring, has a retryPolicy. The attempts of both layers would multiply.
// grpc.WithDisableRetry, which DialOptions includes, disables the second kind. Without it, the interceptors detect the
// retryPolicy and keep grpc-go from repeating a call that was sent in full (with grpc.MaxRetryRPCBufferSize(0)), so a
// server sees only their own attempts. Both layers still repeat calls that do not get a connection, which costs time
// but no load, and perhaps a stream that is refused before its request is sent. Calls that begin while the channel has
// no connection are treated like that in any case, since its service config may not be known yet. With
// Options.YieldToServiceConfig the interceptors leave methods with a retryPolicy to grpc-go, except for calls before
// the first name resolution.
//
// If a channel has several interceptors of this package, the outermost repeats and the others pass its attempts
// through. To repeat the calls with a retry.Do of your own, use retry.OneAttempt: every call under it makes one
// attempt. The interceptors also keep grpc-go from repeating streams under it that pass through, and calls with
// NoRetry.
//
// # Servers that call others
//
// If every service in a chain retries, their attempts multiply. With UnaryServerInterceptor and StreamServerInterceptor
// a server that has given up answers with the pushback -1, and makes only one attempt for a repeat by a trusted client.
// Options.PassAttempt passes that client's attempt number on. Metadata never raises the number of attempts, except for
// RESOURCE_EXHAUSTED as in the table.
//
// # Readiness
//
// While a channel has no connection, calls fail at once with UNAVAILABLE, and the channel reconnects only after its own
// backoff, from 1s to 2m. Faster retries are used up before it tries to connect: set grpc.WithConnectParams, or make
// calls with grpc.WaitForReady(true). Such a call waits for the connection up to its deadline, or
// Policy.AttemptTimeout, and then fails with DEADLINE_EXCEEDED, which is repeated for idempotent methods only, because
// it cannot be distinguished from a call that was sent.
//
// # Limits
//
// Client and bidirectional streams pass through: these interceptors do not repeat them, but a retryPolicy of the
// channel does, unless there is grpc.WithDisableRetry, retry.OneAttempt or NoRetry. An idempotent unary call is
// repeated even if a header has come, since its caller has seen nothing yet; grpc-go's own layer does not repeat it.
// Hedging is not supported: it trades load for latency.
package retrygrpc
