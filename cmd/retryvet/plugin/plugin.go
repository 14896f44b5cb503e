// Package plugin makes retryvet a linter of golangci-lint's module plugin system. Its one linter has the name retryvet.
package plugin

import (
	"strconv"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/retrygo/retry/cmd/retryvet/internal/suite"
	"github.com/retrygo/retry/cmd/retryvet/loop"
)

func init() { register.Plugin("retryvet", New) }

// New returns the linter. Its one setting is more: true, which is the flag -loop.more. Others are refused.
func New(settings any) (register.LinterPlugin, error) {
	l, err := register.DecodeSettings[linter](settings)
	if err != nil {
		return nil, err
	}
	return l, nil
}

type linter struct {
	More bool `json:"more"`
}

func (l linter) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	return suite.Analyzers(), loop.Analyzer.Flags.Set("more", strconv.FormatBool(l.More))
}

func (linter) GetLoadMode() string { return register.LoadModeTypesInfo }
