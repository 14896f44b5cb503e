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
	"github.com/retrygo/retry/cmd/retryvet/internal/retries"
)

// turns runs the statements of a loop that make its waits: the arithmetic on the counter and on variables for the delay.
type turns struct {
	retries.Eval
	values map[types.Object]constant.Value

	wait   retries.Wait
	waited time.Duration // the length of the wait of this turn
	guard  *ast.IfStmt   // asks whether the attempt has failed, and waits; or nil
	sets   []ast.Node    // the statements that set the variables of the wait, or wait
	asks   ast.Node      // the call of a source, and what it returns
	next   func() (time.Duration, int)
}

// asked returns the next wait of the source.
func (t *turns) asked() constant.Value {
	t.Random[t.asks] = true
	d, _ := t.next()
	return constant.MakeInt64(int64(d))
}

// run runs the parts of stmt that set a variable of the wait, or wait, and reports whether it is known what they do.
func (t *turns) run(stmt ast.Stmt) bool {
	switch stmt := stmt.(type) {
	case *ast.BlockStmt:
		for _, inner := range stmt.List {
			does := func(set ast.Node) bool { return within(inner, set) || within(set, inner) }
			if slices.ContainsFunc(t.sets, does) && !t.run(inner) {
				return false
			}
		}
		return true
	case *ast.AssignStmt:
		if len(stmt.Lhs) != 1 || len(stmt.Rhs) != 1 {
			return false
		}
		obj, v := t.Info.ObjectOf(stmt.Lhs[0].(*ast.Ident)), t.Value(stmt.Rhs[0])
		if stmt.Tok != token.ASSIGN && stmt.Tok != token.DEFINE {
			v = retries.Typed(retries.Binary(stmt.Tok-token.ADD_ASSIGN+token.ADD, t.values[obj], v), obj.Type())
		}
		t.values[obj] = v
		return v != nil
	case *ast.IfStmt:
		cond := t.Value(stmt.Cond)
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
		v = t.Value(t.wait.Delay)
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

// fit returns the Backoff whose waits are from lo to hi, to a microsecond. limited means that no more than these are needed.
// If there is none, it returns one whose waits are from lo to hi, too, but do not use the whole range once they have reached
// the cap most; 0 means that they have none.
func fit(lo, hi []time.Duration, limited bool, most time.Duration) retry.Backoff {
	none := refuse("no Backoff has its waits, which begin with %v to %v", lo[:min(4, len(lo))], hi[:min(4, len(hi))])
	jitter, ratio, d := retry.NoJitter, 0.0, slices.Clone(hi)
	half := func(low, high time.Duration) bool { return low == high/2 }
	switch {
	case slices.Equal(lo, hi):
	case slices.Max(lo) == 0:
		jitter = retry.FullJitter
	case slices.EqualFunc(lo, hi, half):
		jitter = retry.EqualJitter
	case lo[0] <= 0:
		panic(none)
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
			return try
		}
	}
	capped := retry.Backoff{Base: d[0], Mode: retry.Exponential, Factor: factor, Cap: most, Jitter: jitter, JitterRatio: ratio}
	if most == 0 || !fits(capped, most) {
		panic(none)
	}
	return capped
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
