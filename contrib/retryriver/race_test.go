//go:build race

package retryriver_test

// raceDetector is set where the tests run with it. Databases in real time are too slow beside it for what the suite expects of
// due times; the engine in memory runs the suite with it, and the kill test runs with it too.
const raceDetector = true
