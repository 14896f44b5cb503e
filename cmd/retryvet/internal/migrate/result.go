package migrate

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
)

// A reader reads what code does with an error that will be an *Error. It looks into the functions of the module that get
// the error, and into the callers of a function that returns it, one step.
type reader struct {
	ends   bool // a context can end the run
	silent bool // the old error does not say that a context has ended the run
	far    bool // the error has left its function
	where  string
}

func (r *reader) refuse(why string, values ...any) {
	panic(refuse("%s%s", r.where, fmt.Sprintf(why, values...)))
}

// call refuses a call whose last result, an error, is used in a way that an *Error would change.
func (r *reader) call(f *file, call ast.Node) {
	var left []ast.Expr
	values := 1
	switch p := f.parents[call].(type) {
	case *ast.ExprStmt, *ast.GoStmt, *ast.DeferStmt:
		return
	case *ast.AssignStmt:
		left, values = p.Lhs, len(p.Rhs)
	case *ast.ValueSpec:
		left, values = []ast.Expr{p.Names[len(p.Names)-1]}, len(p.Values)
	default:
		r.use(f, call)
		return
	}
	if values != 1 {
		r.refuse("its results are assigned together with others")
	}
	id, isIdent := left[len(left)-1].(*ast.Ident)
	if !isIdent || id.Name == "_" {
		return
	}
	obj := f.pkg.TypesInfo.ObjectOf(id)
	if obj == nil || obj.Parent() == f.pkg.Types.Scope() {
		r.refuse("its error goes to a package-level variable")
	}
	list := (*ast.FieldList)(nil)
	for _, t := range f.functions(id) {
		list = t.Results
	}
	if list != nil && calls.Within(obj, list) {
		r.returned(f, id)
	}
	r.uses(f, obj, id)
}

func (r *reader) uses(f *file, obj types.Object, but *ast.Ident) {
	for _, use := range f.uses(obj) {
		if write, _ := f.write(use); use == but || write {
			continue
		}
		r.use(f, use)
	}
}

// use reads how the parent of n uses n, the error.
func (r *reader) use(f *file, n ast.Node) {
	switch p := f.parents[n].(type) {
	case *ast.BinaryExpr:
		other := p.X
		if other == n {
			other = p.Y
		}
		if !f.pkg.TypesInfo.Types[other].IsNil() {
			r.refuse("its error is compared by %s: use errors.Is first", p.Op)
		}
	case *ast.ReturnStmt:
		r.returned(f, n)
	case *ast.KeyValueExpr, *ast.CompositeLit, *ast.SendStmt, *ast.AssignStmt, *ast.ValueSpec:
	case *ast.CallExpr:
		r.passed(f, p, n)
	case *ast.TypeAssertExpr:
		r.refuse("its error's type is asserted: use errors.As first")
	case *ast.SelectorExpr: // its text may be printed or extended
		call, isCall := f.parents[p].(*ast.CallExpr)
		if !isCall || p.Sel.Name != "Error" {
			r.refuse("its error is used in a way that is not followed")
		}
		follows := false
		switch outer := f.parents[call].(type) {
		case *ast.BinaryExpr:
			follows = outer.Op == token.ADD
		case *ast.CallExpr:
			fn := f.callee(outer)
			follows = fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != "strings" && fn.Pkg().Path() != "regexp"
		case *ast.ReturnStmt, *ast.KeyValueExpr:
			follows = true
		}
		if !follows {
			r.refuse("the text of its error is compared, and that differs")
		}
	default:
		r.refuse("its error is used in a way that is not followed")
	}
}

// passed reads a call that gets n, the error.
func (r *reader) passed(f *file, call *ast.CallExpr, n ast.Node) {
	fn := f.callee(call)
	if fn == nil {
		return
	}
	name := fn.FullName()
	switch name {
	case "errors.As":
		if len(call.Args) == 2 && strings.Contains(f.pkg.TypesInfo.TypeOf(call.Args[1]).String(), backoff4) {
			r.refuse("its error is asked for a type of backoff/v4")
		}
		return
	case "errors.Is":
		if len(call.Args) != 2 {
			return
		}
		switch target := f.text(call.Args[1]); {
		case r.ends && target == "context.DeadlineExceeded":
			r.refuse("it is asked for context.DeadlineExceeded, which a wait that the deadline forbids does not match")
		case r.silent && target == "context.Canceled":
			r.refuse("it is asked for context.Canceled, which it did not match when the context ended the loop")
		}
		return
	case "os.IsTimeout", "os.IsNotExist", "os.IsExist", "os.IsPermission":
		r.refuse("its error is passed to %s, which does not unwrap: use errors.Is first", name)
	}
	if r.far {
		return
	}
	for _, other := range f.all {
		decl := other.declaration(name)
		if decl == nil {
			continue
		}
		params := slices.Collect(paramNames(decl.Type.Params))
		if i := slices.Index(call.Args, n.(ast.Expr)); i < len(params) && params[i].Name != "_" {
			deeper := reader{r.ends, r.silent, true, fn.Name() + ": "}
			deeper.uses(other, other.pkg.TypesInfo.Defs[params[i]], nil)
		}
	}
}

// returned reads the calls of the function that returns n, the error.
func (r *reader) returned(f *file, n ast.Node) {
	var fun ast.Node
	for fun = range f.functions(n) {
		break
	}
	decl, isDecl := fun.(*ast.FuncDecl)
	if !isDecl || r.far {
		return
	}
	fn := f.pkg.TypesInfo.Defs[decl.Name].(*types.Func)
	deeper := reader{r.ends, r.silent, true, "where " + fn.Name() + " is called: "}
	for _, other := range f.all {
		for _, call := range other.calls[fn.FullName()] {
			deeper.call(other, call)
		}
	}
}

func paramNames(fields *ast.FieldList) func(func(*ast.Ident) bool) {
	return func(yield func(*ast.Ident) bool) {
		for _, field := range fields.List {
			for _, name := range field.Names {
				if !yield(name) {
					return
				}
			}
		}
	}
}
