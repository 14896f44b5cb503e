package migrate

import (
	"bytes"
	"fmt"
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
)

// library describes a library whose calls are found.
type library struct {
	name  string
	why   string // why none of its calls is moved
	calls []string
}

const byHand = "it is not moved by machine: docs/migrating has such calls before and after"

var libraries = map[string]*library{
	backoff4: {name: "backoff/v4", calls: []string{"Retry", "RetryWithData", "RetryNotify", "RetryNotifyWithData",
		"RetryNotifyWithTimer", "RetryNotifyWithTimerAndData", "NewTicker", "NewTickerWithTimer"}},
	backoff5:                        {name: "backoff/v5", why: byHand, calls: []string{"Retry", "NewTicker"}},
	"github.com/avast/retry-go/v4":  {name: "retry-go/v4", why: byHand, calls: []string{"Do", "DoWithData"}},
	"github.com/avast/retry-go/v5":  {name: "retry-go/v5", why: byHand, calls: []string{"Retrier.Do", "RetrierWithData.Do"}},
	"github.com/sethvargo/go-retry": {name: "go-retry", why: byHand, calls: []string{"Do", "DoValue", "Constant", "Exponential", "Fibonacci"}},
	"github.com/hashicorp/go-retryablehttp": {name: "go-retryablehttp", calls: []string{"NewClient", "Get", "Head", "Post", "PostForm"},
		why: "after the last attempt it returns an error, and retryhttp returns the last response: see docs/migrating"},
}

// refusal is the reason why a site is not moved. What plans a move panics with it, and file.try recovers.
type refusal string

func refuse(format string, values ...any) refusal { return refusal(fmt.Sprintf(format, values...)) }

// site is a call of a library that retries some work.
type site struct {
	*file
	lib  *library
	call *ast.CallExpr
	name string
	op   ast.Expr     // the work as it is passed
	lit  *ast.FuncLit // the work: op, or the value of the variable op, which is used here only; nil if it is another
}

// survey finds the sites of all files, and returns where a mark is outside of their works, or in a file that is not read: it
// uses cgo, or the build leaves it out. It returns "" if there is none.
func survey(pkgs []*packages.Package, files []*file) (stray string) {
	read := map[string]bool{}
	for _, f := range files {
		f.find()
		read[f.name] = true
	}
	for _, p := range pkgs {
		for _, name := range slices.Concat(p.GoFiles, p.IgnoredFiles) {
			if src, err := os.ReadFile(name); err == nil && !read[name] && bytes.Contains(src, []byte(backoff4)) && bytes.Contains(src, []byte("Permanent")) {
				stray = filepath.Base(name)
			}
		}
	}
	for _, f := range files {
		for id := range idents(f.ast) {
			if owner := f.owner(id); f.mark(id) && (owner == nil || owner.lib.why != "") {
				p := f.pkg.Fset.PositionFor(id.Pos(), false)
				stray = fmt.Sprintf("%s:%d", filepath.Base(p.Filename), p.Line)
			}
		}
	}
	return stray
}

// find fills f.sites, in the order of the source.
func (f *file) find() {
	for n := range ast.Preorder(f.ast) {
		call, isCall := n.(*ast.CallExpr)
		if !isCall {
			continue
		}
		fn := f.callee(call)
		if fn == nil || fn.Pkg() == nil || libraries[fn.Pkg().Path()] == nil {
			continue
		}
		s := &site{file: f, lib: libraries[fn.Pkg().Path()], call: call, name: calls.Name(fn)}
		if !slices.Contains(s.lib.calls, s.name) {
			continue
		}
		f.sites = append(f.sites, s)
		if len(call.Args) == 0 {
			continue
		}
		s.op = ast.Unparen(call.Args[0])
		work := s.op
		if id, isIdent := work.(*ast.Ident); isIdent && len(f.uses(f.pkg.TypesInfo.Uses[id])) == 1 {
			if def, value := f.definition(f.pkg.TypesInfo.Uses[id]); def != nil && f.pkg.TypesInfo.TypeOf(value) == f.pkg.TypesInfo.TypeOf(id) {
				work = value
			}
		}
		s.lit, _ = work.(*ast.FuncLit)
	}
}

// owner returns the innermost site whose work contains n.
func (f *file) owner(n ast.Node) *site {
	for ; n != nil; n = f.parents[n] {
		for _, s := range f.sites {
			if s.lit != nil && s.lit == n {
				return s
			}
		}
	}
	return nil
}

// mark reports whether id makes or names an error that the calls of backoff know.
func (f *file) mark(id *ast.Ident) bool {
	obj := f.pkg.TypesInfo.Uses[id]
	return obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == backoff4 && (obj.Name() == "Permanent" || obj.Name() == "PermanentError")
}

// plan returns the edits that move the call, and the statements that make the BackOff.
func (s *site) plan() ([]edit, []ast.Node) {
	switch {
	case s.lib.why != "":
		panic(refuse("%s", s.lib.why))
	case strings.Contains(s.name, "Notify") || strings.HasPrefix(s.name, "NewTicker"):
		panic(refuse("a Notify, a Ticker or a Timer of one's own is moved by hand: see docs/migrating"))
	case s.stray != "":
		panic(refuse("a mark of %s that is made or looked for elsewhere (%s) can reach it, and retry would not know it", s.lib.name, s.stray))
	}
	b := &source{file: s.file, lib: backoff4, user: s.call, set: map[string]ast.Expr{}}
	b.read(s.call.Args[1])
	ctx, ttl := b.settle()
	attempts := b.attempts()
	fields := map[string]string{"MaxAttempts": fmt.Sprint(attempts), "TTL": ttl, "Classify": ours + ".RetryOn(" + s.contextName() + ".Canceled)"}
	n := max(1, attempts-1)
	if attempts == 0 {
		fields["MaxAttempts"], n = ours+".Unlimited", many
	}
	fields["Backoff"] = b.backoff(n, attempts > 0)
	if s.lit == nil {
		panic(refuse("the work is not a function literal, or a variable with one that is used only here"))
	}
	edits := s.replaceMarks()
	(&reader{ends: ctx != nil}).call(s.file, s.call)
	run, param := s.contextName()+".Background()", "("+s.contextName()+".Context)"
	if ctx != nil {
		run = s.text(ctx)
	}
	if id, isIdent := ctx.(*ast.Ident); isIdent && s.passesOn(id) {
		param = "(" + id.Name + " " + s.contextName() + ".Context)"
	}
	head := ours + ".Do"
	if strings.HasSuffix(s.name, "WithData") {
		head += "Value"
	}
	params := s.lit.Type.Params
	return append(edits, edit{s.offset(params.Opening), s.offset(params.Closing) + 1, param},
		edit{s.offset(s.call.Pos()), s.offset(s.op.Pos()), head + "(" + run + ", " + literal(fields) + ", "},
		edit{s.offset(s.op.End()), s.offset(s.call.End()), ")"}), b.gone
}

// replaceMarks returns the edits that replace the marks in the work.
func (s *site) replaceMarks() (edits []edit) {
	for id := range idents(s.lit) {
		if !s.mark(id) || s.owner(id) != s {
			continue
		}
		sel := s.parents[id]
		if call, isCall := s.parents[sel].(*ast.CallExpr); !isCall || call.Fun != sel || id.Name != "Permanent" {
			panic(refuse("%s has no counterpart", id.Name))
		}
		edits = append(edits, edit{s.offset(sel.Pos()), s.offset(sel.End()), ours + "." + id.Name})
	}
	return edits
}

// passesOn reports whether the work uses ctx and never changes it, so that a parameter can replace it.
func (s *site) passesOn(ctx *ast.Ident) bool {
	obj := s.pkg.TypesInfo.Uses[ctx]
	for id, own := range s.pkg.TypesInfo.Defs { // in the scope of a parameter ctx, "ctx := ..." would declare nothing
		if id.Name == ctx.Name && own != nil && own.Parent() == s.pkg.TypesInfo.Scopes[s.lit.Type] {
			return false
		}
	}
	return calls.Names(s.pkg.TypesInfo, s.lit.Body, obj) && !s.changed(obj, s.call.Pos(), s.call.End())
}
