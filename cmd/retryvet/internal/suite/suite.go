// Package suite lists the analyzers.
package suite

import (
	"golang.org/x/tools/go/analysis"

	"github.com/retrygo/retry/cmd/retryvet/attemptctx"
	"github.com/retrygo/retry/cmd/retryvet/handler"
	"github.com/retrygo/retry/cmd/retryvet/internal/ignore"
	"github.com/retrygo/retry/cmd/retryvet/loop"
	"github.com/retrygo/retry/cmd/retryvet/marks"
	"github.com/retrygo/retry/cmd/retryvet/nested"
	"github.com/retrygo/retry/cmd/retryvet/policy"
	"github.com/retrygo/retry/cmd/retryvet/replay"
)

// ByDefault reports whether a runs if no analyzer is asked for. The analyzer loop does not, since what it says about code that
// it was not narrowed on is too often not worth a commit.
func ByDefault(a *analysis.Analyzer) bool { return a != loop.Analyzer }

// Analyzers returns all of them.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{attemptctx.Analyzer, handler.Analyzer, loop.Analyzer, marks.Analyzer, nested.Analyzer, policy.Analyzer, replay.Analyzer, ignore.Analyzer}
}
