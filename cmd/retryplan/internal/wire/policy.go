package wire

import (
	"errors"
	"time"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/cmd/retryplan/internal/literal"
	"github.com/retrygo/retry/retryconf"
	"github.com/retrygo/retry/retryplan"
)

// Policy is a policy in every form in which it can be copied.
type Policy struct {
	Name     string         `json:"name,omitempty"`
	Text     string         `json:"text"`     // the schedule on one line, as Policy.String without the name
	Go       string         `json:"go"`       // an expression
	Document retryconf.Spec `json:"document"` // what retryconf reads
}

// NewPolicy returns p as data. The error is that of retryconf.FromPolicy for a policy that does not validate.
func NewPolicy(p retry.Policy) (Policy, error) {
	spec, err := retryconf.FromPolicy(p)
	if _, code := errors.AsType[*retryconf.CodeError](err); err != nil && !code {
		return Policy{}, err
	}
	return Policy{p.Name, Schedule(p), literal.Go(p), spec}, nil
}

// Schedule returns p on one line without its name, which stands elsewhere.
func Schedule(p retry.Policy) string {
	p.Name = ""
	return p.String()
}

// Finding is one finding of lint.
type Finding struct {
	Code    string            `json:"code"`
	Level   string            `json:"level"` // note, warning, severe
	Text    string            `json:"text"`
	Change  string            `json:"change"`
	Figures map[string]Number `json:"figures,omitempty"`
	File    string            `json:"file,omitempty"` // of lint
	Line    int               `json:"line,omitempty"`
}

// NewFindings returns findings as data: an empty list, not null, if there are none.
func NewFindings(findings []retryplan.Finding) []Finding {
	list := make([]Finding, len(findings))
	for i, f := range findings {
		list[i] = Finding{Code: f.Code, Level: f.Level.String(), Text: f.Text, Change: f.Change}
		for key, x := range f.Figures {
			if list[i].Figures == nil {
				list[i].Figures = map[string]Number{}
			}
			list[i].Figures[key] = Number(x)
		}
	}
	return list
}

// Setting describes the use of a policy.
type Setting struct {
	Inline   bool           `json:"inline,omitzero"`
	Deadline Duration       `json:"deadline,omitzero"`
	Layers   int            `json:"layers,omitzero"`
	Clients  int            `json:"clients,omitzero"`
	Duration retryplan.Dist `json:"duration,omitzero"`
}

// Setting returns s as retryplan has it.
func (s Setting) Setting() retryplan.Setting {
	return retryplan.Setting{Inline: s.Inline, Deadline: time.Duration(s.Deadline), Layers: s.Layers, Clients: s.Clients, Duration: s.Duration}
}
