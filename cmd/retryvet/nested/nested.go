// Package nested defines an analyzer for retries of functions that retry themselves.
package nested

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/ignore"
)

const doc = `report retries of functions that retry themselves

Attempts multiply: 4 attempts of a function that makes 4 attempts are 16 calls of a backend that already fails. The
analyzer follows calls of functions and methods by name, in other packages too. A policy counts unless it is a literal that
allows one attempt, or any number of them.

Pass retry.OneAttempt(ctx) to the inner call, or retry in one of the two places. Go statements, job handlers and test files
are skipped.`

// Analyzer is the analyzer nested.
var Analyzer = ignore.OutsideTests("nested", doc, run, new(Retries))

// Retries is the fact that a function retries.
type Retries struct{}

// AFact makes it a fact.
func (*Retries) AFact() {}

func (*Retries) String() string { return "retries" }

type finder struct {
	*analysis.Pass
	once  map[types.Object]bool // the variables that hold a context of OneAttempt
	decls map[types.Object]inspector.Cursor
	found map[*types.Func]bool // whether a function of this package retries
}

func run(pass *analysis.Pass) (any, error) {
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	f := finder{pass, map[types.Object]bool{}, nil, map[*types.Func]bool{}}
	for cur := range in.Root().Preorder((*ast.AssignStmt)(nil)) {
		a := cur.Node().(*ast.AssignStmt)
		if id, isIdent := a.Lhs[0].(*ast.Ident); isIdent && f.oneAttempt(a.Rhs[0]) {
			f.once[f.TypesInfo.ObjectOf(id)] = true
		}
	}
	if !calls.Ours(pass.Pkg) { // this library's own functions are known by their signatures
		f.decls = calls.Declarations(pass)
		for _, callee := range calls.InOrder(f.decls) {
			if f.function(callee.(*types.Func)) {
				f.ExportObjectFact(callee, &Retries{})
			}
		}
	}
	for _, r := range calls.All(pass) {
		f.check(r)
	}
	return nil, nil
}

func (f *finder) oneAttempt(x ast.Expr) bool {
	switch x := ast.Unparen(x).(type) {
	case *ast.CallExpr:
		return calls.IsFunc(f.TypesInfo, x, calls.Module, "OneAttempt")
	case *ast.Ident:
		return f.once[f.TypesInfo.Uses[x]]
	}
	return false
}

// repeats reports whether r can make more than one attempt, but not any number of them.
func (f *finder) repeats(r calls.Retry) bool {
	if r.Context != nil && f.oneAttempt(r.Context) {
		return false
	}
	lit, isLit := ast.Unparen(r.Policy).(*ast.CompositeLit)
	if !isLit {
		return true
	}
	for _, e := range lit.Elts {
		kv, isKeyed := e.(*ast.KeyValueExpr)
		if !isKeyed {
			continue
		}
		v := f.TypesInfo.Types[kv.Value].Value
		switch kv.Key.(*ast.Ident).Name {
		case "Disabled":
			return false
		case "MaxAttempts":
			return v == nil || constant.Sign(v) == 0 || constant.Compare(v, token.GTR, constant.MakeInt64(1))
		}
	}
	return true
}

// first returns the first expression of body that retries, nil if there is none.
func (f *finder) first(body ast.Node) (at ast.Expr) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			return false
		case *ast.FuncLit: // it may only be stored
			return n == body
		case *ast.CallExpr:
			if at == nil && f.call(n) {
				at = n.Fun
			}
		case *ast.RangeStmt:
			if r, ok := calls.Of(f.TypesInfo, n); ok && at == nil && f.repeats(r) {
				at = r.Call.Fun
			}
		}
		return at == nil
	})
	return at
}

// call reports whether call retries.
func (f *finder) call(call *ast.CallExpr) bool {
	for _, arg := range call.Args {
		if f.oneAttempt(arg) {
			return false
		}
	}
	if r, ok := calls.Of(f.TypesInfo, call); ok {
		return r.Context != nil && (f.repeats(r) || f.work(r) != nil) // Wrap does not call the function yet
	}
	return f.function(typeutil.StaticCallee(f.TypesInfo, call))
}

func (f *finder) function(callee *types.Func) bool {
	if callee == nil || calls.Ours(callee.Pkg()) && callee.Pkg() != f.Pkg {
		return false
	}
	callee = callee.Origin()
	if callee.Pkg() != f.Pkg {
		return f.ImportObjectFact(callee, new(Retries))
	}
	retries, known := f.found[callee]
	if cur, has := f.decls[callee]; !known && has {
		f.found[callee] = false // for a function that calls itself
		retries = f.first(cur.Node().(*ast.FuncDecl).Body) != nil
		f.found[callee] = retries
	}
	return retries
}

// work returns the expression in what r repeats, or its function, that retries; nil if there is none.
func (f *finder) work(r calls.Retry) ast.Expr {
	if r.Loop != nil {
		return f.first(r.Loop.Body)
	}
	if lit, isLit := ast.Unparen(r.Work).(*ast.FuncLit); isLit {
		return f.first(lit)
	}
	if callee, isFunc := calls.Object(f.TypesInfo, r.Work).(*types.Func); isFunc && f.function(callee) {
		return r.Work
	}
	return nil
}

// check reports what r repeats if that retries.
func (f *finder) check(r calls.Retry) {
	at := f.work(r)
	if at == nil || !f.repeats(r) {
		return
	}
	f.Report(analysis.Diagnostic{
		Pos: at.Pos(), End: at.End(),
		Message: fmt.Sprintf("%s retries, inside what %s retries, so that attempts multiply: give it retry.OneAttempt(ctx), or retry in one place",
			types.ExprString(at), types.ExprString(r.Call.Fun)),
		Related: []analysis.RelatedInformation{{Pos: r.Call.Pos(), End: r.Call.Fun.End(), Message: "the outer retry"}},
	})
}
