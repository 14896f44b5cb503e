// Package handler defines an analyzer for HTTP handlers whose calls do not end with the request.
package handler

import (
	"fmt"
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/ignore"
)

const doc = `report calls out of an HTTP handler with context.Background() or context.TODO()

When the client of a handler gives up and retries, the calls of its last request continue during the next one: three layers of
three attempts over a server that hangs make 27 calls with context.Background() and 3 with the request's context. The mark of
retry.OneAttempt is lost too. The analyzer reports requests of net/http, statements of database/sql and runs of
github.com/retrygo/retry in a function with parameters (http.ResponseWriter, *http.Request), except in goroutines that it
starts. Use the request's context, or context.WithoutCancel of it for work that must outlive the request.`

// Analyzer is the analyzer handler.
var Analyzer = ignore.New("handler", doc, run)

func run(pass *analysis.Pass) (any, error) {
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	in.Preorder([]ast.Node{(*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)}, func(n ast.Node) {
		var of *ast.FuncType
		var body *ast.BlockStmt
		switch f := n.(type) {
		case *ast.FuncDecl:
			of, body = f.Type, f.Body
		case *ast.FuncLit:
			of, body = f.Type, f.Body
		}
		if request := requestOf(pass.TypesInfo, of); request != "" && body != nil {
			check(pass, request, body)
		}
	})
	return nil, nil
}

// requestOf returns the name of the request in the parameters of a handler, and "" for other functions.
func requestOf(info *types.Info, f *ast.FuncType) string {
	var names []string
	var kinds []types.Type
	for _, field := range f.Params.List {
		for _, name := range field.Names {
			names, kinds = append(names, name.Name), append(kinds, info.TypeOf(field.Type))
		}
	}
	if len(kinds) != 2 || !calls.IsNamed(kinds[0], "net/http", "ResponseWriter") || names[1] == "_" {
		return ""
	}
	if p, ok := kinds[1].(*types.Pointer); !ok || !calls.IsNamed(p.Elem(), "net/http", "Request") {
		return ""
	}
	return names[1]
}

func check(pass *analysis.Pass, request string, body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			return false // meant to outlive the request
		case *ast.FuncLit:
			return requestOf(pass.TypesInfo, n.Type) == "" // a handler is visited separately
		case *ast.CallExpr:
			if len(n.Args) > 0 && detached(pass.TypesInfo, n.Args[0]) && callsOut(pass.TypesInfo, n) {
				report(pass, request, n)
			}
		}
		return true
	})
}

// detached reports whether x is context.Background() or context.TODO().
func detached(info *types.Info, x ast.Expr) bool {
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	return ok && calls.IsFunc(info, call, "context", "Background", "TODO")
}

// callsOut reports whether call makes a request, a statement or a run.
func callsOut(info *types.Info, call *ast.CallExpr) bool {
	if calls.IsFunc(info, call, "net/http", "NewRequestWithContext") {
		return true
	}
	if _, ok := calls.Of(info, call); ok {
		return true
	}
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	method, ok := info.Uses[sel.Sel].(*types.Func)
	return ok && method.Pkg() != nil && method.Pkg().Path() == "database/sql" &&
		(strings.HasSuffix(method.Name(), "Context") || method.Name() == "BeginTx")
}

func report(pass *analysis.Pass, request string, call *ast.CallExpr) {
	ctx := request + ".Context()"
	pass.Report(analysis.Diagnostic{
		Pos: call.Args[0].Pos(), End: call.Args[0].End(),
		Message: fmt.Sprintf("%s continues after the client of %s has gone, together with the client's retry: use %s, or context.WithoutCancel(%s)",
			types.ExprString(call.Fun), request, ctx, ctx),
		SuggestedFixes: []analysis.SuggestedFix{{
			Message:   "Use " + ctx,
			TextEdits: []analysis.TextEdit{{Pos: call.Args[0].Pos(), End: call.Args[0].End(), NewText: []byte(ctx)}},
		}},
	})
}
