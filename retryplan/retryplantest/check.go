// Package retryplantest holds the policies of a program to what package retryplan says of them, in the program's own
// tests: the policies are Go literals, which no command can read.
//
//	func TestChargePolicy(t *testing.T) {
//		retryplantest.Check(t, chargePolicy, retryplantest.Options{
//			Fleet: retryplan.Fleet{
//				Rate: 70, Capacity: 100, Clients: 20, Budget: &retry.BudgetConfig{},
//				Trigger: retryplan.Trigger{Kind: retryplan.Stall, For: 10 * time.Second},
//			},
//			Setting: retryplan.Setting{Inline: true, Deadline: 5 * time.Second},
//			Ignore:  map[string]string{"long-hint-inline": "the peer sends no Retry-After"},
//		})
//	}
//
// This package may change until it says otherwise.
package retryplantest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/retrygo/retry"
	"github.com/retrygo/retry/retryplan"
)

// Options describe the use of a policy and which findings it may have. The zero Options say nothing of its use, and
// fail for warnings and severe findings.
type Options struct {
	// Setting is what Lint takes into account. If its Deadline or Clients is zero, that of Fleet counts.
	Setting retryplan.Setting
	// Fleet is what is certified. A Fleet whose Rate and Capacity are both zero is none. If it has a Budget, the policy
	// is taken to have one.
	Fleet retryplan.Fleet
	// Ignore has the reason for each finding that is meant to be, by its code. A code that does not exist, one without
	// a reason and one that is not found fail the test: nothing that is ignored stays behind. Nil means none.
	Ignore map[string]string
	// Fail is the least level that fails the test. Other findings are logged. Zero means retryplan.Warning.
	Fail retryplan.Level
}

// Check reports with t.Error each finding of retryplan.Lint about p at or above o.Fail, with what to change. If there
// is a fleet it also reports the stability of retryplan.Certify as a finding: metastable and overloaded are severe,
// vulnerable is a note. A fleet that cannot be certified is an error. The budgets of policies are code, so that a
// policy with one and a fleet without one is an error, too: the certificate would be that of another policy.
func Check(t testing.TB, p retry.Policy, o Options) {
	t.Helper()
	found, err := findings(p, o)
	if err != nil {
		t.Errorf("%s: %v", name(p), err)
	}
	for _, f := range found {
		text := fmt.Sprintf("%s: %v %s: %s", name(p), f.Level, f.Code, f.Text)
		if f.Change != "" {
			text += "\n\tdo: " + f.Change
		}
		reason, ignored := o.Ignore[f.Code]
		switch {
		case ignored:
			t.Logf("%s\n\tignored: %s", text, reason)
		case f.Level >= cmp.Or(o.Fail, retryplan.Warning):
			t.Error(text)
		default:
			t.Log(text)
		}
	}
	codes := append(retryplan.Codes(), retryplan.Vulnerable.String(), retryplan.Metastable.String(), retryplan.Overloaded.String())
	for _, code := range slices.Sorted(maps.Keys(o.Ignore)) {
		switch {
		case !slices.Contains(codes, code):
			t.Errorf("%s: Ignore: there is no finding %q", name(p), code)
		case strings.TrimSpace(o.Ignore[code]) == "":
			t.Errorf("%s: Ignore: %s has no reason", name(p), code)
		case err == nil && !slices.ContainsFunc(found, func(f retryplan.Finding) bool { return f.Code == code }):
			t.Errorf("%s: Ignore: %s is not found; do not ignore it", name(p), code)
		}
	}
}

// findings returns what is to be said of p.
func findings(p retry.Policy, o Options) ([]retryplan.Finding, error) {
	f, s := o.Fleet, o.Setting
	s.Deadline, s.Clients = cmp.Or(s.Deadline, f.Deadline), cmp.Or(s.Clients, f.Clients)
	linted := p
	if f.Budget != nil && p.Budget == nil {
		linted.Budget = retry.NewBudget(*f.Budget)
	}
	found := retryplan.Lint(linted, s)
	switch {
	case f.Rate == 0 && f.Capacity == 0, p.Validate() != nil: // which Lint has said
		return found, nil
	case p.Budget != nil && f.Budget == nil:
		return found, fmt.Errorf("Options.Fleet.Budget is nil, but the policy has a Budget: say there what it is made of")
	}
	c, err := retryplan.Certify(p, f)
	if err != nil || c.Stability == retryplan.Safe {
		return found, err
	}
	return append(found, verdict(c, f)), nil
}

// verdict returns a certificate that is not Safe as a finding.
func verdict(c retryplan.Certificate, f retryplan.Fleet) retryplan.Finding {
	found := retryplan.Finding{Code: c.Stability.String(), Level: retryplan.Severe}
	switch c.Stability {
	case retryplan.Vulnerable:
		found.Level, found.Text = retryplan.Note, "The fleet recovers from this trigger, but not from a larger one"
	case retryplan.Metastable:
		found.Text, found.Change = "The fleet does not recover from its trigger by itself", "Set Budget, or fewer attempts."
	default:
		found.Text = "The backend is overloaded even in a calm, or it answers too late"
	}
	found.Text += fmt.Sprintf(": in a storm %.4g runs/s become %.4g attempts/s, and the backend does %.4g (law: %v).",
		f.Rate, f.Rate*c.Attempts, f.Capacity, c.Law)
	return found
}

// name returns what errors call p.
func name(p retry.Policy) string { return cmp.Or(p.Name, "policy") }
