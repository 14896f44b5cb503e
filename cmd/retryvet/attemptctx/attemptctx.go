// Package attemptctx defines an analyzer for attempts that use values of the whole run: the outer context, a
// request built with it, or a transaction begun before.
package attemptctx

import (
	"go/ast"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/ignore"
)

const doc = `report attempts that use the context, request or transaction of the whole run

The function that is passed to retry.Do, Wrap, retrysql.Tx and the like, and the body of a loop over
retry.Attempts get a context that ends with the attempt. A call in it that uses the context from outside ignores AttemptTimeout: an
attempt that hangs does not end. The same is true of a request built outside. A transaction begun outside can be over after the
first failure, and in the function of retrysql.Tx a statement on the *sql.DB is not part of the transaction. The function may be a
literal, also in a variable, or a function or method of the package.

A context from outside is reported only if the policy can have an AttemptTimeout, or if the function is wrapped, so that the two
contexts always differ. Logging, tracing, go and defer statements, and context.WithoutCancel are not
reported.`

// Analyzer is the analyzer attemptctx.
var Analyzer = ignore.New("attemptctx", doc, run)

func run(pass *analysis.Pass) (any, error) {
	decls, checked := calls.Declarations(pass), map[ast.Node]bool{}
	for cur, r := range calls.All(pass) {
		_, _, body := calls.Function(cur)
		a := attempt{pass: pass, own: r.Context == nil || timeoutPossible(pass.TypesInfo, body, r.Policy)}
		if r.Loop != nil {
			a.node, a.body = r.Loop, r.Loop.Body
		} else if f := calls.FuncOf(pass.TypesInfo, decls, cur, r.Work); f != nil {
			a.node, a.body, a.receiver = f.Node, f.Body, f.Recv
			fields := f.Type.Params.List
			a.inTxn = len(fields) == 2 && calls.IsNamed(pass.TypesInfo.TypeOf(fields[1].Type), calls.Module+"/retrysql", "Txn")
		}
		if a.node != nil && !checked[a.node] {
			checked[a.node] = true
			a.check()
		}
	}
	return nil, nil
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
	pass *analysis.Pass
	node ast.Node // with the declaration of the attempt's context
	body *ast.BlockStmt

	receiver *ast.FieldList // of a method; its fields come from outside
	own      bool           // the context of an attempt can differ from that of the run
	inTxn    bool           // the attempt is given a transaction of retrysql
}

// A use is a value from outside of the attempt that a call of the attempt gets.
type use struct {
	expr ast.Expr
	kind string // "context", "request", "transaction" or "database"
}

// check reports each value from outside where it is used first.
func (a attempt) check() {
	found := map[types.Object]bool{}
	ast.Inspect(a.body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt, *ast.DeferStmt:
			return false
		case *ast.CallExpr:
			for _, u := range a.uses(n) {
				if obj := calls.Object(a.pass.TypesInfo, u.expr); !found[obj] {
					found[obj] = true
					a.pass.ReportRangef(u.expr, messages[u.kind], types.ExprString(u.expr))
				}
			}
			return !exempt(a.pass.TypesInfo, n)
		}
		return true
	})
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
	if calls.Object(a.pass.TypesInfo, x) == nil {
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
func (a attempt) renewed(x ast.Expr) bool {
	v := calls.Root(a.pass.TypesInfo, x)
	for n := range ast.Preorder(a.body) {
		s, isAssign := n.(*ast.AssignStmt)
		if isAssign && slices.ContainsFunc(s.Lhs, func(left ast.Expr) bool { return calls.Root(a.pass.TypesInfo, left) == v }) {
			return true
		}
	}
	return false
}

// exempt reports whether call can rightly get the context of the run: it logs, traces or counts, reads a value, comes
// after the commit, or starts work that is meant to outlive the attempt.
func exempt(info *types.Info, call *ast.CallExpr) bool {
	f := typeutil.Callee(info, call)
	if f == nil || f.Pkg() == nil {
		return false
	}
	switch path, name := f.Pkg().Path(), f.Name(); path {
	case "context":
		return name == "WithoutCancel" || name == "Cause" || name == "AfterFunc"
	case calls.Module, calls.Module + "/retrysql":
		return name == "NewError" || name == "AfterCommit"
	default:
		return strings.Contains(name, "FromContext") || watches.MatchString(path+"."+name)
	}
}

// watches matches functions that log, trace or count, by their package and name.
var watches = regexp.MustCompile(`log|trace|tracing|metric|otel|sentry|zap|statsd|\.Log|\.Record`)

var messages = map[string]string{
	"context":     "the attempt uses %s from outside: it does not end with the attempt",
	"request":     "the attempt sends %s, built outside: it does not end with the attempt",
	"transaction": "the attempt uses the transaction %s from outside, which can be over after the first failure",
	"database":    "this runs on %s, outside of the transaction, and is not rolled back with it",
}
