// Package policy defines an analyzer for policy literals that are wrong.
package policy

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryvet/internal/calls"
	"github.com/retrygo/retry/cmd/retryvet/internal/ignore"
	"github.com/retrygo/retry/retryplan"
)

const doc = `report policy literals that are wrong

A retry.Policy literal is reported if Validate refuses it or if retryplan.Lint has a severe finding: a duration that lacks
its unit, no retry that can start before TTL, endless waits of 0. All of its fields that the rules read must be constants.
A literal that is completed by Or, by OrSchedule or by an assignment to a field, and one in a test, are skipped.`

// Analyzer is the analyzer policy.
var Analyzer = ignore.OutsideTests("policy", doc, run)

func run(pass *analysis.Pass) (any, error) {
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	completed := map[*types.Var]bool{} // variables with a field or method that is named, or an address that is taken
	for cur := range in.Root().Preorder((*ast.SelectorExpr)(nil), (*ast.UnaryExpr)(nil)) {
		switch n := cur.Node().(type) {
		case *ast.SelectorExpr:
			completed[calls.Root(pass.TypesInfo, n.X)] = true
		case *ast.UnaryExpr:
			completed[calls.Root(pass.TypesInfo, n.X)] = n.Op == token.AND || completed[calls.Root(pass.TypesInfo, n.X)]
		}
	}
	for cur := range in.Root().Preorder((*ast.CompositeLit)(nil)) {
		lit := cur.Node().(*ast.CompositeLit)
		if !calls.IsNamed(pass.TypesInfo.TypeOf(lit), calls.Module, "Policy") {
			continue
		}
		v := assigned(pass.TypesInfo, cur)
		if _, isMethod := cur.Parent().Node().(*ast.SelectorExpr); isMethod || v != nil && completed[v] {
			continue
		}
		var p retry.Policy
		if fill(pass.TypesInfo, lit, reflect.ValueOf(&p).Elem()) {
			report(pass, lit, p)
		}
	}
	return nil, nil
}

// assigned returns the variable that is set to the literal at cur, or nil.
func assigned(info *types.Info, cur inspector.Cursor) *types.Var {
	switch n := cur.Parent().Node().(type) {
	case *ast.AssignStmt:
		return calls.Root(info, n.Lhs[min(slices.Index(n.Rhs, cur.Node().(ast.Expr)), len(n.Lhs)-1)])
	case *ast.ValueSpec:
		return calls.Root(info, n.Names[min(slices.Index(n.Values, cur.Node().(ast.Expr)), len(n.Names)-1)])
	}
	return nil
}

// unread are the fields that no severe finding depends on. Gate is not in the list, since a TTL can be meant for its
// waits.
var unread = map[string]bool{
	"Name": true, "Classify": true, "Pay": true, "Observe": true, "Rand": true, "Budget": true,
}

// fill sets to to the value of lit, and returns false if it is not known at compile time.
func fill(info *types.Info, lit *ast.CompositeLit, to reflect.Value) bool {
	for _, e := range lit.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			return false
		}
		name := kv.Key.(*ast.Ident).Name
		if unread[name] {
			continue
		}
		field := to.FieldByName(name)
		if !field.IsValid() || !set(info, kv.Value, field) {
			return false
		}
	}
	return true
}

func set(info *types.Info, x ast.Expr, to reflect.Value) bool {
	if lit, ok := ast.Unparen(x).(*ast.CompositeLit); ok {
		switch {
		case to.Kind() == reflect.Struct:
			return fill(info, lit, to)
		case to.Type() == reflect.TypeFor[[]time.Duration]():
			for _, e := range lit.Elts {
				element := reflect.New(to.Type().Elem()).Elem()
				if _, keyed := e.(*ast.KeyValueExpr); keyed || !set(info, e, element) {
					return false
				}
				to.Set(reflect.Append(to, element))
			}
			return true
		}
		return false
	}
	v := info.Types[x].Value
	if v == nil {
		return false
	}
	var value reflect.Value
	switch n, exact := constant.Int64Val(constant.ToInt(v)); {
	case exact:
		value = reflect.ValueOf(n)
	case to.CanFloat():
		f, _ := constant.Float64Val(v)
		value = reflect.ValueOf(f)
	case v.Kind() == constant.Bool:
		value = reflect.ValueOf(constant.BoolVal(v))
	}
	if !value.IsValid() || !value.CanConvert(to.Type()) {
		return false
	}
	to.Set(value.Convert(to.Type()))
	return true
}

func report(pass *analysis.Pass, lit *ast.CompositeLit, p retry.Policy) {
	var bugs []string
	for _, f := range retryplan.Lint(p, retryplan.Setting{}) {
		if f.Level == retryplan.Severe {
			bugs = append(bugs, fmt.Sprintf("%s (%s)", strings.TrimSuffix(f.Text, "."), f.Code))
		}
	}
	if len(bugs) > 0 {
		pass.ReportRangef(lit, "policy: %s", strings.Join(bugs, "; "))
	}
}
