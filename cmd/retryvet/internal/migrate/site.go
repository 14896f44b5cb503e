package migrate

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/retrygo/retry"
)

// library describes a library.
type library struct {
	name   string
	marks  map[string]string // marks of errors for its own runs, and our counterparts; "" if there is none
	calls  map[string]int    // the calls that are sites, and the index of the work in their arguments; -1 if such a call cannot be moved
	fields []string          // the settable fields of its BackOff or Client
	plan   func(*site, *plan) error
	pause  func(*site, *plan, ast.Expr) (*pause, error)
}

var libraries = map[string]*library{
	"github.com/cenkalti/backoff/v4":        backoffV4,
	"github.com/cenkalti/backoff/v5":        backoffV5,
	"github.com/avast/retry-go/v4":          retryGoV4,
	"github.com/avast/retry-go/v5":          retryGoV5,
	"github.com/sethvargo/go-retry":         goRetry,
	"github.com/hashicorp/go-retryablehttp": retryableHTTP,
}

// refusal is the reason why a site is not moved.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, values ...any) error { return refusal(fmt.Sprintf(format, values...)) }

// site is a call of a library that retries some work.
type site struct {
	*file
	lib     *library
	strays  *strays
	expr    ast.Expr // the expression to replace
	call    *ast.CallExpr
	name    string
	op      ast.Expr     // the work as it is passed; nil if unknown
	lit     *ast.FuncLit // the work, if it is a literal or a variable with one, used here only
	escapes bool         // the error is used in more than a comparison with nil
}

// plan is the replacement of a site.
type plan struct {
	ctx      ast.Expr // nil means context.Background()
	attempts string
	retries  int // the most waits of a run; -1 if unknown or unlimited
	backoff  retry.Backoff
	texts    map[string]string // the fields of backoff as the source has them
	ttl      string
	timeout  string // of an attempt
	base     string // of a Transport
	classify string
	observe  string
	value    bool // DoValue
	remarks  []string
	known    map[types.Object]*pause     // the variables that are followed
	drop     map[types.Object][]ast.Node // the statements that make them
	err      error                       // the first reason why the site is refused
}

func (p *plan) refuse(format string, values ...any) {
	if p.err == nil {
		p.err = refuse(format, values...)
	}
}

func (p *plan) remark(format string, values ...any) {
	if text := fmt.Sprintf(format, values...); !slices.Contains(p.remarks, text) {
		p.remarks = append(p.remarks, text)
	}
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

// settled reports whether e has one value from where it stands to the end of the call, however often it is evaluated.
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
			return obj.Parent() != obj.Pkg().Scope() && !s.changed(obj, min(e.Pos(), s.expr.Pos()), s.lastEvaluation(e))
		}
	case *ast.SelectorExpr:
		if fn, ok := s.pkg.TypesInfo.Uses[e.Sel].(*types.Func); ok {
			return fn.Signature().Recv() == nil || s.settled(e.X)
		}
	case *ast.CallExpr: // a conversion
		return len(e.Args) == 1 && s.pkg.TypesInfo.Types[e.Fun].IsType() && s.settled(e.Args[0])
	}
	return false
}

// movable reports whether e, evaluated once, may be evaluated in the call.
func (s *site) movable(e ast.Expr) bool {
	return within(e, s.expr) || s.isBackground(e) || s.sees(e) && (s.settled(e) || s.still(e))
}

// sees reports whether the names in e mean the same at the call.
func (s *site) sees(e ast.Expr) bool {
	scope := s.pkg.Types.Scope().Innermost(s.expr.Pos())
	for n := range ast.Preorder(e) {
		id, ok := n.(*ast.Ident)
		obj := s.pkg.TypesInfo.Uses[id]
		if !ok || obj == nil || obj.Parent() == nil { // a field or a method
			continue
		}
		if sel, ok := s.parents[id].(*ast.SelectorExpr); ok && sel.Sel == id { // of a package
			continue
		}
		if _, there := scope.LookupParent(id.Name, s.expr.Pos()); there != obj && !within(id, s.expr) {
			return false
		}
	}
	return true
}

// still reports whether e consists of local variables and their fields, and nothing between e and the call writes them.
func (s *site) still(e ast.Expr) bool {
	fields := map[string]bool{}
	for n := range ast.Preorder(e) {
		switch n := n.(type) {
		case *ast.Ident:
			obj, ok := s.pkg.TypesInfo.Uses[n].(*types.Var)
			if ok && obj.IsField() {
				fields[n.Name] = true
			} else if ok && (obj.Parent() == obj.Pkg().Scope() || slices.ContainsFunc(s.uses(obj), func(id *ast.Ident) bool {
				write, address := s.write(id)
				again := s.lastEvaluation(e)
				return address || write && (again > s.expr.End() || !s.assigned(id)) && (e.Pos() <= id.Pos() && id.Pos() < again || s.captured(obj, id))
			})) {
				return false
			}
		case *ast.CallExpr:
			if !s.pkg.TypesInfo.Types[n.Fun].IsType() {
				return false
			}
		case *ast.SelectorExpr, *ast.BasicLit, *ast.BinaryExpr, *ast.ParenExpr, *ast.KeyValueExpr, *ast.CompositeLit:
		case *ast.UnaryExpr:
			if _, ok := n.X.(*ast.CompositeLit); !ok {
				return false
			}
		default:
			return false
		}
	}
	fun, _ := s.outer(s.expr)
	until := s.lastEvaluation(e)
	for n := range ast.Preorder(fun) {
		if n.Pos() < e.End() || until <= n.Pos() || within(n, s.expr) || within(s.expr, n) {
			continue
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			if fun := s.pkg.TypesInfo.Types[n.Fun]; !fun.IsType() && !fun.IsBuiltin() && s.ofLibrary(n) == "" {
				return false
			}
		case *ast.SelectorExpr:
			if id := n.Sel; fields[id.Name] {
				if write, address := s.write(id); write && !s.assigned(id) || address {
					return false
				}
			}
		}
	}
	return true
}

// lastEvaluation returns the position, in source order, of the last evaluation of the call for one evaluation of e: the
// end of the call, of a loop around it, or of the function if the call is in a function that may be called later.
func (s *site) lastEvaluation(e ast.Expr) token.Pos {
	last := s.expr.End()
	fun, _ := s.outer(s.expr)
	for n := range ast.Preorder(fun) {
		if branch, ok := n.(*ast.BranchStmt); ok && branch.Tok == token.GOTO {
			return fun.End()
		}
	}
	for n := s.parents[s.expr]; n != nil && !within(e, n); n = s.parents[n] {
		switch n := n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			last = n.End()
		case *ast.FuncLit:
			return fun.End()
		}
	}
	return last
}

// assigned reports whether id is on the left side of the assignment that contains s, so that it is written after the
// call.
func (s *site) assigned(id *ast.Ident) bool {
	stmt, _ := s.statement(s.expr)
	assign, ok := stmt.(*ast.AssignStmt)
	return ok && slices.ContainsFunc(assign.Lhs, func(left ast.Expr) bool { return within(id, left) })
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
func (s *site) contextName() string {
	if name := s.importName("context"); name != "" {
		return name
	}
	return "context"
}

// plan returns the remarks and edits for s, and the statements that it no longer needs.
func (s *site) plan() (*plan, []edit, error) {
	p := plan{retries: -1, attempts: ours + ".Unlimited", classify: ours + ".RetryOn(" + s.contextName() + ".Canceled)",
		texts: map[string]string{}, known: map[types.Object]*pause{}, drop: map[types.Object][]ast.Node{}}
	fun, _ := s.outer(s.expr)
	switch {
	case ast.IsGenerated(s.ast):
		return nil, nil, refuse("the file is generated")
	case fun == nil:
		return nil, nil, refuse("it is not in a function")
	case s.dotted():
		return nil, nil, refuse("%s is imported by a dot", s.lib.name)
	case s.strays.stuck != nil:
		return nil, nil, refuse("a mark of %s that is made or looked for elsewhere (%v) can reach it, and retry would not "+
			"know it", s.lib.name, s.strays.stuck)
	}
	if path := s.markingImport(); path != "" {
		return nil, nil, refuse("%s, which this module imports, makes marks of %s, and retry would not know them", path, s.lib.name)
	}
	if err := s.ownMarks(); err != nil {
		return nil, nil, err
	}
	if s.op != nil {
		if err := s.errorUse(); err != nil {
			return nil, nil, err
		}
	}
	if err := s.lib.plan(s, &p); p.err != nil || err != nil {
		return nil, nil, cmp.Or(p.err, err)
	}
	for name, path := range map[string]string{"time": "time", s.contextName(): "context"} {
		if known := s.importName(path); known != "" && known != name || !s.free(name, path) {
			return nil, nil, refuse("the name %s does not mean the package here", name)
		}
	}
	for _, n := range append(s.marks(), &ast.Ident{NamePos: s.expr.Pos()}) {
		if name := s.hidden(n.Pos()); name != "" {
			return nil, nil, refuse("the name %s does not mean the package here", name)
		}
	}
	if s.op == nil {
		edits, err := s.clientEdits(&p)
		return &p, edits, err
	}
	if s.escapes {
		p.remark("the error is a *retry.Error: errors.Is and errors.As find the last one")
		if p.ctx != nil {
			p.remark("a wait past the context's deadline is not begun")
		}
	}
	if len(s.strays.makers) > 0 {
		p.remark("errors marked elsewhere (%v) are marked for retry too", s.strays.makers[0])
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
	from, to := s.offset(s.expr.Pos()), s.offset(s.expr.End())
	opFrom, opTo := s.offset(s.op.Pos()), s.offset(s.op.End())
	edits = append(edits, edit{opTo, to, tail})
	return slices.Concat(edits, s.remarked(p, edit{from, opFrom, head}), s.markEdits()), nil
}

// remarked returns first, the edit of the beginning of s, and the remarks above its statement.
func (s *site) remarked(p *plan, first edit) []edit {
	if len(p.remarks) == 0 {
		return []edit{first}
	}
	stmt, _ := s.statement(s.expr)
	at := s.offset(stmt.Pos())
	remark := "// retryvet: " + strings.Join(p.remarks, "\n// retryvet: ") + "\n"
	if at == first.from { // one edit, since two edits at one position have no order
		first.text = remark + first.text
		return []edit{first}
	}
	return []edit{{at, at, remark}, first}
}

// comments refuses a site if the code to remove contains a comment.
func (s *site) comments(p *plan) error {
	kept := s.literals()
	for _, group := range s.ast.Comments {
		if s.lit != nil && !s.takesContext() && within(group, s.lit.Type.Params) {
			return refuse("the parameters of the work contain a comment")
		}
		if within(group, s.expr) && !slices.ContainsFunc(kept, func(n ast.Node) bool { return within(group, n) }) {
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
	ast.Inspect(s.expr, func(n ast.Node) bool {
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

// free reports whether name, at s, is the package path or undefined.
func (s *site) free(name, path string) bool { return s.freeAt(s.expr.Pos(), name, path) }

// hidden returns the name under which the file imports one of our packages if it means something else at pos, or "".
func (f *file) hidden(pos token.Pos) string {
	for _, path := range []string{ourPath, ourPath + "/retryhttp"} {
		if name := f.importName(path); name != "" && !f.freeAt(pos, name, path) {
			return name
		}
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
	var unknown string
	text := types.TypeString(sig.Results().At(0).Type(), func(p *types.Package) string {
		if p == s.pkg.Types {
			return ""
		}
		name := s.importName(p.Path())
		if name == "" {
			unknown = p.Path()
		}
		return name
	})
	if unknown != "" {
		return "", refuse("the work's result is of package %s, which the file does not import", unknown)
	}
	return "(" + text + ", error)", nil
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
	return inside && !s.changed(obj, s.expr.Pos(), s.expr.End())
}

// observer sets p.observe to call f, unless it is nil, with the arguments if the condition holds. In all of them %s
// stands for the event.
func (s *site) observer(p *plan, f ast.Expr, condition string, args ...string) {
	if f == nil || s.pkg.TypesInfo.Types[f].IsNil() {
		return
	}
	f = ast.Unparen(f)
	context, event := s.contextName(), "e"
	fill := func(text string) string { return strings.ReplaceAll(text, "%s", event) }
	names := map[string]bool{}
	for n := range ast.Preorder(f) {
		if id, ok := n.(*ast.Ident); ok {
			names[id.Name] = true
		}
	}
	for names[event] {
		event += "vent"
	}
	var body string
	if lit, ok := f.(*ast.FuncLit); ok {
		i := 0
		var left, right []string
		for _, field := range lit.Type.Params.List {
			for _, name := range field.Names {
				if obj := s.pkg.TypesInfo.Defs[name]; name.Name != "_" && obj != nil && len(s.uses(obj)) > 0 {
					left, right = append(left, name.Name), append(right, fill(args[i]))
				}
				i++
			}
		}
		if len(left) > 0 {
			body = strings.Join(left, ", ") + " := " + strings.Join(right, ", ") + "\n"
		}
		body += strings.TrimSpace(string(s.src[s.offset(lit.Body.Lbrace)+1 : s.offset(lit.Body.Rbrace)]))
	} else {
		if !s.settled(f) {
			p.refuse("the notify function is not a literal or a function that keeps its value")
		}
		body = s.text(f) + "(" + fill(strings.Join(args, ", ")) + ")"
	}
	p.observe = "func(_ " + context + ".Context, " + event + " " + ours + ".Event) {\nif " + fill(condition) + " {\n" + body + "\n}\n}"
}

// literal returns the policy as Go source.
func (p *plan) literal() string {
	var b strings.Builder
	field := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%s: %s,\n", name, text)
		}
	}
	field("MaxAttempts", p.attempts)
	var parts []string
	for _, name := range []string{"Mode", "Base", "Factor", "Cap", "Delays", "Jitter", "JitterRatio"} {
		if text := p.texts[name]; text != "" {
			parts = append(parts, name+": "+text)
		}
	}
	field("Backoff", ours+".Backoff{"+strings.Join(parts, ", ")+"}")
	field("TTL", p.ttl)
	field("AttemptTimeout", p.timeout)
	field("Classify", p.classify)
	field("Observe", p.observe)
	return ours + ".Policy{\n" + b.String() + "}"
}
