// Package suite lists the analyzers.
package suite

import (
	"golang.org/x/tools/go/analysis"

	"github.com/retrygo/retry/cmd/retryvet/attemptctx"
	"github.com/retrygo/retry/cmd/retryvet/attempts"
	"github.com/retrygo/retry/cmd/retryvet/handler"
	"github.com/retrygo/retry/cmd/retryvet/internal/ignore"
	"github.com/retrygo/retry/cmd/retryvet/loop"
	"github.com/retrygo/retry/cmd/retryvet/marks"
	"github.com/retrygo/retry/cmd/retryvet/nested"
	"github.com/retrygo/retry/cmd/retryvet/policy"
	"github.com/retrygo/retry/cmd/retryvet/replay"
)

// ByDefault reports whether a runs if no flag selects analyzers. The analyzer loop does not, since too many of its
// findings in new code are not worth a commit.
func ByDefault(a *analysis.Analyzer) bool { return a != loop.Analyzer }

// Analyzers returns all of them.
func Analyzers() []*analysis.Analyzer {
	return []*analysis.Analyzer{attemptctx.Analyzer, attempts.Analyzer, handler.Analyzer, loop.Analyzer, marks.Analyzer, nested.Analyzer, policy.Analyzer, replay.Analyzer, ignore.Analyzer}
}
