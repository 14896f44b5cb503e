//go:build !race

package retryplan

const RaceDetector = false
