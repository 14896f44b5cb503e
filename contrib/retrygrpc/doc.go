// Package retrygrpc repeats gRPC calls. Its interceptors put retry.Do around unary calls and around server streams up
// to the moment when the server begins to answer:
//
//	opts, err := retrygrpc.DialOptions(policy, retrygrpc.Options{})
//	...
//	conn, err := grpc.NewClient(target, append(opts, creds)...)
//
// Package retryrpc has the table of the codes that are repeated, and says which failure is an answer, which hints of a
// server count, and which calls are in doubt. UNAVAILABLE is repeated, also for a method that is not idempotent.
// DEADLINE_EXCEEDED is repeated for idempotent methods, RESOURCE_EXHAUSTED after a hint of the server, and others by
// opt-in with Options.RetryCodes or Policy.Classify. A method is idempotent if Options.Idempotent reports it, and a single call if
// it has the option Idempotent.
//
// Whatever its code, a unary call that is not idempotent is not repeated once a header has come (retryrpc.AnswerBegun),
// since the server has then worked on it. A stream is never repeated after its header. If a handler fails without
// setting a header, the server does not send one (gRPC's Trailers-Only).
//
// # One layer
//
// grpc-go repeats calls by itself. Those that no server has seen it always repeats, once, and others if the channel's
// service config, which name resolution may bring, has a retryPolicy. The attempts of both layers would multiply.
// grpc.WithDisableRetry, which DialOptions includes, disables the second kind. If you set the interceptors on your own
// and forget it, they detect the retryPolicy and keep grpc-go from repeating a call that was sent in full (with
// grpc.MaxRetryRPCBufferSize(0)), so a server sees only their own attempts, except while a service config comes or
// goes. A call that begins just before a retryPolicy arrives can make the attempts of both, and 6 instead of 3 were
// seen. Both layers still repeat calls that do not get a connection, which costs time but no load. Calls that begin
// while the channel has no connection are treated as if there were a retryPolicy, since the service config may not be
// known yet.
//
// If a channel has several interceptors of this package, the outermost repeats and the others pass its attempts
// through. To repeat the calls with a retry.Do of your own, use retry.OneAttempt. Every call under it makes one
// attempt.
//
// # Several backends
//
// The load balancer of the channel picks the connection of each attempt. With pick_first, which is grpc-go's default,
// all attempts go to the same backend. Of 400 retries, all reached the same one of two. With round_robin a retry takes
// the next turn. All of 400 reached the other backend if calls were made one after another, and 128 to 311 in runs with
// 8 callers at once, whose turns mix (TestARetryBetweenTwoBackends).
//
// # Servers that call others
//
// With UnaryServerInterceptor and StreamServerInterceptor the attempts of services in a chain do not multiply (see
// package retryrpc).
//
// # Readiness
//
// While a channel has no connection, calls fail at once with UNAVAILABLE, and the channel reconnects only after its own
// backoff, from 1s to 2m. Faster retries are used up before it tries to connect. Set grpc.WithConnectParams, or make
// calls with grpc.WaitForReady(true). Such a call waits for the connection up to its deadline, or
// Policy.AttemptTimeout, and then fails with DEADLINE_EXCEEDED, which is repeated for idempotent methods only.
//
// # Limits
//
// Client and bidirectional streams pass through. These interceptors do not repeat them, but a retryPolicy of the
// channel does, unless there is grpc.WithDisableRetry, or retry.OneAttempt.
//
// This package may change until it says otherwise.
package retrygrpc
