// Package plugin makes retryvet a linter of golangci-lint's module plugin system. Its one linter has the name retryvet.
package plugin

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/retrygo/retry/cmd/retryvet/internal/suite"
)

func init() { register.Plugin("retryvet", New) }

// New returns the linter. It has no settings: golangci-lint refuses unknown ones, and so does New.
func New(settings any) (register.LinterPlugin, error) {
	if _, err := register.DecodeSettings[struct{}](settings); err != nil {
		return nil, err
	}
	return linter{}, nil
}

type linter struct{}

func (linter) BuildAnalyzers() ([]*analysis.Analyzer, error) { return suite.Analyzers(), nil }
func (linter) GetLoadMode() string                           { return register.LoadModeTypesInfo }
