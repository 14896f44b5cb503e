// Package plugin makes retryvet a linter of golangci-lint's module plugin system. Its one linter has the name retryvet.
package plugin

import (
	"slices"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/retrygo/retry/cmd/retryvet/internal/suite"
)

func init() { register.Plugin("retryvet", New) }

// New returns the linter. Its one setting is loop: true, which adds the analyzer loop. Others are refused.
func New(settings any) (register.LinterPlugin, error) {
	l, err := register.DecodeSettings[linter](settings)
	if err != nil {
		return nil, err
	}
	return l, nil
}

type linter struct {
	Loop bool `json:"loop"`
}

func (l linter) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	return slices.DeleteFunc(suite.Analyzers(), func(a *analysis.Analyzer) bool { return !l.Loop && !suite.ByDefault(a) }), nil
}

func (linter) GetLoadMode() string { return register.LoadModeTypesInfo }
