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
	"golang.org/x/tools/go/types/typeutil"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/ignore"
	"github.com/retrygo/retry/cmd/retryvet/internal/retries"
)

const doc = `report effects that must not be repeated, in code that runs again if it fails

In a function literal that is passed to retry.Do, DoValue or Wrap, and in a loop over retry.Attempts, this reports a POST or
PATCH without an Idempotency-Key, or with one that is new in each attempt, that is repeated after any error: if only the answer
was lost, it takes effect twice. An INSERT outside of a transaction is reported if a step after it can fail, and its text names no
key: the row is there twice. It is not reported if a condition inspects the error, if the function names something like
"idempotency" or "request_id", or if another function gets the request.

Method, key and repetition must be in one function. Test files are skipped.`

// Analyzer is the analyzer replay.
var Analyzer = ignore.OutsideTests("replay", doc, run)

func run(pass *analysis.Pass) (any, error) {
	for cur, c := range calls.All(pass) {
		r := replay{pass: pass, info: pass.TypesInfo}
		lit, isLit := ast.Unparen(c.Work).(*ast.FuncLit)
		switch {
		case c.Loop != nil && c.ErrVar(r.info) != nil:
			r.Retries = retries.Turns(r.info, c.Loop, c.ErrVar(r.info), nil)
		case isLit && c.Callee.Pkg().Path() == calls.Module: // others, such as retrysql, do not repeat every error
			r.Retries = retries.Function(r.info, lit.Type, lit.Body, retries.OnError, nil)
		default:
			continue
		}
		if decl := calls.Declaration(cur); decl != nil && len(r.Repeats) > 0 {
			r.function = decl
			r.check()
		}
	}
	return nil, nil
}

type replay struct {
	*retries.Retries
	pass     *analysis.Pass
	info     *types.Info
	function ast.Node // the declaration around it
}

// fresh matches functions, by their package and name, that return another value at each call.
var fresh = regexp.MustCompile(`^((math|crypto)/rand(/v2)?\..*|time\.Now|github\.com/(google/uuid\.New.*|gofrs/uuid\.NewV[14]|rs/xid\.New|oklog/ulid\.(Make|New.*)|segmentio/ksuid\.New.*))$`)

func (r replay) check() {
	for _, call := range r.Attempts {
		const twice = "is repeated after any error: if only the answer was lost, it takes effect twice"
		switch m, key, twofold := r.twofold(call); {
		case key != nil:
			r.pass.ReportRangef(key, "this key is new in each attempt, and the %s %s", m, twice)
		case twofold:
			r.pass.ReportRangef(call, "this %s without an Idempotency-Key %s", m, twice)
		case r.inserts(call) && slices.ContainsFunc(r.Repeats, func(s retries.State) bool { return s.Last != retries.None && s.Call.Pos() > call.Pos() }):
			r.pass.ReportRangef(call, "this INSERT runs again if a later step fails, and its row is there twice: use retrysql.Tx, or a key")
		}
	}
}

// twofold reports whether call is a POST or PATCH that is repeated after any error, without a key or with the key, if it is
// not nil, that is new in each attempt.
func (r replay) twofold(call *ast.CallExpr) (method string, key ast.Expr, yes bool) {
	lost := slices.ContainsFunc(r.Repeats, func(s retries.State) bool { // no answer, so that the server may have acted
		return s.Call == call && s.Last == retries.Failed && !r.Judged[call]
	})
	if method = r.method(call); !lost || method != "POST" && method != "PATCH" {
		return "", nil, false
	}
	key = r.renewed(call)
	return method, key, key != nil || !r.keyed(call)
}

var (
	insert = regexp.MustCompile(`(?is)^\s*INSERT\s+INTO\b`)
	once   = regexp.MustCompile(`(?i)conflict|duplicate|exists|\b(id|uuid|key)\b`)
)

// inserts reports whether call inserts a row outside of a transaction, and nothing makes a second one fail.
func (r replay) inserts(call *ast.CallExpr) bool {
	if !calls.IsFunc(r.info, call, "database/sql", "DB.Exec", "DB.ExecContext", "Conn.ExecContext") &&
		!calls.IsFunc(r.info, call, "github.com/jackc/pgx/v5", "Conn.Exec") && !calls.IsFunc(r.info, call, "github.com/jackc/pgx/v5/pgxpool", "Pool.Exec") {
		return false
	}
	return slices.ContainsFunc(call.Args, func(x ast.Expr) bool {
		text := r.text(x)
		return insert.MatchString(text) && !once.MatchString(text) && !key.MatchString(text)
	})
}

// sends reports whether call sends a request of net/http.
func (r replay) sends(call *ast.CallExpr) bool {
	return calls.IsFunc(r.info, call, "net/http", "Get", "Head", "Post", "PostForm",
		"Client.Do", "Client.Get", "Client.Head", "Client.Post", "Client.PostForm", "Transport.RoundTrip")
}

// method returns the HTTP method of a call that sends a request, "" if it is unknown.
func (r replay) method(call *ast.CallExpr) string {
	switch {
	case calls.IsFunc(r.info, call, "net/http", "Post", "PostForm", "Client.Post", "Client.PostForm"):
		return "POST"
	case r.sends(call):
		if made := calls.Request(r.info, r.function, call.Args[0]); made != nil {
			return r.text(made.Args[len(made.Args)-3])
		}
	}
	return ""
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
func (r replay) keyed(call *ast.CallExpr) bool {
	var request types.Object
	if calls.Request(r.info, r.function, call.Args[0]) != nil {
		request = calls.Object(r.info, call.Args[0])
	}
	ours := func(x ast.Expr) bool { // the request or its header
		if s, isSelector := ast.Unparen(x).(*ast.SelectorExpr); isSelector && s.Sel.Name == "Header" {
			x = s.X
		}
		return request != nil && calls.Object(r.info, x) == request
	}
	for n := range ast.Preorder(r.function) {
		yes := false
		switch n := n.(type) {
		case *ast.Ident:
			yes = key.MatchString(n.Name)
		case *ast.BasicLit:
			yes = n.Kind == token.STRING && key.MatchString(n.Value)
		case *ast.AssignStmt:
			yes = slices.ContainsFunc(n.Lhs, func(x ast.Expr) bool { return ours(x) && calls.Object(r.info, x) != request })
		case *ast.CallExpr:
			yes = slices.ContainsFunc(n.Args, ours) && !r.sends(n) ||
				calls.IsFunc(r.info, n, "net/http", "Header.Set", "Header.Add") && r.text(n.Args[0]) == ""
		}
		if yes {
			return true
		}
	}
	return false
}

// renewed returns the value of the Idempotency-Key of the request that call sends if each attempt makes a new one.
func (r replay) renewed(call *ast.CallExpr) (value ast.Expr) {
	request := calls.Object(r.info, call.Args[0])
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
// is a variable that such a value is assigned to there before.
func (r replay) fresh(x ast.Node) bool {
	for n := range ast.Preorder(x) {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f := typeutil.StaticCallee(r.info, n); f != nil && f.Pkg() != nil {
				path := regexp.MustCompile(`/v[3-9]$`).ReplaceAllString(f.Pkg().Path(), "")
				if fresh.MatchString(path + "." + f.Name()) {
					return true
				}
			}
		case *ast.Ident:
			for _, value := range calls.Assigned(r.info, r.Body, r.info.Uses[n]) {
				if value.Pos() < n.Pos() && r.fresh(value) {
					return true
				}
			}
		}
	}
	return false
}
