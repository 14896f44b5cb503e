// Package plugin makes retryvet a linter of golangci-lint's module plugin system. Its one linter has the name retryvet.
package plugin

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/retrygo/retry/cmd/retryvet/internal/suite"
)

func init() { register.Plugin("retryvet", New) }

// New returns the linter. It has no settings, and refuses any.
func New(settings any) (register.LinterPlugin, error) {
	return register.DecodeSettings[linter](settings)
}

type linter struct{}

func (linter) BuildAnalyzers() ([]*analysis.Analyzer, error) { return suite.Analyzers(), nil }

func (linter) GetLoadMode() string { return register.LoadModeTypesInfo }
