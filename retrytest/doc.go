// Package retrytest provides faults on demand, for tests of code that retries. It has a function, an HTTP server and a
// database driver that fail call by call, following a script, and that record the retries.
//
//	func TestSend(t *testing.T) {
//		synctest.Test(t, func(t *testing.T) {
//			send := retrytest.Errors(t, io.ErrUnexpectedEOF, nil)
//			if err := retry.Do(t.Context(), retry.Policy{}, send); err != nil { // waits 5s, at once
//				t.Fatal(err)
//			}
//		})
//	}
//
// # Scripts
//
// A script is rows of plain data. A row is a Step for an attempt of a function, an Answer for an HTTP request, or an
// SQLFault for a failing operation of a database. A call beyond the last row fails the test, and so does a row that is
// unused at the test's end. A row with a bad field, such as a negative Takes, ends the test at once. The message names
// the line of the test that created the script.
//
// # Time
//
// All waiting uses timers, so it takes no real time inside a testing/synctest bubble. There the times of a run are
// exact if the policy has no jitter, or a Rand supplied by the test. The same script, and the same seed of a Chaos,
// give the same Timeline on every platform. Inside a bubble pass the bubble's own *testing.T, since goroutines started
// in a bubble must end in it, and use NewPipeServer, since a bubble does not wait for the network.
//
// # Lifetime
//
// Each constructor registers a Cleanup that ends the goroutines and servers that it started. The values that
// constructors return are safe for concurrent use. Concurrent calls use rows in the order in which they arrive.
//
// This package is of the stable core. Its names are meant for v1.
package retrytest
