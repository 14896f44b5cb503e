// Package carried defines an analyzer for state that a failed attempt leaves behind, to which the next one adds.
package carried

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/ignore"
	"github.com/retrygo/retry/cmd/retryvet/internal/retries"
)

const doc = `report state that a failed attempt leaves behind

A function that runs again finds what its last attempt has done to variables from outside. Such a variable is reported if the
function appends to it, adds to it or writes to it, so that data comes twice, reads from it, so that the next attempt gets what is
left, or cuts it before the part is passed on, so that a failure loses the part.

Functions run again if they are passed to this library, to other retry libraries, to transactions that are repeated, or to a
function of any module that does so with its parameter. That is found out from its body, also behind an interface.

It is not reported if the function resets the variable, if no failure can follow, if the value serves as progress, or if it is
meant to have all attempts, such as a list of errors. Test files are skipped.`

// Analyzer is the analyzer carried.
var Analyzer = ignore.OutsideTests("carried", doc, run, new(Reruns))

type finder struct {
	*analysis.Pass
	decls   map[types.Object]inspector.Cursor
	own     map[*types.Func][]Param
	methods map[string][]analysis.ObjectFact // by name, of other packages
	found   map[token.Pos]bool
}

func run(pass *analysis.Pass) (any, error) {
	f := &finder{Pass: pass, decls: calls.Declarations(pass), own: map[*types.Func][]Param{}, found: map[token.Pos]bool{}}
	if calls.Ours(pass.Pkg) { // this library's own functions are known by their signatures
		return nil, nil
	}
	f.summarize()
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	for cur := range in.Root().Preorder((*ast.CallExpr)(nil), (*ast.RangeStmt)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.RangeStmt:
			if r, ok := calls.Of(pass.TypesInfo, n); ok {
				region{finder: f, Func: calls.Func{Node: n, Body: n.Body}, call: r.Call, around: cur, after: retries.OnError, err: r.ErrVar(pass.TypesInfo)}.check()
			}
		case *ast.CallExpr:
			for _, r := range f.reruns(n) {
				if fn := calls.FuncOf(pass.TypesInfo, f.decls, cur, r.work); fn != nil {
					region{finder: f, Func: *fn, call: n, around: cur, after: r.after}.check()
				}
			}
		}
	}
	return nil, nil
}

// A region is code that runs again: a function, or the body of a loop over retry.Attempts.
type region struct {
	*finder
	calls.Func               // the Node is the loop, which has no Type
	call       *ast.CallExpr // what runs it again
	around     inspector.Cursor
	after      retries.End
	err        types.Object // the variable that has the error of a turn of a loop
}

func (r region) check() {
	if r.switchedOff() || r.inTest() {
		return
	}
	in := r.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	body, ok := in.Root().FindNode(r.Body)
	if !ok {
		return
	}
	body.Inspect([]ast.Node{(*ast.GoStmt)(nil), (*ast.DeferStmt)(nil), (*ast.FuncLit)(nil), (*ast.AssignStmt)(nil), (*ast.CallExpr)(nil)}, func(c inspector.Cursor) bool {
		switch n := c.Node().(type) {
		case *ast.GoStmt, *ast.DeferStmt:
			return false
		case *ast.FuncLit:
			_, isCall := c.Parent().Node().(*ast.CallExpr)
			return isCall
		case *ast.AssignStmt:
			for _, x := range r.assigned(n) {
				r.report(x, c, body)
			}
		case *ast.CallExpr:
			for _, x := range r.called(n) {
				r.report(x, c, body)
			}
		}
		return true
	})
}

// repeatsAfter reports whether the region can run again after x. What x adds is nothing if it is the result of a call that failed.
func (r region) repeatsAfter(x change) bool {
	var code *retries.Retries
	loop, isLoop := r.Node.(*ast.RangeStmt)
	switch {
	case r.after == retries.OnCommit:
		return true
	case !isLoop:
		code = retries.Function(r.TypesInfo, r.Type, r.Body, r.after, x.cur.Node())
	case r.err != nil:
		code = retries.Turns(r.TypesInfo, loop, r.err, x.cur.Node())
	default:
		return false
	}
	return slices.ContainsFunc(code.Repeats, func(s retries.State) bool { return s.Passed })
}

func (r region) report(x change, cur, body inspector.Cursor) {
	x.cur, x.root, x.text = cur, calls.Root(r.TypesInfo, x.expr), types.ExprString(x.expr)
	if r.found[x.expr.Pos()] || r.harmless(&x, body) {
		return
	}
	r.found[x.expr.Pos()] = true
	line := r.Fset.Position(x.root.Pos()).Line
	if x.made != nil {
		line = r.Fset.Position(x.made.Pos()).Line
	}
	r.ReportRangef(x.expr, "%s: %s", fmt.Sprintf(messages[x.kind], x.text), fmt.Sprintf(r.advice(x), x.text, line))
}

var messages = map[kind]string{
	appends: "a failed attempt leaves what it appended to %s, and the next one appends it again",
	sends:   "%s is passed on with what a failed attempt appended",
	adds:    "a failed attempt leaves what it added to %s, and the next one adds it again",
	writes:  "a failed attempt leaves what it wrote to %s, and the next one writes it again",
	uses:    "a failed attempt has read %s, and the next one gets only what is left, without an error",
	request: "a failed attempt has read the body of %s, and the next one has none",
	cuts:    "a failed attempt has cut %s, and what it did not deliver is lost",
	walks:   "a failed attempt has advanced %s, and the next one goes on behind it",
}

// advice says which line has to move, or what to do with a variable that cannot.
func (r region) advice(x change) string {
	switch {
	case x.kind == request:
		return "make %s (line %d) inside of what runs again"
	case x.kind == uses || x.kind == walks:
		return "make %s (line %d) inside of what runs again, or rewind it there"
	case x.kind == cuts:
		return "cut %[1]s once the part is delivered"
	case !r.local(x):
		return "reset %[1]s first, or collect in a variable of the attempt"
	}
	return "declare %s (line %d) inside of what runs again, or reset it there"
}
