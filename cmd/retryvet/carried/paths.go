package carried

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"

	"golang.org/x/tools/go/cfg"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/retries"
)

// A path is one way through a region up to a statement. The sets have a bit for each variable of type error.
type path struct {
	none, some uint64 // known to be nil, and not to be nil
	final      uint64 // an error that ends the run
	changed    bool
}

// paths follows all ways through a region.
type paths struct {
	region
	at   change
	bits map[types.Object]uint64
	seen map[*cfg.Block]map[path]bool
	yes  bool
}

// repeatsAfter reports whether the region can run again after x. If x adds a result of a call that failed, that is nothing.
func (r region) repeatsAfter(x change) bool {
	if r.after == Committed {
		return true
	}
	p := paths{region: r, at: x, bits: map[types.Object]uint64{}, seen: map[*cfg.Block]map[path]bool{}}
	for n := range ast.Preorder(r.node) {
		if id, isIdent := n.(*ast.Ident); isIdent {
			if v, isVar := r.TypesInfo.ObjectOf(id).(*types.Var); isVar && calls.IsError(v.Type()) && p.bits[v] == 0 && len(p.bits) < 64 {
				p.bits[v] = 1 << len(p.bits)
			}
		}
	}
	stmts := r.body
	loop, isLoop := r.node.(*ast.RangeStmt)
	if isLoop {
		stmts = &ast.BlockStmt{List: []ast.Stmt{loop}}
	}
	blocks := cfg.New(stmts, func(call *ast.CallExpr) bool { return !retries.Exits(r.TypesInfo, call) }).Blocks
	begin := blocks[0]
	if isLoop {
		begin = blocks[slices.IndexFunc(blocks, func(b *cfg.Block) bool { return b.Stmt == loop && b.Kind == cfg.KindRangeBody })]
	}
	p.follow(begin, path{})
	return p.yes
}

func (p *paths) follow(b *cfg.Block, s path) {
	if p.seen[b] == nil {
		p.seen[b] = map[path]bool{}
	}
	if p.yes || p.seen[b][s] {
		return
	}
	p.seen[b][s] = true
	if b.Stmt == p.node { // a loop over Attempts
		switch b.Kind {
		case cfg.KindRangeLoop:
			p.yes = s.changed && (p.err == nil || (s.none|s.final)&p.bits[p.err] == 0)
			return
		case cfg.KindRangeDone:
			return
		}
	}
	for _, n := range b.Nodes {
		if n.Pos() <= p.at.cur.Node().Pos() && p.at.cur.Node().End() <= n.End() {
			s.changed = true
			s.none |= p.paired()
		}
		p.do(n, &s)
	}
	if len(b.Succs) == 2 && len(b.Nodes) > 0 {
		if cond, isBinary := b.Nodes[len(b.Nodes)-1].(*ast.BinaryExpr); isBinary && p.TypesInfo.Types[cond.Y].IsNil() {
			if bit := p.bits[calls.Object(p.TypesInfo, cond.X)]; bit != 0 {
				whenNil, other := b.Succs[0], b.Succs[1]
				if cond.Op == token.NEQ {
					whenNil, other = other, whenNil
				}
				if s.some&bit == 0 {
					to := s
					to.none |= bit
					p.follow(whenNil, to)
				}
				if s.none&bit == 0 {
					s.some |= bit
					p.follow(other, s)
				}
				return
			}
		}
	}
	for _, to := range b.Succs {
		p.follow(to, s)
	}
}

// do does what n does to the variables that have errors, and ends the path if n is a return statement.
func (p *paths) do(n ast.Node, s *path) {
	set := func(left, right ast.Expr) {
		bit := p.bits[calls.Object(p.TypesInfo, left)]
		none := right == nil || p.TypesInfo.Types[right].IsNil()
		final := !none && p.final(right, *s)
		s.none, s.some, s.final = s.none&^bit, s.some&^bit, s.final&^bit
		if none {
			s.none |= bit
		}
		if final {
			s.final |= bit
		}
	}
	switch n := n.(type) {
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if len(n.Values) == 0 {
				set(name, nil)
			} else {
				set(name, n.Values[min(i, len(n.Values)-1)])
			}
		}
	case *ast.AssignStmt:
		for i, left := range n.Lhs {
			set(left, n.Rhs[min(i, len(n.Rhs)-1)])
		}
	case *ast.ReturnStmt:
		if _, isLoop := p.node.(*ast.RangeStmt); !isLoop && s.changed {
			p.yes = p.yes || p.again(n.Results, *s)
		}
	}
}

// again reports whether the function runs again if it returns results.
func (p *paths) again(results []ast.Expr, s path) bool {
	if len(results) == 0 {
		if p.results == nil || len(p.results.List) == 0 {
			return false
		}
		names := p.results.List[len(p.results.List)-1].Names
		return len(names) > 0 && (s.none|s.final)&p.bits[p.TypesInfo.Defs[names[len(names)-1]]] == 0
	}
	last := results[len(results)-1]
	isNil := p.TypesInfo.Types[last].IsNil()
	bit := p.bits[calls.Object(p.TypesInfo, last)]
	if p.after != NotYet || len(results) == 1 {
		return !isNil && s.none&bit == 0 && !p.final(last, s)
	}
	done := p.TypesInfo.Types[results[0]].Value
	return (isNil || bit != 0 && s.some&bit == 0) && (done == nil || !constant.BoolVal(done))
}

var (
	ends  = regexp.MustCompile(`(?i)permanent|unrecoverable|non_?retr|terminal|fatal`)
	marks = regexp.MustCompile(`(?i)retryable`)
)

// final reports whether x is an error that ends the run.
func (p *paths) final(x ast.Expr, s path) bool {
	switch x := ast.Unparen(x).(type) {
	case *ast.CallExpr:
		name := types.ExprString(x.Fun)
		return ends.MatchString(name) || p.after == Marked && !marks.MatchString(name)
	case *ast.Ident:
		if bit := p.bits[p.TypesInfo.ObjectOf(x)]; bit != 0 {
			return s.final&bit != 0
		}
	}
	return p.after == Marked
}

// paired returns the bits of the errors of the calls whose other results are added, unless they were set again since.
func (p *paths) paired() (none uint64) {
	for n := range ast.Preorder(p.body) {
		a, isAssign := n.(*ast.AssignStmt)
		if !isAssign || a.Pos() >= p.at.cur.Node().Pos() {
			continue
		}
		bit := p.bits[calls.Object(p.TypesInfo, a.Lhs[len(a.Lhs)-1])]
		if bit == 0 {
			continue
		}
		none &^= bit
		for _, left := range a.Lhs[:len(a.Lhs)-1] {
			v := calls.Object(p.TypesInfo, left)
			if slices.ContainsFunc(p.at.parts, func(x ast.Expr) bool { return calls.Names(p.TypesInfo, x, v) }) {
				none |= bit
			}
		}
	}
	return none
}
