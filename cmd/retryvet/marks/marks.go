// Package marks defines an analyzer for errors of retries that are marked without effect, or dropped.
package marks

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/ignore"
)

const doc = `report errors of retries that are marked without effect, or dropped

 - retry.Permanent(nil) is nil, and an attempt that returns it has succeeded: after "if err != nil { return err }" err
   is nil.
 - A function that returns an error drops that of a retry, here or of backoff and of k8s.io/apimachinery's
   wait.ExponentialBackoff, so that giving up looks like a success. It is not reported if the work keeps its error.`

// Analyzer is the analyzer marks.
var Analyzer = ignore.New("marks", doc, run)

func run(pass *analysis.Pass) (any, error) {
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	for cur := range in.Root().Preorder((*ast.CallExpr)(nil)) {
		call := cur.Node().(*ast.CallExpr)
		markedNil(pass, cur, call)
		dropped(pass, cur, call)
	}
	return nil, nil
}

// markedNil reports a mark of an error that is nil on every path to it, in its own branch.
func markedNil(pass *analysis.Pass, cur inspector.Cursor, call *ast.CallExpr) {
	if !calls.IsFunc(pass.TypesInfo, call, calls.Module, "Permanent", "Transient", "Ambiguous", "After") {
		return
	}
	err, isVar := calls.Object(pass.TypesInfo, call.Args[len(call.Args)-1]).(*types.Var)
	if !isVar {
		return
	}
	branches := 0
	for at := cur; ; at = at.Parent() {
		switch at.Node().(type) {
		case *ast.FuncDecl, *ast.FuncLit, *ast.File:
			return
		case *ast.IfStmt, *ast.CaseClause:
			branches++
		}
		for before, ok := at.PrevSibling(); ok; before, ok = before.PrevSibling() {
			check, isIf := before.Node().(*ast.IfStmt)
			if isIf && branches > 0 && check.Else == nil && isNotNil(pass.TypesInfo, check.Cond, err) && calls.Leaves(check.Body) {
				if !assigned(pass.TypesInfo, at.Parent().Node(), err, check.End(), call.Pos()) {
					pass.ReportRangef(call, "%s is nil here, so that %s is nil too and the attempt succeeds: create an error", err.Name(), types.ExprString(call))
				}
				return
			}
		}
	}
}

// isNotNil reports whether cond is err != nil.
func isNotNil(info *types.Info, cond ast.Expr, err types.Object) bool {
	b, isBinary := ast.Unparen(cond).(*ast.BinaryExpr)
	return isBinary && b.Op == token.NEQ && info.Types[b.Y].IsNil() && calls.Is(info, b.X, err)
}

// assigned reports whether n, between the two positions, may set err; a function literal may be called at any time.
func assigned(info *types.Info, n ast.Node, err types.Object, from, to token.Pos) (yes bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if n == nil || n.End() <= from || n.Pos() >= to {
			return false
		}
		_, isLit := n.(*ast.FuncLit)
		yes = yes || isLit || calls.Sets(info, n, err)
		return true
	})
	return yes
}

var retries = regexp.MustCompile(`^(github\.com/retrygo/retry\.Do(Value)?|github\.com/cenkalti/backoff(/v\d+)?\.Retry\w*|k8s\.io/apimachinery/pkg/util/wait\.ExponentialBackoff\w*)$`)

// dropped reports a retry whose error is dropped by a function that returns an error.
func dropped(pass *analysis.Pass, cur inspector.Cursor, call *ast.CallExpr) {
	callee := typeutil.StaticCallee(pass.TypesInfo, call)
	if callee == nil || callee.Pkg() == nil || !retries.MatchString(callee.Pkg().Path()+"."+callee.Name()) {
		return
	}
	named := func(x ast.Expr) bool { return types.ExprString(x) != "_" }
	stmt, isAssign := cur.Parent().Node().(*ast.AssignStmt)
	_, isStmt := cur.Parent().Node().(*ast.ExprStmt)
	_, t, _ := calls.Function(cur)
	used := !isStmt && (!isAssign || slices.ContainsFunc(stmt.Lhs, named))
	inTest := strings.HasSuffix(pass.Fset.File(call.Pos()).Name(), "_test.go")
	if used || inTest || t == nil || t.Results == nil || !calls.IsError(pass.TypesInfo.TypeOf(t.Results.List[len(t.Results.List)-1].Type)) {
		return
	}
	for _, arg := range call.Args {
		lit, isLit := ast.Unparen(arg).(*ast.FuncLit)
		if _, isFunc := pass.TypesInfo.TypeOf(arg).Underlying().(*types.Signature); isFunc && (!isLit || keeps(pass.TypesInfo, lit)) {
			return
		}
	}
	pass.ReportRangef(call, "the error of %s is dropped, so that giving up looks like a success", types.ExprString(call.Fun))
}

// keeps reports whether lit assigns to a variable from outside.
func keeps(info *types.Info, lit *ast.FuncLit) bool {
	outside := func(x ast.Expr) bool {
		v := calls.Root(info, x)
		return v != nil && !calls.Within(v, lit)
	}
	for n := range ast.Preorder(lit.Body) {
		if a, isAssign := n.(*ast.AssignStmt); isAssign && slices.ContainsFunc(a.Lhs, outside) {
			return true
		}
	}
	return false
}
