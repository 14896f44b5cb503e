package carried

import (
	"go/ast"
	"go/token"
	"go/types"
	"regexp"
	"slices"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/retries"
)

// A Param is a parameter that is a function, which runs again after the end After.
type Param struct {
	Index int
	After retries.End
}

// Reruns is the fact that a function runs some of its parameters again. A method without such a parameter has it too, so that
// a call through an interface is known to run a function again only if all methods behind it do.
type Reruns struct{ Params []Param }

// AFact makes it a fact.
func (*Reruns) AFact() {}

func (r *Reruns) String() string {
	if len(r.Params) == 0 {
		return "runs no parameter again"
	}
	return "runs a parameter again"
}

// known are functions of other modules that run the first function that they get again.
var known = []struct {
	name  *regexp.Regexp
	after retries.End
}{
	{regexp.MustCompile(`^github\.com/cenkalti/backoff(/v\d+)?\.Retry`), retries.OnError},
	{regexp.MustCompile(`^github\.com/avast/retry-go(/v\d+)?\.(Do|DoWithData|Retrier\w*\.Do)$`), retries.OnError},
	{regexp.MustCompile(`^k8s\.io/client-go/util/retry\.(OnError|RetryOnConflict)$`), retries.OnError},
	{regexp.MustCompile(`^github\.com/sethvargo/go-retry\.(Do|DoValue|Constant|Exponential|Fibonacci)$`), retries.OnMark},
	{regexp.MustCompile(`^github\.com/hashicorp/terraform-plugin-sdk(/v\d+)?/helper/(retry|resource)\.Retry(Context)?$`), retries.OnMark},
	{regexp.MustCompile(`^k8s\.io/apimachinery/pkg/util/wait\.(Poll|ExponentialBackoff)`), retries.OnFalse},
	{regexp.MustCompile(`^github\.com/cockroachdb/cockroach-go/.*\.Execute\w*Tx$`), retries.OnCommit},
	{regexp.MustCompile(`^cloud\.google\.com/go/(spanner\.Client\.ReadWriteTransaction|datastore\.Client\.RunInTransaction|firestore\.Client\.RunTransaction)`), retries.OnCommit},
	{regexp.MustCompile(`^google\.golang\.org/appengine(/v2)?/datastore\.RunInTransaction$`), retries.OnCommit},
	{regexp.MustCompile(`^github\.com/apple/foundationdb/bindings/go/src/fdb\.\w+\.(Read)?Transact$`), retries.OnCommit},
	{regexp.MustCompile(`^go\.etcd\.io/etcd/client/v3/concurrency\.NewSTM`), retries.OnCommit},
	{regexp.MustCompile(`^go\.mongodb\.org/mongo-driver/.*\.Session\w*\.WithTransaction$`), retries.OnCommit},
	{regexp.MustCompile(`^github\.com/lightningnetwork/lnd/kvdb\.(Update|View)$`), retries.OnCommit},
}

// A rerun is an argument that runs again.
type rerun struct {
	work  ast.Expr
	after retries.End
}

// reruns returns the arguments of call that run again.
func (f *finder) reruns(call *ast.CallExpr) (all []rerun) {
	if r, ok := calls.Of(f.TypesInfo, call); ok {
		if r.Callee.Pkg().Path() == calls.Module+"/retrysql" {
			return []rerun{{r.Work, retries.OnCommit}}
		}
		return []rerun{{r.Work, retries.OnError}}
	}
	callee, isFunc := typeutil.Callee(f.TypesInfo, call).(*types.Func)
	if !isFunc || callee.Pkg() == nil || calls.Ours(callee.Pkg()) {
		return nil
	}
	callee = callee.Origin()
	name := callee.Pkg().Path() + "." + calls.Name(callee)
	for _, k := range known {
		if k.name.MatchString(name) {
			for _, arg := range call.Args {
				if s, isFunc := f.TypesInfo.TypeOf(arg).Underlying().(*types.Signature); isFunc && failable(s) {
					return []rerun{{arg, k.after}}
				}
			}
		}
	}
	for _, p := range f.params(callee) {
		if p.Index < len(call.Args) {
			all = append(all, rerun{call.Args[p.Index], p.After})
		}
	}
	return all
}

// failable reports whether a function returns an error and does not get one.
func failable(s *types.Signature) bool {
	for v := range s.Params().Variables() {
		if calls.IsError(v.Type()) {
			return false
		}
	}
	n := s.Results().Len()
	return n > 0 && calls.IsError(s.Results().At(n-1).Type())
}

// params returns the parameters of callee that run again.
func (f *finder) params(callee *types.Func) []Param {
	if recv := callee.Signature().Recv(); recv != nil && types.IsInterface(recv.Type()) {
		return f.behind(callee)
	}
	if callee.Pkg() == f.Pkg {
		return f.own[callee]
	}
	var fact Reruns
	f.ImportObjectFact(callee, &fact)
	return fact.Params
}

var double = regexp.MustCompile(`(?i)mock|fake|stub|dummy`)

// behind returns the parameters that run again in all methods with the name and signature of m, a method of an interface.
func (f *finder) behind(m *types.Func) (params []Param) {
	if f.methods == nil {
		f.methods = map[string][]analysis.ObjectFact{}
		for _, o := range f.AllObjectFacts() {
			if _, is := o.Fact.(*Reruns); is && o.Object.Pkg() != f.Pkg {
				f.methods[o.Object.Name()] = append(f.methods[o.Object.Name()], o)
			}
		}
	}
	methods := slices.Clone(f.methods[m.Name()])
	for callee, own := range f.own {
		if callee.Name() == m.Name() {
			methods = append(methods, analysis.ObjectFact{Object: callee, Fact: &Reruns{own}})
		}
	}
	for _, o := range methods {
		method, isFunc := o.Object.(*types.Func)
		if !isFunc || method.Signature().Recv() == nil || !alike(method.Signature(), m.Signature()) || double.MatchString(calls.Name(method)) {
			continue
		}
		if params = o.Fact.(*Reruns).Params; len(params) == 0 {
			return nil
		}
	}
	return params
}

// alike reports whether a and b have the same parameters and results, as far as type parameters do not hide them.
func alike(a, b *types.Signature) bool {
	same := func(a, b *types.Tuple) bool {
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			s, t := a.At(i).Type(), b.At(i).Type()
			_, f := s.Underlying().(*types.Signature)
			_, g := t.Underlying().(*types.Signature)
			if f != g || !f && !types.Identical(s, t) {
				return false
			}
		}
		return true
	}
	return same(a.Params(), b.Params()) && same(a.Results(), b.Results())
}

// summarize finds out which parameters of the package's functions run again. It ends once a round has added none, since
// functions pass their parameters on to each other.
func (f *finder) summarize() {
	for added := true; added; {
		added = false
		for _, obj := range calls.InOrder(f.decls) {
			callee, cur := obj.(*types.Func), f.decls[obj]
			params := callee.Signature().Params()
			for i := range params.Len() {
				s, isFunc := params.At(i).Type().Underlying().(*types.Signature)
				is := func(p Param) bool { return p.Index == i }
				if !isFunc || !failable(s) || s.Results().Len() > 1 && types.Identical(s.Results().At(0).Type(), types.Typ[types.Bool]) || slices.ContainsFunc(f.own[callee], is) {
					continue
				}
				if after := f.runsAgain(cur, params.At(i)); after != 0 {
					f.own[callee] = append(f.own[callee], Param{i, after})
					added = true
				} else if _, listed := f.own[callee]; !listed && callee.Signature().Recv() != nil {
					f.own[callee] = nil
				}
			}
		}
	}
	for callee, params := range f.own {
		f.ExportObjectFact(callee, &Reruns{params})
	}
}

// runsAgain returns the end after which the function v runs again inside of cur; 0 if it does not.
func (f *finder) runsAgain(cur inspector.Cursor, v types.Object) retries.End {
	for c := range cur.Preorder((*ast.CallExpr)(nil)) {
		call := c.Node().(*ast.CallExpr)
		if calls.Is(f.TypesInfo, call.Fun, v) {
			if after := f.repeated(cur, c); after != 0 {
				return after
			}
			continue
		}
		if !slices.ContainsFunc(call.Args, func(x ast.Expr) bool { return calls.Is(f.TypesInfo, x, v) }) {
			continue
		}
		for _, r := range f.reruns(call) {
			if calls.Is(f.TypesInfo, r.work, v) {
				return r.after
			}
		}
	}
	return 0
}

// repeated returns the end after which the call c runs again inside of the function around; 0 if it does not.
func (f *finder) repeated(around, c inspector.Cursor) retries.End {
	call := c.Node().(*ast.CallExpr)
	passed := false // the call is inside of a function that another one gets, such as one that begins a transaction
	for up := c.Parent(); up.Node() != around.Node(); up = up.Parent() {
		switch n := up.Node().(type) {
		case *ast.GoStmt:
			return 0
		case *ast.ForStmt, *ast.RangeStmt:
			if !f.retries(up, around, call) {
				return 0
			}
			return f.orCommits(retries.OnError, n, passed)
		case *ast.FuncLit:
			switch p := up.Parent().Node().(type) {
			case *ast.CallExpr:
				for _, r := range f.reruns(p) {
					if r.work == n {
						return f.orCommits(r.after, n, passed)
					}
				}
				passed = passed || p.Fun != n
			case *ast.AssignStmt:
				if v := calls.Object(f.TypesInfo, p.Lhs[0]); v != nil && len(p.Lhs) == 1 && v != f.TypesInfo.Uses[c.Node().(*ast.CallExpr).Fun.(*ast.Ident)] {
					if after := f.runsAgain(around, v); after != 0 {
						return f.orCommits(after, n, passed)
					}
				}
				return 0
			default:
				return 0
			}
		}
	}
	return 0
}

// orCommits returns retries.OnCommit if a commit follows in n, or in the function that passed stands for; otherwise after.
func (f *finder) orCommits(after retries.End, n ast.Node, passed bool) retries.End {
	for n := range ast.Preorder(n) {
		if call, isCall := n.(*ast.CallExpr); isCall {
			if callee := typeutil.Callee(f.TypesInfo, call); callee != nil && commits.MatchString(callee.Name()) {
				return retries.OnCommit
			}
		}
	}
	if passed {
		return retries.OnCommit
	}
	return after
}

var (
	commits = regexp.MustCompile(`^(?i)commit`)
	waits   = regexp.MustCompile(`(?i)sleep|wait|backoff|timer|retr(y|ie)|attempt|tries|^After$`)
	next    = regexp.MustCompile(`\.(Next|Recv|Receive|Read|Scan|Pop)\w*$`)
)

// retries reports whether the loop at cur repeats call until it succeeds: it has an exit that depends on an error, it waits or
// is named for it, and no argument of call comes from what the loop goes through.
func (f *finder) retries(cur, around inspector.Cursor, call *ast.CallExpr) bool {
	if r, is := cur.Node().(*ast.RangeStmt); is {
		if _, attempts := calls.Of(f.TypesInfo, r); attempts {
			return true
		}
		if b, isBasic := f.TypesInfo.TypeOf(r.X).Underlying().(*types.Basic); !isBasic || b.Info()&types.IsInteger == 0 {
			return false
		}
	}
	waiting := false
	if decl, isDecl := around.Node().(*ast.FuncDecl); isDecl {
		waiting = waits.MatchString(decl.Name.Name)
	}
	leaves, asks := false, false
	for n := range ast.Preorder(cur.Node()) {
		switch n := n.(type) {
		case *ast.ReturnStmt:
			leaves = true
		case *ast.BranchStmt:
			leaves = leaves || n.Tok == token.BREAK
		case *ast.Ident:
			waiting = waiting || waits.MatchString(n.Name)
		case *ast.BinaryExpr:
			asks = asks || f.TypesInfo.Types[n.Y].IsNil() && calls.IsError(f.TypesInfo.TypeOf(n.X))
		}
	}
	return leaves && asks && waiting && !slices.ContainsFunc(call.Args, func(x ast.Expr) bool { return f.iterates(cur, x) })
}

// iterates reports whether x has a variable of the head of the loop at cur, or one made in it by what goes through something.
func (f *finder) iterates(cur inspector.Cursor, x ast.Expr) bool {
	for n := range ast.Preorder(x) {
		id, isIdent := n.(*ast.Ident)
		if !isIdent {
			continue
		}
		v, isVar := f.TypesInfo.Uses[id].(*types.Var)
		if !isVar || !calls.Within(v, cur.Node()) || calls.IsContext(v.Type()) {
			continue
		}
		if body, _ := cur.LastChild(); v.Pos() < body.Node().Pos() {
			return true
		}
		for _, x := range calls.Assigned(f.TypesInfo, cur.Node(), v) {
			if call, isCall := x.(*ast.CallExpr); isCall && next.MatchString(types.ExprString(call.Fun)) {
				return true
			}
		}
	}
	return false
}
