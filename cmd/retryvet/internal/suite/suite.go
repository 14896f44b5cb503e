// Package suite lists the analyzers.
package suite

import (
	"golang.org/x/tools/go/analysis"

	"github.com/retrygo/retry/cmd/retryvet/attemptctx"
	"github.com/retrygo/retry/cmd/retryvet/attempts"
	"github.com/retrygo/retry/cmd/retryvet/carried"
	"github.com/retrygo/retry/cmd/retryvet/loop"
	"github.com/retrygo/retry/cmd/retryvet/marks"
	"github.com/retrygo/retry/cmd/retryvet/nested"
	"github.com/retrygo/retry/cmd/retryvet/policy"
	"github.com/retrygo/retry/cmd/retryvet/replay"
)

// Analyzers returns all of them.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{attemptctx.Analyzer, attempts.Analyzer, carried.Analyzer, loop.Analyzer, marks.Analyzer, nested.Analyzer, policy.Analyzer, replay.Analyzer}
}
