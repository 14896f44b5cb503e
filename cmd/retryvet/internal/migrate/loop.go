package migrate

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/ast/inspector"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/retries"
	"github.com/retrygo/retry/cmd/retryvet/replay"
)

// loop is a hand-written retry loop that is to be a loop over retry.Attempts.
type loop struct {
	*file
	*retries.Loop
	asks   *ast.CallExpr // a source for the wait; nil if the loop computes it
	source *source       // that makes the waits, or nil
	node   ast.Stmt
	after  ast.Stmt // the next statement in the same list, or nil
	params *ast.FieldList
	result *ast.FieldList
	wait   retries.Wait
	guard  *ast.IfStmt // around the wait, or nil
	first  int64       // the value of the counter in the first turn
	err    *types.Var  // the error of a turn
	ctx    ast.Expr    // of the run; nil means context.Background()

	attempts int64       // 0 means no limit
	limit    string      // the limit as the loop has it
	ttl      string      // of the source; "" if there is none
	stop     *ast.IfStmt // asks whether the source says that no attempt follows; nil if none does
	end      []ast.Stmt
	delays   map[types.Object]bool // the variables that are computed for the wait
	sets     []ast.Node            // the statements in the body that set them
	gone     []ast.Node            // statements that are removed
	edits    []edit
	number   bool // the body asks for the number of the attempt
	late     bool // it waits after the last attempt too
}

// loops moves the hand-written retry loops of the file that compute their waits, outside of tests, or those that ask a
// source for them.
func (f *file) loops(compute bool) (result []Site) {
	if compute && strings.HasSuffix(f.name, "_test.go") {
		return nil
	}
	for cur := range inspector.New([]*ast.File{f.ast}).Root().Preorder((*ast.ForStmt)(nil), (*ast.RangeStmt)(nil)) {
		l := &loop{file: f, node: cur.Node().(ast.Stmt), delays: map[types.Object]bool{}}
		if l.asks = f.asked(l.node); compute != (l.asks == nil) {
			continue
		}
		if l.Loop = retries.LoopAt(f.pkg.TypesInfo, cur, f.waits); l.Loop == nil || l.Kind != retries.Errors {
			if compute {
				continue
			}
			l.Loop = nil
		}
		result = append(result, f.try(l.node, "retry loop", l.move))
	}
	return result
}

// asked returns the first call in loop, and not in a loop or function in it, that asks a source for a wait; nil for none.
func (f *file) asked(loop ast.Node) (found *ast.CallExpr) {
	ast.Inspect(loop, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt, *ast.RangeStmt, *ast.FuncLit:
			return n == loop
		case *ast.CallExpr:
			if found == nil && f.waits(n) {
				found = n
			}
		}
		return true
	})
	return found
}

// move makes the edits that replace the loop.
func (l *loop) move() ([]edit, []ast.Node) {
	if l.Loop == nil {
		panic(refuse("it is not only failure that repeats it, or success does not leave it"))
	}
	for _, step := range []func(){l.place, l.sourced, l.header, l.waited, l.error, l.counted, l.stopped, l.alone, l.kept, l.beside, l.told} {
		step()
	}
	schedule := l.schedule()
	leave := l.leave()
	run, name := l.contextName()+".Background()", "ctx"
	uses := l.number // of the context of an attempt
	id, isIdent := l.ctx.(*ast.Ident)
	if l.ctx != nil {
		run = l.text(l.ctx)
	}
	if isIdent {
		name = id.Name
		uses = uses || slices.ContainsFunc(l.uses(l.pkg.TypesInfo.ObjectOf(id)), func(use *ast.Ident) bool { return within(use, l.Body) && !l.removed(use) })
	} else if uses && l.lookup(name, l.Body.Lbrace) != nil {
		panic(refuse("the name ctx does not mean the context of an attempt here"))
	}
	key := ""
	if uses {
		key = name + " := "
	}
	policy := literal(map[string]string{"MaxAttempts": cmp.Or(l.limit, ours+".Unlimited"), "Backoff": schedule, "TTL": l.ttl,
		"Classify": ours + ".RetryOn(" + l.contextName() + ".Canceled)"})
	l.edits = append(l.edits, edit{l.offset(l.node.Pos()), l.offset(l.Body.Lbrace),
		"for " + key + "range " + ours + ".Attempts(" + run + ", " + policy + ", &" + l.err.Name() + ") "})
	if leave != "" {
		l.edits = append(l.edits, edit{l.offset(l.node.End()), l.offset(l.node.End()), "\n" + leave})
	}
	return l.edits, l.gone
}

// reader reads what the old code does with the error. A loop that asks a source in its first line ends with the last error
// when its context is done, and does not say so.
func (l *loop) reader() *reader {
	return &reader{ends: l.ctx != nil, silent: l.ctx != nil && l.source != nil && l.wait.Delay == nil}
}

func (l *loop) removed(n ast.Node) bool {
	return slices.ContainsFunc(l.gone, func(outer ast.Node) bool { return within(n, outer) })
}

// place sets after, params and result.
func (l *loop) place() {
	stmts := list(l.parents[l.node])
	if stmts == nil {
		panic(refuse("it has a label"))
	}
	if i := slices.Index(stmts, l.node); i+1 < len(stmts) {
		l.after = stmts[i+1]
	}
	for _, t := range l.functions(l.node) {
		l.params, l.result = t.Params, cmp.Or(t.Results, &ast.FieldList{})
		break
	}
}

// told refuses a loop that repeats what must not be repeated, or whose function returns an error that is read in another way.
func (l *loop) told() {
	var fun ast.Node
	for fun = range l.functions(l.node) { // the outermost
	}
	if m := replay.Unsafe(l.pkg.TypesInfo, fun, &l.Retries); m != "" {
		panic(refuse("it repeats a %s without a key, or with one that is new in each attempt", m))
	}
	if fields := l.result.List; len(fields) > 0 && calls.IsError(l.pkg.TypesInfo.TypeOf(fields[len(fields)-1].Type)) {
		l.reader().returned(l.file, l.node)
	}
}

// error finds the variable with the error of a turn, and declares it outside of the loop.
func (l *loop) error() {
	for _, s := range l.Repeats {
		v, isVar := s.Err.(*types.Var)
		if !isVar || s.Last == retries.OK || s.Last == retries.None || l.err != nil && l.err != v {
			panic(refuse("a turn is repeated without an error in one variable"))
		}
		l.err = v
	}
	uses := l.uses(l.err)
	if l.err.Parent() == l.pkg.Types.Scope() {
		panic(refuse("its error is a package-level variable"))
	}
	for _, use := range uses {
		write, address := l.write(use)
		switch {
		case address || write && l.captured(l.err, use):
			panic(refuse("other code can set its error"))
		case !within(use, l.node) && !write:
			l.reader().use(l.file, use)
		}
	}
	if !calls.Within(l.err, l.node) {
		inside := slices.IndexFunc(uses, func(use *ast.Ident) bool { return within(use, l.Body) })
		if write, _ := l.write(uses[inside]); !write || l.Cond != nil && within(uses[inside], l.Cond) {
			panic(refuse("a turn looks at the error of the one before"))
		}
		return
	}
	if outer := l.lookup(l.err.Name(), l.node.Pos()); outer != nil {
		v, isVar := outer.(*types.Var)
		later := func(use *ast.Ident) bool { return use.Pos() > l.node.Pos() || l.captured(v, use) }
		if !isVar || !calls.IsError(v.Type()) || v.Parent() == l.pkg.Types.Scope() || calls.Within(v, l.result) || slices.ContainsFunc(l.uses(v), later) {
			panic(refuse("%s means something else outside of the loop", l.err.Name()))
		}
	} else {
		l.edits = append(l.edits, edit{l.offset(l.node.Pos()), l.offset(l.node.Pos()), "var " + l.err.Name() + " error\n"})
	}
	for id, def := range l.pkg.TypesInfo.Defs {
		if def == l.err {
			l.assign(id)
		}
	}
}

// assign makes the declaration of id, the error, an assignment, and declares its other names before it.
func (l *loop) assign(id *ast.Ident) {
	at, _ := l.statement(id)
	stmt, isAssign := l.parents[id].(*ast.AssignStmt)
	if spec, isSpec := l.parents[id].(*ast.ValueSpec); isSpec && len(spec.Names) == 1 && len(spec.Values) == 0 {
		l.gone = append(l.gone, at) // every turn begins without an error
		return
	}
	if !isAssign {
		panic(refuse("its error is declared together with others"))
	}
	declared := ""
	for _, left := range stmt.Lhs {
		other, isIdent := left.(*ast.Ident)
		v := l.pkg.TypesInfo.Defs[other]
		if !isIdent || other == id || v == nil || other.Name == "_" {
			continue
		}
		text := types.TypeString(v.Type(), func(p *types.Package) string { // the result must type-check
			if p == l.pkg.Types {
				return ""
			}
			return cmp.Or(l.importName(p.Path()), p.Name())
		})
		declared += "var " + other.Name + " " + text + "\n"
	}
	if declared != "" {
		l.edits = append(l.edits, edit{l.offset(at.Pos()), l.offset(at.Pos()), declared})
	}
	l.edits = append(l.edits, edit{l.offset(stmt.TokPos), l.offset(stmt.TokPos) + 2, "="})
}

// header reads the three parts of the loop's first line, but for those that ask the source.
func (l *loop) header() {
	n, isFor := l.node.(*ast.ForStmt)
	if !isFor {
		l.bound(l.node.(*ast.RangeStmt).X, 0)
		return
	}
	start, cond, post := l.own(n)
	if start == nil && cond == nil && post == nil {
		return
	}
	init, isAssign := start.(*ast.AssignStmt)
	counts, isInc := post.(*ast.IncDecStmt)
	if !isAssign || init.Tok != token.DEFINE || len(init.Lhs) != 1 || !isInc || counts.Tok != token.INC {
		panic(refuse("its first line is of another form"))
	}
	l.Counter = l.pkg.TypesInfo.ObjectOf(init.Lhs[0].(*ast.Ident))
	v := l.pkg.TypesInfo.Types[init.Rhs[0]].Value
	if v == nil || v.Kind() != constant.Int || !l.is(counts.X, l.Counter) {
		panic(refuse("its counter does not begin with a constant"))
	}
	l.first, _ = constant.Int64Val(v)
	compared, isBinary := cond.(*ast.BinaryExpr)
	switch {
	case cond == nil:
	case isBinary && l.is(compared.X, l.Counter) && compared.Op == token.LSS:
		l.bound(compared.Y, l.first)
	case isBinary && l.is(compared.X, l.Counter) && compared.Op == token.LEQ:
		l.bound(compared.Y, l.first-1)
	default:
		panic(refuse("its condition is not that of a counter"))
	}
}

// bound sets the number of attempts to x-less.
func (l *loop) bound(x ast.Expr, less int64) {
	v := l.pkg.TypesInfo.Types[x].Value
	if v == nil {
		panic(refuse("the number of attempts is not a constant: a loop makes none for 0, and MaxAttempts means 8"))
	}
	n, _ := constant.Int64Val(constant.ToInt(v))
	l.attempts, l.limit = n-less, l.text(x)
	if less != 0 {
		l.limit = fmt.Sprint(l.attempts)
	}
}

// waited finds the one wait of the loop, its context, and the statements that compute its length.
func (l *loop) waited() {
	if len(l.Waits) != 1 {
		panic(refuse("it waits in %d places", len(l.Waits)))
	}
	l.wait = l.Waits[0]
	if l.wait.Delay == nil && l.wait.Node != l.asks {
		panic(refuse("it waits for a timer"))
	}
	stmt, stmts := l.statement(l.wait.Node)
	if l.outside() {
		stmt, stmts = nil, nil
	} else if l.parents[stmt] != l.Body {
		block, _ := l.parents[stmt].(*ast.BlockStmt)
		guard, isIf := l.parents[block].(*ast.IfStmt)
		if !isIf || l.parents[guard] != l.Body || guard.Init != nil || guard.Else != nil || guard.Body != block {
			panic(refuse("its wait is inside of another statement"))
		}
		l.guard = guard
	}
	if choice, isSelect := l.wait.Node.(*ast.SelectStmt); isSelect {
		l.watched(choice)
	} else if l.ctx == nil && l.wait.Delay != nil {
		l.ctx = l.parameter()
	}
	if id, isIdent := l.ctx.(*ast.Ident); isIdent && l.changed(l.pkg.TypesInfo.ObjectOf(id), l.node.Pos(), l.node.End()) {
		panic(refuse("its context is assigned in it"))
	}
	for n := range ast.Preorder(l.Body) {
		b, isBranch := n.(*ast.BranchStmt)
		switch {
		case !isBranch:
		case b.Tok == token.GOTO || b.Label != nil:
			panic(refuse("it has a label or a goto"))
		case b.Tok == token.CONTINUE && stmt != nil && !(slices.Contains(stmts, ast.Stmt(b)) && b.Pos() > stmt.Pos()) && l.leaves(b) == l.node:
			panic(refuse("a turn can end without a wait"))
		}
	}
	if stmt == nil {
		return
	}
	l.gone = append(l.gone, stmt)
	l.computed(stmts)
}

// leaves returns the statement that b, a break or continue without a label, ends or repeats.
func (l *loop) leaves(b *ast.BranchStmt) ast.Node {
	for n := l.parents[b]; ; n = l.parents[n] {
		switch n.(type) {
		case *ast.ForStmt, *ast.RangeStmt, *ast.FuncLit:
			return n
		case *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
			if b.Tok == token.BREAK {
				return n
			}
		}
	}
}

// watched reads the select that waits: one case of a timer, and one of a context.
func (l *loop) watched(choice *ast.SelectStmt) {
	for _, c := range choice.Body.List {
		c := c.(*ast.CommClause)
		receive, isExpr := c.Comm.(*ast.ExprStmt)
		if !isExpr {
			panic(refuse("its wait is a select with more than a timer and a context"))
		}
		call, isCall := ast.Unparen(ast.Unparen(receive.X).(*ast.UnaryExpr).X).(*ast.CallExpr)
		sel, isSel := (*ast.SelectorExpr)(nil), false
		if isCall {
			sel, isSel = call.Fun.(*ast.SelectorExpr)
		}
		switch {
		case isCall && calls.IsFunc(l.pkg.TypesInfo, call, "time", "After"):
			if len(c.Body) > 0 {
				panic(refuse("something else follows its wait in the select"))
			}
		case isSel && sel.Sel.Name == "Done" && calls.IsContext(l.pkg.TypesInfo.TypeOf(sel.X)) && (l.ctx == nil || l.text(l.ctx) == l.text(sel.X)) && calls.Root(l.pkg.TypesInfo, sel.X) != nil:
			l.ctx, l.end = sel.X, c.Body
		default:
			panic(refuse("its wait ends with a channel that is not a context's"))
		}
	}
	if len(l.end) == 0 {
		panic(refuse("it goes on after its context has ended"))
	}
}

func isBranch(stmt ast.Stmt, tok token.Token) bool {
	b, isBranch := stmt.(*ast.BranchStmt)
	return isBranch && b.Tok == tok && b.Label == nil
}

// parameter returns the context that the function around the loop gets, or nil.
func (l *loop) parameter() ast.Expr {
	for name := range paramNames(l.params) {
		if v := l.pkg.TypesInfo.Defs[name]; v != nil && calls.IsContext(v.Type()) && l.lookup(name.Name, l.node.Pos()) == v {
			return name
		}
	}
	return nil
}

// computed finds the statements that set variables of the wait, which are removed. They stand beside it or in the body.
func (l *loop) computed(beside []ast.Stmt) {
	info := l.pkg.TypesInfo
	var queue []ast.Node
	if l.wait.Delay != nil {
		queue = append(queue, l.wait.Delay)
	}
	for i := 0; i < len(queue); i++ {
		for id := range idents(queue[i]) {
			obj := info.Uses[id]
			if obj == nil || l.delays[obj] {
				continue
			}
			for n := range ast.Preorder(l.Body) {
				stmt, isStmt := n.(ast.Stmt)
				if !isStmt || !calls.Sets(info, n, obj) {
					continue
				}
				for l.parents[stmt] != l.Body && !slices.Contains(beside, stmt) && isStmt {
					stmt, isStmt = l.parents[stmt].(ast.Stmt)
				}
				if !isStmt || stmt == l.guard {
					panic(refuse("%s is set inside of another statement or function", obj.Name()))
				}
				if l.delays[obj] = true; !slices.Contains(l.gone, ast.Node(stmt)) {
					l.gone, l.sets, queue = append(l.gone, stmt), append(l.sets, stmt), append(queue, stmt)
				}
			}
		}
	}
	for _, stmt := range append(slices.Clip(beside), l.Body.List...) {
		if l.stops(stmt) && l.stop == nil {
			l.stop = stmt.(*ast.IfStmt)
			l.gone = append(l.gone, stmt)
		}
	}
	for obj := range l.delays {
		if def, _ := l.definition(obj); def != nil && !within(def, l.node) {
			l.gone = append(l.gone, def)
		}
	}
	for obj := range l.delays {
		if slices.ContainsFunc(l.uses(obj), func(id *ast.Ident) bool { return !l.removed(id) }) {
			panic(refuse("%s is used for something else than the wait", obj.Name()))
		}
	}
}

// counted removes the ifs whose counter breaks the loop, and lowers the number of attempts.
func (l *loop) counted() {
	for _, stmt := range l.Body.List {
		n, isIf := stmt.(*ast.IfStmt)
		if !isIf || l.Counter == nil || n == l.guard || n.Init != nil || n.Else != nil || len(n.Body.List) != 1 ||
			!isBranch(n.Body.List[0], token.BREAK) || !calls.Names(l.pkg.TypesInfo, n.Cond, l.Counter) {
			continue
		}
		for turn := int64(1); turn <= 1000; turn++ {
			v := l.turns(0, turn).Value(n.Cond)
			if v == nil {
				break
			}
			if !constant.BoolVal(v) {
				continue
			}
			if n.Pos() < l.Attempts[0].Pos() {
				turn--
			}
			if l.attempts == 0 || turn < l.attempts {
				l.attempts, l.limit = turn, fmt.Sprint(turn)
			}
			l.gone = append(l.gone, n)
			break
		}
	}
}

// moved returns the source of statements that can stand after the loop.
func (l *loop) moved(stmts []ast.Stmt) string {
	if len(stmts) == 1 && isBranch(stmts[0], token.BREAK) {
		return ""
	}
	for _, stmt := range stmts {
		if name := l.local(stmt); name != "" {
			panic(refuse("%s, which it needs when it ends, is declared in it", name))
		}
	}
	text := string(l.src[l.offset(stmts[0].Pos()):l.offset(stmts[len(stmts)-1].End())])
	if l.ctx != nil {
		ended := regexp.MustCompile(`\b(` + regexp.QuoteMeta(l.text(l.ctx)) + `\.Err\(\)|context\.Cause\(` + regexp.QuoteMeta(l.text(l.ctx)) + `\))`)
		if ended.MatchString(text) && slices.ContainsFunc(stmts, func(s ast.Stmt) bool { return calls.Names(l.pkg.TypesInfo, s, l.err) }) {
			panic(refuse("its end has the error of the context beside its own"))
		}
		text = ended.ReplaceAllString(text, l.err.Name())
	}
	return text
}

// compared reports whether x compares the error with nil by op.
func (l *loop) compared(x ast.Expr, op token.Token) bool {
	b, isBinary := ast.Unparen(x).(*ast.BinaryExpr)
	return isBinary && b.Op == op && l.is(b.X, l.err) && l.pkg.TypesInfo.Types[b.Y].IsNil()
}

// outside reports whether it waits in its first line, after each turn.
func (l *loop) outside() bool { return !within(l.wait.Node, l.Body) }

// before reports whether a turn begins with the wait.
func (l *loop) before() bool { return !l.outside() && l.wait.Node.Pos() < l.Attempts[0].Pos() }

// alone refuses a wait that is not the last step of a turn, or the first: what stands beside it would be done before it, or
// after it.
func (l *loop) alone() {
	if l.outside() {
		return
	}
	stmt, stmts := l.statement(l.wait.Node)
	beside := func(stmts []ast.Stmt, stmt ast.Stmt) []ast.Stmt {
		if i := slices.Index(stmts, stmt); l.before() {
			return stmts[:i]
		} else {
			return stmts[i+1:]
		}
	}
	crossed := beside(stmts, stmt)
	if l.guard != nil && (l.before() || !isBranch(stmts[len(stmts)-1], token.CONTINUE)) {
		crossed = append(slices.Clone(crossed), beside(l.Body.List, l.guard)...)
	}
	if slices.ContainsFunc(crossed, func(s ast.Stmt) bool { return !l.removed(s) && !isBranch(s, token.CONTINUE) }) {
		panic(refuse("its wait is not the last step of a turn, or the first"))
	}
}

// kept replaces the counter in what stays of the body by the number of the attempt.
func (l *loop) kept() {
	if l.guard != nil {
		final := l.guard == l.Body.List[len(l.Body.List)-1] // a continue in it changes nothing
		rest := slices.ContainsFunc(l.guard.Body.List, func(s ast.Stmt) bool { return !l.removed(s) && !(final && isBranch(s, token.CONTINUE)) })
		switch counts := l.Counter != nil && calls.Names(l.pkg.TypesInfo, l.guard.Cond, l.Counter); {
		case !counts && !l.compared(l.guard.Cond, token.NEQ):
			panic(refuse("its wait depends on a condition"))
		case counts && rest:
			panic(refuse("a condition on its counter does more than wait"))
		case !rest:
			l.gone = append(l.gone, l.guard)
		}
	}
	if l.Counter == nil {
		return
	}
	for _, id := range l.uses(l.Counter) {
		if !within(id, l.Body) || l.removed(id) {
			continue
		}
		write, address := l.write(id)
		if write || address || l.pkg.TypesInfo.TypeOf(id) != types.Typ[types.Int] {
			panic(refuse("its counter is changed, or not an int"))
		}
		at := ast.Node(id)
		more := int64(0)
		if b, isBinary := l.parents[id].(*ast.BinaryExpr); isBinary && b.Op == token.ADD && b.X == id {
			if v := l.pkg.TypesInfo.Types[b.Y].Value; v != nil {
				at = b
				more, _ = constant.Int64Val(v)
			}
		}
		l.numbered(at, 1-l.first-more)
	}
}

// turns returns the state of the nth turn before the delays are computed.
func (l *loop) turns(u float64, n int64) *turns {
	t := &turns{values: map[types.Object]constant.Value{}, wait: l.wait, sets: append(l.sets, l.wait.Node)}
	t.Eval = retries.Eval{Info: l.pkg.TypesInfo, U: u, Random: map[ast.Node]bool{}, Known: func(x ast.Expr) constant.Value {
		if t.asks != nil && x == t.asks {
			return t.asked()
		}
		return t.values[calls.Object(l.pkg.TypesInfo, x)]
	}}
	if l.guard != nil && l.compared(l.guard.Cond, token.NEQ) {
		t.guard = l.guard
	}
	if l.source != nil {
		t.asks, t.next = l.asks, l.source.delays(u)
	}
	if l.Counter != nil {
		t.values[l.Counter] = constant.MakeInt64(l.first + n - 1)
	}
	return t
}

// schedule returns the Backoff that makes the waits of the loop.
func (l *loop) schedule() string {
	if l.attempts == 1 || l.attempts < 0 {
		panic(refuse("it makes one attempt at most"))
	}
	var waits [2][]time.Duration
	for i, u := range []float64{0, 1} {
		known, random := false, 0
		waits[i], random, known = l.lengths(u)
		switch {
		case !known:
			return l.same()
		case random > 1:
			panic(refuse("its wait has more than one random number"))
		case l.asks != nil && random == 0 && len(waits[i]) > 0:
			panic(refuse("its wait is not what it asks for"))
		}
	}
	if l.late && !l.ends() {
		panic(refuse("it waits after the last attempt too, and what follows would be done sooner"))
	}
	if len(waits[0]) == 0 {
		panic(refuse("it waits before its first attempt, or not after each"))
	}
	b := fit(waits[0], waits[1], l.attempts > 0, l.source.most())
	base := ""
	if b.Mode == retry.Fixed && b.Jitter == 0 && l.source == nil && l.pkg.TypesInfo.Types[l.wait.Delay].Value != nil && l.local(l.wait.Delay) == "" {
		base = l.text(l.wait.Delay)
	}
	return written(b, base)
}

// lengths returns the waits between the attempts if all random numbers are u, how many of these a wait has, and false if
// that is unknown. The waits are none if a turn begins without one.
func (l *loop) lengths(u float64) (waits []time.Duration, random int, known bool) {
	t := l.turns(u, 1)
	for obj := range l.delays {
		if def, value := l.definition(obj); def != nil && !within(def, l.node) {
			if t.values[obj] = t.Value(value); t.values[obj] == nil {
				return nil, 0, false
			}
		}
	}
	turns, before := cmp.Or(l.attempts, many), l.before()
	for n := int64(1); n <= turns; n++ {
		if l.Counter != nil {
			t.values[l.Counter] = constant.MakeInt64(l.first + n - 1)
		}
		t.waited = -1
		if l.outside() {
			t.sleep()
		} else if !t.run(l.Body) {
			return nil, 0, false
		}
		switch {
		case (before && n == 1) != (t.waited < 0) && (before || n < turns):
			return nil, 0, true
		case before && n > 1, !before && n < turns:
			waits = append(waits, t.waited)
		default:
			l.late = !before && l.wait.Delay != nil && l.attempts > 0 && t.waited >= 0
		}
		if t.waited > 1<<60 { // decades
			break
		}
	}
	return waits, len(t.Random), true
}

// ends reports whether only a return of values that are there follows the loop.
func (l *loop) ends() bool {
	next := l.after
	if n, isIf := next.(*ast.IfStmt); isIf && n.Init == nil && n.Else == nil && len(n.Body.List) == 1 && l.compared(n.Cond, token.NEQ) {
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

// local returns the name of a variable or constant in n, other than the error, that is declared in the loop; "" for none.
func (l *loop) local(n ast.Node) string {
	for id := range idents(n) {
		if obj := l.pkg.TypesInfo.Uses[id]; obj != nil && obj != l.err && calls.Within(obj, l.node) {
			return id.Name
		}
	}
	return ""
}

// same returns the Backoff of a wait that is the same each time, from a local variable or a parameter.
func (l *loop) same() string {
	id, isIdent := ast.Unparen(l.wait.Delay).(*ast.Ident)
	if !isIdent || len(l.delays) > 0 {
		panic(refuse("the length of its wait is not followed"))
	}
	v, isVar := l.pkg.TypesInfo.Uses[id].(*types.Var)
	counts := l.guard != nil && l.Counter != nil && calls.Names(l.pkg.TypesInfo, l.guard.Cond, l.Counter)
	if !isVar || counts || v.Parent() == l.pkg.Types.Scope() || calls.Within(v, l.node) || l.changed(v, l.node.Pos(), l.node.End()) ||
		l.before() {
		panic(refuse("the length of its wait is not followed"))
	}
	return ours + ".Backoff{Delays: []time.Duration{max(0, " + id.Name + ")}}"
}

// leave returns the statements that follow the new loop, for the ends of the old one that its body made.
func (l *loop) leave() string {
	endless, err := l.attempts == 0 && l.ttl == "", l.err.Name()
	next, _ := l.after.(*ast.ReturnStmt)
	breaks, success := l.broken()
	if l.stop != nil && l.end == nil {
		l.end = l.stop.Body.List
	}
	done := ""
	switch {
	case l.end != nil:
		done = l.moved(l.end)
	case endless && (l.ctx != nil || !breaks):
		done = l.zero()
	}
	if l.stop != nil && l.moved(l.stop.Body.List) != done {
		panic(refuse("it ends in several ways"))
	}
	cond := ""
	switch {
	case done == "" || done == "return" && l.after == nil || next != nil && !breaks && l.text(next) == done:
		return ""
	case breaks && !success:
		panic(refuse("a break with an error and another end lead to the same place"))
	case l.attempts > 0 && l.stop == nil:
		cond = "!errors.Is(" + err + ", " + ours + ".AttemptsExhausted)"
	case !breaks && l.after != nil:
		panic(refuse("code follows that it never reaches"))
	}
	if breaks {
		cond = strings.TrimSuffix(err+" != nil && "+cond, " && ")
	}
	if cond != "" {
		done = "if " + cond + " {\n" + done + "\n}"
	}
	return done
}

// zero returns a return statement of zero values and the error.
func (l *loop) zero() string {
	if l.result.NumFields() == 0 {
		return "return"
	}
	var values []string
	for _, field := range l.result.List {
		value := "nil"
		switch u := l.pkg.TypesInfo.TypeOf(field.Type).Underlying().(type) {
		case *types.Basic:
			value = map[types.BasicInfo]string{types.IsString: `""`, types.IsBoolean: "false"}[u.Info()&(types.IsString|types.IsBoolean)]
			value = cmp.Or(value, "0")
		case *types.Struct, *types.Array:
			value = l.text(field.Type) + "{}"
		}
		values = append(values, slices.Repeat([]string{value}, max(1, len(field.Names)))...)
	}
	if last := l.result.List[len(l.result.List)-1]; !calls.IsError(l.pkg.TypesInfo.TypeOf(last.Type)) {
		panic(refuse("its function returns no error"))
	}
	values[len(values)-1] = l.err.Name()
	return "return " + strings.Join(values, ", ")
}
