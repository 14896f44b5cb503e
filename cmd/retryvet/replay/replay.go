// Package replay defines an analyzer for effects that must not be repeated, in code that runs again if it fails.
package replay

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"
	"golang.org/x/tools/go/types/typeutil"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/ignore"
	"github.com/retrygo/retry/cmd/retryvet/internal/retries"
)

const doc = `report effects that must not be repeated, in code that runs again if it fails

In a function literal that is passed to retry.Do, DoValue or Wrap, and in a loop over retry.Attempts, this reports

 - a POST or PATCH without an Idempotency-Key, or with one that is new in each attempt, that is repeated after any error:
   if only the answer was lost, it takes effect twice. It is not reported if a condition inspects the error, if the function uses retry.Permanent or a word such
   as "idempotency" or "request_id", or if another function gets the request;
 - a body from outside that is read by every attempt: it is empty from the second one on;
 - a response that a failing path leaves open: its connection is not used again;
 - an INSERT, or an UPDATE that adds to a column, on a *sql.DB: a later step of the same attempt can fail, and then the
   statement is repeated although it has succeeded.

Method, key and repetition must be in one function. Test files are skipped.`

// Analyzer is the analyzer replay.
var Analyzer = ignore.New("replay", doc, run)

func run(pass *analysis.Pass) (any, error) {
	if !slices.ContainsFunc(pass.Pkg.Imports(), func(p *types.Package) bool { return receivers[p.Path()] != nil || p.Path() == "net/http" }) {
		return nil, nil
	}
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	for cur := range in.Root().Preorder((*ast.RangeStmt)(nil), (*ast.CallExpr)(nil)) {
		if strings.HasSuffix(pass.Fset.Position(cur.Node().Pos()).Filename, "_test.go") {
			continue
		}
		r := replay{pass: pass, info: pass.TypesInfo}
		switch n := cur.Node().(type) {
		case *ast.CallExpr:
			c, isOurs := calls.Of(r.info, n)
			if !isOurs || c.Callee.Pkg().Path() != calls.Module { // others, such as retrysql, do not repeat every error
				continue
			}
			lit, isLit := ast.Unparen(c.Work).(*ast.FuncLit)
			if !isLit {
				continue
			}
			r.Retries = retries.Work(r.info, lit, r.writes)
		case *ast.RangeStmt:
			l, isOurs := calls.LoopOf(r.info, n)
			if !isOurs || l.ErrVar(r.info) == nil {
				continue
			}
			r.Retries, r.loop = retries.Turns(r.info, l.Body, l.ErrVar(r.info), r.writes), true
		}
		for up := range cur.Enclosing((*ast.FuncDecl)(nil)) {
			r.function = up.Node()
		}
		if r.function != nil && len(r.Repeats) > 0 {
			r.check()
		}
	}
	return nil, nil
}

type replay struct {
	*retries.Retries
	pass     *analysis.Pass
	info     *types.Info
	loop     bool     // over retry.Attempts
	function ast.Node // the declaration around it
}

// fresh are functions, by package, that return another value at each call.
var fresh = map[string]*regexp.Regexp{
	"math/rand":                  regexp.MustCompile(``),
	"math/rand/v2":               regexp.MustCompile(``),
	"crypto/rand":                regexp.MustCompile(``),
	"time":                       regexp.MustCompile(`^Now$`),
	"github.com/google/uuid":     regexp.MustCompile(`^New`),
	"github.com/gofrs/uuid":      regexp.MustCompile(`^NewV[14]$`),
	"github.com/rs/xid":          regexp.MustCompile(`^New$`),
	"github.com/oklog/ulid":      regexp.MustCompile(`^(Make|New)`),
	"github.com/segmentio/ksuid": regexp.MustCompile(`^New`),
}

func (r replay) check() {
	done, lost, open := map[*ast.CallExpr]bool{}, map[*ast.CallExpr]bool{}, map[*ast.CallExpr]int{} // a status
	for _, s := range r.Repeats {
		if s.Done != nil && s.Last == retries.Failed && !r.Judged[s.Done] && !r.result(s.Call) {
			done[s.Done] = true
		}
		if r.lost(s) {
			lost[s.Call] = true
		}
		if s.Open && open[s.Request] != 500 && r.sends(s.Request) && r.method(s.Request) != "HEAD" {
			open[s.Request] = s.Status
		}
	}
	for _, call := range r.Attempts {
		if done[call] {
			r.pass.ReportRangef(call, "this %s has succeeded and is repeated if a later step fails: use retrysql.Tx for both", r.verb(call))
		}
		if m := r.method(call); lost[call] && (m == "POST" || m == "PATCH") {
			const twice = "is repeated after any error: if only the answer was lost, it takes effect twice"
			if key := r.renewed(call); key != nil {
				r.pass.ReportRangef(key, "this key is new in each attempt, and the %s %s", m, twice)
			} else if !r.keyed(call) {
				r.pass.ReportRangef(call, "this %s without an Idempotency-Key %s", m, twice)
			}
		}
		if status := open[call]; status != 0 {
			r.pass.ReportRangef(call, "the response is not closed before the next attempt if its status is %d", status)
		}
	}
	ast.Inspect(r.Body, func(n ast.Node) bool {
		if call, isCall := n.(*ast.CallExpr); isCall {
			if body := r.spent(call); body != "" {
				r.pass.ReportRangef(call, "%s comes from outside: it is empty from the second attempt on", body)
			}
		}
		return true
	})
}

// lost reports whether the last attempt of s got no answer, so that the server may have acted on it.
func (r replay) lost(s retries.State) bool {
	return s.Last == retries.Failed && !r.Judged[s.Call] && s.Call != nil && r.sends(s.Call)
}

// result reports whether call asks about a statement that has succeeded, which fails only if the driver does not
// support it.
func (r replay) result(call *ast.CallExpr) bool {
	return calls.IsNamed(r.receiver(call), "database/sql", "Result")
}

func (r replay) receiver(call *ast.CallExpr) types.Type {
	if s, isSelector := call.Fun.(*ast.SelectorExpr); isSelector {
		return r.info.TypeOf(s.X)
	}
	return nil
}

// sends reports whether call sends a request of net/http.
func (r replay) sends(call *ast.CallExpr) bool {
	return calls.IsFunc(r.info, call, "net/http", "Get", "Head", "Post", "PostForm",
		"Client.Do", "Client.Get", "Client.Head", "Client.Post", "Client.PostForm", "Transport.RoundTrip")
}

// method returns the HTTP method of a call that sends a request, "" if it is unknown.
func (r replay) method(call *ast.CallExpr) string {
	switch {
	case call == nil:
	case calls.IsFunc(r.info, call, "net/http", "Post", "PostForm", "Client.Post", "Client.PostForm"):
		return "POST"
	case calls.IsFunc(r.info, call, "net/http", "Head", "Client.Head"):
		return "HEAD"
	case r.sends(call):
		if made := r.made(call); made != nil {
			return r.text(made.Args[len(made.Args)-3])
		}
	}
	return ""
}

// made returns the only call of http.NewRequest in the function that makes the request that call sends, or nil.
func (r replay) made(call *ast.CallExpr) (made *ast.CallExpr) {
	v := r.variable(call.Args[0])
	if v == nil {
		return nil
	}
	several := false
	ast.Inspect(r.function, func(n ast.Node) bool {
		a, isAssign := n.(*ast.AssignStmt)
		if !isAssign {
			return true
		}
		for i, left := range a.Lhs {
			if id, isIdent := left.(*ast.Ident); !isIdent || r.info.ObjectOf(id) != v {
				continue
			}
			right, isCall := ast.Unparen(a.Rhs[min(i, len(a.Rhs)-1)]).(*ast.CallExpr)
			if made != nil || !isCall || !calls.IsFunc(r.info, right, "net/http", "NewRequest", "NewRequestWithContext") {
				several = true
			}
			made = right
		}
		return true
	})
	if several {
		return nil
	}
	return made
}

func (r replay) variable(x ast.Expr) types.Object {
	if id, isIdent := ast.Unparen(x).(*ast.Ident); isIdent {
		return r.info.Uses[id]
	}
	return nil
}

func (r replay) text(x ast.Expr) string {
	if v := r.info.Types[x].Value; v != nil && v.Kind() == constant.String {
		return constant.StringVal(v)
	}
	return ""
}

var key = regexp.MustCompile(`(?i)idempoten|(request|transaction|message|event)[-_]?id|nonce|dedup|if-match`)

// keyed reports whether the request that call sends may have a key: the function mentions one, or other code gets
// the request.
func (r replay) keyed(call *ast.CallExpr) (yes bool) {
	var request types.Object
	if made := r.made(call); made != nil {
		request = r.variable(call.Args[0])
	}
	ast.Inspect(r.function, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			yes = yes || key.MatchString(n.Name)
		case *ast.BasicLit:
			yes = yes || n.Kind == token.STRING && key.MatchString(n.Value)
		case *ast.AssignStmt:
			for _, left := range n.Lhs {
				s, isSelector := left.(*ast.SelectorExpr)
				yes = yes || isSelector && s.Sel.Name == "Header" && r.variable(s.X) == request && request != nil
			}
		case *ast.CallExpr:
			for _, arg := range n.Args {
				if s, isSelector := arg.(*ast.SelectorExpr); isSelector && s.Sel.Name == "Header" {
					arg = s.X
				}
				yes = yes || request != nil && r.variable(arg) == request && !r.sends(n)
			}
			if calls.IsFunc(r.info, n, "net/http", "Header.Set", "Header.Add") {
				yes = yes || r.text(n.Args[0]) == ""
			}
		}
		return !yes
	})
	return yes
}

// renewed returns the value of the Idempotency-Key of the request that call sends if each attempt makes a new one.
func (r replay) renewed(call *ast.CallExpr) (value ast.Expr) {
	request := r.variable(call.Args[0])
	if request == nil {
		return nil
	}
	ast.Inspect(r.Body, func(n ast.Node) bool {
		set, isCall := n.(*ast.CallExpr)
		if !isCall || !calls.IsFunc(r.info, set, "net/http", "Header.Set", "Header.Add") ||
			!strings.EqualFold(r.text(set.Args[0]), "Idempotency-Key") || calls.Root(r.info, set.Fun) != request {
			return true
		}
		if value = nil; r.fresh(set.Args[1]) {
			value = set.Args[1]
		}
		return true
	})
	return value
}

// fresh reports whether x, in the repeated code, has another value in each attempt: it calls a source of such values, or
// is a variable that is declared there with such a call.
func (r replay) fresh(x ast.Node) (yes bool) {
	ast.Inspect(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f := typeutil.StaticCallee(r.info, n); f != nil && f.Pkg() != nil {
				path := regexp.MustCompile(`/v[3-9]$`).ReplaceAllString(f.Pkg().Path(), "")
				yes = yes || fresh[path] != nil && fresh[path].MatchString(f.Name())
			}
		case *ast.Ident:
			v := r.info.Uses[n]
			if v == nil || !calls.Within(v, r.Body) {
				break
			}
			ast.Inspect(r.Body, func(n ast.Node) bool {
				if a, isAssign := n.(*ast.AssignStmt); isAssign && a.Tok == token.DEFINE {
					for i, left := range a.Lhs {
						if id, isIdent := left.(*ast.Ident); isIdent && r.info.Defs[id] == v {
							yes = yes || r.fresh(a.Rhs[min(i, len(a.Rhs)-1)])
						}
					}
				}
				return !yes
			})
		}
		return !yes
	})
	return yes
}

// spent returns the body that call sends or makes a request of, if it was made outside of the repeated code and is not
// used elsewhere in it.
func (r replay) spent(call *ast.CallExpr) string {
	var body ast.Expr
	switch {
	case calls.IsFunc(r.info, call, "net/http", "NewRequest", "NewRequestWithContext", "Post", "Client.Post"):
		body = call.Args[len(call.Args)-1]
	case r.loop && calls.IsFunc(r.info, call, "net/http", "Client.Do"): // in a function literal, attemptctx finds it
		if made := r.made(call); made != nil && (made.Pos() < r.Body.Pos() || made.Pos() > r.Body.End()) {
			body = made.Args[len(made.Args)-1]
			if v := r.variable(call.Args[0]); r.info.Types[body].IsNil() || strings.HasSuffix(types.ExprString(body), "NoBody") || r.changed(v) {
				return ""
			}
			return "the body of " + types.ExprString(call.Args[0])
		}
	}
	v, isVar := r.variable(body).(*types.Var)
	if !isVar || calls.Within(v, r.Body) || !reader(v.Type()) || r.count(v) != 1 {
		return ""
	}
	if !slices.ContainsFunc(r.Repeats, func(s retries.State) bool {
		return s.Call != nil && (s.Call.Pos() > call.Pos() || s.Call == call && r.sends(call))
	}) {
		return "" // it is not read before the repeated code
	}
	return v.Name()
}

// reader reports whether a value of type t can be read only once.
func reader(t types.Type) bool {
	for _, name := range []string{"bytes.Buffer", "bytes.Reader", "strings.Reader", "os.File", "io.Reader", "io.ReadCloser"} {
		pkg, typ, _ := strings.Cut(name, ".")
		if calls.IsNamed(t, pkg, typ) {
			return true
		}
	}
	return false
}

// changed reports whether the repeated code sets a field of v, or uses its body.
func (r replay) changed(v types.Object) (yes bool) {
	ast.Inspect(r.Body, func(n ast.Node) bool {
		if s, isSelector := n.(*ast.SelectorExpr); isSelector && r.variable(s.X) == v {
			yes = yes || s.Sel.Name == "Body" || s.Sel.Name == "GetBody" || s.Sel.Name == "Clone"
		}
		return !yes
	})
	return yes
}

// count returns how often the repeated code names v.
func (r replay) count(v types.Object) (n int) {
	ast.Inspect(r.Body, func(node ast.Node) bool {
		if id, isIdent := node.(*ast.Ident); isIdent && r.info.ObjectOf(id) == v {
			n++
		}
		return true
	})
	return n
}

// receivers are the types, by package, whose method Exec commits at once.
var receivers = map[string][]string{
	"database/sql":                    {"DB.Exec", "DB.ExecContext", "Conn.ExecContext"},
	"github.com/jmoiron/sqlx":         {"DB.MustExec", "DB.NamedExec", "DB.NamedExecContext"},
	"github.com/jackc/pgx/v5":         {"Conn.Exec"},
	"github.com/jackc/pgx/v5/pgxpool": {"Pool.Exec"},
}

var (
	insert  = regexp.MustCompile(`(?is)^\s*INSERT\s+INTO\s`)
	guarded = regexp.MustCompile(`(?is)\bON\s+(CONFLICT|DUPLICATE)\b|\bEXISTS\b|\bEXCEPT\b`)
	adds    = regexp.MustCompile(`(?is)^\s*UPDATE\b.*?\bSET\b.*?\b(\w+)\s*=\s*(\w+)\s*[-+]`)
)

// writes reports whether call runs, outside of a transaction, a statement whose effect differs if it is repeated.
func (r replay) writes(call *ast.CallExpr) bool { return call != nil && r.verb(call) != "" }

// verb returns "INSERT" or "UPDATE" for such a statement.
func (r replay) verb(call *ast.CallExpr) string {
	executes := false
	for pkg, names := range receivers {
		executes = executes || calls.IsFunc(r.info, call, pkg, names...)
	}
	if !executes {
		return ""
	}
	for _, arg := range call.Args[:min(2, len(call.Args))] {
		text := r.text(arg)
		if insert.MatchString(text) && !guarded.MatchString(text) {
			return "INSERT"
		}
		if m := adds.FindStringSubmatch(text); m != nil && strings.EqualFold(m[1], m[2]) {
			_, where, _ := strings.Cut(strings.ToLower(text), "where")
			if !regexp.MustCompile(`\b` + strings.ToLower(m[1]) + `\b`).MatchString(where) {
				return "UPDATE"
			}
		}
	}
	return ""
}
