// Package nested defines an analyzer for retries of functions that retry themselves.
package nested

import (
	"fmt"
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/ignore"
)

const doc = `report retries of functions that retry themselves

Attempts multiply: 4 attempts of a function that makes 4 attempts are 16 calls of a backend that already fails. The
analyzer follows calls of functions and methods by name, in other packages too. The product is a lower bound: a policy that is not a
literal or a preset counts as 2.

Pass retry.OneAttempt(ctx) to the inner call, or retry in one of the two places. Go statements, job handlers and test files
are skipped.`

// Analyzer is the analyzer nested.
var Analyzer = ignore.New("nested", doc, run, new(Retries))

// Retries is the fact that a function makes at least that many attempts.
type Retries struct{ Attempts int }

// AFact makes it a fact.
func (*Retries) AFact() {}

func (r *Retries) String() string { return fmt.Sprintf("retries(%d)", r.Attempts) }

type finder struct {
	*analysis.Pass
	once   map[types.Object]bool
	bodies map[*types.Func]*ast.BlockStmt
	found  map[*types.Func]int // the attempts of this package's functions
}

func run(pass *analysis.Pass) (any, error) {
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	f := finder{pass, map[types.Object]bool{}, map[*types.Func]*ast.BlockStmt{}, map[*types.Func]int{}}
	in.Preorder([]ast.Node{(*ast.AssignStmt)(nil)}, f.collect)
	if !calls.Ours(pass.Pkg) { // this library's own functions are known by their signatures
		f.export()
	}
	in.Preorder([]ast.Node{(*ast.CallExpr)(nil), (*ast.RangeStmt)(nil)}, func(n ast.Node) {
		if strings.HasSuffix(pass.Fset.Position(n.Pos()).Filename, "_test.go") {
			return
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			if c, ok := calls.Of(pass.TypesInfo, n); ok {
				inner, at := f.work(c)
				f.check(c.CallExpr, c.Context, c.Policy, inner, at)
			}
		case *ast.RangeStmt:
			if l, ok := calls.LoopOf(pass.TypesInfo, n); ok {
				inner, at := f.most(l.Body)
				if at != nil {
					f.check(l.Call, l.Context, l.Policy, inner, at.Fun)
				}
			}
		}
	})
	return nil, nil
}

// collect notes the variables that hold a context of OneAttempt.
func (f *finder) collect(n ast.Node) {
	a := n.(*ast.AssignStmt)
	for i, left := range a.Lhs {
		if id, ok := left.(*ast.Ident); ok && len(a.Lhs) == len(a.Rhs) && f.oneAttempt(a.Rhs[i]) {
			f.once[f.TypesInfo.ObjectOf(id)] = true
		}
	}
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

// export finds the facts about the functions of this package and exports them.
func (f *finder) export() {
	var order []*types.Func
	for _, file := range f.Files {
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.FuncDecl); ok && d.Body != nil {
				callee := f.TypesInfo.Defs[d.Name].(*types.Func)
				f.bodies[callee] = d.Body
				order = append(order, callee)
			}
		}
	}
	for _, callee := range order {
		if n := f.function(callee); n > 1 {
			f.ExportObjectFact(callee, &Retries{n})
		}
	}
}

// most returns the call of body that makes the most attempts, and how many.
func (f *finder) most(body ast.Node) (most int, at *ast.CallExpr) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			return false
		case *ast.FuncLit: // it may only be stored
			return n == body
		case *ast.CallExpr:
			if m := f.attempts(n); m > most {
				most, at = m, n
			}
		case *ast.RangeStmt:
			if m := f.turns(n); m > most {
				most, at = m, n.X.(*ast.CallExpr)
			}
		}
		return true
	})
	return most, at
}

// turns returns how many attempts a loop over retry.Attempts makes, at least; 0 if n is another loop.
func (f *finder) turns(n *ast.RangeStmt) int {
	l, ok := calls.LoopOf(f.TypesInfo, n)
	if !ok || f.oneAttempt(l.Context) {
		return 0
	}
	turns := calls.Attempts(f.TypesInfo, l.Policy)
	if turns == calls.Unlimited {
		return 0 // then there is no product
	}
	inner, _ := f.most(l.Body)
	return turns * max(inner, 1)
}

// attempts returns how many attempts call makes, at least; 0 if it retries nothing.
func (f *finder) attempts(call *ast.CallExpr) int {
	for _, arg := range call.Args {
		if f.oneAttempt(arg) {
			return 0
		}
	}
	if c, ok := calls.Of(f.TypesInfo, call); ok {
		if c.Context == nil {
			return 0 // Wrap does not call the function yet
		}
		n := calls.Attempts(f.TypesInfo, c.Policy)
		if n == calls.Unlimited {
			return 0 // then there is no product
		}
		inner, _ := f.work(c)
		return n * max(inner, 1)
	}
	return f.function(typeutil.StaticCallee(f.TypesInfo, call))
}

func (f *finder) function(callee *types.Func) int {
	if callee == nil || calls.Ours(callee.Pkg()) && callee.Pkg() != f.Pkg {
		return 0
	}
	callee = callee.Origin()
	if callee.Pkg() != f.Pkg {
		var r Retries
		f.ImportObjectFact(callee, &r)
		return r.Attempts
	}
	n, known := f.found[callee]
	if body := f.bodies[callee]; !known && body != nil {
		f.found[callee] = 0 // for a function that calls itself
		n, _ = f.most(body)
		f.found[callee] = n
	}
	return n
}

// work returns how many attempts one attempt of c makes itself, and the expression that makes them.
func (f *finder) work(c calls.Call) (int, ast.Expr) {
	switch w := ast.Unparen(c.Work).(type) {
	case *ast.FuncLit:
		n, at := f.most(w)
		if at == nil {
			return n, nil
		}
		return n, at.Fun
	case *ast.Ident:
		callee, _ := f.TypesInfo.Uses[w].(*types.Func)
		return f.function(callee), w
	case *ast.SelectorExpr:
		callee, _ := f.TypesInfo.Uses[w.Sel].(*types.Func)
		return f.function(callee), w
	}
	return 0, nil
}

// check reports a call that runs, under policy, what at makes: at least inner attempts each time.
func (f *finder) check(call *ast.CallExpr, ctx, policy ast.Expr, inner int, at ast.Expr) {
	outer := calls.Attempts(f.TypesInfo, policy)
	if outer < 2 || inner < 2 || ctx != nil && f.oneAttempt(ctx) {
		return
	}
	f.Report(analysis.Diagnostic{
		Pos: at.Pos(), End: at.End(),
		Message: fmt.Sprintf("%s retries, inside what %s retries: at least %d attempts; give it retry.OneAttempt(ctx), or retry in one place",
			types.ExprString(at), types.ExprString(call.Fun), outer*inner),
		Related: []analysis.RelatedInformation{{Pos: call.Pos(), End: call.Fun.End(), Message: "the outer retry"}},
	})
}
