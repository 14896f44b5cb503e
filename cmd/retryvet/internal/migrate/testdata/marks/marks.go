// Package marks makes marks outside of the work of a call.
package marks

import (
	"example.com/marks/elsewhere"
	"github.com/cenkalti/backoff/v4"
)

func call() {
	_ = backoff.Retry(elsewhere.Work, backoff.NewConstantBackOff(0)) // want `elsewhere (elsewhere.go:11) can reach it`
}
