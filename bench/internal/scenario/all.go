// Package scenario is the work that the libraries are compared by.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/retrygo/retry/bench/internal/contest"
	"github.com/retrygo/retry/bench/internal/peer"
)

// All returns every scenario.
func All() []contest.Scenario {
	return slices.Concat(
		FirstTry(), AttemptTimeout(), Retries(), GiveUp(),
		DelayMath(), Budget(), HTTP(), Waiters(),
	)
}

// serving is the context of all calls. It can be cancelled, as that of any server can, and never is.
var serving, _ = context.WithCancel(context.Background())

var errFlaky = errors.New("flaky")

// asTheLimit is why a scenario that shares nothing does not scale with the cores.
const asTheLimit = "nothing is written that is shared: see how the limit scales, which is as the machine does"

// succeeding returns the contender that makes whole calls of fn through l and panics where one fails: what does not do
// the work is not to be measured.
func succeeding(
	ctx context.Context, l peer.Loop, c peer.Config, fn func(context.Context) error, remarks ...string,
) contest.Contender {
	return contender(l, remarks, func() func(n int) {
		call := l.New(ctx, c, fn)
		return func(n int) {
			for range n {
				if err := call(); err != nil {
					panic(fmt.Sprintf("scenario: %s: a call failed: %v", l.Name, err))
				}
			}
		}
	})
}

// failing returns the contender that makes whole calls through l of an fn that fails the given number of times in each,
// and panics where one makes more or fewer attempts or ends otherwise than it should. It is for one goroutine.
func failing(ctx context.Context, l peer.Loop, c peer.Config, failures int, remarks ...string) contest.Contender {
	attempts, succeeds := min(failures+1, c.Attempts), failures < c.Attempts
	return contender(l, remarks, func() func(n int) {
		made := 0
		call := l.New(ctx, c, func(context.Context) error {
			if made++; made <= failures {
				return errFlaky
			}
			return nil
		})
		return func(n int) {
			for range n {
				made = 0
				if err := call(); (err == nil) != succeeds || made != attempts {
					panic(fmt.Sprintf("scenario: %s: a call ended after %d attempts with %v", l.Name, made, err))
				}
			}
		}
	})
}

// contender returns l as a contender that does what New prepares.
func contender(l peer.Loop, remarks []string, prepare func() func(n int)) contest.Contender {
	remarks = slices.DeleteFunc(append([]string{l.Remark}, remarks...), func(s string) bool { return s == "" })
	return contest.Contender{Name: l.Name, Form: l.Form, Remark: strings.Join(remarks, "; "), New: prepare}
}
