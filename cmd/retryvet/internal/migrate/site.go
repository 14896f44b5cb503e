package migrate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// site is a call of a library that retries some work.
type site struct {
	*file
	lib   *library
	stray *place // a mark outside of the works of the library's sites, or nil
	call  *ast.CallExpr
	name  string
	op    ast.Expr     // the work as it is passed; nil if unknown
	lit   *ast.FuncLit // the work, if it is a literal or a variable with one, used here only
}

// literal sets op and lit.
func (s *site) literal(op ast.Expr) {
	s.op = ast.Unparen(op)
	if call, ok := s.op.(*ast.CallExpr); ok && len(call.Args) == 1 && s.pkg.TypesInfo.Types[call.Fun].IsType() {
		s.op = ast.Unparen(call.Args[0])
	}
	switch op := s.op.(type) {
	case *ast.FuncLit:
		s.lit = op
	case *ast.Ident:
		// op := func() error {...}, and no other use
		obj := s.pkg.TypesInfo.Uses[op]
		if obj == nil || len(s.uses(obj)) != 1 {
			return
		}
		if def := s.definition(obj); def != nil && !def.typed {
			s.lit, _ = ast.Unparen(def.value).(*ast.FuncLit)
		}
	}
}

// settled reports whether e has one value wherever the call evaluates it: it is a constant, a function or a local variable
// that nothing writes from there on, or a method or a conversion of one.
func (s *site) settled(e ast.Expr) bool {
	e = ast.Unparen(e)
	if s.pkg.TypesInfo.Types[e].Value != nil {
		return true
	}
	switch e := e.(type) {
	case *ast.Ident:
		switch obj := s.pkg.TypesInfo.Uses[e].(type) {
		case *types.Func, *types.Nil:
			return true
		case *types.Var:
			return obj.Parent() != obj.Pkg().Scope() && !slices.ContainsFunc(s.uses(obj), func(id *ast.Ident) bool {
				write, address := s.write(id)
				return address || write && (s.again() || id.Pos() > min(e.Pos(), s.call.Pos()) || s.captured(obj, id))
			})
		}
	case *ast.SelectorExpr:
		if fn, ok := s.pkg.TypesInfo.Uses[e.Sel].(*types.Func); ok {
			return fn.Signature().Recv() == nil || s.settled(e.X)
		}
	case *ast.CallExpr:
		return len(e.Args) == 1 && s.pkg.TypesInfo.Types[e.Fun].IsType() && s.settled(e.Args[0])
	}
	return false
}

// again reports whether the call may be evaluated more than once in one call of its function.
func (s *site) again() bool {
	for n := s.parents[s.call]; n != nil; n = s.parents[n] {
		switch n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			return true
		}
	}
	fun, _ := s.outer(s.call)
	for n := range ast.Preorder(fun) {
		if branch, ok := n.(*ast.BranchStmt); ok && branch.Tok == token.GOTO {
			return true
		}
	}
	return false
}

// movable reports whether e, evaluated once, may be evaluated in the call.
func (s *site) movable(e ast.Expr) bool {
	return within(e, s.call) || s.isBackground(e) || s.sees(e) && s.settled(e)
}

// sees reports whether the names in e mean the same at the call.
func (s *site) sees(e ast.Expr) bool {
	scope := s.pkg.Types.Scope().Innermost(s.call.Pos())
	for n := range ast.Preorder(e) {
		id, ok := n.(*ast.Ident)
		obj := s.pkg.TypesInfo.Uses[id]
		if !ok || obj == nil || obj.Parent() == nil || within(id, s.call) { // a field or a method
			continue
		}
		if sel, ok := s.parents[id].(*ast.SelectorExpr); ok && sel.Sel == id { // of a package
			continue
		}
		if _, there := scope.LookupParent(id.Name, s.call.Pos()); there != obj {
			return false
		}
	}
	return true
}

// isBackground reports whether e is a call of context.Background or TODO.
func (s *site) isBackground(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	fn := s.callee(call)
	return fn != nil && (fn.FullName() == "context.Background" || fn.FullName() == "context.TODO")
}

// contextName returns the name of package context in the file, or of the import that will be added.
func (f *file) contextName() string {
	if name := f.importName("context"); name != "" {
		return name
	}
	return "context"
}

// plan returns the edits for s, and the statements that it no longer needs.
func (s *site) plan() (*plan, []edit, error) {
	p := plan{attempts: ours + ".Unlimited", classify: ours + ".RetryOn(" + s.contextName() + ".Canceled)",
		texts: map[string]string{}, known: map[types.Object]*pause{}, drop: map[types.Object][]ast.Node{}}
	fun, _ := s.outer(s.call)
	switch {
	case s.lib.why != "":
		return nil, nil, refuse("%s", s.lib.why)
	case ast.IsGenerated(s.ast):
		return nil, nil, refuse("the file is generated")
	case fun == nil:
		return nil, nil, refuse("it is not in a function")
	case s.dotted():
		return nil, nil, refuse("%s is imported by a dot", s.lib.name)
	case s.op == nil:
		return nil, nil, refuse("a Ticker, or a Timer of one's own, has no counterpart")
	case s.stray != nil:
		return nil, nil, refuse("a mark of %s that is made or looked for elsewhere (%v) can reach it, and retry would not "+
			"know it", s.lib.name, s.stray)
	}
	for _, id := range s.marks() {
		if call, ok := s.parents[s.parents[id]].(*ast.CallExpr); !ok || call.Fun != s.parents[id] || id.Name != "Permanent" {
			return nil, nil, refuse("%s has no counterpart", id.Name)
		}
	}
	if err := s.lib.plan(s, &p); err != nil {
		return nil, nil, err
	}
	if err := (&reader{lib: s.lib, ends: p.ctx != nil}).call(s.file, s.call); err != nil {
		return nil, nil, err
	}
	for name, path := range map[string]string{"time": "time", s.contextName(): "context"} {
		if known := s.importName(path); known != "" && known != name || !s.freeAt(s.call.Pos(), name, path) {
			return nil, nil, refuse("the name %s does not mean the package here", name)
		}
	}
	for _, n := range append(s.marks(), &ast.Ident{NamePos: s.call.Pos()}) {
		if name := s.hidden(n.Pos()); name != "" {
			return nil, nil, refuse("the name %s does not mean the package here", name)
		}
	}
	edits, err := s.edits(&p)
	return &p, edits, err
}

// edits returns the edits that replace s by p.
func (s *site) edits(p *plan) ([]edit, error) {
	name := s.contextName()
	ctx := name + ".Background()"
	if p.ctx != nil {
		ctx = s.text(p.ctx)
	}
	call := ours + ".Do"
	if p.value {
		call += "Value"
	}
	head, tail := call+"("+ctx+", "+p.literal()+", ", ")"
	var edits []edit
	switch takesCtx := s.takesContext(); {
	case s.lit != nil && !takesCtx:
		param := "(" + name + ".Context)"
		if id, ok := p.ctx.(*ast.Ident); ok && s.passesOn(id) {
			param = "(" + id.Name + " " + name + ".Context)"
		}
		params := s.lit.Type.Params
		edits = append(edits, edit{s.offset(params.Opening), s.offset(params.Closing) + 1, param})
	case s.lit == nil && !takesCtx:
		if id, ok := s.op.(*ast.Ident); ok && s.pkg.TypesInfo.Instances[id].Type != nil {
			return nil, refuse("the work is a generic function, and the call has type arguments")
		}
		if !s.settled(s.op) {
			return nil, refuse("the work is not a literal, a function or a method of a variable that keeps its value")
		}
		result, err := s.results()
		if err != nil {
			return nil, err
		}
		head += "func(" + name + ".Context) " + result + " { return "
		tail = "() })"
	}
	if err := s.comments(p); err != nil {
		return nil, err
	}
	from, to := s.offset(s.call.Pos()), s.offset(s.call.End())
	opFrom, opTo := s.offset(s.op.Pos()), s.offset(s.op.End())
	edits = append(edits, edit{opTo, to, tail})
	return slices.Concat(edits, []edit{{from, opFrom, head}}, s.markEdits()), nil
}

// comments refuses a site if the code to remove contains a comment.
func (s *site) comments(p *plan) error {
	kept := s.literals()
	for _, group := range s.ast.Comments {
		if s.lit != nil && !s.takesContext() && within(group, s.lit.Type.Params) {
			return refuse("the parameters of the work contain a comment")
		}
		if within(group, s.call) && !slices.ContainsFunc(kept, func(n ast.Node) bool { return within(group, n) }) {
			return refuse("the options contain a comment")
		}
		for _, nodes := range p.drop {
			if slices.ContainsFunc(nodes, func(n ast.Node) bool { return within(group, n) }) {
				return refuse("the statements that make the backoff contain a comment")
			}
		}
	}
	return nil
}

// literals returns the bodies of the function literals of the call, and the work: their text stays, comments included.
func (s *site) literals() []ast.Node {
	var kept []ast.Node
	ast.Inspect(s.call, func(n ast.Node) bool {
		if lit, ok := n.(*ast.FuncLit); ok && n != s.op {
			kept = append(kept, lit.Body)
			return false
		}
		if n != nil && n == s.op {
			kept = append(kept, n)
			return false
		}
		return true
	})
	return kept
}

// hidden returns the name under which the file imports our package if it means something else at pos, or "".
func (f *file) hidden(pos token.Pos) string {
	if name := f.importName(ourPath); name != "" && !f.freeAt(pos, name, ourPath) {
		return name
	}
	return ""
}

// freeAt reports whether name, at pos, is the package path or undefined.
func (f *file) freeAt(pos token.Pos, name, path string) bool {
	scope := f.pkg.Types.Scope().Innermost(pos)
	if scope == nil {
		return false
	}
	_, obj := scope.LookupParent(name, pos)
	pkgName, ok := obj.(*types.PkgName)
	return obj == nil || ok && pkgName.Imported().Path() == path
}

// takesContext reports whether the work takes a context.
func (s *site) takesContext() bool {
	sig, ok := s.pkg.TypesInfo.TypeOf(s.op).Underlying().(*types.Signature)
	return ok && sig.Params().Len() == 1
}

// results returns the result types of the work as they are written in this file.
func (s *site) results() (string, error) {
	sig, ok := s.pkg.TypesInfo.TypeOf(s.op).Underlying().(*types.Signature)
	if !ok || sig.Results().Len() == 0 {
		return "", refuse("the work is not a function")
	}
	if sig.Results().Len() == 1 {
		return "error", nil
	}
	text, unknown := s.typeText(sig.Results().At(0).Type())
	if unknown != "" {
		return "", refuse("the work's result is of package %s, which the file does not import", unknown)
	}
	return "(" + text + ", error)", nil
}

// typeText returns t as the file can write it, or a package that the file does not import.
func (f *file) typeText(t types.Type) (text, unknown string) {
	text = types.TypeString(t, func(p *types.Package) string {
		if p == f.pkg.Types {
			return ""
		}
		name := f.importName(p.Path())
		if name == "" {
			unknown = p.Path()
		}
		return name
	})
	return text, unknown
}

// passesOn reports whether the work uses ctx and never changes it, so that a parameter can replace it.
func (s *site) passesOn(ctx *ast.Ident) bool {
	obj := s.pkg.TypesInfo.Uses[ctx]
	for id, own := range s.pkg.TypesInfo.Defs { // in the scope of a parameter ctx, "ctx := ..." would declare nothing
		if id.Name == ctx.Name && own != nil && own.Parent() == s.pkg.TypesInfo.Scopes[s.lit.Type] {
			return false
		}
	}
	inside := slices.ContainsFunc(s.uses(obj), func(id *ast.Ident) bool {
		return s.lit.Body.Pos() <= id.Pos() && id.Pos() < s.lit.Body.End()
	})
	return inside && !s.changed(obj, s.call.Pos(), s.call.End())
}
