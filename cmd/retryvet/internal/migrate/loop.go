package migrate

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/ast/inspector"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/retries"
)

// loop is a hand-written retry loop that is to be a loop over retry.Attempts.
type loop struct {
	*file
	*retries.Loop
	node   ast.Stmt
	after  ast.Stmt // the next statement in the same list, or nil
	params *ast.FieldList
	result *ast.FieldList
	wait   retries.Wait
	guard  *ast.IfStmt // around the wait, or nil
	first  int64       // the value of the counter in the first turn
	err    *types.Var  // the error of a turn
	ctx    ast.Expr    // of the run; nil means context.Background()

	attempts int64  // 0 means no limit
	limit    string // the limit as the loop has it
	end      []ast.Stmt
	delays   map[types.Object]bool // the variables that are computed for the wait
	gone     []ast.Node            // statements that are removed
	replaced []ast.Node            // conditions that lose the counter
	exits    []string              // what is done when the attempts are used up
	edits    []edit
	number   bool // the body asks for the number of the attempt
	late     bool // it waits after the last attempt too
}

// loops moves the hand-written retry loops of the file, outside of tests.
func (f *file) loops() (result []Site) {
	if strings.HasSuffix(f.name, "_test.go") {
		return nil
	}
	for cur := range inspector.New([]*ast.File{f.ast}).Root().Preorder((*ast.ForStmt)(nil), (*ast.RangeStmt)(nil)) {
		found := retries.LoopAt(f.pkg.TypesInfo, cur)
		if found == nil || found.Kind != retries.Errors {
			continue
		}
		l := &loop{file: f, Loop: found, node: cur.Node().(ast.Stmt), delays: map[types.Object]bool{}}
		one := Site{Position: f.pkg.Fset.PositionFor(l.node.Pos(), false), Call: "retry loop"}
		if err := l.move(); err != nil {
			one.Why = err.Error()
		} else {
			f.edits = append(f.edits, l.edits...)
		}
		result = append(result, one)
	}
	return result
}

// move makes the edits that replace the loop.
func (l *loop) move() error {
	if ast.IsGenerated(l.ast) {
		return refuse("the file is generated")
	}
	if err := l.steps(); err != nil {
		return err
	}
	schedule, err := l.schedule()
	if err != nil {
		return err
	}
	leave, err := l.leave()
	if err != nil {
		return err
	}
	if fields := l.result.List; len(fields) > 0 && calls.IsError(l.pkg.TypesInfo.TypeOf(fields[len(fields)-1].Type)) {
		if err := (&reader{ends: l.ctx != nil}).returned(l.file, l.node); err != nil {
			return err
		}
	}
	context := l.contextName()
	for name, path := range map[string]string{"time": "time", context: "context", "errors": "errors", l.importName(ourPath): ourPath} {
		if err := l.free(l.node.Pos(), name, path); err != nil {
			return err
		}
	}
	run, key := context+".Background()", ""
	if l.ctx != nil {
		run = l.text(l.ctx)
		if id, isIdent := l.ctx.(*ast.Ident); isIdent {
			if l.number || slices.ContainsFunc(l.uses(l.pkg.TypesInfo.Uses[id]), func(use *ast.Ident) bool {
				return within(use, l.Body) && !l.removed(use)
			}) {
				key = id.Name + " := "
			}
		}
	}
	if l.number && key == "" {
		if err := l.free(l.Body.Lbrace, "ctx", ""); err != nil {
			return err
		}
		key = "ctx := "
	}
	policy := literal(map[string]string{"MaxAttempts": cmp.Or(l.limit, ours+".Unlimited"), "Backoff": schedule, "Classify": ours + ".RetryOn(" + context + ".Canceled)"})
	head := "for " + key + "range " + ours + ".Attempts(" + run + ", " + policy + ", &" + l.err.Name() + ") "
	l.edits = append(l.edits, edit{l.offset(l.node.Pos()), l.offset(l.Body.Lbrace), head})
	for _, n := range l.gone {
		inside := func(outer ast.Node) bool { return outer != n && within(n, outer) }
		if !slices.ContainsFunc(l.gone, inside) {
			l.edits = append(l.edits, l.line(n))
		}
	}
	if leave != "" {
		l.edits = append(l.edits, edit{l.offset(l.node.End()), l.offset(l.node.End()), "\n" + leave})
	}
	for _, group := range l.ast.Comments {
		if l.node.Pos() < group.Pos() && group.Pos() < l.Body.Lbrace || l.removed(group) {
			return refuse("the waits contain a comment")
		}
	}
	if slices.ContainsFunc(l.edits, l.taken) {
		return refuse("it stands inside a loop that is moved; run the command again")
	}
	return nil
}

func (l *loop) steps() error {
	for _, step := range []func() error{l.place, l.header, l.waits, l.error, l.counted, l.alone, l.kept} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) removed(n ast.Node) bool {
	return slices.ContainsFunc(l.gone, func(outer ast.Node) bool { return within(n, outer) })
}

// place sets after, params and result.
func (l *loop) place() error {
	stmts := list(l.parents[l.node])
	if stmts == nil {
		return refuse("it has a label")
	}
	if i := slices.Index(stmts, l.node); i+1 < len(stmts) {
		l.after = stmts[i+1]
	}
	for n := l.parents[l.node]; n != nil && l.result == nil; n = l.parents[n] {
		switch f := n.(type) {
		case *ast.FuncLit:
			l.params, l.result = f.Type.Params, cmp.Or(f.Type.Results, &ast.FieldList{})
		case *ast.FuncDecl:
			l.params, l.result = f.Type.Params, cmp.Or(f.Type.Results, &ast.FieldList{})
		}
	}
	return nil
}

// error finds the variable with the error of a turn, and declares it outside of the loop.
func (l *loop) error() error {
	for _, s := range l.Repeats {
		v, isVar := s.Err.(*types.Var)
		if !isVar || s.Last == retries.OK || s.Last == retries.None || l.err != nil && l.err != v {
			return refuse("a turn is repeated without an error in one variable")
		}
		l.err = v
	}
	uses := l.uses(l.err)
	if l.err.Parent() == l.pkg.Types.Scope() {
		return refuse("its error is a package-level variable")
	}
	for _, use := range uses {
		write, address := l.write(use)
		switch {
		case address || write && l.captured(l.err, use):
			return refuse("other code can set its error")
		case !within(use, l.node) && !write:
			if err := (&reader{ends: l.ctx != nil}).use(l.file, use); err != nil {
				return err
			}
		}
	}
	if !calls.Within(l.err, l.node) {
		inside := slices.IndexFunc(uses, func(use *ast.Ident) bool { return within(use, l.Body) })
		if write, _ := l.write(uses[inside]); !write || l.Cond != nil && within(uses[inside], l.Cond) {
			return refuse("a turn looks at the error of the one before")
		}
		return nil
	}
	scope := l.pkg.Types.Scope().Innermost(l.node.Pos())
	_, outer := scope.LookupParent(l.err.Name(), l.node.Pos())
	if outer != nil && outer.Parent() != types.Universe {
		v, isVar := outer.(*types.Var)
		if !isVar || !calls.IsError(v.Type()) || v.Parent() == l.pkg.Types.Scope() || len(l.result.List) > 0 && within(&ast.Ident{NamePos: v.Pos()}, l.result) {
			return refuse("%s means something else outside of the loop", l.err.Name())
		}
		for _, use := range l.uses(v) {
			if use.Pos() > l.node.Pos() || l.captured(v, use) {
				return refuse("%s means something else outside of the loop", l.err.Name())
			}
		}
	} else {
		l.edits = append(l.edits, edit{l.offset(l.node.Pos()), l.offset(l.node.Pos()), "var " + l.err.Name() + " error\n"})
	}
	for id, def := range l.pkg.TypesInfo.Defs {
		if def == l.err {
			return l.assign(id)
		}
	}
	return nil
}

// assign makes the declaration of id, the error, an assignment, and declares its other names before it.
func (l *loop) assign(id *ast.Ident) error {
	at, _ := l.statement(id)
	stmt, isAssign := l.parents[id].(*ast.AssignStmt)
	if spec, isSpec := l.parents[id].(*ast.ValueSpec); isSpec && len(spec.Names) == 1 && len(spec.Values) == 0 {
		l.gone = append(l.gone, at) // every turn begins without an error
		return nil
	}
	if !isAssign {
		return refuse("its error is declared together with others")
	}
	names := map[string][]string{}
	for _, left := range stmt.Lhs {
		other, isIdent := left.(*ast.Ident)
		v := l.pkg.TypesInfo.Defs[other]
		if !isIdent || other == id || v == nil || other.Name == "_" {
			continue
		}
		text := calls.Written(l.pkg.TypesInfo, l.pkg.Types, l.ast, v.Type())
		if text == "" {
			return refuse("the file cannot write the type of %s", other.Name)
		}
		if at != ast.Stmt(stmt) && len(l.uses(v)) == 0 {
			return refuse("the results of the call are declared in a condition")
		}
		names[text] = append(names[text], other.Name)
	}
	declared := ""
	for _, text := range slices.Sorted(maps.Keys(names)) {
		declared += "var " + strings.Join(names[text], ", ") + " " + text + "\n"
	}
	if declared != "" {
		l.edits = append(l.edits, edit{l.offset(at.Pos()), l.offset(at.Pos()), declared})
	}
	l.edits = append(l.edits, edit{l.offset(stmt.TokPos), l.offset(stmt.TokPos) + 2, "="})
	return nil
}

// header reads the three parts of the loop's first line.
func (l *loop) header() error {
	switch n := l.node.(type) {
	case *ast.RangeStmt:
		return l.bound(n.X, 0)
	case *ast.ForStmt:
		if init, isAssign := n.Init.(*ast.AssignStmt); isAssign && init.Tok == token.DEFINE && len(init.Lhs) == 1 {
			v := l.pkg.TypesInfo.Types[init.Rhs[0]].Value
			if v == nil || v.Kind() != constant.Int {
				return refuse("its counter does not begin with a constant")
			}
			l.first, _ = constant.Int64Val(v)
			l.Counter = l.pkg.TypesInfo.ObjectOf(init.Lhs[0].(*ast.Ident))
		} else if n.Init != nil {
			return refuse("its first line is of another form")
		}
		if post, isInc := n.Post.(*ast.IncDecStmt); n.Post != nil && (!isInc || post.Tok != token.INC || l.Counter == nil || !l.is(post.X, l.Counter)) {
			return refuse("its first line is of another form")
		}
		if n.Cond == nil {
			return nil
		}
		cond, isBinary := n.Cond.(*ast.BinaryExpr)
		if !isBinary || n.Init == nil || n.Post == nil || !l.is(cond.X, l.Counter) {
			return refuse("its condition is not that of a counter")
		}
		switch cond.Op {
		case token.LSS:
			return l.bound(cond.Y, l.first)
		case token.LEQ:
			return l.bound(cond.Y, l.first-1)
		}
		return refuse("its condition is not that of a counter")
	}
	return nil
}

// bound sets the number of attempts to x-less.
func (l *loop) bound(x ast.Expr, less int64) error {
	v := l.pkg.TypesInfo.Types[x].Value
	if v == nil {
		return refuse("the number of attempts is not a constant: a loop makes none for 0, and MaxAttempts means 8")
	}
	n, _ := constant.Int64Val(constant.ToInt(v))
	l.attempts, l.limit = n-less, l.text(x)
	if less != 0 {
		l.limit = fmt.Sprint(l.attempts)
	}
	return nil
}

// waits finds the one wait of the loop, its context, and the statements that compute its length.
func (l *loop) waits() error {
	if len(l.Waits) != 1 {
		return refuse("it waits in %d places", len(l.Waits))
	}
	l.wait = l.Waits[0]
	if l.wait.Delay == nil {
		return refuse("it waits for a timer")
	}
	stmt, stmts := l.statement(l.wait.Node)
	if l.parents[stmt] != l.Body {
		block, _ := l.parents[stmt].(*ast.BlockStmt)
		guard, isIf := l.parents[block].(*ast.IfStmt)
		if !isIf || l.parents[guard] != l.Body || guard.Init != nil || guard.Else != nil || guard.Body != block {
			return refuse("its wait is inside of another statement")
		}
		l.guard = guard
	}
	if choice, isSelect := l.wait.Node.(*ast.SelectStmt); isSelect {
		if err := l.watched(choice); err != nil {
			return err
		}
	} else if v := l.parameter(); v != nil {
		l.ctx = v
	}
	for n := range ast.Preorder(l.Body) {
		switch b := n.(type) {
		case *ast.BranchStmt:
			if b.Tok == token.GOTO || b.Label != nil {
				return refuse("it has a label or a goto")
			}
			if b.Tok == token.CONTINUE && !(slices.Contains(stmts, ast.Stmt(b)) && b.Pos() > stmt.Pos()) && !l.inner(b) {
				return refuse("a turn can end without a wait")
			}
		case *ast.AssignStmt:
			if id, isIdent := l.ctx.(*ast.Ident); isIdent && slices.ContainsFunc(b.Lhs, func(x ast.Expr) bool {
				return l.is(x, l.pkg.TypesInfo.Uses[id])
			}) {
				return refuse("its context is assigned in it")
			}
		}
	}
	l.gone = append(l.gone, stmt)
	return l.computed(stmts)
}

// inner reports whether b ends a turn of a loop inside of this one.
func (l *loop) inner(b ast.Node) bool {
	for n := l.parents[b]; n != l.node; n = l.parents[n] {
		switch n.(type) {
		case *ast.ForStmt, *ast.RangeStmt, *ast.FuncLit:
			return true
		}
	}
	return false
}

// watched reads the select that waits: one case of a timer, and one of a context.
func (l *loop) watched(choice *ast.SelectStmt) error {
	for _, c := range choice.Body.List {
		c := c.(*ast.CommClause)
		receive, isExpr := c.Comm.(*ast.ExprStmt)
		if !isExpr {
			return refuse("its wait is a select with more than a timer and a context")
		}
		call, isCall := ast.Unparen(ast.Unparen(receive.X).(*ast.UnaryExpr).X).(*ast.CallExpr)
		sel, isSel := (*ast.SelectorExpr)(nil), false
		if isCall {
			sel, isSel = call.Fun.(*ast.SelectorExpr)
		}
		switch {
		case isCall && calls.IsFunc(l.pkg.TypesInfo, call, "time", "After"):
			if len(c.Body) > 0 {
				return refuse("something else follows its wait in the select")
			}
		case isSel && sel.Sel.Name == "Done" && calls.IsContext(l.pkg.TypesInfo.TypeOf(sel.X)) && l.ctx == nil && simple(sel.X):
			l.ctx, l.end = sel.X, c.Body
		default:
			return refuse("its wait ends with a channel that is not a context's")
		}
	}
	if len(l.end) == 0 {
		return refuse("it goes on after its context has ended")
	}
	return nil
}

func isBranch(stmt ast.Stmt, tok token.Token) bool {
	b, isBranch := stmt.(*ast.BranchStmt)
	return isBranch && b.Tok == tok && b.Label == nil
}

// simple reports whether e is a variable or a field of one.
func simple(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return simple(e.X)
	}
	return false
}

// parameter returns the context that the function around the loop gets, or nil.
func (l *loop) parameter() ast.Expr {
	scope := l.pkg.Types.Scope().Innermost(l.node.Pos())
	for name := range paramNames(l.params) {
		v := l.pkg.TypesInfo.Defs[name]
		if v == nil || !calls.IsContext(v.Type()) {
			continue
		}
		if _, now := scope.LookupParent(name.Name, l.node.Pos()); now == v {
			id := *name
			l.pkg.TypesInfo.Uses[&id] = v
			return &id
		}
	}
	return nil
}

// computed finds the statements that set variables of the wait, which are removed. They stand beside it or in the body.
func (l *loop) computed(beside []ast.Stmt) error {
	info := l.pkg.TypesInfo
	written := map[types.Object][]ast.Stmt{}
	note := func(stmt ast.Stmt, x ast.Expr) {
		if id, isIdent := x.(*ast.Ident); isIdent && info.ObjectOf(id) != nil {
			written[info.ObjectOf(id)] = append(written[info.ObjectOf(id)], stmt)
		}
	}
	for n := range ast.Preorder(l.Body) {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				note(n, left)
			}
		case *ast.IncDecStmt:
			note(n, n.X)
		}
	}
	queue := []ast.Node{l.wait.Delay}
	for len(queue) > 0 {
		for n := range ast.Preorder(queue[0]) {
			id, isIdent := n.(*ast.Ident)
			obj := info.Uses[id]
			if !isIdent || len(written[obj]) == 0 || l.delays[obj] {
				continue
			}
			l.delays[obj] = true
			for _, stmt := range written[obj] {
				for l.parents[stmt] != l.Body && !slices.Contains(beside, stmt) {
					up, isStmt := l.parents[stmt].(ast.Stmt)
					if !isStmt {
						return refuse("%s is set in another function", obj.Name())
					}
					stmt = up
				}
				if stmt == l.guard {
					return refuse("%s is set inside of another statement", obj.Name())
				}
				if !slices.Contains(l.gone, ast.Node(stmt)) {
					l.gone = append(l.gone, stmt)
					queue = append(queue, stmt)
				}
			}
		}
		queue = queue[1:]
	}
	for obj := range l.delays {
		if def, _ := l.definition(obj); def != nil && !within(def, l.node) {
			l.gone = append(l.gone, def)
		}
	}
	for obj := range l.delays {
		if slices.ContainsFunc(l.uses(obj), func(id *ast.Ident) bool { return !l.removed(id) }) {
			return refuse("%s is used for something else than the wait", obj.Name())
		}
	}
	return nil
}

// counted finds the ifs that end the loop by its counter, and lowers the number of attempts.
func (l *loop) counted() error {
	if l.Counter == nil {
		return nil
	}
	for _, stmt := range l.Body.List {
		n, isIf := stmt.(*ast.IfStmt)
		if !isIf || n == l.guard || l.removed(n) || !calls.Names(l.pkg.TypesInfo, n.Cond, l.Counter) {
			continue
		}
		cond, other := n.Cond, ast.Expr(nil)
		if b, isBinary := cond.(*ast.BinaryExpr); isBinary && (b.Op == token.LOR || b.Op == token.LAND) {
			cond, other = b.Y, b.X
			if calls.Names(l.pkg.TypesInfo, other, l.Counter) {
				cond, other = other, cond
			}
			if b.Op == token.LAND {
				if !l.failed(other) {
					return refuse("a condition asks for more than its counter")
				}
				other = nil
			}
		}
		last := int64(0)
		for t := int64(1); t <= 1000 && last == 0; t++ {
			v := l.turns(0, t).value(cond)
			if v == nil {
				return refuse("a condition on its counter is not one of constants")
			}
			if constant.BoolVal(v) {
				last = t
			}
		}
		before := n.Pos() < l.Attempts[0].Pos()
		leaves := len(n.Body.List) > 0 && n.Else == nil && (n.Init == nil || other != nil)
		if leaves {
			final := n.Body.List[len(n.Body.List)-1]
			_, returns := final.(*ast.ReturnStmt)
			leaves = returns || isBranch(final, token.BREAK)
		}
		switch {
		case last == 0 || !leaves:
			return refuse("a condition on its counter does not end it")
		case before:
			last--
		}
		if l.attempts == 0 || last <= l.attempts {
			if last != l.attempts {
				l.attempts, l.limit = last, fmt.Sprint(last)
			}
			exit, err := l.moved(n.Body.List)
			if err != nil {
				return err
			}
			l.exits = append(l.exits, exit)
		}
		if other == nil {
			l.gone = append(l.gone, n)
			continue
		}
		l.edits = append(l.edits, edit{l.offset(n.Cond.Pos()), l.offset(n.Cond.End()), l.text(other)})
		l.replaced = append(l.replaced, n.Cond)
	}
	return nil
}

// moved returns the source of statements that can stand after the loop.
func (l *loop) moved(stmts []ast.Stmt) (string, error) {
	if len(stmts) == 1 && isBranch(stmts[0], token.BREAK) {
		return "", nil
	}
	for _, stmt := range stmts {
		for n := range ast.Preorder(stmt) {
			if id, isIdent := n.(*ast.Ident); isIdent {
				if obj := l.pkg.TypesInfo.Uses[id]; obj != nil && obj != l.err && calls.Within(obj, l.node) {
					return "", refuse("%s, which it needs when it ends, is declared in it", id.Name)
				}
			}
		}
	}
	text := string(l.src[l.offset(stmts[0].Pos()):l.offset(stmts[len(stmts)-1].End())])
	if l.ctx != nil {
		ended := regexp.MustCompile(`\b(` + regexp.QuoteMeta(l.text(l.ctx)) + `\.Err\(\)|context\.Cause\(` + regexp.QuoteMeta(l.text(l.ctx)) + `\))`)
		if ended.MatchString(text) && slices.ContainsFunc(stmts, func(s ast.Stmt) bool { return calls.Names(l.pkg.TypesInfo, s, l.err) }) {
			return "", refuse("its end has the error of the context beside its own")
		}
		text = ended.ReplaceAllString(text, l.err.Name())
	}
	return text, nil
}

// failed reports whether x is a comparison of the error that is true if the attempt has failed.
func (l *loop) failed(x ast.Expr) bool { return l.compared(x, token.NEQ) }

func (l *loop) compared(x ast.Expr, op token.Token) bool {
	b, isBinary := ast.Unparen(x).(*ast.BinaryExpr)
	return isBinary && b.Op == op && l.is(b.X, l.err) && l.pkg.TypesInfo.Types[b.Y].IsNil()
}

// alone refuses a wait that is not the last step of a turn, or the first: what stands beside it would be done before it, or
// after it.
func (l *loop) alone() error {
	stmt, stmts := l.statement(l.wait.Node)
	first := l.wait.Node.Pos() < l.Attempts[0].Pos()
	beside := func(stmts []ast.Stmt, stmt ast.Stmt) []ast.Stmt {
		if i := slices.Index(stmts, stmt); first {
			return stmts[:i]
		} else {
			return stmts[i+1:]
		}
	}
	crossed := beside(stmts, stmt)
	if l.guard != nil && (first || !isBranch(stmts[len(stmts)-1], token.CONTINUE)) {
		crossed = append(slices.Clone(crossed), beside(l.Body.List, l.guard)...)
	}
	if slices.ContainsFunc(crossed, func(s ast.Stmt) bool { return !l.removed(s) && !isBranch(s, token.CONTINUE) }) {
		return refuse("its wait is not the last step of a turn, or the first")
	}
	return nil
}

// kept replaces the counter in what stays of the body by the number of the attempt.
func (l *loop) kept() error {
	if l.guard != nil {
		final := l.guard == l.Body.List[len(l.Body.List)-1] // a continue in it changes nothing
		rest := slices.ContainsFunc(l.guard.Body.List, func(s ast.Stmt) bool { return !l.removed(s) && !(final && isBranch(s, token.CONTINUE)) })
		switch counts := l.Counter != nil && calls.Names(l.pkg.TypesInfo, l.guard.Cond, l.Counter); {
		case !counts && !l.failed(l.guard.Cond):
			return refuse("its wait depends on a condition")
		case counts && rest:
			return refuse("a condition on its counter does more than wait")
		case !rest:
			l.gone = append(l.gone, l.guard)
		}
	}
	if l.Counter == nil {
		return nil
	}
	for _, id := range l.uses(l.Counter) {
		inside := func(n ast.Node) bool { return within(id, n) }
		if !within(id, l.Body) || l.removed(id) || slices.ContainsFunc(l.replaced, inside) {
			continue
		}
		write, address := l.write(id)
		if write || address || l.pkg.TypesInfo.TypeOf(id) != types.Typ[types.Int] {
			return refuse("its counter is changed, or not an int")
		}
		l.number = true
		name := "ctx"
		if ident, isIdent := l.ctx.(*ast.Ident); isIdent {
			name = ident.Name
		}
		text := ours + ".AttemptNumber(" + name + ")"
		at := ast.Node(id)
		more := int64(0)
		if b, isBinary := l.parents[id].(*ast.BinaryExpr); isBinary && b.Op == token.ADD && b.X == id {
			if v := l.pkg.TypesInfo.Types[b.Y].Value; v != nil {
				at = b
				more, _ = constant.Int64Val(v)
			}
		}
		if less := 1 - l.first - more; less != 0 {
			text += fmt.Sprint(" - ", less)
			if _, isBinary := l.parents[at].(*ast.BinaryExpr); isBinary {
				text = "(" + text + ")"
			}
		}
		l.edits = append(l.edits, edit{l.offset(at.Pos()), l.offset(at.End()), text})
	}
	return nil
}

// turns returns the state of the nth turn before the delays are computed.
func (l *loop) turns(u float64, n int64) *turns {
	t := &turns{info: l.pkg.TypesInfo, values: map[types.Object]constant.Value{}, u: u, random: map[ast.Node]bool{}}
	if l.Counter != nil {
		t.values[l.Counter] = constant.MakeInt64(l.first + n - 1)
	}
	return t
}

// schedule returns the Backoff that makes the waits of the loop.
func (l *loop) schedule() (string, error) {
	if l.attempts == 1 || l.attempts < 0 {
		return "", refuse("it makes one attempt at most")
	}
	var waits [3][]time.Duration
	for i, u := range []float64{0, 0.5, 1} {
		known, random := false, 0
		if waits[i], random, known = l.lengths(u); !known {
			return l.same()
		}
		if random > 1 {
			return "", refuse("its wait has more than one random number")
		}
	}
	if l.late && !l.ends() {
		return "", refuse("it waits after the last attempt too, and what follows would be done sooner")
	}
	if len(waits[0]) == 0 {
		return "", refuse("it waits before its first attempt, or not after each")
	}
	b, fits := fit(waits[0], waits[1], waits[2], l.attempts > 0)
	if !fits {
		return "", refuse("no Backoff has its waits: %v", waits[1])
	}
	if b.Mode == retry.Fixed && b.Jitter == 0 && l.pkg.TypesInfo.Types[l.wait.Delay].Value != nil && l.outside(l.wait.Delay) {
		return fixed(int64(b.Base), l.text(l.wait.Delay)), nil
	}
	return source(b), nil
}

// lengths returns the waits between the attempts if all random numbers are u, how many of these a wait has, and false if
// that is unknown. The waits are none if a turn begins without one.
func (l *loop) lengths(u float64) (waits []time.Duration, random int, known bool) {
	t := l.turns(u, 1)
	for obj := range l.delays {
		if def, value := l.definition(obj); def != nil && !within(def, l.node) {
			if t.values[obj] = t.value(value); t.values[obj] == nil {
				return nil, 0, false
			}
		}
	}
	turns := l.attempts
	if turns == 0 {
		turns = 64
	}
	before := l.wait.Node.Pos() < l.Attempts[0].Pos()
	for n := int64(1); n <= turns; n++ {
		if l.Counter != nil {
			t.values[l.Counter] = constant.MakeInt64(l.first + n - 1)
		}
		waited, known := l.turn(t, l.Body.List)
		switch {
		case !known:
			return nil, 0, false
		case before && n == 1 && waited >= 0, !before && n < turns && waited < 0, before && n > 1 && waited < 0:
			return nil, 0, true
		case before && n > 1, !before && n < turns:
			waits = append(waits, waited)
		default:
			l.late = !before && l.attempts > 0 && waited >= 0 && len(l.exits) == 0
		}
		if waited > 1<<60 { // decades
			break
		}
	}
	return waits, len(t.random), true
}

// ends reports whether only a return of values that are there follows the loop.
func (l *loop) ends() bool {
	next := l.after
	if n, isIf := next.(*ast.IfStmt); isIf && n.Init == nil && n.Else == nil && len(n.Body.List) == 1 && l.failed(n.Cond) {
		next = n.Body.List[0]
	}
	if l.after == nil {
		switch l.parents[l.parents[l.node]].(type) {
		case *ast.FuncDecl, *ast.FuncLit:
			return true
		}
		return false
	}
	if _, isReturn := next.(*ast.ReturnStmt); !isReturn {
		return false
	}
	for n := range ast.Preorder(next) {
		if call, isCall := n.(*ast.CallExpr); isCall && !l.pkg.TypesInfo.Types[call.Fun].IsType() {
			if fn := l.callee(call); fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != "fmt" && fn.Pkg().Path() != "errors" {
				return false
			}
		}
	}
	return true
}

// turn runs the statements of a turn that make the wait, and returns its length; -1 for none, and false if it is unknown.
func (l *loop) turn(t *turns, stmts []ast.Stmt) (time.Duration, bool) {
	waited := time.Duration(-1)
	for _, stmt := range stmts {
		switch {
		case within(l.wait.Node, stmt) && stmt == l.guard:
			if l.Counter != nil && calls.Names(l.pkg.TypesInfo, l.guard.Cond, l.Counter) {
				v := t.value(l.guard.Cond)
				if v == nil {
					return 0, false
				}
				if !constant.BoolVal(v) {
					continue
				}
			}
			var known bool
			if waited, known = l.turn(t, l.guard.Body.List); !known {
				return 0, false
			}
		case within(l.wait.Node, stmt):
			v := t.value(l.wait.Delay)
			if v == nil {
				return 0, false
			}
			n, _ := constant.Int64Val(v)
			waited = max(0, time.Duration(n))
		case slices.Contains(l.gone, ast.Node(stmt)) && l.computes(stmt):
			if !t.run(stmt) {
				return 0, false
			}
		}
	}
	return waited, true
}

// computes reports whether stmt sets a variable of the wait.
func (l *loop) computes(stmt ast.Stmt) bool {
	for n := range ast.Preorder(stmt) {
		if a, isAssign := n.(*ast.AssignStmt); isAssign {
			id, isIdent := a.Lhs[0].(*ast.Ident)
			if isIdent && l.delays[l.pkg.TypesInfo.ObjectOf(id)] {
				return true
			}
		}
	}
	return false
}

// outside reports whether all names in x are declared outside of the loop.
func (l *loop) outside(x ast.Expr) bool {
	for n := range ast.Preorder(x) {
		id, isIdent := n.(*ast.Ident)
		if isIdent && l.pkg.TypesInfo.Uses[id] != nil && calls.Within(l.pkg.TypesInfo.Uses[id], l.node) {
			return false
		}
	}
	return true
}

// same returns the Backoff of a wait that is the same each time, from a local variable or a parameter.
func (l *loop) same() (string, error) {
	id, isIdent := ast.Unparen(l.wait.Delay).(*ast.Ident)
	if !isIdent || len(l.delays) > 0 {
		return "", refuse("the length of its wait is not followed")
	}
	v, isVar := l.pkg.TypesInfo.Uses[id].(*types.Var)
	counts := l.guard != nil && l.Counter != nil && calls.Names(l.pkg.TypesInfo, l.guard.Cond, l.Counter)
	if !isVar || counts || v.Parent() == l.pkg.Types.Scope() || calls.Within(v, l.node) || l.changed(v, l.node.Pos(), l.node.End()) ||
		l.wait.Node.Pos() < l.Attempts[0].Pos() {
		return "", refuse("the length of its wait is not followed")
	}
	return ours + ".Backoff{Delays: []time.Duration{max(0, " + id.Name + ")}}", nil
}

// leave returns the statements that follow the new loop, for the ends of the old one that its body made.
func (l *loop) leave() (string, error) {
	breaks, success := false, true
	for n := range ast.Preorder(l.Body) {
		b, isB := n.(*ast.BranchStmt)
		if !isB || b.Tok != token.BREAK || l.removed(b) || l.inner(b) || l.switched(b) {
			continue
		}
		breaks = true
		up, isIf := l.parents[l.parents[b]].(*ast.IfStmt)
		goesOn := l.guard != nil && l.failed(l.guard.Cond) && isBranch(l.guard.Body.List[len(l.guard.Body.List)-1], token.CONTINUE)
		success = success && (isIf && up.Body == l.parents[b] && l.compared(up.Cond, token.EQL) || l.parents[b] == l.Body && goesOn)
	}
	exit, done := "", ""
	for i, text := range l.exits {
		if i > 0 && text != exit {
			return "", refuse("it ends in several ways when its attempts are used up")
		}
		exit = text
	}
	if l.end != nil {
		var err error
		if done, err = l.moved(l.end); err != nil {
			return "", err
		}
	}
	next, _ := l.after.(*ast.ReturnStmt)
	endless, err := l.attempts == 0, l.err.Name()
	const is = "errors.Is(%s, " + ours + ".AttemptsExhausted) {\n%s\n}"
	var out string
	switch {
	case endless && l.end == nil && (l.ctx != nil || !breaks):
		if exit, bad := l.zero(); bad != nil {
			return "", bad
		} else if out = exit; l.ctx == nil && l.after != nil {
			return "", refuse("code follows that it never reaches")
		}
	case endless:
		out = done
	case done == exit:
		if out = exit; next != nil && !breaks && l.text(next) == exit {
			out = ""
		}
	case done == "" && l.end == nil, done != "" && exit == "" && next != nil && !breaks && l.text(next) == done:
		out = exit
	case done == "":
		out = fmt.Sprintf("if "+is, err, exit)
	case exit == "":
		out = fmt.Sprintf("if !"+is, err, done)
	default:
		out = fmt.Sprintf("if !"+is, err, done) + "\n" + exit
	}
	if out == "" || out == "return" && l.after == nil {
		return "", nil
	}
	if breaks {
		if !success {
			return "", refuse("a break with an error and another end lead to the same place")
		}
		return "if " + err + " != nil {\n" + out + "\n}", nil
	}
	if l.after != nil && (exit != "" || endless) && !(done == "" && l.end != nil) { // it was not reached before
		if next == nil {
			return "", refuse("code follows that it never reaches")
		}
		l.edits = append(l.edits, l.line(next))
	}
	return out, nil
}

// switched reports whether the break b leaves a switch or a select in the loop.
func (l *loop) switched(b ast.Node) bool {
	for n := l.parents[b]; n != l.node; n = l.parents[n] {
		switch n.(type) {
		case *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			return true
		}
	}
	return false
}

// zero returns a return statement of zero values and the error.
func (l *loop) zero() (string, error) {
	if l.result.NumFields() == 0 {
		return "return", nil
	}
	var values []string
	for _, field := range l.result.List {
		value := "nil"
		switch t := l.pkg.TypesInfo.TypeOf(field.Type); u := t.Underlying().(type) {
		case *types.Basic:
			value = map[bool]string{true: `""`, false: "0"}[u.Info()&types.IsString != 0]
			if u.Info()&types.IsBoolean != 0 {
				value = "false"
			}
		case *types.Struct, *types.Array:
			value = l.text(field.Type) + "{}"
		case *types.Interface:
			if _, isParam := t.(*types.TypeParam); isParam {
				return "", refuse("its function returns a value of a type parameter")
			}
		}
		for range max(1, len(field.Names)) {
			values = append(values, value)
		}
	}
	last := l.result.List[len(l.result.List)-1]
	if !calls.IsError(l.pkg.TypesInfo.TypeOf(last.Type)) {
		return "", refuse("its function returns no error")
	}
	values[len(values)-1] = l.err.Name()
	return "return " + strings.Join(values, ", "), nil
}
