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
)

// turns runs the statements of a loop that make its waits: the arithmetic on the counter and on variables for the delay.
type turns struct {
	info   *types.Info
	values map[types.Object]constant.Value
	u      float64 // what every random number is, from 0 to 1
	random map[ast.Node]bool
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

// run runs a statement that sets a variable for the delay, and reports whether it is known what it does.
func (t *turns) run(stmt ast.Stmt) bool {
	switch stmt := stmt.(type) {
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
		if _, exact := constant.Int64Val(constant.ToInt(v)); !exact {
			return false
		}
		t.values[obj] = v
		return true
	case *ast.IfStmt:
		cond := t.value(stmt.Cond)
		if cond == nil || stmt.Init != nil || stmt.Else != nil {
			return false
		}
		for _, inner := range stmt.Body.List {
			if constant.BoolVal(cond) && !t.run(inner) {
				return false
			}
		}
		return true
	}
	return false
}

// fit returns the Backoff with the waits that are from lo to hi; limited means that no more than these are needed.
func fit(lo, mid, hi []time.Duration, limited bool) (retry.Backoff, bool) {
	var b retry.Backoff
	d := hi
	half := func(i int, x time.Duration) time.Duration { return hi[i] / 2 }
	all := func(are []time.Duration, of func(int, time.Duration) time.Duration) bool {
		for i, x := range are {
			if x != of(i, x) {
				return false
			}
		}
		return true
	}
	switch {
	case slices.Equal(lo, hi):
	case all(lo, func(int, time.Duration) time.Duration { return 0 }):
		b.Jitter = retry.FullJitter
	case all(lo, half):
		b.Jitter = retry.EqualJitter
	default:
		b.Jitter, b.JitterRatio, d = retry.RatioJitter, float64(hi[0]-lo[0])/float64(hi[0]+lo[0]), mid
	}
	second := d[min(1, len(d)-1)]
	ratio := float64(second) / float64(max(d[0], 1))
	tries := []retry.Backoff{{Mode: retry.Fixed, Base: d[0]}}
	for _, most := range []time.Duration{0, slices.Max(d), math.MaxInt64} {
		if limited || most != 0 { // a default would cut the waits that are not known
			tries = append(tries, retry.Backoff{Base: d[0], Mode: retry.Exponential, Factor: ratio, Cap: most},
				retry.Backoff{Base: d[0], Mode: retry.Linear, Factor: ratio - 1, Cap: most})
		}
	}
	if limited && len(d) <= 12 && b.Jitter == 0 {
		tries = append(tries, retry.Backoff{Mode: retry.List, Delays: d})
	}
	for _, try := range tries {
		try.Jitter, try.JitterRatio = b.Jitter, b.JitterRatio
		if (d[0] > 0 || try.Mode == retry.List) && (retry.Policy{Backoff: try}).Validate() == nil && same(try, lo, hi) {
			return try, true
		}
	}
	return b, false
}

// same reports whether the bounds of b are those, to a nanosecond.
func same(b retry.Backoff, lo, hi []time.Duration) bool {
	for i := range lo {
		low, high := b.Bounds(i + 1)
		if (low-lo[i]).Abs() > 1 || (high-hi[i]).Abs() > 1 {
			return false
		}
	}
	return true
}
