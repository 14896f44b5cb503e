package migrate

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"slices"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/retries"
)

// turns runs the statements of a loop that make its waits: the arithmetic on the counter and on variables for the delay.
type turns struct {
	info   *types.Info
	values map[types.Object]constant.Value
	u      float64 // what every random number is, from 0 to 1
	random map[ast.Node]bool

	wait   retries.Wait
	waited time.Duration         // the length of the wait of this turn
	guard  *ast.IfStmt           // asks whether the attempt has failed, and waits; or nil
	delays map[types.Object]bool // the variables of the wait
	asks   ast.Node              // the call of a source, and what it returns
	next   func() (time.Duration, int)
}

// asked returns the next wait of the source.
func (t *turns) asked() constant.Value {
	t.random[t.asks] = true
	d, _ := t.next()
	return constant.MakeInt64(int64(d))
}

// value returns the value of x; nil if it is unknown or overflows.
func (t *turns) value(x ast.Expr) constant.Value {
	x = ast.Unparen(x)
	v := t.info.Types[x].Value
	if v == nil {
		v = t.computed(x)
	}
	b, isBasic := t.info.TypeOf(x).Underlying().(*types.Basic)
	switch {
	case v == nil || !isBasic:
		return nil
	case b.Info()&types.IsFloat != 0:
		f, _ := constant.Float64Val(v) // rounded at each step
		if math.IsInf(f, 0) {
			return nil
		}
		return constant.MakeFloat64(f)
	case b.Info()&types.IsInteger != 0:
		f, _ := constant.Float64Val(v)
		if v = constant.ToInt(v); v.Kind() == constant.Unknown { // a conversion cuts the fraction off
			v = constant.ToInt(constant.MakeFloat64(math.Trunc(f)))
		}
		if _, exact := constant.Int64Val(v); !exact {
			return nil
		}
	}
	return v
}

func (t *turns) computed(x ast.Expr) constant.Value {
	switch x := x.(type) {
	case *ast.Ident:
		return t.values[t.info.Uses[x]]
	case *ast.BinaryExpr:
		return t.binary(x.Op, t.value(x.X), t.value(x.Y), t.info.TypeOf(x))
	case *ast.CallExpr:
		return t.call(x)
	}
	return nil
}

func (t *turns) binary(op token.Token, a, b constant.Value, of types.Type) constant.Value {
	if a == nil || b == nil {
		return nil
	}
	switch op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		return constant.MakeBool(constant.Compare(a, op, b))
	case token.SHL, token.SHR:
		n, exact := constant.Uint64Val(constant.ToInt(b))
		if !exact || n > 62 {
			return nil
		}
		return constant.Shift(a, op, uint(n))
	case token.QUO, token.REM:
		if constant.Sign(b) == 0 {
			return nil
		}
		if basic := of.Underlying().(*types.Basic); op == token.QUO && basic.Info()&types.IsInteger != 0 {
			op = token.QUO_ASSIGN // of integers
		}
		return constant.BinaryOp(a, op, b)
	case token.ADD, token.SUB, token.MUL:
		return constant.BinaryOp(a, op, b)
	}
	return nil
}

// call returns the value of a conversion, of min and max, of math.Pow, Min and Max, and of a random number.
func (t *turns) call(call *ast.CallExpr) constant.Value {
	var args []constant.Value
	var floats []float64
	for _, arg := range call.Args {
		v := t.value(arg)
		if v == nil {
			return nil
		}
		f, _ := constant.Float64Val(v)
		args, floats = append(args, v), append(floats, f)
	}
	if call == t.asks {
		return t.asked()
	}
	fun := t.info.Types[call.Fun]
	name, isIdent := ast.Unparen(call.Fun).(*ast.Ident)
	switch {
	case fun.IsType():
		return args[0]
	case fun.IsBuiltin() && isIdent && (name.Name == "min" || name.Name == "max"):
		return slices.MinFunc(args, func(a, b constant.Value) int {
			if less := constant.Compare(a, token.LSS, b); less == (name.Name == "min") {
				return -1
			}
			return 1
		})
	case calls.IsFunc(t.info, call, "math", "Pow"):
		return constant.MakeFloat64(math.Pow(floats[0], floats[1]))
	case calls.IsFunc(t.info, call, "math", "Min"):
		return constant.MakeFloat64(math.Min(floats[0], floats[1]))
	case calls.IsFunc(t.info, call, "math", "Max"):
		return constant.MakeFloat64(math.Max(floats[0], floats[1]))
	}
	for _, path := range []string{"math/rand", "math/rand/v2"} {
		switch {
		case calls.IsFunc(t.info, call, path, "Int63n", "Intn", "Int31n", "IntN", "Int64N", "Int32N", "N", "Rand.Int63n", "Rand.Intn"):
			t.random[call] = true
			return constant.MakeInt64(int64(t.u * floats[0]))
		case calls.IsFunc(t.info, call, path, "Float64", "Rand.Float64"):
			t.random[call] = true
			return constant.MakeFloat64(t.u)
		}
	}
	return nil
}

// run runs the parts of stmt that set a variable of the wait, or wait, and reports whether it is known what they do.
func (t *turns) run(stmt ast.Stmt) bool {
	switch stmt := stmt.(type) {
	case *ast.BlockStmt:
		for _, inner := range stmt.List {
			if t.concerns(inner) && !t.run(inner) {
				return false
			}
		}
		return true
	case *ast.AssignStmt:
		if len(stmt.Lhs) != 1 || len(stmt.Rhs) != 1 {
			return false
		}
		obj, v := t.info.ObjectOf(stmt.Lhs[0].(*ast.Ident)), t.value(stmt.Rhs[0])
		if stmt.Tok != token.ASSIGN && stmt.Tok != token.DEFINE {
			v = t.binary(stmt.Tok-token.ADD_ASSIGN+token.ADD, t.values[obj], v, obj.Type())
		}
		if v == nil {
			return false
		}
		_, exact := constant.Int64Val(constant.ToInt(v))
		t.values[obj] = v
		return exact
	case *ast.IfStmt:
		cond := t.value(stmt.Cond)
		if stmt == t.guard {
			cond = constant.MakeBool(true)
		}
		return cond != nil && stmt.Init == nil && stmt.Else == nil && (!constant.BoolVal(cond) || t.run(stmt.Body))
	}
	return within(t.wait.Node, stmt) && t.sleep()
}

// sleep sets waited, and reports whether it is known.
func (t *turns) sleep() bool {
	v := constant.Value(nil)
	if t.wait.Delay != nil {
		v = t.value(t.wait.Delay)
	} else {
		v = t.asked()
	}
	if v == nil {
		return false
	}
	n, _ := constant.Int64Val(v)
	t.waited = max(0, time.Duration(n))
	return true
}

// concerns reports whether stmt waits, or sets a variable of the wait.
func (t *turns) concerns(stmt ast.Stmt) bool {
	for n := range ast.Preorder(stmt) {
		a, isAssign := n.(*ast.AssignStmt)
		if n == t.wait.Node || isAssign && slices.ContainsFunc(a.Lhs, func(x ast.Expr) bool {
			id, isIdent := x.(*ast.Ident)
			return isIdent && t.delays[t.info.ObjectOf(id)]
		}) {
			return true
		}
	}
	return false
}

// fit returns the Backoff whose waits are from lo to hi, to a microsecond. limited means that no more than these are needed.
// If there is none, it returns one whose waits are from lo to hi, too, but do not use the whole range once they have reached
// the cap most; 0 means that they have none.
func fit(lo, hi []time.Duration, limited bool, most time.Duration) (retry.Backoff, error) {
	none := refuse("no Backoff has its waits, which begin with %v to %v", lo[:min(4, len(lo))], hi[:min(4, len(hi))])
	jitter, ratio, d := retry.NoJitter, 0.0, slices.Clone(hi)
	all := func(of func(i int) time.Duration) bool {
		for i, x := range lo {
			if x != of(i) {
				return false
			}
		}
		return true
	}
	switch {
	case slices.Equal(lo, hi):
	case all(func(int) time.Duration { return 0 }):
		jitter = retry.FullJitter
	case all(func(i int) time.Duration { return hi[i] / 2 }):
		jitter = retry.EqualJitter
	case lo[0] <= 0:
		return retry.Backoff{}, none
	default:
		jitter, ratio = retry.RatioJitter, float64(hi[0]-lo[0])/float64(hi[0]+lo[0])
		for i := range d {
			d[i] = time.Duration(math.Round(float64(lo[i]) / (1 - ratio)))
		}
	}
	factor := float64(d[min(1, len(d)-1)]) / float64(max(d[0], 1))
	tries := []retry.Backoff{{Mode: retry.Fixed, Base: d[0]}}
	for _, limit := range []time.Duration{0, slices.Max(d), math.MaxInt64} {
		if limited || limit != 0 { // a default would cut the waits that are not known
			tries = append(tries, retry.Backoff{Base: d[0], Mode: retry.Exponential, Factor: factor, Cap: limit},
				retry.Backoff{Base: d[0], Mode: retry.Linear, Factor: factor - 1, Cap: limit})
		}
	}
	n := len(d) // without those that repeat the last one
	for n > 1 && d[n-1] == d[n-2] {
		n--
	}
	if n <= 12 && (limited || n < len(d)) {
		tries = append(tries, retry.Backoff{Mode: retry.List, Delays: d[:n]}, retry.Backoff{Mode: retry.List, Delays: d[:n], Cap: slices.Max(hi)})
	}
	fits := func(b retry.Backoff, most time.Duration) bool {
		return (d[0] > 0 || b.Mode == retry.List) && (retry.Policy{Backoff: b}).Validate() == nil && same(b, lo, hi, most)
	}
	for _, try := range tries {
		if try.Jitter, try.JitterRatio = jitter, ratio; fits(try, 0) {
			return try, nil
		}
	}
	capped := retry.Backoff{Base: d[0], Mode: retry.Exponential, Factor: factor, Cap: most, Jitter: jitter, JitterRatio: ratio}
	if most == 0 || !fits(capped, most) {
		return retry.Backoff{}, none
	}
	return capped, nil
}

// same reports whether the waits of b have those bounds, or, where they end at the cap most, are within them.
func same(b retry.Backoff, lo, hi []time.Duration, most time.Duration) bool {
	for i := range lo {
		low, high := b.Bounds(i + 1)
		below, above := lo[i]-low, high-hi[i]
		if max(below, above) > time.Microsecond || min(below, above) < -time.Microsecond && (most == 0 || high != most) {
			return false
		}
	}
	return true
}
