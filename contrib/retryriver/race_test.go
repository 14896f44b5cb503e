//go:build race

package retryriver_test

// raceDetector reports whether the tests run under the race detector. The conformance suite then runs over the engine in
// memory and in the kill test alone.
const raceDetector = true
