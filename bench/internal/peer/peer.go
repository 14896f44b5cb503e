// Package peer sets up the retry loops of several libraries to do the same work: the peers', ours, and one by hand.
package peer

import (
	"context"
	"slices"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/bench/internal/contest"
)

// Config is what a Loop is to do.
type Config struct {
	// Attempts is the total number of attempts, the first one included; at least 1.
	Attempts int
	// Delay is the wait before each retry, always the same. Zero means none.
	Delay time.Duration
	// AttemptTimeout is how long one attempt's context lives. Zero means none.
	AttemptTimeout time.Duration
	// Policy tells ours the same; only Ours reads it, and it reads nothing else.
	Policy retry.Policy
}

// Loop is one way of retrying with one library.
type Loop struct {
	Name string
	Form contest.Form
	// Remark is what a reader must know to compare fairly. Empty means nothing.
	Remark string
	// TellsElapsed reports whether the library can say how long a run took once it is over, a successful one included.
	TellsElapsed bool
	// TimesOut reports whether the library itself ends an attempt's context at its timeout. Otherwise that is a
	// context.WithTimeout within fn, as its users write it.
	TimesOut bool
	// New returns what makes one whole call: attempts of fn until one succeeds or c forbids another. It returns nil where
	// fn succeeded. What the Form allows to be built once is built by New. Several goroutines may call the result at once
	// where they may call fn at once.
	New func(ctx context.Context, c Config, fn func(context.Context) error) func() error
}

// Peers returns the loops of other libraries, each in the fastest form that its documentation shows and, where that is
// another one, in the form that most people write.
func Peers() []Loop {
	return slices.Concat(
		cenkaltiV5, cenkaltiV7, avastV4, avastV5, codeGROOVE, sethvargo, failsafeGo, eapache, k8sWait,
	)
}

// limited returns fn with a timeout of its own, and fn itself for a timeout of 0.
func limited(timeout time.Duration, fn func(context.Context) error) func(context.Context) error {
	if timeout == 0 {
		return fn
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return fn(ctx)
	}
}
