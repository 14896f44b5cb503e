// Package attempts defines an analyzer for loops over retry.Attempts that do not set the error of the loop.
package attempts

import (
	"fmt"
	"go/ast"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/inspector"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/ignore"
)

const doc = `report loops over retry.Attempts that never set their error

A turn of for ctx := range retry.Attempts(ctx, p, &err) is repeated if its body leaves an error in err. A body that never
assigns to err makes one turn, and the run ends with an error that says so. The usual cause is a declaration in the body,
such as resp, err := send(ctx), which makes another variable of the same name.

A loop is not reported if err is not a plain variable, or if other code can set it: its address is taken, or a function
literal assigns to it. Test files are skipped.`

// Analyzer is the analyzer attempts.
var Analyzer = ignore.OutsideTests("attempts", doc, run)

func run(pass *analysis.Pass) (any, error) {
	for cur, r := range calls.All(pass) {
		if v := r.ErrVar(pass.TypesInfo); v != nil && !set(pass.TypesInfo, cur, r, v) {
			report(pass, cur, v)
		}
	}
	return nil, nil
}

// set reports whether the body of the loop r can set v: it assigns to v, or code elsewhere in the function can do so for it.
func set(info *types.Info, cur inspector.Cursor, r calls.Retry, v types.Object) bool {
	outer := cur
	for up := range cur.Enclosing((*ast.FuncDecl)(nil)) {
		outer = up
	}
	for c := range outer.Preorder((*ast.AssignStmt)(nil), (*ast.RangeStmt)(nil), (*ast.IncDecStmt)(nil), (*ast.UnaryExpr)(nil)) {
		n := c.Node()
		if n == ast.Unparen(r.Err) || !calls.Sets(info, n, v) {
			continue
		}
		_, can := n.(*ast.UnaryExpr)
		can = can || r.Loop.Body.Pos() < n.Pos() && n.Pos() < r.Loop.Body.End()
		for lit := range c.Enclosing((*ast.FuncLit)(nil)) {
			can = can || lit.Node().Pos() > r.Loop.Pos() || lit.Node().End() < r.Loop.End() // it is not around the loop
		}
		if can {
			return true
		}
	}
	return false
}

// report reports the loop at the first declaration in its body that hides v, and otherwise at its first line.
func report(pass *analysis.Pass, cur inspector.Cursor, v types.Object) {
	for n := range ast.Preorder(cur.Node().(*ast.RangeStmt).Body) {
		id, isIdent := n.(*ast.Ident)
		if isIdent && id.Name == v.Name() && pass.TypesInfo.Defs[id] != nil && calls.IsError(pass.TypesInfo.TypeOf(id)) {
			pass.ReportRangef(id, "this %s is another variable than that of retry.Attempts, so the loop never makes a second turn", v.Name())
			return
		}
	}
	pass.Report(analysis.Diagnostic{
		Pos: cur.Node().Pos(), End: cur.Node().(*ast.RangeStmt).Body.Lbrace,
		Message: fmt.Sprintf("the body never sets %s, so the loop never makes a second turn", v.Name()),
	})
}
