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

The function that is passed to retry.Do, Wrap, retrysql.Tx and the like, and the body of a loop over
retry.Attempts get a context that ends with the attempt. A call in it that uses the context from outside ignores AttemptTimeout: an
attempt that hangs does not end. The same is true of a request built outside. A transaction begun outside can be over after the
first failure, and in the function of retrysql.Tx a statement on the *sql.DB is not part of the transaction. The function may be a
literal, or a function or method of the package, also if a function of the package passes it on.

A context from outside is reported only if the policy can have an AttemptTimeout, or if the function is wrapped, so that the two
contexts always differ. Logging, tracing, go and defer statements, and context.WithoutCancel are not
reported.`

// Analyzer is the analyzer attemptctx.
var Analyzer = ignore.New("attemptctx", doc, run)

func run(pass *analysis.Pass) (any, error) {
	f := finder{pass, map[types.Object]*ast.FuncDecl{}, map[types.Object]parameter{}, map[ast.Node]bool{}}
	for _, file := range pass.Files {
		for _, d := range file.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Body != nil {
				f.decls[pass.TypesInfo.Defs[d.Name]] = d
			}
		}
	}
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	for cur := range in.Root().Preorder((*ast.CallExpr)(nil), (*ast.RangeStmt)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.RangeStmt:
			if l, ok := calls.LoopOf(pass.TypesInfo, n); ok {
				turn(pass, l, timeoutPossible(pass.TypesInfo, enclosing(cur), l.Policy)).check()
			}
		case *ast.CallExpr:
			if c, ok := calls.Of(pass.TypesInfo, n); ok {
				own := c.Context == nil || timeoutPossible(pass.TypesInfo, enclosing(cur), c.Policy)
				f.check(c.Work, own)
				f.passesOn(cur, c.Work, own)
			}
		}
	}
	for cur := range in.Root().Preorder((*ast.CallExpr)(nil)) {
		call := cur.Node().(*ast.CallExpr)
		if callee := typeutil.StaticCallee(pass.TypesInfo, call); callee != nil {
			if p, ok := f.passed[callee.Origin()]; ok && p.index < len(call.Args) {
				f.check(call.Args[p.index], p.own)
			}
		}
	}
	return nil, nil
}

// A parameter is that of a function of the package that passes it on to this library.
type parameter struct {
	index int
	own   bool // see attempt
}

type finder struct {
	*analysis.Pass
	decls   map[types.Object]*ast.FuncDecl
	passed  map[types.Object]parameter // by function
	checked map[ast.Node]bool
}

// passesOn notes the function around cur if work is a parameter of it.
func (f finder) passesOn(cur inspector.Cursor, work ast.Expr, own bool) {
	for up := range cur.Enclosing((*ast.FuncDecl)(nil)) {
		callee := f.TypesInfo.Defs[up.Node().(*ast.FuncDecl).Name].(*types.Func)
		params := callee.Signature().Params()
		for i := range params.Len() {
			if calls.Is(f.TypesInfo, work, params.At(i)) {
				f.passed[callee] = parameter{i, own}
			}
		}
	}
}

// check checks x, the function of an attempt, if it is a literal, or is declared in the package.
func (f finder) check(x ast.Expr, own bool) {
	var n ast.Node
	var decl *ast.FuncDecl
	switch x := ast.Unparen(x).(type) {
	case *ast.FuncLit:
		n = x
	case *ast.Ident:
		decl = f.decls[f.TypesInfo.Uses[x]]
	case *ast.SelectorExpr:
		decl = f.decls[f.TypesInfo.Uses[x.Sel]]
	}
	if decl != nil {
		n = decl
	}
	if n != nil && !f.checked[n] {
		f.checked[n] = true
		function(f.Pass, n, own).check()
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
// field, or a variable of body, which does not name the field, and nothing else is assigned to it.
func timeoutPossible(info *types.Info, body *ast.BlockStmt, policy ast.Expr) bool {
	switch p := ast.Unparen(policy).(type) {
	case *ast.CompositeLit:
		return named(p)
	case *ast.CallExpr:
		return !calls.IsFunc(info, p, calls.Module, "Inline", "Aggressive", "Standard", "Patient", "Cautious")
	case *ast.Ident:
		v := info.Uses[p]
		if body == nil || v == nil || !calls.Within(v, body) || named(body) {
			return true
		}
		for n := range ast.Preorder(body) {
			assign, isAssign := n.(*ast.AssignStmt)
			if calls.Sets(info, n, v) && (!isAssign || len(assign.Lhs) > 1 || timeoutPossible(info, nil, assign.Rhs[0])) {
				return true
			}
		}
		return false
	}
	return true
}

// named reports whether n names the field AttemptTimeout.
func named(n ast.Node) bool {
	for n := range ast.Preorder(n) {
		if id, isIdent := n.(*ast.Ident); isIdent && id.Name == "AttemptTimeout" {
			return true
		}
	}
	return false
}

// An attempt is code that is run again: a function, or the body of a loop over retry.Attempts.
type attempt struct {
	pass  *analysis.Pass
	node  ast.Node // with the declaration of the attempt's context
	body  *ast.BlockStmt
	param *ast.Ident // the attempt's context; nil if it has no name
	// receiver is that of a method; its fields come from outside.
	receiver *ast.FieldList
	// named returns the edit that gives the context a name; it is nil if that cannot be done.
	named func(name string) analysis.TextEdit
	// own means that the context of an attempt can differ from that of the run.
	own bool
	// inTxn means that the attempt is given a transaction of retrysql.
	inTxn bool
}

// function returns the attempt that n is, a function literal or declaration.
func function(pass *analysis.Pass, n ast.Node, own bool) attempt {
	a := attempt{pass: pass, node: n, own: own}
	var typ *ast.FuncType
	switch n := n.(type) {
	case *ast.FuncLit:
		typ, a.body = n.Type, n.Body
	case *ast.FuncDecl:
		typ, a.body, a.receiver = n.Type, n.Body, n.Recv
	}
	fields := typ.Params.List
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
	return v != nil && !v.IsField() && (!calls.Within(v, a.node) || a.receiver != nil && calls.Within(v, a.receiver))
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
