package migrate

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry"
)

// library is what is known of a library.
type library struct {
	name  string
	marks []string       // what only its own runs understand in an error
	calls map[string]int // the calls that are sites, and which argument is the work; -1 if such a call cannot be moved
	marky map[string]string
	plan  func(*site, *plan) error
}

var libraries = map[string]*library{
	"github.com/cenkalti/backoff/v4":        backoffV4,
	"github.com/cenkalti/backoff/v5":        backoffV5,
	"github.com/avast/retry-go/v4":          retryGoV4,
	"github.com/avast/retry-go/v5":          retryGoV5,
	"github.com/sethvargo/go-retry":         goRetry,
	"github.com/hashicorp/go-retryablehttp": retryableHTTP,
}

// refusal is why a site is not moved.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, values ...any) error { return refusal(fmt.Sprintf(format, values...)) }

// site is a call of a library that retries some work.
type site struct {
	*file
	lib     *library
	call    *ast.CallExpr
	name    string
	op      ast.Expr     // the work as it is passed; nil if unknown
	lit     *ast.FuncLit // the work, if it is a literal or a variable with one, used here only
	escapes bool         // the error is seen by more than a comparison with nil
}

// plan is what a site becomes.
type plan struct {
	ctx      ast.Expr // nil means context.Background()
	attempts string
	retries  int // how many waits a run has at most; -1 if unknown or unlimited
	backoff  retry.Backoff
	texts    map[string]string // the fields of backoff as the source has them
	ttl      string
	classify string
	observe  string
	value    bool // DoValue
	remarks  []string
	drop     []ast.Stmt // statements that only made the backoff
}

func (p *plan) remark(format string, values ...any) {
	if text := fmt.Sprintf(format, values...); !slices.Contains(p.remarks, text) {
		p.remarks = append(p.remarks, text)
	}
}

// literal sets lit.
func (s *site) literal() {
	switch op := s.op.(type) {
	case *ast.FuncLit:
		s.lit = op
	case *ast.Ident:
		// op := func() error {...}, and no other use
		obj := s.pkg.TypesInfo.Uses[op]
		if obj == nil || len(s.uses(obj)) != 1 {
			return
		}
		if def := s.definition(obj); def != nil {
			s.lit, _ = ast.Unparen(def.Rhs[0]).(*ast.FuncLit)
		}
	}
}

// definition returns the statement "x := ..." that declares the local variable obj and nothing else, or nil.
func (f *file) definition(obj types.Object) *ast.AssignStmt {
	for id, def := range f.pkg.TypesInfo.Defs {
		if def == obj {
			assign, ok := f.parents[id].(*ast.AssignStmt)
			if ok && assign.Tok == token.DEFINE && len(assign.Lhs) == 1 && len(assign.Rhs) == 1 {
				return assign
			}
		}
	}
	return nil
}

// uses returns the uses of obj in the source order.
func (f *file) uses(obj types.Object) []*ast.Ident {
	var ids []*ast.Ident
	for id, used := range f.pkg.TypesInfo.Uses {
		if used == obj {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b *ast.Ident) int { return int(a.Pos() - b.Pos()) })
	return ids
}

// changed reports whether the variable obj may be written, in whole or in part, between from and to: there is an
// assignment, or one in a function literal somewhere, or its address is taken.
func (f *file) changed(obj types.Object, from, to token.Pos) bool {
	for _, id := range f.uses(obj) {
		write, address := f.write(id)
		if address || write && (from <= id.Pos() && id.Pos() < to || f.captured(obj, id)) {
			return true
		}
	}
	return false
}

// captured reports whether id, a use of obj, is in a function literal in which obj is not declared.
func (f *file) captured(obj types.Object, id *ast.Ident) bool {
	for n := f.parents[id]; n != nil; n = f.parents[n] {
		if lit, ok := n.(*ast.FuncLit); ok && (obj.Pos() < lit.Pos() || lit.End() <= obj.Pos()) {
			return true
		}
	}
	return false
}

// write reports whether id is written here, or its address taken.
func (f *file) write(id *ast.Ident) (write, address bool) {
	var n ast.Node = id
	for {
		switch p := f.parents[n].(type) {
		case *ast.SelectorExpr, *ast.ParenExpr, *ast.StarExpr:
			n = p
			continue
		case *ast.IndexExpr:
			if p.X == n {
				n = p
				continue
			}
		case *ast.AssignStmt:
			return slices.ContainsFunc(p.Lhs, func(e ast.Expr) bool { return e == n }), false
		case *ast.IncDecStmt:
			return true, false
		case *ast.UnaryExpr:
			return false, p.Op == token.AND
		case *ast.RangeStmt:
			return p.Key == n || p.Value == n, false
		}
		return false, false
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
			return obj.Parent() != obj.Pkg().Scope() && !s.changed(obj, min(e.Pos(), s.call.Pos()), s.call.End())
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
	return s.call.Pos() <= e.Pos() && e.Pos() < s.call.End() || s.isBackground(e) || s.settled(e)
}

// contextName returns the name of package context in the file, or of the import that will be added.
func (s *site) contextName() string {
	if name := s.importName("context"); name != "" {
		return name
	}
	return "context"
}

// outer returns the declaration of the function that n is in, or nil.
func (f *file) outer(n ast.Node) *ast.FuncDecl {
	for ; n != nil; n = f.parents[n] {
		if decl, ok := n.(*ast.FuncDecl); ok {
			return decl
		}
	}
	return nil
}

// statement returns the statement around n that stands in a list of statements, and the list.
func (f *file) statement(n ast.Node) (ast.Stmt, []ast.Stmt) {
	for ; n != nil; n = f.parents[n] {
		stmt, ok := n.(ast.Stmt)
		if !ok {
			continue
		}
		if list := list(f.parents[n]); slices.Contains(list, stmt) {
			return stmt, list
		}
	}
	return nil, nil
}

func list(n ast.Node) []ast.Stmt {
	switch n := n.(type) {
	case *ast.BlockStmt:
		return n.List
	case *ast.CaseClause:
		return n.Body
	case *ast.CommClause:
		return n.Body
	}
	return nil
}

// plan returns the remarks and edits for s.
func (s *site) plan(strays map[string]token.Position) ([]string, []edit, error) {
	switch {
	case ast.IsGenerated(s.ast):
		return nil, nil, refuse("the file is generated")
	case s.outer(s.call) == nil:
		return nil, nil, refuse("it is not in a function")
	case s.op == nil:
		return nil, nil, s.lib.plan(s, &plan{})
	}
	if at, ok := strays[s.callee(s.call).Pkg().Path()]; ok {
		return nil, nil, refuse("a mark of %s that is made or looked for elsewhere (%s:%d) can reach it, and retry would "+
			"not know it", s.lib.name, base(at.Filename), at.Line)
	}
	if path := s.markingImport(); path != "" {
		return nil, nil, refuse("%s, which is imported here, makes marks of %s, and retry would not know them", path, s.lib.name)
	}
	p := plan{retries: -1, texts: map[string]string{}}
	if err := s.lib.plan(s, &p); err != nil {
		return nil, nil, err
	}
	if err := s.errorUse(); err != nil {
		return nil, nil, err
	}
	if s.escapes {
		p.remark("the error is a *retry.Error: errors.Is and errors.As find the last one")
		if p.ctx != nil {
			p.remark("a wait past the context's deadline is not begun")
		}
	}
	edits, err := s.edits(&p)
	return p.remarks, edits, err
}

func base(name string) string { return name[strings.LastIndexAny(name, `/\`)+1:] }

// markingImport returns an imported package of another module whose source names a mark of the library, or "".
func (s *site) markingImport() string {
	libPath := s.callee(s.call).Pkg().Path()
	for path := range s.pkg.Imports {
		dep := s.graph[path]
		if dep == nil || path == libPath || dep.Imports[libPath] == nil || dep.Module == nil || dep.Module.Main {
			continue
		}
		if slices.ContainsFunc(dep.GoFiles, func(name string) bool { return marksIn(name, s.lib) }) {
			return path
		}
	}
	return ""
}

// marksIn reports whether the source file names a mark of lib, or cannot be read.
func marksIn(name string, lib *library) bool {
	syntax, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	if err != nil {
		return true
	}
	for n := range ast.Preorder(syntax) {
		if id, ok := n.(*ast.Ident); ok && slices.Contains(lib.marks, id.Name) {
			return true
		}
	}
	return false
}

// edits returns the edits that make p of s.
func (s *site) edits(p *plan) ([]edit, error) {
	background, name := p.ctx == nil, s.contextName()
	if !s.free(name, "context") {
		return nil, refuse("the name %s does not mean the package here", name)
	}
	ctx := name + ".Background()"
	if !background {
		ctx = s.text(p.ctx)
	}
	call := ours + ".Do"
	if p.value {
		call += "Value"
	}
	head := call + "(" + ctx + ", " + p.literal() + ", "
	from, to := s.offset(s.call.Pos()), s.offset(s.call.End())
	opFrom, opTo := s.offset(s.op.Pos()), s.offset(s.op.End())
	tail := ")"
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
		if !s.settled(s.op) {
			return nil, refuse("the work is not a literal, a function or a method of a variable that stays as it is")
		}
		result, err := s.results()
		if err != nil {
			return nil, err
		}
		head += "func(" + name + ".Context) " + result + " { return "
		tail = "() })"
	}
	edits = append(edits, edit{from, opFrom, head}, edit{opTo, to, tail})
	moved := s.literals()
	for _, group := range s.ast.Comments {
		at := s.offset(group.Pos())
		if at >= from && at < opFrom || at >= opTo && at < to {
			if !slices.ContainsFunc(moved, func(e edit) bool { return e.from <= at && at < e.to }) {
				return nil, refuse("a comment stands among the options")
			}
		}
		if slices.ContainsFunc(p.drop, func(x ast.Stmt) bool { return x.Pos() <= group.Pos() && group.Pos() < x.End() }) {
			return nil, refuse("a comment stands in what makes the backoff")
		}
	}
	for _, stmt := range p.drop {
		edits = append(edits, s.line(stmt))
	}
	if len(p.remarks) > 0 {
		stmt, _ := s.statement(s.call)
		at := s.offset(stmt.Pos())
		remark := "// retryvet: " + strings.Join(p.remarks, "\n// retryvet: ") + "\n"
		if at == from { // one edit, since two at one place have no order
			edits[len(edits)-len(p.drop)-2].text = remark + head
		} else {
			edits = append(edits, edit{at, at, remark})
		}
	}
	return append(edits, s.markEdits()...), nil
}

// line returns the edit that removes stmt, with its lines if nothing else is on them.
func (s *site) line(stmt ast.Stmt) edit {
	from, to := s.offset(stmt.Pos()), s.offset(stmt.End())
	start, end := from, to
	for start > 0 && strings.ContainsRune(" \t", rune(s.src[start-1])) {
		start--
	}
	if start > 0 && s.src[start-1] == '\n' && end < len(s.src) && s.src[end] == '\n' {
		from, to = start, end+1
	}
	return edit{from, to, ""}
}

// literals returns the ranges of the function literals among the options: their text moves, comments included.
func (s *site) literals() []edit {
	var moved []edit
	ast.Inspect(s.call, func(n ast.Node) bool {
		if lit, ok := n.(*ast.FuncLit); ok && lit != s.op {
			moved = append(moved, edit{from: s.offset(lit.Body.Pos()), to: s.offset(lit.Body.End())})
			return false
		}
		return n != s.op
	})
	return moved
}

// free reports whether name, at s, is the package path or nothing at all.
func (s *site) free(name, path string) bool {
	scope := s.pkg.Types.Scope().Innermost(s.call.Pos())
	if scope == nil {
		return false
	}
	_, obj := scope.LookupParent(name, s.call.Pos())
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

// passesOn reports whether the work uses ctx and never changes it, so that a parameter can take its place.
func (s *site) passesOn(ctx *ast.Ident) bool {
	obj := s.pkg.TypesInfo.Uses[ctx]
	for id, own := range s.pkg.TypesInfo.Defs { // beside a parameter, "ctx := ..." would declare nothing
		if id.Name == ctx.Name && own != nil && own.Parent() == s.pkg.TypesInfo.Scopes[s.lit.Type] {
			return false
		}
	}
	inside := slices.ContainsFunc(s.uses(obj), func(id *ast.Ident) bool {
		return s.lit.Body.Pos() <= id.Pos() && id.Pos() < s.lit.Body.End()
	})
	return inside && !s.changed(obj, s.call.Pos(), s.call.End())
}

// markEdits replaces the library's marks in the work.
func (s *site) markEdits() []edit {
	var edits []edit
	for _, m := range s.marks() {
		if call, ok := s.parents[m].(*ast.SelectorExpr); ok {
			name := s.lib.marky[call.Sel.Name]
			edits = append(edits, edit{s.offset(call.Pos()), s.offset(call.End()), ours + "." + name})
		}
	}
	return edits
}

// marks returns the marks of the library in the work.
func (s *site) marks() []*ast.Ident {
	var result []*ast.Ident
	if s.lit == nil {
		return nil
	}
	ast.Inspect(s.lit, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && slices.Contains(s.lib.marks, id.Name) {
			obj := s.pkg.TypesInfo.Uses[id]
			if obj != nil && obj.Pkg() != nil && libraries[obj.Pkg().Path()] == s.lib && s.owner(id) == s {
				result = append(result, id)
			}
		}
		return true
	})
	return result
}

// knownMarks refuses marks that have no counterpart.
func (s *site) knownMarks() error {
	for _, m := range s.marks() {
		if s.lib.marky[m.Name] == "" {
			return refuse("%s has no counterpart", m.Name)
		}
		if _, ok := s.parents[m].(*ast.SelectorExpr); !ok {
			return refuse("%s is imported by a dot", s.lib.name)
		}
	}
	return nil
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
	field("Classify", p.classify)
	field("Observe", p.observe)
	return ours + ".Policy{\n" + b.String() + "}"
}

// number is a setting whose value is known, and its source.
type number struct {
	value float64
	text  string
}

func (n number) duration() time.Duration { return time.Duration(n.value) }

func wait(d time.Duration) number { return number{float64(d), source(d)} }

// source returns d as Go source.
func source(d time.Duration) string {
	for _, unit := range []struct {
		size time.Duration
		name string
	}{{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"}, {time.Millisecond, "Millisecond"},
		{time.Microsecond, "Microsecond"}} {
		if d == unit.size {
			return "time." + unit.name
		} else if d > 0 && d%unit.size == 0 {
			return fmt.Sprintf("%d * time.%s", d/unit.size, unit.name)
		}
	}
	return fmt.Sprint(int64(d))
}

// constant returns the value of e, a setting of that name.
func (f *file) constant(name string, e ast.Expr) (number, error) {
	value := f.pkg.TypesInfo.Types[e].Value
	if value == nil {
		return number{}, refuse("%s is not a constant, so that it can be one that means something else here", name)
	}
	x, _ := constant.Float64Val(constant.ToFloat(value))
	if x > 1<<53 || x < -1<<53 {
		return number{}, refuse("%s is too large", name)
	}
	return number{x, f.text(e)}, nil
}

// attemptsFor sets MaxAttempts to e+more.
func (s *site) attemptsFor(p *plan, e ast.Expr, more int) error {
	value := s.pkg.TypesInfo.Types[e].Value
	if value != nil {
		n, ok := constant.Int64Val(value)
		if !ok || n > 1<<31-2 {
			return refuse("the number of attempts is too large")
		}
		p.retries = int(n) + more - 1
		p.attempts = fmt.Sprint(int(n) + more)
		return nil
	}
	if more == 0 {
		return refuse("the number of attempts is not a constant: 0 means no limit there and 8 here")
	}
	if !s.movable(e) {
		return refuse("the number of retries is neither a constant nor a variable that stays as it is")
	}
	e = ast.Unparen(e)
	if call, ok := e.(*ast.CallExpr); ok { // a conversion
		e = ast.Unparen(call.Args[0])
	}
	t, ok := s.pkg.TypesInfo.TypeOf(e).Underlying().(*types.Basic)
	if !ok || t.Info()&types.IsInteger == 0 {
		return refuse("the number of retries is not an integer")
	}
	text := s.text(e)
	if s.pkg.TypesInfo.TypeOf(e) != types.Typ[types.Int] {
		text = "int(" + text + ")"
	}
	p.attempts = fmt.Sprintf("%s + %d", text, more)
	p.remark("the number of retries must be from 0 to the largest int less 1")
	return nil
}

// fits remarks what differs between p.backoff and theirs, which returns the delay before jitter after the nth attempt.
// Their jitter adds up to ratio of it, and may pass the cap.
func (p *plan) fits(theirs func(n int) time.Duration, ratio float64) error {
	if err := p.backoff.Validate(); err != nil {
		return refuse("the schedule is not valid here: %v", err)
	}
	waits := p.retries
	if waits < 0 || waits > 200 {
		waits = 200
	}
	var worst time.Duration
	passes := false
	for n := 1; n <= waits; n++ {
		mine, other := p.backoff.Delay(n), theirs(n)
		worst = max(worst, mine-other, other-mine)
		passes = passes || ratio > 0 && float64(other)*(1+ratio) > float64(p.limit())
	}
	switch {
	case worst > time.Microsecond:
		return refuse("the waits would differ by %v", worst)
	case worst > 0 && ratio == 0:
		p.remark("waits differ by rounding, up to %v", worst)
	}
	if passes {
		p.remark("jitter stays below Cap, which it passed before")
	}
	return nil
}

func (p *plan) limit() time.Duration { return retry.Policy{Backoff: p.backoff}.Effective().Cap }
