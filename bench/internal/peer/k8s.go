package peer

import (
	"context"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/retrygo/retry/bench/internal/contest"
)

// k8sWait is ExponentialBackoffWithContext: the rest of its package counts no attempts or takes no context. An error of
// a condition would end the run, so a failed attempt is a condition that is not met.
var k8sWait = []Loop{{
	Name:   "k8s.io/apimachinery wait",
	Form:   contest.Fastest,
	Remark: "the usual form is the fastest; does not return the error of an attempt",
	New: func(ctx context.Context, c Config, fn func(context.Context) error) func() error {
		work := limited(c.AttemptTimeout, fn)
		condition := func(ctx context.Context) (bool, error) { return work(ctx) == nil, nil }
		backoff := wait.Backoff{Duration: c.Delay, Steps: c.Attempts}
		return func() error { return wait.ExponentialBackoffWithContext(ctx, backoff, condition) }
	},
}}
