// Package retryrpc decides which remote procedure calls may be repeated, by status code, hint, deadline, and whether
// the call may take effect twice. gRPC and Connect share the codes, and contrib/retrygrpc and contrib/retryconnect
// share this package. Their users need it for AttemptError. The rest is for adapters to other RPC libraries.
//
// # What is repeated
//
//	code                       repeated                                    why
//	UNAVAILABLE                yes, also if not idempotent                 the one code for automatic retries (AIP-194)
//	RESOURCE_EXHAUSTED         with a hint above 0, or by opt-in           often a quota, which retries only use up
//	ABORTED                    by opt-in                                   to be repeated at a higher level, with the whole transaction
//	DEADLINE_EXCEEDED
//	  of the caller            never
//	  of attempt or server     if idempotent                               it may have taken effect
//	CANCELED                   never                                       given up, or the client is closing
//	INTERNAL, UNKNOWN,
//	DATA_LOSS                  by opt-in, if idempotent                    they may have taken effect, and a handler's plain error is UNKNOWN
//	FAILED_PRECONDITION        never                                       the state has to be fixed first
//	every other                by opt-in                                   the same request gets the same answer
//
// If the connection is lost during a call, the code is also UNAVAILABLE, and the call may have taken effect. It is
// repeated even for a method that is not idempotent. To prevent that, use a Policy.Classify that is retry.Terminal for
// UNAVAILABLE, such as the OnCode of the adapters.
//
// Policy.Classify is called first, with each *AttemptError, and overrides everything except a Veto.
//
// DEADLINE_EXCEEDED has three origins and one code. The caller's context is checked first, then the attempt's.
// Otherwise the origin is the server. AttemptError.Origin reports it.
//
// # Doubt
//
// A call that is not idempotent, is not repeated and may have taken effect is in doubt. Its error is marked
// retry.Ambiguous, so that no run or job around it repeats it either, unless it is returned under retry.Transient. That
// is so if the request may have been sent and
//
//   - the code is DEADLINE_EXCEEDED, CANCELED, INTERNAL, UNKNOWN or DATA_LOSS, whichever side it comes from,
//   - or the code is UNAVAILABLE, and the client, not the server, says so,
//   - or an answer had begun (AnswerBegun) that ends with a failure,
//   - or the server says that it is in doubt itself, by the metadata retry-in-doubt with the value "true".
//
// A server's NOT_FOUND, RESOURCE_EXHAUSTED or UNAVAILABLE is otherwise not in doubt, also with a pushback that forbids a
// retry, which says only that the server has given up.
//
// # What is a failure
//
// A healthy server answers some calls with INVALID_ARGUMENT, NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED,
// UNAUTHENTICATED, FAILED_PRECONDITION, ABORTED or OUT_OF_RANGE. Unless such a code is repeated, or the server forbids a
// retry or is in doubt, it is an answer, not a failure. The call returns the library's own error in an *AnswerError, and
// its run is Succeeded, funds Policy.Budget and is a success for Policy.Observe. A run or job around the call does not
// repeat an answer either, unless the Classify of its policy says so. Any other code is a failure, whether it is repeated
// or not.
//
// # Errors
//
// A call that fails returns an error with the code of the last attempt, or CANCELED or DEADLINE_EXCEEDED if the caller was
// canceled or its deadline has passed, also during a wait. errors.As finds the *retry.Error and the *AttemptError. The text
// of a failure that must not be repeated is that of its AttemptError. In every other case the text of the run precedes it.
//
// # Hints of the server
//
// The metadata grpc-retry-pushback-ms and the status detail google.rpc.RetryInfo are hints in the sense of retry.After.
// The next attempt does not start earlier, jitter only adds to the delay, and a hint above Policy.MaxHint ends the run.
// The longest of several hints applies. One of 0 or less is ignored. gRPC's own retry layer waits for exactly the pushback
// and restarts its backoff. Here a pushback below the backoff's delay does not shorten it, and the backoff continues. A
// pushback that is negative, not a number, larger than 32 bits (2147483647, or 24 days) or present more than once ends
// the run, whatever the code.
//
// A retry carries grpc-previous-rpc-attempts, 1 for the second attempt. First attempts do not carry it, even if the
// caller's metadata, which a proxy may pass on, does.
//
// # Servers that call others
//
// If every service in a chain retries, their attempts multiply. An interceptor for a server whose handlers make calls
// with retries does three things.
//
// First, if a retry of the call would only repeat retries that have already failed below, or could do harm, the client
// gets grpc-retry-pushback-ms with the value -1 as metadata, which the adapters and gRPC's own retries honor. If the error is in doubt,
// it gets retry-in-doubt with the value true as well, the word that retryhttp has for it too, so that doubt passes through a chain of
// services, whatever their protocols are. For any other error with a hint (see retry.After) the pushback is the hint.
// MetadataFor has the rules.
//
// Second, if the handler returns the error of a run, such as that of retry.Do, or one that says that a service below has
// given up, such as that of retryhttp.CheckResponse, the client gets the status of the last attempt, unchanged, and
// UNAVAILABLE if that has none (DEADLINE_EXCEEDED or CANCELED for an error of a context), without the text of the run.
// The name of the policy, the number of attempts and an inner error's text stay in the server.
//
// Third, if a trusted client repeats a call, the handler's own calls make one attempt, since its context is that of
// retryshell.WithRemoteAttempt. Options.PassAttempt passes that client's attempt number on. A trusted client can disable
// the server's retries.
//
// This package may change until it says otherwise.
package retryrpc
