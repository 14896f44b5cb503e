// Package retrygrpc repeats gRPC calls. Its interceptors put retry.Do around unary calls and around server streams up to
// the moment when the server begins to answer:
//
//	opts, err := retrygrpc.DialOptions(policy, retrygrpc.Options{})
//	...
//	conn, err := grpc.NewClient(target, append(opts, creds)...)
//
// ServiceConfig writes a policy down for grpc-go's own retry layer instead, and says what that cannot do.
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
// A connection that is lost in the midst of a call is UNAVAILABLE, too, and the call may have taken effect: it is
// repeated even for a method that is not idempotent. If that must not happen, set Policy.Classify to
// OnCode(retry.Terminal, codes.Unavailable), or give the call NoRetry. Whatever its code, a unary call that is not
// idempotent is not repeated once a header has come (AnswerBegun), since the server has then worked on it, and neither
// is any stream. A failure that servers send without a header, gRPC's Trailers-Only, is what handlers give that set
// none.
//
// Opt-in is by Options.RetryCodes, or by Policy.Classify, which is asked first and may say anything but against a Veto.
// Idempotent is what Options.Idempotent says of a method or Idempotent of one call. Classify is the table without
// opt-ins, for other policies.
//
// DEADLINE_EXCEEDED has three origins and one code. The caller's context is looked at first, then the attempt's; what
// is left is the server's. AttemptError.Origin says which. An error of gRPC never matches context.DeadlineExceeded; a
// run whose caller's deadline has passed and an attempt that AttemptTimeout has ended do.
//
// # What is a failure
//
// A server that works answers some calls with INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED,
// UNAUTHENTICATED, FAILED_PRECONDITION, ABORTED or OUT_OF_RANGE. Unless one of these is to be repeated or comes with a
// pushback that forbids it, it is an answer and not a failure: the call returns gRPC's own error, and its run has
// succeeded, funds Policy.Budget and is a success to Policy.Observe. Any other code is a failure whether it is repeated
// or not.
//
// # What a server says
//
// The trailer grpc-retry-pushback-ms and the status detail RetryInfo are hints in the sense of retry.After: the next
// attempt starts no earlier, jitter goes upwards, and beyond Policy.MaxHint the run ends. gRPC's own retry layer waits
// for exactly the pushback and begins its backoff anew; here a pushback below the backoff's delay, 0 included, does not
// shorten it, and the backoff goes on. Of several hints the longest wins, and a negative RetryInfo is none. A pushback
// that is negative, not a number, beyond 32 bits (2147483647, or 24 days) or there more than once ends the run,
// whatever the rules say.
//
// A retry carries grpc-previous-rpc-attempts, 1 for the second attempt, as grpc-go's own do. First attempts carry none,
// also if the caller's outgoing metadata, which a proxy may pass on, has one.
//
// # One layer
//
// grpc-go repeats calls by itself: always those that no server has seen, once, and others if the channel's service
// config, which name resolution may bring, has a retryPolicy. That would multiply. grpc.WithDisableRetry, which
// DialOptions contains, turns the second kind off. If it was not given, the interceptors see the retryPolicy and keep
// grpc-go from repeating what was sent in full (by grpc.MaxRetryRPCBufferSize(0)), so that their own attempts are all
// that a server sees; what fails to get a connection is still repeated by both, which costs time but no load, and so
// may be a stream that is refused before its request is sent. Calls that are begun while the channel has no connection
// are kept so in any case, since its service config may not be known yet. With Options.YieldToServiceConfig the
// interceptors leave methods with a retryPolicy to grpc-go, but for calls before the first name resolution.
//
// If a channel has several interceptors of this package, the outermost repeats and the others pass its attempts
// through. If a retry.Do of your own is to repeat, use retry.OneAttempt: every call under it makes one attempt. Streams
// under it that pass through, and calls with NoRetry, are kept from grpc-go's repeating in the same way.
//
// # Servers that call others
//
// Services that all retry multiply their attempts. UnaryServerInterceptor and StreamServerInterceptor make a server
// answer that it has given up, by the pushback -1, and do once what a trusted client repeats. Options.PassAttempt
// passes that client's number on. No metadata raises the number of attempts, but for RESOURCE_EXHAUSTED as the table
// says.
//
// # Readiness
//
// While a channel has no connection, calls fail at once with UNAVAILABLE, and a channel tries again only after its own
// backoff, from 1s to 2m. Retries that are quicker than that are used up without any connection having been tried: set
// grpc.WithConnectParams, or make calls with grpc.WaitForReady(true). Such a call waits for the connection up to its
// deadline, or Policy.AttemptTimeout, and then fails with DEADLINE_EXCEEDED, which is repeated for idempotent methods
// only, because it cannot be distinguished from a call that was sent.
//
// # Limits
//
// Client and bidirectional streams pass through: these interceptors do not repeat them, and a retryPolicy of the
// channel does unless there is grpc.WithDisableRetry, retry.OneAttempt or NoRetry. A unary call that is idempotent is
// repeated also if a header has come, since its caller has seen nothing yet; in grpc-go's own layer none is. Hedging is
// not offered: it makes load of latency.
package retrygrpc
