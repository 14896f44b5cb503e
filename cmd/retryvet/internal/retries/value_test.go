package retries

import (
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValuesOfExpressions(t *testing.T) {
	const source = `package p

import (
	"math"
	"math/rand"
	"time"
)

var (
	n, unknown int
	f          float64
	_          = math.Pow
	_          = rand.Intn
	_          = time.Second
)
`
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", source, 0)
	require.NoError(t, err)
	pkg, err := (&types.Config{Importer: importer.Default()}).Check("p", fset, []*ast.File{file}, nil)
	require.NoError(t, err)
	known := map[string]constant.Value{"n": constant.MakeInt64(3), "f": constant.MakeFloat64(2.5)}

	for text, want := range map[string]string{
		"7":                                  "7",
		"n":                                  "3",
		"unknown":                            "", // and what it is in
		"n + unknown":                        "",
		"min(n, unknown)":                    "",
		"-n":                                 "",
		"(n + 2) * n - 1":                    "14",
		"n / 2":                              "1",
		"(n - 10) / 2":                       "-3", // towards zero
		"(n - 10) % 2":                       "-1",
		"n / (n - 3)":                        "",
		"n % (n - 3)":                        "",
		"f / 2":                              "5/4",
		"1 << n":                             "8",
		"1024 >> uint(n)":                    "128",
		"n << 61":                            "6917529027641081856",
		"n << 62":                            "", // more than an int
		"n * math.MaxInt":                    "",
		"int32(n) << 30":                     "",
		"int8(n + 124)":                      "127",
		"int8(n + 125)":                      "",
		"int8(n - 131)":                      "-128",
		"int8(n - 132)":                      "",
		"uint8(n + 252)":                     "255",
		"uint8(n + 253)":                     "",
		"uint64(n - 4)":                      "",
		"int(f)":                             "2",
		"int(-2.5 * f)":                      "-6",
		"time.Duration(f * 1e9)":             "2500000000",
		"time.Duration(n) * time.Second":     "3000000000",
		"time.Duration(n) * 1e6 * time.Hour": "", // 3 million hours
		"n < 4":                              "true",
		"n >= 4":                             "false",
		"n == 3":                             "true",
		"n != 3":                             "false",
		"min(n, 5, 4)":                       "3",
		"max(f, 1)":                          "5/2",
		"math.Pow(2, f*2)":                   "32",
		"math.Pow(f, 1e6)":                   "", // infinite
		"math.Pow(-1, f)":                    "", // not a number
		"math.Min(f, 9)":                     "5/2",
		"math.Max(f, 9)":                     "9",
		"math.Sqrt(f)":                       "",
		"rand.Intn(n)":                       "3",
		"rand.Float64()":                     "1",
		"1 + rand.Int63n(int64(f*4))":        "11",
		"rand.Int()":                         "",
		`"text"`:                             `"text"`,
		`"a" + "b"`:                          `"ab"`,
		"[]int{1}":                           "",
	} {
		x, err := parser.ParseExprFrom(fset, "x.go", text, 0)
		require.NoError(t, err, text)
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
		require.NoError(t, types.CheckExpr(fset, pkg, file.End()-1, x, info), text)
		got := Eval{Info: info, Most: true, Known: func(x ast.Expr) constant.Value {
			name, _ := x.(*ast.Ident)
			if name == nil {
				return nil
			}
			return known[name.Name]
		}}.Value(x)
		if want == "" {
			require.Nil(t, got, text)
			continue
		}
		require.NotNil(t, got, text)
		require.Equal(t, want, got.ExactString(), text)
	}
}
