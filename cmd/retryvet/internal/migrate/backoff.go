package migrate

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
)

// defaults are the settings of an ExponentialBackOff, and their defaults.
var defaults = map[string]float64{
	"InitialInterval": 500e6, "MaxInterval": 60e9, "Multiplier": 1.5, "RandomizationFactor": 0.5, "MaxElapsedTime": 900e9,
}

// settings returns the fields of the policy with the attempts, the waits and the limit on the time, and the function that
// is notified.
func (s *site) settings() (fields map[string]string, notify ast.Expr, err error) {
	if err := s.backOff(s.call.Args[1]); err != nil {
		return nil, nil, err
	}
	if len(s.call.Args) > 2 {
		notify = s.call.Args[2]
	}
	fields = map[string]string{"MaxAttempts": ours + ".Unlimited"}
	for _, step := range []func(map[string]string) error{s.attempts, s.waits, s.limit} {
		if err := step(fields); err != nil {
			return nil, nil, err
		}
	}
	if ctx := s.set["context"]; ctx != nil && !s.background(ctx) && !s.movable(ctx) {
		return nil, nil, refuse("the context is not a variable that keeps its value")
	}
	return fields, notify, nil
}

// put notes a setting.
func (s *site) put(name string, value ast.Expr) error {
	if s.set[name] != nil {
		return refuse("the %s is set twice", name)
	}
	s.set[name] = value
	return nil
}

// backOff reads e, a BackOff: a call that makes or wraps one, or a variable with one.
func (s *site) backOff(e ast.Expr) error {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		return s.variable(e)
	case *ast.CallExpr:
		switch s.ofLibrary(e) {
		case "NewExponentialBackOff":
			for _, arg := range e.Args {
				option, ok := ast.Unparen(arg).(*ast.CallExpr)
				if !ok || s.ofLibrary(option) == "" || len(option.Args) != 1 {
					return refuse("an option is not made here")
				}
				if err := s.field(strings.TrimPrefix(s.ofLibrary(option), "With"), option.Args[0]); err != nil {
					return err
				}
			}
			return nil
		case "NewConstantBackOff":
			s.constant = true
			return s.put("Interval", e.Args[0])
		case "WithMaxRetries":
			return s.wrap(e, "number of retries")
		case "WithContext":
			return s.wrap(e, "context")
		}
	}
	return refuse("the BackOff is not made here")
}

// wrap reads the BackOff in a wrapper, and the wrapper's setting.
func (s *site) wrap(e *ast.CallExpr, name string) error {
	if err := s.put(name, e.Args[1]); err != nil {
		return err
	}
	return s.backOff(e.Args[0])
}

// field notes the value of a field of an ExponentialBackOff.
func (s *site) field(name string, value ast.Expr) error {
	if defaults[name] == 0 {
		return refuse("%s has no counterpart", name)
	}
	s.set[name] = value
	return nil
}

// variable reads the statements that make the variable id before the one that uses it, in the same list.
func (s *site) variable(id *ast.Ident) error {
	obj := s.pkg.TypesInfo.Uses[id]
	user, stmts := s.statement(id)
	maker, value := s.definition(obj)
	from, to := slices.Index(stmts, maker), slices.Index(stmts, user)
	if value == nil || from < 0 || from > to {
		return refuse("%s is not made by a statement before the call", id.Name)
	}
	switch user.(type) {
	case *ast.ForStmt, *ast.LabeledStmt:
		return refuse("%s is made once, and the call can be repeated", id.Name)
	}
	if err := s.backOff(value); err != nil {
		return err
	}
	s.gone = append(s.gone, maker)
	for _, stmt := range stmts[from+1 : to] {
		if calls.Names(s.pkg.TypesInfo, stmt, obj) {
			if err := s.step(obj, stmt); err != nil {
				return err
			}
			s.gone = append(s.gone, stmt)
		} else if !s.harmless(stmt) {
			s.disturbed = true
		}
	}
	for _, use := range s.uses(obj) {
		if use != id && !slices.ContainsFunc(s.gone, func(n ast.Node) bool { return within(use, n) }) {
			return refuse("%s is used for something else too", id.Name)
		}
	}
	return nil
}

// step reads a statement that sets fields of obj.
func (s *site) step(obj types.Object, stmt ast.Stmt) error {
	of := func(e ast.Expr) string {
		if sel, ok := e.(*ast.SelectorExpr); ok && s.is(sel.X, obj) {
			return sel.Sel.Name
		}
		return ""
	}
	switch stmt := stmt.(type) {
	case *ast.ExprStmt:
		if call, ok := stmt.X.(*ast.CallExpr); ok && of(call.Fun) == "Reset" {
			return nil
		}
	case *ast.AssignStmt:
		if stmt.Tok != token.ASSIGN || len(stmt.Lhs) != len(stmt.Rhs) {
			break
		}
		for i, left := range stmt.Lhs {
			if of(left) == "" || calls.Names(s.pkg.TypesInfo, stmt.Rhs[i], obj) {
				return refuse("the use of %s is not understood", obj.Name())
			}
			if err := s.field(of(left), stmt.Rhs[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return refuse("the use of %s is not understood", obj.Name())
}

// harmless reports whether stmt only declares variables without a value, or with a constant or a function literal.
func (s *site) harmless(stmt ast.Stmt) bool {
	switch stmt := stmt.(type) {
	case *ast.DeclStmt:
		return !slices.ContainsFunc(stmt.Decl.(*ast.GenDecl).Specs, func(spec ast.Spec) bool {
			v, ok := spec.(*ast.ValueSpec)
			return ok && len(v.Values) > 0
		})
	case *ast.AssignStmt:
		return stmt.Tok == token.DEFINE && !slices.ContainsFunc(stmt.Rhs, func(e ast.Expr) bool {
			_, ok := e.(*ast.FuncLit)
			return !ok && s.pkg.TypesInfo.Types[e].Value == nil
		}) && !slices.ContainsFunc(stmt.Lhs, func(e ast.Expr) bool { return s.pkg.TypesInfo.Defs[e.(*ast.Ident)] == nil })
	}
	return false
}

// movable reports whether e, which is evaluated once, has the same value in the call: it stands there, or nothing happens
// in between.
func (s *site) movable(e ast.Expr) bool {
	if within(e, s.call) {
		return true
	}
	scope := s.pkg.Types.Scope().Innermost(s.call.Pos())
	for n := range ast.Preorder(e) {
		switch n := n.(type) {
		case *ast.SelectorExpr, *ast.BinaryExpr, *ast.BasicLit, *ast.ParenExpr:
		case *ast.CallExpr:
			if !s.pkg.TypesInfo.Types[n.Fun].IsType() {
				return false
			}
		case *ast.Ident:
			obj := s.pkg.TypesInfo.Uses[n]
			if sel, ok := s.parents[n].(*ast.SelectorExpr); ok && sel.Sel == n {
				continue
			}
			if _, there := scope.LookupParent(n.Name, s.call.Pos()); there != obj {
				return false
			}
		default:
			return false
		}
	}
	return !s.disturbed
}

// fixed reports whether e has one value whenever it is evaluated: it is a function, a variable that is never written after
// its declaration, or a method of one.
func (s *site) fixed(e ast.Expr) bool {
	switch e := ast.Unparen(e).(type) {
	case *ast.Ident:
		switch obj := s.pkg.TypesInfo.Uses[e].(type) {
		case *types.Func:
			return true
		case *types.Var:
			return obj.Parent() != obj.Pkg().Scope() && !s.changed(obj, obj.Pos(), s.ast.End())
		}
	case *ast.SelectorExpr:
		fn, ok := s.pkg.TypesInfo.Uses[e.Sel].(*types.Func)
		return ok && (fn.Signature().Recv() == nil || s.fixed(e.X))
	}
	return false
}

// background reports whether e is a call of context.Background or TODO.
func (s *site) background(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	fn := s.callee(call)
	return fn != nil && (fn.FullName() == "context.Background" || fn.FullName() == "context.TODO")
}

// attempts sets MaxAttempts.
func (s *site) attempts(fields map[string]string) error {
	e := s.set["number of retries"]
	if e == nil {
		return nil
	}
	if value := s.pkg.TypesInfo.Types[e].Value; value != nil {
		n, ok := constant.Int64Val(value)
		if !ok || n < 0 || n > 1<<31-2 {
			return refuse("the number of retries is negative or too large")
		}
		fields["MaxAttempts"] = fmt.Sprint(n + 1)
		return nil
	}
	if call, ok := ast.Unparen(e).(*ast.CallExpr); ok && len(call.Args) == 1 && s.pkg.TypesInfo.Types[call.Fun].IsType() {
		e = call.Args[0]
	}
	t, ok := s.pkg.TypesInfo.TypeOf(e).Underlying().(*types.Basic)
	if !ok || t.Info()&types.IsUnsigned == 0 || !s.movable(e) {
		return refuse("the number of retries is neither a constant nor an unsigned variable that keeps its value")
	}
	fields["MaxAttempts"] = "int(" + s.text(e) + ") + 1"
	return nil
}

// waits sets Backoff.
func (s *site) waits(fields map[string]string) error {
	if s.constant {
		e := s.set["Interval"]
		value := s.pkg.TypesInfo.Types[e].Value
		if value == nil {
			fields["Backoff"] = ours + ".Backoff{Delays: []time.Duration{max(0, " + s.text(e) + ")}}"
			if !s.movable(e) {
				return refuse("the interval is neither a constant nor a variable that keeps its value")
			}
			return nil
		}
		d, _ := constant.Int64Val(constant.ToInt(value))
		text := duration(time.Duration(d))
		if within(e, s.call) {
			text = s.text(e)
		}
		if fields["Backoff"] = fixed(d, text); d < 0 {
			return refuse("the interval is negative")
		}
		return nil
	}
	is := map[string]float64{}
	for name, value := range defaults {
		is[name] = value
		if e := s.set[name]; e != nil && name != "MaxElapsedTime" {
			v := s.pkg.TypesInfo.Types[e].Value
			if v == nil {
				return refuse("%s is not a constant: 0 has another meaning here", name)
			}
			is[name], _ = constant.Float64Val(constant.ToFloat(v))
		}
	}
	first, most, factor, ratio := time.Duration(is["InitialInterval"]), time.Duration(is["MaxInterval"]), is["Multiplier"], is["RandomizationFactor"]
	switch {
	case first <= 0 || most < first:
		return refuse("InitialInterval is not positive, or above MaxInterval")
	case factor < 1 || ratio < 0 || ratio > 1:
		return refuse("Multiplier or RandomizationFactor is out of its range")
	}
	b := retry.Backoff{Mode: retry.Exponential, Base: first, Factor: factor, Cap: most}
	if factor == 1 {
		b.Mode, b.Factor = retry.Fixed, 0
	}
	theirs := float64(first)
	for n := 1; n < 200; n++ {
		if off := b.Delay(n) - time.Duration(theirs); off.Abs() > time.Microsecond {
			return refuse("the waits would differ by %v", off)
		}
		theirs = math.Trunc(min(theirs*factor, float64(most))) // rounded at each step
	}
	if ratio > 0 {
		b.Jitter, b.JitterRatio = retry.RatioJitter, ratio
	}
	fields["Backoff"] = source(b)
	return nil
}

// limit sets TTL, which is 0 for no limit too.
func (s *site) limit(fields map[string]string) error {
	e := s.set["MaxElapsedTime"]
	switch {
	case s.constant:
		return nil
	case e == nil:
		fields["TTL"] = duration(time.Duration(defaults["MaxElapsedTime"]))
		return nil
	}
	value := s.pkg.TypesInfo.Types[e].Value
	if value == nil {
		if fields["TTL"] = s.text(e); !s.movable(e) {
			return refuse("MaxElapsedTime is neither a constant nor a variable that keeps its value")
		}
		return nil
	}
	d, _ := constant.Int64Val(constant.ToInt(value))
	if d < 0 {
		return refuse("MaxElapsedTime is negative")
	}
	if d > 0 {
		fields["TTL"] = duration(time.Duration(d))
	}
	return nil
}

// observe returns the observer that calls f as before, with each error that a wait follows.
func (s *site) observe(f ast.Expr) (string, error) {
	if f == nil || s.pkg.TypesInfo.Types[f].IsNil() {
		return "", nil
	}
	f = ast.Unparen(f)
	body := s.text(f) + "(e.Attempt.Err, e.Decision.Delay)"
	if lit, ok := f.(*ast.FuncLit); ok {
		var left, right []string
		args := []string{"e.Attempt.Err", "e.Decision.Delay"}
		for name := range paramNames(lit.Type.Params) {
			if calls.Names(s.pkg.TypesInfo, lit.Body, s.pkg.TypesInfo.Defs[name]) {
				left, right = append(left, name.Name), append(right, args[0])
			}
			args = args[1:]
		}
		body = strings.TrimSpace(string(s.src[s.offset(lit.Body.Lbrace)+1 : s.offset(lit.Body.Rbrace)]))
		if len(left) > 0 {
			body = strings.Join(left, ", ") + " := " + strings.Join(right, ", ") + "\n" + body
		}
	} else if !s.fixed(f) {
		return "", refuse("the notify function is not a literal or a function that keeps its value")
	}
	for n := range ast.Preorder(f) {
		if id, ok := n.(*ast.Ident); ok && id.Name == "e" {
			return "", refuse("the notify function has a variable e")
		}
	}
	return "func(_ " + s.contextName() + ".Context, e " + ours + ".Event) {\nif e.Decision.Status == " + ours + ".Waiting {\n" + body + "\n}\n}", nil
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
