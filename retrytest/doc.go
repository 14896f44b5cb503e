// Package retrytest makes faults on demand, for tests of code that retries: a function, an HTTP server and a database
// driver that fail as a script says, call by call, and recorders of what the retries did.
//
// # Scripts
//
// A script is rows of plain data: a Step for each attempt of a function, an Answer for each HTTP request, an SQLFault
// for each operation of a database that fails. Its end is checked. A call beyond the last row fails the test, and so
// does a row that is left at the test's end; the message has the line of the test that made the script.
//
// # Time
//
// All durations pass by timers, so that they take no time inside a testing/synctest bubble. There the times of a run
// are exact if the policy has no jitter, or a Rand of the test's own: the same script, and the same seed of a Chaos, give the same Timeline on every platform. Inside a bubble
// pass the bubble's own *testing.T, since what is made in a bubble must end in it, and use NewPipeServer, since a
// bubble does not wait for the network.
//
// # Lifetime
//
// What a constructor starts ends at the test's end, by Cleanup. What it returns is safe for concurrent use. Rows are
// then used in the order in which the calls arrive.
package retrytest
