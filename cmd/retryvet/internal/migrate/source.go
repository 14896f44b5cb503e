package migrate

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
)

const (
	backoff4   = "github.com/cenkalti/backoff/v4"
	backoff5   = "github.com/cenkalti/backoff/v5"
	dskit      = "github.com/grafana/dskit/backoff"
	cockroach  = "github.com/cockroachdb/cockroach/pkg/util/retry"
	kubernetes = "k8s.io/apimachinery/pkg/util/wait"
)

// sources are the libraries whose values say how long to wait: the method that returns the next wait, or waits, and the
// settings with what they are if nothing sets them. Durations are in nanoseconds.
var sources = map[string]struct {
	method   string
	settings map[string]float64
}{
	// exponential.go of v4.3.0 and of v5.0.3, where MaxElapsedTime is an option of Retry.
	backoff4: {"NextBackOff", map[string]float64{"InitialInterval": 500e6, "MaxInterval": 60e9, "Multiplier": 1.5, "RandomizationFactor": 0.5, "MaxElapsedTime": 900e9}},
	backoff5: {"NextBackOff", map[string]float64{"InitialInterval": 500e6, "MaxInterval": 60e9, "Multiplier": 1.5, "RandomizationFactor": 0.5}},
	dskit:    {"Wait", map[string]float64{"MinBackoff": 0, "MaxBackoff": 0, "MaxRetries": 0}},
	// StartWithCtx takes a default for 0.
	cockroach:  {"Next", map[string]float64{"InitialBackoff": 50e6, "MaxBackoff": 2e9, "Multiplier": 2, "RandomizationFactor": 0.15, "MaxRetries": 0}},
	kubernetes: {"Step", map[string]float64{"Duration": 0, "Factor": 0, "Jitter": 0, "Steps": 0, "Cap": 0}},
}

// waits reports whether call asks a source for the next wait, or waits for it.
func (f *file) waits(call *ast.CallExpr) bool {
	fn := f.callee(call)
	return fn != nil && fn.Pkg() != nil && fn.Signature().Recv() != nil && sources[fn.Pkg().Path()].method == fn.Name()
}

// source is a value that says how long to wait, as the statements make it that stand before its user.
type source struct {
	*file
	lib       string
	user      ast.Node            // a call or a loop
	obj       types.Object        // the variable that a loop has it in
	set       map[string]ast.Expr // the settings, and "context", "retries" (of WithMaxRetries) and "Interval" (of a constant one)
	gone      []ast.Node          // the statements that make it
	disturbed bool                // other code runs between these and the user
	values    map[string]float64  // of the settings
}

// put notes a setting that a wrapper has.
func (s *source) put(name string, value ast.Expr) {
	if s.set[name] != nil {
		panic(refuse("the %s is set twice", name))
	}
	s.set[name] = value
}

// read reads e, which makes the source, its configuration or its wrapper, or is a variable with one.
func (s *source) read(e ast.Expr) {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		s.variable(e)
	case *ast.UnaryExpr: // &
		s.read(e.X)
	case *ast.CompositeLit:
		if !slices.ContainsFunc([]string{"Config", "Options", "Backoff"}, func(name string) bool { // of dskit, cockroach, Kubernetes
			return calls.IsNamed(s.pkg.TypesInfo.TypeOf(e), s.lib, name)
		}) {
			panic(refuse("the waits are not made here"))
		}
		for _, elt := range e.Elts {
			kv, isPair := elt.(*ast.KeyValueExpr)
			if !isPair {
				panic(refuse("its settings have no names"))
			}
			s.field(kv.Key.(*ast.Ident).Name, kv.Value)
		}
	case *ast.CallExpr:
		s.made(e)
	default:
		panic(refuse("the waits are not made here"))
	}
}

// made reads a call of the library.
func (s *source) made(call *ast.CallExpr) {
	fn := s.callee(call)
	if fn == nil || fn.Pkg() == nil || fn.Pkg().Path() != s.lib {
		panic(refuse("the waits are not made here"))
	}
	args := call.Args
	switch name := fn.Name(); name {
	case "NewExponentialBackOff":
		for _, arg := range args {
			option, isCall := ast.Unparen(arg).(*ast.CallExpr)
			if !isCall || s.callee(option) == nil || len(option.Args) != 1 {
				panic(refuse("an option is not made here"))
			}
			s.field(strings.TrimPrefix(s.callee(option).Name(), "With"), option.Args[0])
		}
	case "NewConstantBackOff":
		s.put("Interval", args[0])
	case "WithMaxRetries", "WithContext": // of a BackOff
		s.put(map[string]string{"WithMaxRetries": "retries", "WithContext": "context"}[name], args[1])
		s.read(args[0])
	case "New", "StartWithCtx": // of a context and a configuration
		s.put("context", args[0])
		s.read(args[1])
	case "Start":
		s.read(args[0])
	default:
		panic(refuse("the waits are not made here"))
	}
}

// field notes a setting.
func (s *source) field(name string, value ast.Expr) {
	if _, known := sources[s.lib].settings[name]; !known {
		panic(refuse("%s has no counterpart", name))
	}
	s.set[name] = value
}

// variable reads the statements that make the variable id and stand before its use, or the loop, in the same list.
func (s *source) variable(id *ast.Ident) {
	obj := s.pkg.TypesInfo.ObjectOf(id)
	at, stmts := s.statement(id)
	if obj == s.obj {
		at, stmts = s.statement(s.user)
	}
	maker, value := s.definition(obj)
	from, to := slices.Index(stmts, maker), slices.Index(stmts, at)
	if value == nil || from < 0 || from > to {
		panic(refuse("%s is not made by a statement before it, in the same block", id.Name))
	}
	switch at.(type) {
	case *ast.ForStmt, *ast.RangeStmt, *ast.LabeledStmt:
		if at != s.user {
			panic(refuse("%s is made once, and the call can be repeated", id.Name))
		}
	}
	s.read(value)
	s.gone = append(s.gone, maker)
	for _, stmt := range stmts[from+1 : to] {
		if calls.Names(s.pkg.TypesInfo, stmt, obj) {
			s.step(obj, stmt)
			s.gone = append(s.gone, stmt)
			continue
		}
		ast.Inspect(stmt, func(n ast.Node) bool {
			_, isLit := n.(*ast.FuncLit)
			_, isCall := n.(*ast.CallExpr)
			s.disturbed = s.disturbed || isCall
			return !isLit
		})
	}
	for _, use := range s.uses(obj) {
		if use != id && obj != s.obj && !slices.ContainsFunc(s.gone, func(n ast.Node) bool { return within(use, n) }) {
			panic(refuse("%s is used for something else too", id.Name))
		}
	}
}

// step reads a statement that sets fields of obj.
func (s *source) step(obj types.Object, stmt ast.Stmt) {
	of := func(e ast.Expr) string {
		if sel, isSel := e.(*ast.SelectorExpr); isSel && s.is(sel.X, obj) {
			return sel.Sel.Name
		}
		return ""
	}
	switch stmt := stmt.(type) {
	case *ast.ExprStmt:
		if call, isCall := stmt.X.(*ast.CallExpr); isCall && of(call.Fun) == "Reset" {
			return
		}
	case *ast.AssignStmt:
		for i, left := range stmt.Lhs {
			if stmt.Tok != token.ASSIGN || len(stmt.Rhs) != len(stmt.Lhs) || of(left) == "" || calls.Names(s.pkg.TypesInfo, stmt.Rhs[i], obj) {
				panic(refuse("the use of %s is not understood", obj.Name()))
			}
			s.field(of(left), stmt.Rhs[i])
		}
		return
	}
	panic(refuse("the use of %s is not understood", obj.Name()))
}

// movable reports whether e, which is evaluated once, has the same value where the user begins: it stands there, or is a
// variable, or a field of one, that nothing changes before.
func (s *source) movable(e ast.Expr) bool {
	if within(e, s.user) {
		return true
	}
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		obj := s.pkg.TypesInfo.Uses[e]
		return s.lookup(e.Name, s.user.Pos()) == obj && obj.Parent() != s.pkg.Types.Scope() && !s.changed(obj, e.Pos(), s.user.Pos())
	case *ast.SelectorExpr:
		return !s.disturbed && s.movable(e.X)
	}
	return false
}

// settle fills values, and returns the context and the limit on the time of the run; nil and "" for none.
func (s *source) settle() (ctx ast.Expr, ttl string) {
	s.values = maps.Clone(sources[s.lib].settings)
	if s.set["MaxElapsedTime"] != nil && s.pkg.TypesInfo.Types[s.set["MaxElapsedTime"]].Value == nil {
		if ttl = s.text(s.set["MaxElapsedTime"]); !s.movable(s.set["MaxElapsedTime"]) {
			panic(refuse("MaxElapsedTime is neither a constant nor a variable that keeps its value"))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.set)) {
		v := s.pkg.TypesInfo.Types[s.set[name]].Value
		if name == "context" || name == "MaxElapsedTime" && ttl != "" {
			continue
		}
		if v == nil {
			panic(refuse("%s is not a constant: 0 has another meaning here", name))
		}
		f, _ := constant.Float64Val(constant.ToFloat(v))
		if f < 0 || f > 1e18 {
			panic(refuse("%s is negative or too large", name))
		}
		if f != 0 || s.lib != cockroach {
			s.values[name] = f
		}
	}
	if d := s.values["MaxElapsedTime"]; ttl == "" && d > 0 && s.set["Interval"] == nil {
		ttl = duration(time.Duration(d))
	}
	ctx = s.set["context"]
	call, isCall := ast.Unparen(ctx).(*ast.CallExpr)
	if ctx == nil || isCall && calls.IsFunc(s.pkg.TypesInfo, call, "context", "Background", "TODO") {
		return nil, ttl
	}
	if !s.movable(ctx) {
		panic(refuse("the context is not a variable that keeps its value"))
	}
	return ctx, ttl
}

// attempts returns how many attempts the source allows, as its library counts them; 0 means no limit.
func (s *source) attempts() int64 {
	switch n := int64(s.values["MaxRetries"]); {
	case s.set["retries"] != nil:
		return int64(s.values["retries"]) + 1
	case s.lib == cockroach && n > 0:
		return n + 1
	default:
		return n
	}
}

// delays returns a function that returns the waits one after the other if every random number is u, from 0 to 1, and what
// is left of Steps.
func (s *source) delays(u float64) func() (wait time.Duration, steps int) {
	v := s.values
	spread := func(d, ratio float64) (time.Duration, int) { return time.Duration(d - ratio*d + u*2*ratio*d), 0 }
	switch {
	case s.set["Interval"] != nil:
		return func() (time.Duration, int) { return time.Duration(v["Interval"]), 0 }
	case s.lib == dskit: // Backoff.NextDelay
		most, lo := v["MaxBackoff"], v["MinBackoff"]
		hi := min(2*lo, most)
		return func() (time.Duration, int) {
			d := lo + u*max(0, hi-lo)
			if lo < hi && hi < most {
				lo, hi = min(2*lo, most), min(2*hi, most)
			}
			return time.Duration(d), 0
		}
	case s.lib == cockroach: // Retry.retryIn
		next := v["InitialBackoff"]
		return func() (time.Duration, int) {
			d := min(next, v["MaxBackoff"])
			next = min(next*v["Multiplier"], math.MaxInt64)
			return spread(d, v["RandomizationFactor"])
		}
	case s.lib == kubernetes: // delay
		next, steps := v["Duration"], int(v["Steps"])
		return func() (time.Duration, int) {
			d := next
			if steps--; steps >= 0 && v["Factor"] != 0 {
				if next = math.Trunc(d * v["Factor"]); v["Cap"] > 0 && next > v["Cap"] {
					next, steps = v["Cap"], 0
				}
			}
			steps = max(0, steps)
			return time.Duration(d + u*v["Jitter"]*d), steps
		}
	}
	next := v["InitialInterval"] // ExponentialBackOff.NextBackOff
	return func() (time.Duration, int) {
		d := next
		if next = math.Trunc(d * v["Multiplier"]); d >= v["MaxInterval"]/v["Multiplier"] {
			next = v["MaxInterval"]
		}
		return spread(d, v["RandomizationFactor"])
	}
}

// most returns the cap of the waits before jitter; 0 for none.
func (s *source) most() time.Duration {
	if s == nil {
		return 0
	}
	return time.Duration(max(s.values["MaxInterval"], s.values["MaxBackoff"], s.values["Cap"]))
}

// many is a number of waits after which all those that can differ have passed.
const many = 64

// backoff returns, as Go source, the Backoff that has the first n waits; limited means that no more are needed.
func (s *source) backoff(n int64, limited bool) string {
	var lo, hi []time.Duration
	least, greatest := s.delays(0), s.delays(1)
	for range n {
		d, _ := least()
		lo = append(lo, d)
		d, _ = greatest()
		hi = append(hi, d)
	}
	return written(fit(lo, hi, limited, s.most()), "")
}
