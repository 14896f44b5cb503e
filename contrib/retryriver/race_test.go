//go:build race

package retryriver_test

// raceDetector reports whether the tests run under the race detector. Databases are then too slow for the due times
// that the suite expects in real time. The engine in memory runs the suite with it, and so does the kill test.
const raceDetector = true
