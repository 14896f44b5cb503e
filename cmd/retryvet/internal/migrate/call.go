package migrate

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
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
	why   string         // why none of its calls is moved
	calls map[string]int // the index of the work in the arguments; -1 if the call is not moved
}

const byHand = "it is not moved by machine: docs/migrating has such calls before and after"

var libraries = map[string]*library{
	"github.com/cenkalti/backoff/v4": {name: "backoff/v4", calls: map[string]int{
		"Retry": 0, "RetryWithData": 0, "RetryNotify": 0, "RetryNotifyWithData": 0,
		"RetryNotifyWithTimer": -1, "RetryNotifyWithTimerAndData": -1, "NewTicker": -1, "NewTickerWithTimer": -1}},
	"github.com/cenkalti/backoff/v5": {name: "backoff/v5", why: byHand, calls: map[string]int{"Retry": 1, "NewTicker": -1}},
	"github.com/avast/retry-go/v4":   {name: "retry-go/v4", why: byHand, calls: map[string]int{"Do": 0, "DoWithData": 0}},
	"github.com/avast/retry-go/v5":   {name: "retry-go/v5", why: byHand, calls: map[string]int{"Retrier.Do": 0, "RetrierWithData.Do": 0}},
	"github.com/sethvargo/go-retry": {name: "go-retry", why: byHand,
		calls: map[string]int{"Do": 2, "DoValue": 2, "Constant": 2, "Exponential": 2, "Fibonacci": 2}},
	"github.com/hashicorp/go-retryablehttp": {name: "go-retryablehttp",
		why:   "after the last attempt it returns an error, and retryhttp returns the last response: see docs/migrating",
		calls: map[string]int{"NewClient": -1, "Get": -1, "Head": -1, "Post": -1, "PostForm": -1}},
}

// marks make or name the errors that backoff's own calls know.
var marks = []string{"Permanent", "PermanentError"}

// refusal is the reason why a site is not moved.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, values ...any) error { return refusal(fmt.Sprintf(format, values...)) }

// site is a call of a library that retries some work.
type site struct {
	*file
	lib   *library
	stray string // where a mark is that is not in the work of a site; "" if there is none
	call  *ast.CallExpr
	name  string
	op    ast.Expr     // the work as it is passed; nil if unknown
	lit   *ast.FuncLit // the work, if it is a literal or a variable with one, used here only

	set       map[string]ast.Expr // the settings of the BackOff, and its context
	constant  bool                // the BackOff
	gone      []ast.Node          // the statements that make it
	disturbed bool                // other statements stand between these and the call
}

// survey finds the sites of all files, and for each library a mark outside of the works of its sites. It returns a refused
// site for each file that imports a library and cannot be read: it uses cgo, or the build leaves it out.
func survey(pkgs []*packages.Package, files []*file) (unread []Site) {
	strays := map[*library]string{}
	seen := map[string]bool{}
	for _, f := range files {
		seen[f.name] = true
		f.find()
	}
	for _, p := range pkgs {
		for _, name := range slices.Concat(p.GoFiles, p.IgnoredFiles) {
			src, err := os.ReadFile(name)
			if err != nil || seen[name] || strings.HasSuffix(p.PkgPath, ".test") {
				continue
			}
			seen[name] = true
			fset := token.NewFileSet()
			syntax, err := parser.ParseFile(fset, name, src, parser.ImportsOnly)
			if err != nil {
				continue // a file that no build reads need not be Go
			}
			for _, spec := range syntax.Imports {
				lib := libraries[importPath(spec)]
				if lib == nil {
					continue
				}
				unread = append(unread, Site{fset.PositionFor(spec.Pos(), false), lib.name, "the file uses cgo, or its build constraints leave it out"})
				if slices.ContainsFunc(marks, func(mark string) bool { return bytes.Contains(src, []byte(mark)) }) {
					strays[lib] = filepath.Base(name)
				}
			}
		}
	}
	for _, f := range files {
		for n := range ast.Preorder(f.ast) {
			if id, ok := n.(*ast.Ident); ok {
				lib := f.mark(id)
				if owner := f.owner(id); lib != nil && (owner == nil || owner.lib != lib) {
					p := f.pkg.Fset.PositionFor(id.Pos(), false)
					strays[lib] = fmt.Sprintf("%s:%d", filepath.Base(p.Filename), p.Line)
				}
			}
		}
	}
	for _, f := range files {
		for _, s := range f.sites {
			s.stray = strays[s.lib]
		}
	}
	return unread
}

// find fills f.sites, in the order of the source.
func (f *file) find() {
	for n := range ast.Preorder(f.ast) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			continue
		}
		fn := f.callee(call)
		if fn == nil || fn.Pkg() == nil || libraries[fn.Pkg().Path()] == nil {
			continue
		}
		s := &site{file: f, lib: libraries[fn.Pkg().Path()], call: call, name: calls.Name(fn), set: map[string]ast.Expr{}}
		if index, ok := s.lib.calls[s.name]; ok {
			if index >= 0 && index < len(call.Args) {
				s.op = ast.Unparen(call.Args[index])
				lit := s.op
				if id, ok := s.op.(*ast.Ident); ok && len(f.uses(f.pkg.TypesInfo.Uses[id])) == 1 {
					if def, value := f.definition(f.pkg.TypesInfo.Uses[id]); def != nil && f.pkg.TypesInfo.TypeOf(value) == f.pkg.TypesInfo.TypeOf(id) {
						lit = value
					}
				}
				s.lit, _ = lit.(*ast.FuncLit)
			}
			f.sites = append(f.sites, s)
		}
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

// mark returns the library whose mark id names, or nil.
func (f *file) mark(id *ast.Ident) *library {
	obj := f.pkg.TypesInfo.Uses[id]
	if obj == nil || obj.Pkg() == nil || !slices.Contains(marks, id.Name) {
		return nil
	}
	return libraries[obj.Pkg().Path()]
}

// ofLibrary returns the name of the library's function that call calls, or "".
func (s *site) ofLibrary(call *ast.CallExpr) string {
	if fn := s.callee(call); fn != nil && fn.Pkg() != nil && libraries[fn.Pkg().Path()] == s.lib {
		return calls.Name(fn)
	}
	return ""
}

// plan returns the edits that move the call.
func (s *site) plan() ([]edit, error) {
	fun, _ := s.outer(s.call)
	switch {
	case s.lib.why != "":
		return nil, refuse("%s", s.lib.why)
	case ast.IsGenerated(s.ast):
		return nil, refuse("the file is generated")
	case fun == nil:
		return nil, refuse("it is not in a function")
	case slices.ContainsFunc(s.ast.Imports, func(spec *ast.ImportSpec) bool {
		return spec.Name != nil && spec.Name.Name == "." && libraries[importPath(spec)] != nil
	}):
		return nil, refuse("%s is imported by a dot", s.lib.name)
	case s.op == nil:
		return nil, refuse("a Ticker, or a Timer of one's own, has no counterpart")
	case s.stray != "":
		return nil, refuse("a mark of %s that is made or looked for elsewhere (%s) can reach it, and retry would not know it", s.lib.name, s.stray)
	}
	replaced, err := s.replaceMarks()
	if err != nil {
		return nil, err
	}
	fields, notify, err := s.settings()
	if err != nil {
		return nil, err
	}
	context := s.contextName()
	fields["Classify"] = ours + ".RetryOn(" + context + ".Canceled)"
	if fields["Observe"], err = s.observe(notify); err != nil {
		return nil, err
	}
	ctx := s.set["context"]
	if ctx != nil && s.background(ctx) {
		ctx = nil
	}
	if err := (&reader{lib: s.lib, ends: ctx != nil}).call(s.file, s.call); err != nil {
		return nil, err
	}
	for name, path := range map[string]string{"time": "time", context: "context"} {
		if err := s.free(s.call.Pos(), name, path); err != nil {
			return nil, err
		}
	}
	head := ours + ".Do"
	if strings.HasSuffix(s.name, "WithData") {
		head += "Value"
	}
	run := context + ".Background()"
	if ctx != nil {
		run = s.text(ctx)
	}
	head += "(" + run + ", " + literal(fields) + ", "
	tail := ")"
	if s.lit == nil {
		result, err := s.wrapped()
		if err != nil {
			return nil, err
		}
		head, tail = head+"func("+context+".Context) "+result+" { return ", "() })"
	} else {
		param := "(" + context + ".Context)"
		if id, ok := ctx.(*ast.Ident); ok && s.passesOn(id) {
			param = "(" + id.Name + " " + context + ".Context)"
		}
		params := s.lit.Type.Params
		replaced = append(replaced, edit{s.offset(params.Opening), s.offset(params.Closing) + 1, param})
	}
	if err := s.comments(notify); err != nil {
		return nil, err
	}
	for _, n := range s.gone {
		replaced = append(replaced, s.line(n))
	}
	return append(replaced, edit{s.offset(s.call.Pos()), s.offset(s.op.Pos()), head}, edit{s.offset(s.op.End()), s.offset(s.call.End()), tail}), nil
}

// replaceMarks returns the edits that replace the library's marks in the work.
func (s *site) replaceMarks() (edits []edit, err error) {
	if s.lit == nil {
		return nil, nil
	}
	for n := range ast.Preorder(s.lit) {
		id, ok := n.(*ast.Ident)
		if !ok || s.mark(id) != s.lib || s.owner(id) != s {
			continue
		}
		sel := s.parents[id]
		if call, ok := s.parents[sel].(*ast.CallExpr); !ok || call.Fun != sel || id.Name != "Permanent" {
			return nil, refuse("%s has no counterpart", id.Name)
		}
		if err := s.free(id.Pos(), s.importName(ourPath), ourPath); err != nil {
			return nil, err
		}
		edits = append(edits, edit{s.offset(sel.Pos()), s.offset(sel.End()), ours + "." + id.Name})
	}
	return edits, s.free(s.call.Pos(), s.importName(ourPath), ourPath)
}

// comments refuses a site if the code to remove contains a comment.
func (s *site) comments(notify ast.Expr) error {
	kept := s.op
	for _, group := range s.ast.Comments {
		inside := func(n ast.Node) bool { return within(group, n) }
		if lit, ok := notify.(*ast.FuncLit); ok && inside(lit.Body) {
			continue
		}
		if s.lit != nil && inside(s.lit.Type.Params) || inside(s.call) && !inside(kept) || slices.ContainsFunc(s.gone, inside) {
			return refuse("what is replaced contains a comment")
		}
	}
	return nil
}

// wrapped returns the results of the work, which is not a literal, as this file can write them.
func (s *site) wrapped() (string, error) {
	if id, ok := s.op.(*ast.Ident); ok && s.pkg.TypesInfo.Instances[id].Type != nil || !s.fixed(s.op) {
		return "", refuse("the work is not a literal, a function or a method of a variable that keeps its value")
	}
	results := s.pkg.TypesInfo.TypeOf(s.op).Underlying().(*types.Signature).Results() // fixed has it that it is a function
	if results.Len() == 1 {
		return "error", nil
	}
	text := calls.Written(s.pkg.TypesInfo, s.pkg.Types, s.ast, results.At(0).Type())
	if text == "" {
		return "", refuse("the file cannot write the type of the work's result")
	}
	return "(" + text + ", error)", nil
}
