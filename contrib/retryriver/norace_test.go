//go:build !race

package retryriver_test

const raceDetector = false
