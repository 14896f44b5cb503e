package retries

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"slices"

	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
)

// An Eval computes the values of numbers and conditions.
type Eval struct {
	Info  *types.Info
	Known func(x ast.Expr) constant.Value // the value of a variable, a field or a call; nil if it is unknown
	Most  bool                            // a random number counts as the limit of its range; otherwise it is unknown
}

// Value returns the value of x; nil if it is unknown or overflows its type.
func (e Eval) Value(x ast.Expr) constant.Value {
	x = ast.Unparen(x)
	v := e.Info.Types[x].Value
	if v == nil {
		v = e.computed(x)
	}
	return typed(v, e.Info.TypeOf(x))
}

// typed returns v as a value of type t; nil if it is unknown or overflows.
func typed(v constant.Value, t types.Type) constant.Value {
	b, isBasic := t.Underlying().(*types.Basic)
	switch {
	case v == nil || v.Kind() == constant.Unknown || !isBasic: // infinite, or not a number
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
		n, exact := constant.Int64Val(v)
		bits := 8 * types.SizesFor("gc", "amd64").Sizeof(types.Default(b))
		fits := n>>(bits-1) == n>>63 // all of them are the sign
		if b.Info()&types.IsUnsigned != 0 {
			fits = n>>bits == 0
		}
		if !exact || !fits {
			return nil
		}
	}
	return v
}

func (e Eval) computed(x ast.Expr) constant.Value {
	if v := e.Known(x); v != nil {
		return v
	}
	switch x := x.(type) {
	case *ast.BinaryExpr:
		return Binary(x.Op, e.Value(x.X), e.Value(x.Y))
	case *ast.CallExpr:
		return e.call(x)
	}
	return nil
}

// Binary returns a op b, of two values of one type; nil if it is unknown.
func Binary(op token.Token, a, b constant.Value) constant.Value {
	if a == nil || b == nil || a.Kind() == constant.Bool || a.Kind() == constant.String {
		return nil
	}
	switch op {
	case token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
		return constant.MakeBool(constant.Compare(a, op, b))
	case token.SHL, token.SHR:
		if n, exact := constant.Uint64Val(constant.ToInt(b)); exact && n <= 62 {
			return constant.Shift(a, op, uint(n))
		}
	case token.QUO, token.REM:
		if constant.Sign(b) == 0 {
			return nil
		}
		if a.Kind() == constant.Int && b.Kind() == constant.Int && op == token.QUO {
			op = token.QUO_ASSIGN // of integers
		}
		return constant.BinaryOp(a, op, b)
	case token.ADD, token.SUB, token.MUL:
		return constant.BinaryOp(a, op, b)
	}
	return nil
}

// call returns the value of a conversion, of min and max, of math.Pow, Min and Max, and of a random number.
func (e Eval) call(call *ast.CallExpr) constant.Value {
	var args []constant.Value
	for _, arg := range call.Args {
		v := e.Value(arg)
		if v == nil {
			return nil
		}
		args = append(args, v)
	}
	number := func(i int) float64 { f, _ := constant.Float64Val(args[i]); return f }
	fun := e.Info.Types[call.Fun]
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
	}
	for name, f := range map[string]func(x, y float64) float64{"Pow": math.Pow, "Min": math.Min, "Max": math.Max} {
		if calls.IsFunc(e.Info, call, "math", name) {
			return constant.MakeFloat64(f(number(0), number(1)))
		}
	}
	for _, path := range []string{"math/rand", "math/rand/v2"} {
		switch {
		case !e.Most:
		case calls.IsFunc(e.Info, call, path, "Int63n", "Intn", "Int31n", "IntN", "Int64N", "Int32N", "N", "Rand.Int63n", "Rand.Intn"):
			return constant.MakeInt64(int64(number(0)))
		case calls.IsFunc(e.Info, call, path, "Float64", "Rand.Float64"):
			return constant.MakeFloat64(1)
		}
	}
	return nil
}
