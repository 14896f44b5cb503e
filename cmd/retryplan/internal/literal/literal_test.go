package literal_test

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/constant"
	"go/format"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"math"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/literal"
)

func TestGo(t *testing.T) {
	for _, row := range []struct {
		name string
		p    retry.Policy
		want string
	}{
		{"the zero policy", retry.Policy{}, `retry.Policy{}`},
		{"a short one", retry.Policy{MaxAttempts: 3, TTL: time.Hour}, `retry.Policy{MaxAttempts: 3, TTL: time.Hour}`},
		{"a list", retry.Standard(), `retry.Policy{
	Name: "standard",
	Backoff: retry.Backoff{
		Delays: []time.Duration{time.Minute, 30 * time.Minute, 3 * time.Hour},
	},
}`},
		{"every field", every, `retry.Policy{
	Name:        "a \"name\"",
	MaxAttempts: retry.Unlimited,
	Backoff: retry.Backoff{
		Mode:        retry.Linear,
		Base:        90 * time.Second,
		Factor:      1.5,
		Cap:         time.Hour,
		Jitter:      retry.RatioJitter,
		JitterRatio: 0.25,
	},
	AttemptTimeout: 1500 * time.Millisecond,
	TTL:            24 * time.Hour,
	MaxHint:        time.Nanosecond,
	ResetAfter:     time.Hour,
	Disabled:       true,
}`},
	} {
		t.Run(row.name, func(t *testing.T) {
			require.Equal(t, row.want, literal.Go(row.p))
		})
	}
}

// every has a value in every field that is data.
var every = retry.Policy{
	Name: `a "name"`, MaxAttempts: retry.Unlimited, AttemptTimeout: 1500 * time.Millisecond, TTL: 24 * time.Hour, MaxHint: 1, ResetAfter: time.Hour, Disabled: true,
	Backoff: retry.Backoff{Mode: retry.Linear, Base: 90 * time.Second, Factor: 1.5, Cap: time.Hour, Jitter: retry.RatioJitter, JitterRatio: .25},
}

func TestBudget(t *testing.T) {
	require.Equal(t, `retry.BudgetConfig{}`, literal.Go(retry.BudgetConfig{}))
	require.Equal(t, `retry.BudgetConfig{Ratio: 0.2, Burst: 5, Initial: -1, Trickle: time.Second}`,
		literal.Go(retry.BudgetConfig{Ratio: .2, Burst: 5, Initial: -1, Trickle: time.Second}))
}

// FuzzGo holds that the literal of any policy is Go that says the same policy, formatted as gofmt does it: it is
// compiled against the package, and its constants are read back.
func FuzzGo(f *testing.F) {
	f.Add("name", 4, uint8(1), int64(time.Second), 2.0, int64(time.Minute), int64(0), uint8(1), 0.0, int64(time.Second), int64(0), int64(0), false)
	f.Add("\"`\n", -1, uint8(4), int64(1), 1e300, int64(math.MaxInt64), int64(-5), uint8(3), 0.1, int64(1), int64(math.MinInt64), int64(3), true)
	check := newChecker(f)
	f.Fuzz(func(t *testing.T, name string, attempts int, mode uint8, base int64, factor float64, limit, delay int64, jitter uint8, ratio float64, timeout, ttl, hint int64, disabled bool) {
		p := retry.Policy{
			Name: name, MaxAttempts: attempts, AttemptTimeout: time.Duration(timeout), TTL: time.Duration(ttl), MaxHint: time.Duration(hint), Disabled: disabled,
			Backoff: retry.Backoff{
				Mode: retry.Mode(mode), Base: time.Duration(base), Factor: factor, Cap: time.Duration(limit),
				Jitter: retry.JitterMode(jitter), JitterRatio: ratio,
			},
		}
		if delay != 0 {
			p.Delays = []time.Duration{time.Duration(delay), time.Duration(delay) / 2, 0}
		}
		if math.IsNaN(factor+ratio) || math.IsInf(factor+ratio, 0) {
			t.Skip("no valid policy, which has no literal")
		}
		text := literal.Go(p)
		formatted, err := format.Source([]byte(text))
		require.NoError(t, err, text)
		require.Equal(t, text, string(formatted))
		values := check(t, text)
		for field, want := range map[string]int64{"Base": base, "Cap": limit, "AttemptTimeout": timeout, "TTL": ttl, "MaxHint": hint, "MaxAttempts": int64(attempts)} {
			got := int64(0)
			if v, ok := values[field]; ok {
				got, ok = constant.Int64Val(v)
				require.True(t, ok)
			}
			require.Equal(t, want, got, "%s in %s", field, text)
		}
	})
}

// newChecker returns a function that type-checks an expression and gives the constants of its fields.
func newChecker(f *testing.F) func(*testing.T, string) map[string]constant.Value {
	set := token.NewFileSet()
	root, err := exec.Command("go", "env", "GOROOT").Output() // which a binary built with -trimpath does not know
	require.NoError(f, err)
	build.Default.GOROOT = strings.TrimSpace(string(root))
	imports := importer.ForCompiler(set, "source", nil)
	return func(t *testing.T, text string) map[string]constant.Value {
		source := fmt.Sprintf("package p\nimport (\n\t\"time\"\n\t\"github.com/retrygo/retry\"\n)\nvar _ time.Duration\nvar P = %s\n", text)
		file, err := parser.ParseFile(set, "p.go", source, 0)
		require.NoError(t, err, source)
		info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		_, err = (&types.Config{Importer: imports}).Check("p", set, []*ast.File{file}, &info)
		require.NoError(t, err, source)
		values := map[string]constant.Value{}
		ast.Inspect(file, func(n ast.Node) bool {
			if kv, ok := n.(*ast.KeyValueExpr); ok {
				if v := info.Types[kv.Value].Value; v != nil {
					values[kv.Key.(*ast.Ident).Name] = v
				}
			}
			return true
		})
		return values
	}
}

func ExampleGo() {
	fmt.Println(literal.Go(retry.Policy{MaxAttempts: 4, Backoff: retry.Backoff{Base: 50 * time.Millisecond, Cap: time.Second, Jitter: retry.FullJitter}}))
	// Output:
	// retry.Policy{
	// 	MaxAttempts: 4,
	// 	Backoff: retry.Backoff{
	// 		Base:   50 * time.Millisecond,
	// 		Cap:    time.Second,
	// 		Jitter: retry.FullJitter,
	// 	},
	// }
}
