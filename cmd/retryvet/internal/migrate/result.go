package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// errorUse sets escapes. It refuses a site whose error is used in a way that an *Error would change.
func (s *site) errorUse() error {
	var n ast.Node = s.call
	for {
		if _, ok := s.parents[n].(*ast.ParenExpr); !ok {
			break
		}
		n = s.parents[n]
	}
	switch p := s.parents[n].(type) {
	case *ast.ExprStmt, *ast.GoStmt, *ast.DeferStmt:
		return nil
	case *ast.AssignStmt:
		if len(p.Rhs) != 1 {
			return refuse("its results are assigned together with others")
		}
		return s.target(p.Lhs[len(p.Lhs)-1])
	case *ast.ValueSpec:
		if len(p.Values) != 1 {
			return refuse("its results are assigned together with others")
		}
		return s.target(p.Names[len(p.Names)-1])
	}
	return s.usedBy(n)
}

// target judges the variable to which the error is assigned.
func (s *site) target(e ast.Expr) error {
	id, ok := e.(*ast.Ident)
	if !ok {
		s.escapes = true
		return nil
	}
	if id.Name == "_" {
		return nil
	}
	obj := s.pkg.TypesInfo.ObjectOf(id)
	if obj == nil || obj.Parent() == s.pkg.Types.Scope() {
		return refuse("its error goes to a package-level variable")
	}
	_, signature := s.outer(s.call)
	if r := signature.Results; r != nil && r.Pos() <= obj.Pos() && obj.Pos() < r.End() {
		s.escapes = true
	}
	for _, use := range s.uses(obj) {
		if use == id {
			continue
		}
		if assign, ok := s.parents[use].(*ast.AssignStmt); ok {
			if slices.ContainsFunc(assign.Lhs, func(l ast.Expr) bool { return l == use }) {
				continue
			}
		}
		if err := s.usedBy(use); err != nil {
			return err
		}
	}
	return nil
}

// usedBy judges how the parent of n uses n, an error.
func (s *site) usedBy(n ast.Node) error {
	switch p := s.parents[n].(type) {
	case *ast.BinaryExpr:
		other := p.X
		if other == n {
			other = p.Y
		}
		if s.pkg.TypesInfo.Types[other].IsNil() {
			return nil
		}
		return refuse("its error is compared by %s: use errors.Is first", p.Op)
	case *ast.ReturnStmt, *ast.KeyValueExpr, *ast.CompositeLit, *ast.SendStmt, *ast.AssignStmt, *ast.ValueSpec:
		s.escapes = true
		return nil
	case *ast.CallExpr:
		if p.Fun == n {
			break
		}
		if fn := s.callee(p); fn != nil && fn.FullName() == "errors.As" && len(p.Args) == 2 && s.names(p.Args[1]) {
			return refuse("its error is asked for a type of %s", s.lib.name)
		}
		s.escapes = true
		return nil
	case *ast.TypeAssertExpr:
		return refuse("its error's type is asserted: use errors.As first")
	case *ast.SelectorExpr:
		if call, ok := s.parents[p].(*ast.CallExpr); ok && p.Sel.Name == "Error" {
			switch outer := s.parents[call].(type) {
			case *ast.BinaryExpr:
				if outer.Op == token.ADD {
					s.escapes = true
					return nil
				}
			case *ast.CallExpr:
				fn := s.callee(outer)
				if fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != "strings" && !strings.HasSuffix(fn.Pkg().Path(), "regexp") {
					s.escapes = true
					return nil
				}
			case *ast.ReturnStmt, *ast.KeyValueExpr:
				s.escapes = true
				return nil
			}
			return refuse("the text of its error is compared, and that differs")
		}
	}
	return refuse("its error is used in a way that is not followed")
}

// names reports whether the type of e comes from the library.
func (s *site) names(e ast.Expr) bool {
	t := s.pkg.TypesInfo.TypeOf(e)
	for {
		p, ok := t.(*types.Pointer)
		if !ok {
			break
		}
		t = p.Elem()
	}
	named, ok := t.(*types.Named)
	return ok && named.Obj().Pkg() != nil && libraries[named.Obj().Pkg().Path()] == s.lib
}
