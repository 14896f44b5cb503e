//go:build race

package retryriver_test

// raceDetector reports whether the tests run under the race detector, with which SQLite takes ten times as long.
const raceDetector = true
