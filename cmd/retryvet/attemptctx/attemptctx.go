// Package attemptctx defines an analyzer for attempts that use values of the whole run: the outer context, a
// request built with it, or a transaction begun before.
package attemptctx

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/ignore"
)

const doc = `report attempts that use the context, request or transaction of the whole run

The function that is passed to retry.Do, Wrap, retrysql.Tx and the like, or that handles jobs, and the body of a loop over
retry.Attempts get a context that ends with the attempt. A call in it that uses the context from outside ignores AttemptTimeout: an attempt that hangs does not
end. The same is true of a request built outside. A transaction begun outside can be over after the first failure, and in the
function of retrysql.Tx a statement on the *sql.DB is not part of the transaction.

A context from outside is reported only if the policy can have an AttemptTimeout, or if the function is wrapped or handles
jobs, so that the two contexts always differ. Logging, tracing, go and defer statements, and context.WithoutCancel are not
reported.`

// Analyzer is the analyzer attemptctx.
var Analyzer = ignore.New("attemptctx", doc, run)

func run(pass *analysis.Pass) (any, error) {
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	for cur := range in.Root().Preorder((*ast.CallExpr)(nil), (*ast.CompositeLit)(nil), (*ast.RangeStmt)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.RangeStmt:
			if l, ok := calls.LoopOf(pass.TypesInfo, n); ok {
				turn(pass, l, timeoutPossible(pass.TypesInfo, enclosing(cur), l.Policy)).check()
			}
		case *ast.CallExpr:
			if c, ok := calls.Of(pass.TypesInfo, n); ok {
				if lit, ok := ast.Unparen(c.Work).(*ast.FuncLit); ok {
					function(pass, lit, c.Context == nil || timeoutPossible(pass.TypesInfo, enclosing(cur), c.Policy)).check()
				}
			} else if handler(pass.TypesInfo.Types[n.Fun].Type) && len(n.Args) == 1 { // a conversion
				checkHandler(pass, n.Args[0])
			}
		case *ast.CompositeLit: // a map of handlers
			if m, ok := typeOf(pass.TypesInfo, n).(*types.Map); ok && handler(m.Elem()) {
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						checkHandler(pass, kv.Value)
					}
				}
			}
		}
	}
	return nil, nil
}

func typeOf(info *types.Info, x ast.Expr) types.Type {
	if t := info.TypeOf(x); t != nil {
		return t.Underlying()
	}
	return nil
}

func handler(t types.Type) bool { return calls.IsNamed(t, calls.Module+"/retryjob", "Handler") }

func checkHandler(pass *analysis.Pass, x ast.Expr) {
	if lit, ok := ast.Unparen(x).(*ast.FuncLit); ok {
		function(pass, lit, true).check()
	}
}

// enclosing returns the body of the function around cur, or nil.
func enclosing(cur inspector.Cursor) *ast.BlockStmt {
	for up := range cur.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		switch f := up.Node().(type) {
		case *ast.FuncDecl:
			return f.Body
		case *ast.FuncLit:
			return f.Body
		}
	}
	return nil
}

// timeoutPossible reports whether policy can have an AttemptTimeout. It cannot if it is a preset, a literal without the
// field, or a local variable that has been one since its declaration.
func timeoutPossible(info *types.Info, body *ast.BlockStmt, policy ast.Expr) bool {
	switch p := ast.Unparen(policy).(type) {
	case *ast.CompositeLit:
		for _, e := range p.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok || kv.Key.(*ast.Ident).Name == "AttemptTimeout" {
				return true
			}
		}
		return false
	case *ast.CallExpr:
		return !calls.IsFunc(info, p, calls.Module, "Inline", "Aggressive", "Standard", "Patient", "Cautious")
	case *ast.Ident:
		v, ok := info.Uses[p].(*types.Var)
		if !ok || body == nil || !calls.Within(v, body) {
			return true
		}
		return changed(info, body, v)
	}
	return true
}

// changed reports whether v, a policy, can have an AttemptTimeout, by every statement of body that names it.
func changed(info *types.Info, body *ast.BlockStmt, v *types.Var) (possible bool) {
	known := false
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.UnaryExpr:
			possible = possible || n.Op == token.AND && calls.Root(info, n.X) == v
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if calls.Root(info, left) != v {
					continue
				}
				if s, ok := left.(*ast.SelectorExpr); ok {
					possible = possible || s.Sel.Name == "AttemptTimeout"
				} else if len(n.Rhs) != len(n.Lhs) {
					possible = true
				} else if id, ok := n.Rhs[i].(*ast.Ident); !ok || info.Uses[id] != v {
					known = true
					possible = possible || timeoutPossible(info, nil, n.Rhs[i])
				}
			}
		}
		return true
	})
	return possible || !known
}

// An attempt is code that is run again: a function literal, or the body of a loop over retry.Attempts.
type attempt struct {
	pass  *analysis.Pass
	node  ast.Node // with the declaration of the attempt's context
	body  *ast.BlockStmt
	param *ast.Ident // the attempt's context; nil if it has no name
	// named returns the edit that gives the context a name; it is nil if that cannot be done.
	named func(name string) analysis.TextEdit
	// own means that the context of an attempt can differ from that of the run.
	own bool
	// inTxn means that the attempt is given a transaction of retrysql.
	inTxn bool
}

func function(pass *analysis.Pass, lit *ast.FuncLit, own bool) attempt {
	a := attempt{pass: pass, node: lit, body: lit.Body, own: own}
	fields := lit.Type.Params.List
	a.inTxn = len(fields) == 2 && calls.IsNamed(pass.TypesInfo.TypeOf(fields[1].Type), calls.Module+"/retrysql", "Txn")
	switch {
	case len(fields) == 0:
	case len(fields[0].Names) == 0 && len(fields) == 1: // with more, all parameters would need names
		a.named = func(name string) analysis.TextEdit {
			return analysis.TextEdit{Pos: fields[0].Type.Pos(), End: fields[0].Type.Pos(), NewText: []byte(name + " ")}
		}
	case len(fields[0].Names) == 1:
		a.name(fields[0].Names[0])
	}
	return a
}

func turn(pass *analysis.Pass, l calls.Loop, own bool) attempt {
	a := attempt{pass: pass, node: l.RangeStmt, body: l.Body, own: own}
	switch key, isIdent := l.Key.(*ast.Ident); {
	case l.Key == nil:
		a.named = func(name string) analysis.TextEdit {
			return analysis.TextEdit{Pos: l.Range, End: l.Range, NewText: []byte(name + " := ")}
		}
	case isIdent && l.Tok == token.DEFINE:
		a.name(key)
	}
	return a
}

// name notes that id is the attempt's context, or could be.
func (a *attempt) name(id *ast.Ident) {
	if id.Name != "_" {
		a.param = id
		return
	}
	a.named = func(name string) analysis.TextEdit {
		return analysis.TextEdit{Pos: id.Pos(), End: id.End(), NewText: []byte(name)}
	}
}

// A use is a value from outside of the attempt that a call of the attempt gets.
type use struct {
	expr ast.Expr
	kind string // "context", "request", "transaction" or "database"
}

func (a attempt) check() {
	var order []types.Object
	found := map[types.Object][]use{}
	ast.Inspect(a.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.DeferStmt:
			return false
		case *ast.CallExpr:
			for _, u := range a.uses(n) {
				obj := a.object(u.expr)
				if found[obj] == nil {
					order = append(order, obj)
				}
				found[obj] = append(found[obj], u)
			}
			return !exempt(a.pass.TypesInfo, n)
		}
		return true
	})
	for _, obj := range order {
		a.report(obj, found[obj])
	}
}

// object returns the variable or field that x names.
func (a attempt) object(x ast.Expr) types.Object {
	switch x := ast.Unparen(x).(type) {
	case *ast.Ident:
		return a.pass.TypesInfo.Uses[x]
	case *ast.SelectorExpr:
		return a.pass.TypesInfo.Uses[x.Sel]
	}
	return nil
}

// uses returns the values from outside of the attempt that call gets.
func (a attempt) uses(call *ast.CallExpr) (all []use) {
	info := a.pass.TypesInfo
	if exempt(info, call) {
		return nil
	}
	for _, arg := range call.Args {
		if !a.outer(arg) || a.renewed(arg) {
			continue
		}
		switch t := info.TypeOf(arg); {
		case calls.IsContext(t) && a.own && canHang(info, call):
			all = append(all, use{arg, "context"})
		case transaction(t):
			all = append(all, use{arg, "transaction"})
		case calls.IsNamed(t, "net/http", "Request") && a.own && sends(info, call):
			all = append(all, use{arg, "request"})
		}
	}
	if s, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && a.outer(s.X) && !a.renewed(s.X) {
		switch t := info.TypeOf(s.X); {
		case transaction(t) && s.Sel.Name != "Rollback":
			all = append(all, use{s.X, "transaction"})
		case a.inTxn && calls.IsNamed(t, "database/sql", "DB") && (strings.HasPrefix(s.Sel.Name, "Exec") || strings.HasPrefix(s.Sel.Name, "Query")):
			all = append(all, use{s.X, "database"})
		}
	}
	return all
}

// outer reports whether x is a variable from outside of the attempt, or a field of one.
func (a attempt) outer(x ast.Expr) bool {
	if a.object(x) == nil {
		return false
	}
	v := calls.Root(a.pass.TypesInfo, x)
	return v != nil && !v.IsField() && !calls.Within(v, a.node)
}

// canHang reports whether call can fail or derives a context. A call that only reads a value does neither.
func canHang(info *types.Info, call *ast.CallExpr) bool {
	s, ok := info.TypeOf(call.Fun).Underlying().(*types.Signature)
	if !ok {
		return false
	}
	for v := range s.Results().Variables() {
		if calls.IsError(v.Type()) || calls.IsContext(v.Type()) {
			return true
		}
	}
	return false
}

func transaction(t types.Type) bool {
	return calls.IsNamed(t, "database/sql", "Tx") || calls.IsNamed(t, "github.com/jackc/pgx/v5", "Tx") ||
		calls.IsNamed(t, calls.Module+"/retrysql", "Txn")
}

// sends reports whether call sends the request that it gets.
func sends(info *types.Info, call *ast.CallExpr) bool {
	f := typeutil.Callee(info, call)
	return f != nil && (f.Name() == "RoundTrip" || calls.IsFunc(info, call, "net/http", "Client.Do"))
}

// renewed reports whether the attempt assigns to x or to a field of it.
func (a attempt) renewed(x ast.Expr) (yes bool) {
	v := calls.Root(a.pass.TypesInfo, x)
	ast.Inspect(a.body, func(n ast.Node) bool {
		if s, ok := n.(*ast.AssignStmt); ok {
			for _, left := range s.Lhs {
				yes = yes || calls.Root(a.pass.TypesInfo, left) == v
			}
		}
		return !yes
	})
	return yes
}

// exempt reports whether call can rightly get the context of the run: it logs, traces or counts, reads a value, comes
// after the commit, or starts work that is meant to outlive the attempt.
func exempt(info *types.Info, call *ast.CallExpr) bool {
	f := typeutil.Callee(info, call)
	if f == nil || f.Pkg() == nil {
		return false
	}
	path, name := f.Pkg().Path(), f.Name()
	if path == "context" {
		return name == "WithoutCancel" || name == "Cause" || name == "AfterFunc"
	}
	if path == calls.Module+"/retrysql" && name == "AfterCommit" {
		return true
	}
	if path == calls.Module && name == "NewError" || strings.Contains(name, "FromContext") {
		return true
	}
	for _, word := range []string{"log", "trace", "tracing", "metric", "otel", "sentry", "zap", "statsd"} {
		if strings.Contains(path, word) {
			return true
		}
	}
	return strings.HasPrefix(name, "Log") || strings.HasPrefix(name, "log") || strings.HasPrefix(name, "Record")
}

func (a attempt) report(obj types.Object, uses []use) {
	first := uses[0]
	text := types.ExprString(first.expr)
	d := analysis.Diagnostic{Pos: first.expr.Pos(), End: first.expr.End()}
	switch first.kind {
	case "context":
		d.Message = fmt.Sprintf("the attempt uses %s from outside: it does not end with the attempt", text)
		if fix, ok := a.fix(obj, uses); ok {
			d.SuggestedFixes = []analysis.SuggestedFix{fix}
		}
	case "request":
		d.Message = fmt.Sprintf("the attempt sends %s, built outside: it does not end with the attempt", text)
	case "transaction":
		d.Message = fmt.Sprintf("the attempt uses the transaction %s from outside, which can be over after the first failure", text)
	case "database":
		d.Message = fmt.Sprintf("this runs on %s, outside of the transaction, and is not rolled back with it", text)
	}
	a.pass.Report(d)
}

// fix returns the fix that uses the attempt's context instead.
func (a attempt) fix(outer types.Object, uses []use) (fix analysis.SuggestedFix, ok bool) {
	if a.param == nil {
		v, isVar := outer.(*types.Var)
		if a.named == nil || !isVar || v.IsField() || calls.Count(a.pass.TypesInfo, a.body, outer) != len(uses) {
			return fix, false // the new name would hide outer from correct uses
		}
		return analysis.SuggestedFix{
			Message:   "Name the attempt's context " + outer.Name(),
			TextEdits: []analysis.TextEdit{a.named(outer.Name())},
		}, true
	}
	for _, u := range uses {
		scope := a.pass.Pkg.Scope().Innermost(u.expr.Pos())
		if scope == nil {
			return fix, false
		}
		if _, seen := scope.LookupParent(a.param.Name, u.expr.Pos()); seen != a.pass.TypesInfo.Defs[a.param] {
			return fix, false
		}
		fix.TextEdits = append(fix.TextEdits, analysis.TextEdit{Pos: u.expr.Pos(), End: u.expr.End(), NewText: []byte(a.param.Name)})
	}
	fix.Message = "Use " + a.param.Name
	return fix, true
}
