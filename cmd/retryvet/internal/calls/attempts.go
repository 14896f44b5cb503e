package calls

import (
	"go/ast"
	"go/constant"
	"go/types"
)

// Attempts returns the least number of attempts that a policy allows, as far as the expression shows it, otherwise 2.
func Attempts(info *types.Info, policy ast.Expr) int {
	switch p := ast.Unparen(policy).(type) {
	case *ast.CallExpr:
		switch {
		case IsFunc(info, p, Module, "Inline", "Aggressive", "Standard", "Patient"):
			return 4
		case IsFunc(info, p, Module, "Cautious"):
			return 6
		}
	case *ast.CompositeLit:
		attempts, list := 8, false
		for _, e := range p.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok {
				return 2
			}
			switch kv.Key.(*ast.Ident).Name {
			case "MaxAttempts":
				v := info.Types[kv.Value].Value
				if v == nil {
					return 2
				}
				n, _ := constant.Int64Val(v)
				if n != 0 {
					return max(int(n), -1)
				}
			case "Backoff":
				list = true
			case "Disabled":
				return 1
			}
		}
		if list { // it may be one of Delays
			return 2
		}
		return attempts
	}
	return 2
}
