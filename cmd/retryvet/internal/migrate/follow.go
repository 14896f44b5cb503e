package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// pause is the state of a BackOff, while migrate follows it through the source.
type pause struct {
	kind string              // "exponential" or "constant"
	set  map[string]ast.Expr // the last values of its fields; also retries and context
}

// follow returns the state of e at the statement around it. It follows a local variable from the statement that makes
// it, and adds those statements to p.drop.
func (s *site) follow(p *plan, e ast.Expr) (*pause, error) {
	e = ast.Unparen(e)
	id, ok := e.(*ast.Ident)
	if !ok {
		return s.backOff(p, e)
	}
	obj, ok := s.pkg.TypesInfo.Uses[id].(*types.Var)
	if !ok || obj.Parent() == obj.Pkg().Scope() {
		return nil, refuse("%s is not a local variable", id.Name)
	}
	if state := p.known[obj]; state != nil {
		return state, nil
	}
	def := s.definition(obj)
	if def == nil {
		return nil, refuse("%s is not made by a statement of its own here", id.Name)
	}
	statements := list(s.parents[def.stmt])
	use := ast.Node(id)
	for ; use != nil; use = s.parents[use] {
		if slices.ContainsFunc(statements, func(x ast.Stmt) bool { return x == use }) {
			break
		}
	}
	if use == nil {
		return nil, refuse("%s is made in another block", id.Name)
	}
	state, err := s.follow(p, def.value)
	if err != nil {
		return nil, err
	}
	p.known[obj] = state
	drops := []ast.Node{def.node}
	for _, stmt := range statements[slices.Index(statements, def.stmt)+1:] {
		if stmt == use {
			break
		}
		if slices.ContainsFunc(s.uses(obj), func(id *ast.Ident) bool { return within(id, stmt) && !s.argument(id) }) {
			if err := s.step(p, obj, stmt); err != nil {
				return nil, err
			}
			drops = append(drops, stmt)
		}
	}
	for _, other := range s.uses(obj) {
		switch {
		case other == id || slices.ContainsFunc(drops, func(n ast.Node) bool { return within(other, n) }):
		case !s.argument(other):
			return nil, refuse("%s is used for something else too", obj.Name())
		case s.captured(obj, id) || s.captured(obj, other):
			return nil, refuse("%s is used by several calls, and one may run inside the other", obj.Name())
		}
	}
	p.drop[obj] = drops
	return p.known[obj], nil
}

func within(n, outer ast.Node) bool { return outer.Pos() <= n.Pos() && n.End() <= outer.End() }

// argument reports whether id is an argument in a call that is a site, and not in its work.
func (s *site) argument(id *ast.Ident) bool {
	if _, field := s.parents[id].(*ast.SelectorExpr); field {
		return false
	}
	return slices.ContainsFunc(s.sites, func(x *site) bool {
		return within(id, x.call) && (x.op == nil || !within(id, x.op))
	})
}

// step applies stmt to the state of obj.
func (s *site) step(p *plan, obj types.Object, stmt ast.Stmt) error {
	switch stmt := stmt.(type) {
	case *ast.ExprStmt: // b.Reset()
		if call, ok := stmt.X.(*ast.CallExpr); ok && len(call.Args) == 0 && s.field(call.Fun, obj) == "Reset" {
			return nil
		}
	case *ast.AssignStmt:
		if stmt.Tok != token.ASSIGN || len(stmt.Lhs) != len(stmt.Rhs) {
			break
		}
		if len(stmt.Lhs) == 1 && s.is(stmt.Lhs[0], obj) { // b = WithX(b)
			state, err := s.follow(p, stmt.Rhs[0])
			p.known[obj] = state
			return err
		}
		for i, left := range stmt.Lhs {
			switch field := s.field(left, obj); {
			case field == "":
				return refuse("the use of %s is not understood", obj.Name())
			case !slices.Contains(s.lib.fields, field):
				return refuse("the field %s has no counterpart", field)
			default:
				p.known[obj].set[field] = stmt.Rhs[i]
			}
		}
		return nil
	}
	return refuse("the use of %s is not understood", obj.Name())
}

// is reports whether e is the variable obj.
func (f *file) is(e ast.Expr, obj types.Object) bool {
	id, ok := ast.Unparen(e).(*ast.Ident)
	return ok && f.pkg.TypesInfo.Uses[id] == obj
}

// field returns "F" if e is obj.F, and otherwise "".
func (f *file) field(e ast.Expr, obj types.Object) string {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || !f.is(sel.X, obj) {
		return ""
	}
	return sel.Sel.Name
}

// definition is a statement that declares a variable with a value of its own.
type definition struct {
	stmt  ast.Stmt
	node  ast.Node // stmt, or one of its specifications
	value ast.Expr
	typed bool // it names a type too
}

// definition returns the declaration of the local variable obj, or nil.
func (f *file) definition(obj types.Object) *definition {
	for id, def := range f.pkg.TypesInfo.Defs {
		if def != obj {
			continue
		}
		switch parent := f.parents[id].(type) {
		case *ast.AssignStmt:
			if parent.Tok == token.DEFINE && len(parent.Lhs) == 1 && len(parent.Rhs) == 1 {
				return &definition{parent, parent, parent.Rhs[0], false}
			}
		case *ast.ValueSpec:
			group := f.parents[parent].(*ast.GenDecl)
			stmt, ok := f.parents[group].(*ast.DeclStmt)
			if !ok || len(parent.Names) != 1 || len(parent.Values) != 1 {
				return nil
			}
			if len(group.Specs) == 1 {
				return &definition{stmt, stmt, parent.Values[0], parent.Type != nil}
			}
			return &definition{stmt, parent, parent.Values[0], parent.Type != nil}
		}
	}
	return nil
}

// options calls set with the name and the argument of each option of call, from the given argument on; nil for none.
func (s *site) options(call *ast.CallExpr, from int, set func(name string, arg ast.Expr) error) error {
	if call.Ellipsis.IsValid() {
		return refuse("its options are a variable")
	}
	seen := map[string]bool{}
	for _, e := range call.Args[from:] {
		option, ok := ast.Unparen(e).(*ast.CallExpr)
		if !ok || s.ofLibrary(option) == "" {
			return refuse("an option is not made here")
		}
		name, arg := s.ofLibrary(option), ast.Expr(nil)
		if seen[name] {
			return refuse("the option %s is given twice", name)
		}
		seen[name] = true
		if len(option.Args) > 0 {
			arg = option.Args[0]
		}
		if err := set(name, arg); err != nil {
			return err
		}
	}
	return nil
}

// ofLibrary returns the name of the library's function that call calls, or "".
func (s *site) ofLibrary(call *ast.CallExpr) string {
	if fn := s.callee(call); fn != nil && fn.Pkg() != nil && libraries[fn.Pkg().Path()] == s.lib {
		return calleeName(fn)
	}
	return ""
}

// wrap notes a wrapper's argument in the pause that it wraps.
func (s *site) wrap(p *plan, inner ast.Expr, name string, arg ast.Expr) (*pause, error) {
	state, err := s.follow(p, inner)
	if err != nil {
		return nil, err
	}
	if state.set[name] != nil {
		return nil, refuse("the %s is set twice", name)
	}
	state.set[name] = arg
	return state, nil
}
